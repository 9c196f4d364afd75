import type { OrderOutcome, PowerOrderType } from "../../hack/rack/events.ts";
import type { Bmc } from "../../hack/rack/bmc.ts";
import { LOGGED } from "../../hack/rack/event-log.ts";
import type { LoggedEvent } from "../../hack/rack/event-log.ts";
import type { BmcLogEntry } from "../../src/bmc/evidence/model.ts";
import { rankOf } from "../../src/bmc/evidence/rank.ts";
import { topicOfWords } from "../../src/bmc/evidence/topics.ts";
import { EVIDENCE_READ_MS_MAX } from "../../src/bmc/gate/limits/reading-budget.ts";
import type { Rack } from "../../hack/rack/rack.ts";
import { isOutletAddress } from "../../src/bmc/interface/address.ts";
import type { BootOverride, PowerDriver, PowerReading } from "../../src/bmc/interface/driver.ts";
import type { HostIdentity } from "../../src/bmc/identity/host-identity.ts";
import type { BmcErrorCode } from "../../src/bmc/interface/errors.ts";
import { BmcError, orderNotAllowed } from "../../src/bmc/interface/errors.ts";
import { BMC_SETTLE_MS } from "../../src/bmc/gate/memory/possible-restarts.ts";
import type { DeviceConfig, OpenDevice } from "../../src/bmc/interface/device-config.ts";
import type { Clock } from "../../src/runtime/clock.ts";
import { abortReason, sleep } from "../../src/runtime/clock.ts";
import { toTime } from "../../src/runtime/time.ts";
import { Pdus } from "./pdus.ts";

/** Duration of a call to a simulated BMC. */
const CALL_MS = 20;
/** Delay between the acknowledgement of a late order and its effect. */
const LATE_MS = 8_000;
const NEVER = new AbortController().signal;

export type CallName =
  | "identify"
  | "readPower"
  | "ForceOff"
  | "On"
  | "setBootOverride"
  | "readBootOverride"
  | "Nmi"
  | "acCycle";

/** Calls that change something. */
export const CHANGING_CALLS: readonly CallName[] = ["ForceOff", "On", "setBootOverride", "Nmi", "acCycle"];

/** One call to a BMC, in the order in which they were made. */
export interface BmcCall {
  host: string;
  call: CallName;
  atMs: number;
  /** The number of the opened device that made the call. */
  device: number;
}

/** Faults of BMCs in addition to those of the rack itself. */
export interface BmcFaults {
  /** The password that BMCs accept. */
  password: string;
  /** Calls whose answer is lost, although they take effect: `host call`. */
  readonly losesAnswer: Set<string>;
  /** Refused calls, as `host call`. */
  readonly refuses: Set<string>;
  /** Calls that the account must not make, as `host call`. */
  readonly denies: Set<string>;
  /** Hosts without a Chassis or second device that confirms that they are off. */
  readonly alone: Set<string>;
  /** Hosts whose BMC does not report its start time. */
  readonly undated: Set<string>;
  /** Hosts whose BMC offers an AC cycle, and its effect. */
  readonly cycles: Map<string, "done" | "ignored" | "dead">;
  /** Called while the answer to a call is in transit, by `host call`. */
  readonly meanwhile: Map<string, () => Promise<void>>;
}

/**
 * A fault of one call. With an error code, the call has no effect; with `after`, it still takes effect. slow: the
 * answer comes just within the deadline. late: an order is accepted and takes effect much later. ignored: an order is
 * accepted without any effect. staleOn, changing, unknown: this is read instead of the real state. The other values say
 * which host answers.
 */
export type CallFault = { error: BmcErrorCode; after?: boolean } | { lie: Lie };
export type Lie = "slow" | "late" | "ignored" | "staleOn" | "changing" | "unknown" | "otherHost" | "nobody";

/** A caller of BMCs, and the faults of its calls. */
export interface DeviceUser {
  name: string;
  /** Passes one call on. The process may end before or after it. */
  pass<T>(host: string, call: CallName, signal: AbortSignal, send: () => Promise<T>): Promise<T>;
  /** The fault of this call, if any. */
  fault(host: string, call: CallName): CallFault | undefined;
}

const PLAIN_USER: DeviceUser = { name: "agent", pass: (_host, _call, _signal, send) => send(), fault: () => undefined };

/** The effect of a call at the host. */
export type DeviceEvent =
  | {
      user: string;
      bmc: string;
      host: string;
      order: PowerOrderType & ("ForceOff" | "On" | "Nmi");
      outcome: OrderOutcome;
    }
  | { user: string; bmc: string; host: string; boot: "Disabled" | "Once" }
  /** A call failed, or its BMC does not always do what it reports. */
  | { user: string; bmc: string; trouble: string };

export interface RackDevices {
  /** The switched PDUs. At first no host is plugged into them. */
  pdus: Pdus;
  /** Opens devices for a user whose calls have no faults. */
  openDevice: OpenDevice;
  openDeviceFor: (user: DeviceUser) => OpenDevice;
  calls: BmcCall[];
  /** The hosts whose logs were read, in order. */
  logReads: string[];
  /** How many devices are open. */
  open(): number;
  /** Calls `listener` for every order and boot override that reaches a BMC, in the same step. */
  onEvent(listener: (event: DeviceEvent) => void): void;
}

/** Serves the simulated BMCs at the driver interface, without sockets, so that everything runs on a virtual clock. */
export function rackDevices(rack: Rack, clock: Clock, faults: BmcFaults): RackDevices {
  const calls: BmcCall[] = [];
  const logReads: string[] = [];
  const listeners: ((event: DeviceEvent) => void)[] = [];
  const tell = (event: DeviceEvent): void => {
    for (const listener of listeners) listener(event);
  };
  let opened = 0;
  const unansweredAtMs = new Map<string, number>();
  let devices = 0;
  const pdus = new Pdus(rack, clock);
  const openDeviceFor =
    (user: DeviceUser): OpenDevice =>
    (config, { isOrderAllowed = () => true }) => {
      opened += 1;
      if (isOutletAddress(config.address)) {
        const onClose = (): void => {
          opened -= 1;
        };
        return pdus.open(
          config.address,
          { isOrderAllowed },
          { user, tell: user === PLAIN_USER ? undefined : tell, onClose },
        );
      }
      devices += 1;
      const device = devices;
      const close = (): void => {
        opened -= 1;
      };
      const deps = { rack, clock, faults, calls, logReads, unansweredAtMs, tell, user, device, close, isOrderAllowed };
      return openRackDevice(deps, config);
    };
  return {
    pdus,
    openDevice: openDeviceFor(PLAIN_USER),
    openDeviceFor,
    calls,
    logReads,
    open: () => opened,
    onEvent: (listener) => void listeners.push(listener),
  };
}

interface DriverDeps {
  rack: Rack;
  clock: Clock;
  faults: BmcFaults;
  calls: BmcCall[];
  logReads: string[];
  /** The last time at which the BMC of each host did not answer. */
  unansweredAtMs: Map<string, number>;
  tell(event: DeviceEvent): void;
  user: DeviceUser;
  device: number;
  close(): void;
  isOrderAllowed(): boolean;
}

function openRackDevice(deps: DriverDeps, config: DeviceConfig): PowerDriver {
  const { rack, clock, faults, calls, user, device } = deps;
  const { address } = config;
  const host = bmcOfAddress(address);
  const isDriverServer = address.startsWith("driver:");
  const bmc = rack.bmc(host);
  /** The host that a driver server has identified. Orders name it. */
  let known: string | undefined;
  let closed = false;
  const timeOut = async (what: string, signal: AbortSignal): Promise<never> => {
    await sleep(clock, config.timeouts.callTimeoutMs, signal);
    throw new BmcError("Timeout", `${address}: no answer to ${what}`);
  };
  const fail = async (code: BmcErrorCode, what: string, signal: AbortSignal): Promise<never> => {
    if (code === "Timeout") return timeOut(what, signal);
    throw new BmcError(code, `${address}: ${what} failed: ${code}`);
  };
  /** One exchange with the BMC. `work` acts on the host, and `lied` is the answer instead of the true one. */
  const exchange = async <T>(
    name: CallName,
    signal: AbortSignal,
    work: (fault: CallFault | undefined) => T,
  ): Promise<T> => {
    calls.push({ host, call: name, atMs: clock.nowMs(), device });
    const fault = user.fault(host, name);
    if (fault !== undefined || bmc.orderDelayMs > 0) deps.tell({ user: user.name, bmc: host, trouble: name });
    // A call that changes something is already in transit, and arrives whatever happens to its sender.
    await sleep(clock, CALL_MS, CHANGING_CALLS.includes(name) ? NEVER : signal);
    if (bmc.reachability !== "up") deps.unansweredAtMs.set(host, clock.nowMs());
    if (bmc.reachability === "refused") throw new BmcError("Unreachable", `${address}: connection refused`);
    if (bmc.reachability === "silent") return timeOut(name, signal);
    if (config.password.reveal() !== faults.password) throw new BmcError("AuthFailed", `${address}: refused`);
    if (faults.refuses.has(`${host} ${name}`)) throw new BmcError("Refused", `${address}: will not ${name}`);
    if (faults.denies.has(`${host} ${name}`)) throw new BmcError("PrivilegeTooLow", `${address}: may not ${name}`);
    if (fault !== undefined && "error" in fault && fault.after !== true) return fail(fault.error, name, signal);
    const result = work(fault);
    await faults.meanwhile.get(`${host} ${name}`)?.();
    if (fault !== undefined && "error" in fault) return fail(fault.error, name, signal);
    if (faults.losesAnswer.has(`${host} ${name}`)) return timeOut(name, signal);
    if (fault?.lie === "slow") await sleep(clock, config.timeouts.callTimeoutMs - 2 * CALL_MS, signal);
    if (signal.aborted) throw abortReason(signal);
    return result;
  };
  const call = <T>(name: CallName, signal: AbortSignal, work: (fault: CallFault | undefined) => T): Promise<T> =>
    user.pass(host, name, signal, async () => {
      try {
        return await exchange(name, signal, work);
      } catch (error) {
        deps.tell({ user: user.name, bmc: host, trouble: name });
        throw error;
      }
    });
  /** A call that changes something. Like the real drivers, it sends it only while its process may send orders. */
  const change = async (
    name: CallName,
    signal: AbortSignal,
    work: (fault: CallFault | undefined) => void,
  ): Promise<void> => {
    if (!deps.isOrderAllowed()) throw orderNotAllowed(`${address}: ${name}`);
    return call(name, signal, work);
  };
  /** Like the real drivers, it does not trust an Off of a BMC that has just started. */
  const offReading = (): PowerReading => {
    const isUndated = isDriverServer || faults.undated.has(host);
    const startedAtMs = isUndated ? (deps.unansweredAtMs.get(host) ?? -Infinity) : bmc.lastRestartMs;
    const bmcUpMs = clock.nowMs() - startedAtMs;
    if (bmcUpMs < BMC_SETTLE_MS) return { state: "Unknown", raw: "Off, but its BMC may have started a moment ago" };
    const agrees = !isDriverServer && !faults.alone.has(host) && ({ agrees: true } as const);
    return { state: "Off", raw: "Off", ...agrees, ...(!isUndated && { bmcUpMs }) };
  };
  const order = (type: PowerOrderType & ("ForceOff" | "On" | "Nmi"), signal: AbortSignal): Promise<void> =>
    change(type, signal, (fault) => {
      const lie = lieOf(fault);
      if (lie === "ignored") return;
      if (isDriverServer && known !== undefined && bmc.identity().systemUUID !== known) {
        throw new BmcError("Refused", `${address}: another host than the order names`);
      }
      const truly = bmc.host.name;
      const outcome = lie === "late" ? orderLate(bmc, type) : bmc.order(type);
      deps.tell({ user: user.name, bmc: host, host: truly, order: type, outcome });
      if (outcome === "Refused") throw new BmcError("Refused", `${address}: not in this state`);
    });
  const identify = async (signal: AbortSignal): Promise<HostIdentity> => {
    const identity = await call("identify", signal, (fault) => identityOf(bmc, host, lieOf(fault)));
    known = identity.systemUUID;
    return identity;
  };
  const close = async (): Promise<void> => {
    if (!closed) deps.close();
    closed = true;
  };
  if (isDriverServer) {
    const noBoot = (): Promise<never> => Promise.reject(new BmcError("Unsupported", `${address}: no boot override`));
    return {
      address,
      hasNoBootOverride: true,
      identify,
      readPower: (signal) => call("readPower", signal, (fault) => reading(bmc, lieOf(fault), offReading)),
      forceOff: (signal) => order("ForceOff", signal),
      on: (signal) => order("On", signal),
      setBootOverride: noBoot,
      readBootOverride: noBoot,
      close,
    };
  }
  return {
    address,
    get lastReset() {
      return toTime(bmc.host.lastResetMs);
    },
    identify,
    readPower: (signal) => call("readPower", signal, (fault) => reading(bmc, lieOf(fault), offReading)),
    forceOff: (signal) => order("ForceOff", signal),
    on: (signal) => order("On", signal),
    setBootOverride: (override, signal) =>
      change("setBootOverride", signal, (fault) => {
        if (lieOf(fault) === "ignored") return;
        bmc.setBoot(
          override === "None"
            ? { enabled: "Disabled", target: "None", mode: "UEFI" }
            : { enabled: "Once", target: "Pxe", mode: "UEFI" },
        );
        deps.tell({ user: user.name, bmc: host, host: bmc.host.name, boot: bmc.bootSetting.enabled });
      }),
    readBootOverride: (signal) =>
      call("readBootOverride", signal, (): BootOverride =>
        bmc.bootSetting.enabled === "Once" ? "NetworkOnce" : "None",
      ),
    sendNmi: (signal) => order("Nmi", signal),
    ...(faults.cycles.has(host) && {
      acCycle: (signal) => change("acCycle", signal, () => bmc.acCycle(faults.cycles.get(host))),
    }),
    readPowerLossSigns: (signal) =>
      call("identify", signal, () => (faults.undated.has(host) ? {} : { bmcUpMs: clock.nowMs() - bmc.lastRestartMs })),
    readEvidence: async (signal) => {
      deps.logReads.push(host);
      await sleep(clock, bmc.isLogHung ? EVIDENCE_READ_MS_MAX : CALL_MS, signal);
      const entries = bmc.isLogHung ? [] : bmc.log.toReversed().map(entryOf);
      const incomplete = bmc.isLogHung || bmc.reachability !== "up" ? "no answer" : undefined;
      return { clockAheadMs: bmc.clockAheadMs, entries, sensors: [], lastResetMs: bmc.host.lastResetMs, incomplete };
    },
    close,
  };
}

/** The name of the BMC at the address of a simulated device. A driver server counts as the BMC of its host. */
export function bmcOfAddress(address: string): string {
  return address.replace(/^(?:redfish:\/\/|driver:\/\/sim\/hosts\/)/, "");
}

function entryOf({ id, bmcTimeMs, kind }: LoggedEvent): BmcLogEntry {
  const { message, severity } = LOGGED[kind];
  return {
    log: "SEL",
    id: String(id),
    bmcTimeMs,
    topic: topicOfWords(message),
    rank: rankOf(message, severity),
    text: message,
  };
}

function lieOf(fault: CallFault | undefined): Lie | undefined {
  return fault !== undefined && "lie" in fault ? fault.lie : undefined;
}

/** Sends an order to the host long after it was acknowledged. */
function orderLate(bmc: Bmc, type: PowerOrderType): OrderOutcome {
  const { orderDelayMs } = bmc;
  bmc.orderDelayMs = LATE_MS;
  const outcome = bmc.order(type);
  bmc.orderDelayMs = orderDelayMs;
  return outcome;
}

function identityOf(bmc: Bmc, host: string, lie: Lie | undefined): HostIdentity {
  const device = `/redfish/v1/Systems/${host}`;
  if (lie === "nobody") return { device };
  const identity = { ...bmc.identity(), device };
  if (lie !== "otherHost") return identity;
  return { ...identity, systemUUID: "00000000-0000-4000-8000-00000000abcd", serialNumber: "SN-OTHER" };
}

function reading(bmc: Bmc, lie: Lie | undefined, offReading: () => PowerReading): PowerReading {
  switch (lie) {
    case "staleOn":
      return { state: "On", raw: "On" };
    case "changing":
      return { state: "Changing", raw: "PoweringOff" };
    case "unknown":
      return { state: "Unknown", raw: "null" };
    default: {
      const power = bmc.readPower();
      if (power === "Off") return offReading();
      return { state: power === "On" ? power : "Changing", raw: power };
    }
  }
}
