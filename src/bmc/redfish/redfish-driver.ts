import { chooseResetType, readAllowedTypes } from "./orders/allowed-types.ts";
import type { RedfishAnswer } from "./http/answer.ts";
import { BootSettings } from "./orders/boot-settings.ts";
import { chooseSystem } from "./system/choose-system.ts";
import type { IsHost } from "../interface/device-config.ts";
import { RefusalWatch } from "./orders/refusal-watch.ts";
import { POWER_BUTTON, RESET_TYPES, supportedOrders } from "./orders/reset-types.ts";
import { OffCheck } from "./system/off-check.ts";
import { pathOnOrigin } from "./http/reference.ts";
import { findMissingPrivilege } from "./system/privileges.ts";
import type { Resource, Service } from "./session/service.ts";
import { parseManagerReset, parseSystem } from "./system/system.ts";
import type { System } from "./system/system.ts";
import type { RedfishAddress } from "../interface/address.ts";
import { compareHosts } from "../identity/host-identity.ts";
import type { BootOverride, OffObstacle, SupportedOrders, PowerDriver, PowerReading } from "../interface/driver.ts";
import type { HostIdentity } from "../identity/host-identity.ts";
import type { BmcGate } from "../gate/bmc-gate.ts";
import type { BmcMemory } from "../gate/bmc-memory.ts";
import type { CallLimits } from "../gate/call-limits.ts";
import { BmcError } from "../interface/errors.ts";
import type { Clock } from "../../runtime/clock.ts";
import { DeadlineError, withDeadline } from "../../runtime/deadline.ts";
import type { ResetAction } from "../gate/reset-actions.ts";

/** The deadline for reading the privileges of the account: up to 20 requests, during which other calls to the host wait. */
const PRIVILEGES_READ_MS_MAX = 5_000;
/** How many calls to the hosts of one BMC run concurrently (an enclosure has several hosts). Slow BMCs do not handle more. */
const CALLS_AT_ONCE_MAX = 4;

/** A power state of the standard that is neither on nor off. */
const HALTED = "Paused";

/** A power order as it is sent. */
interface ResetOrder {
  target: string;
  type: string;
  /** The login in which the host was read Off, if the order must not reach a host that is on. */
  offAtLogin?: number;
}

/** What has to be true right before a change is sent to the host. */
interface SameHost {
  /** Whether a host that no longer reports its identity is accepted. */
  mayBeUnknown: boolean;
  /** As in `ResetOrder`. */
  offAtLogin?: number | undefined;
}

/** Drives one ComputerSystem of a Redfish service (DSP0266, DSP0268). */
export class RedfishDriver implements PowerDriver {
  readonly address: string;
  readonly #system: string | undefined;
  readonly #isHost: IsHost | undefined;
  /** The same for every driver of this host. */
  readonly #key: string;
  readonly #service: Service;
  readonly #callTimeoutMs: number;
  readonly #clock: Clock;
  readonly #offCheck: OffCheck;
  readonly #refusals: RefusalWatch;
  readonly #boot: BootSettings;
  readonly #callLimits: CallLimits;
  readonly #memory: BmcMemory;
  /** The last identity that was read, and its login: the power of any other host does not count. */
  #identified: { identity: HostIdentity; login: number } | undefined;
  // Kept from the first read while the driver is open, unlike the power state.
  #path: string | undefined;
  #reset: ResetAction | undefined;
  #lastReset: string | undefined;

  constructor(
    address: RedfishAddress,
    service: Service,
    options: {
      callTimeoutMs: number;
      clock: Clock;
      gate: BmcGate;
      isHost?: IsHost | undefined;
      powerChassis?: readonly string[] | undefined;
    },
  ) {
    this.address = address.text;
    this.#system = address.system;
    this.#isHost = options.isHost;
    this.#key = address.key;
    this.#service = service;
    this.#callTimeoutMs = options.callTimeoutMs;
    this.#clock = options.clock;
    this.#offCheck = new OffCheck(service, options.clock, options.powerChassis);
    this.#refusals = new RefusalWatch(service, options.clock, options.callTimeoutMs);
    this.#boot = new BootSettings({
      address: address.text,
      service,
      refusals: this.#refusals,
      readSystem: (signal) => this.#readSystemResource(signal),
      change: (call, signal) => this.#change(call, { mayBeUnknown: false }, signal),
    });
    this.#callLimits = options.gate.callLimits;
    this.#memory = options.gate.memory;
  }

  get lastReset(): string | undefined {
    return this.#lastReset;
  }

  get certificateUntilMs(): number | undefined {
    return this.#service.certificateUntilMs;
  }

  identify(signal: AbortSignal): Promise<HostIdentity> {
    return this.#call("identify", signal, async (signal) => {
      const { identity } = await this.#readSystem(signal);
      this.#identified = { identity, login: this.#service.logins };
      return identity;
    });
  }

  readPower(signal: AbortSignal): Promise<PowerReading> {
    return this.#call("read of the power state", signal, async (signal) => {
      const { state, raw } = await this.#readPower(signal);
      return { state, raw: this.#service.sentSecrets.hide(raw) };
    });
  }

  forceOff(signal: AbortSignal): Promise<void> {
    return this.#call("order off", signal, (signal) => this.#order("Off", signal));
  }

  on(signal: AbortSignal): Promise<void> {
    return this.#call("order on", signal, (signal) => this.#order("On", signal));
  }

  setBootOverride(override: BootOverride, signal: AbortSignal): Promise<void> {
    return this.#call("change of the boot override", signal, (signal) => this.#boot.setOverride(override, signal));
  }

  readBootOverride(signal: AbortSignal): Promise<BootOverride> {
    return this.#call("read of the boot override", signal, (signal) => this.#boot.readOverride(signal));
  }

  readSupportedOrders(signal: AbortSignal): Promise<SupportedOrders> {
    return this.#call("read of the supported orders", signal, async (signal) => {
      const { reset } = await this.#readSystem(signal);
      const allowed = reset === undefined ? [] : await readAllowedTypes(this.#service, reset, signal);
      if (reset !== undefined) this.#targetOf(reset);
      return supportedOrders(allowed, (await this.#boot.find(signal))?.body);
    });
  }

  async findOffObstacle(signal: AbortSignal): Promise<OffObstacle | undefined> {
    const found = await this.#call("rehearsal of a power-off", signal, async (signal) => {
      const system = await this.#readSystem(signal);
      return (await this.#resetTypeObstacle(system, signal)) ?? (await this.#offCheck.findObstacle(system, signal));
    });
    const obstacle = found ?? (await this.#privilegeObstacle(signal));
    return obstacle && { ...obstacle, message: this.#service.sentSecrets.hide(obstacle.message) };
  }

  /** Privileges that cannot be read, or not in time, are not an obstacle: an order will show whether they suffice. */
  async #privilegeObstacle(signal: AbortSignal): Promise<OffObstacle | undefined> {
    const { account } = this.#service;
    if (this.#memory.sufficientPrivileges.has(account)) return undefined;
    try {
      const missing = await this.#call(
        "read of the permissions",
        signal,
        (signal) => findMissingPrivilege(this.#service, signal),
        // A fence that begins in the meantime waits for this call.
        Math.min(PRIVILEGES_READ_MS_MAX, this.#callTimeoutMs),
      );
      if (missing !== undefined) {
        const advice = "give the account a role on the BMC that may control power, such as Operator";
        return { reason: "OffNotPermitted", message: `${this.address}: ${missing}: ${advice}` };
      }
    } catch (error) {
      signal.throwIfAborted();
      if (!(error instanceof BmcError)) throw error;
    }
    this.#memory.sufficientPrivileges.add(account);
    return undefined;
  }

  async #resetTypeObstacle({ reset, power }: System, signal: AbortSignal): Promise<OffObstacle | undefined> {
    if (power.state === "Unknown" && power.raw !== HALTED) {
      const what = `the System shows no known power state (${power.raw}), so nothing would prove an Off`;
      const advice = "update the firmware, or use IPMI or another device";
      return { reason: "PowerUnreadable", message: `${this.address}: ${what}: ${advice}` };
    }
    const notOffered = (what: string): OffObstacle => ({
      reason: "OffNotOffered",
      message: `${this.address}: ${what}`,
    });
    // Some BMCs show the action only while the host is on.
    if (reset === undefined && power.state === "Off") return undefined;
    if (reset === undefined) return notOffered("the System has no Reset action: use IPMI, or another device");
    this.#targetOf(reset);
    // Some BMCs list only what they allow in the present state: for a host that is off, a missing ForceOff means nothing.
    if (power.state !== "On" || (await chooseResetType(this.#service, "Off", reset, signal)) !== undefined)
      return undefined;
    const offered = ((await readAllowedTypes(this.#service, reset, signal)) ?? []).join(", ").slice(0, 200);
    return notOffered(
      `the BMC does not offer ForceOff to a host that is on, only: ${offered}; use IPMI, or another device`,
    );
  }

  resetBmc(signal: AbortSignal): Promise<void> {
    return this.#call("restart of the BMC", signal, async (signal) => {
      const { managers } = await this.#readSystem(signal);
      const what = "the System's link to its Manager";
      const manager = await this.#service.get(pathOnOrigin(this.#service.origin, managers[0], what), signal);
      const restart = parseManagerReset(manager.body);
      if (restart === undefined) {
        throw new BmcError("Unsupported", `${this.address}: the BMC does not support a restart of itself`);
      }
      const path = pathOnOrigin(this.#service.origin, restart.target, "the target of the Manager's Reset");
      const call = { method: "POST", path, body: { ResetType: restart.type } } as const;
      const answer = await this.#change(call, { mayBeUnknown: false }, signal);
      const refusal = await this.#refusals.refusalOf(`${this.address}: restart of the BMC`, answer, signal);
      if (refusal !== undefined) throw refusal;
    });
  }

  close(): Promise<void> {
    return this.#service.close();
  }

  async #call<T>(
    what: string,
    signal: AbortSignal,
    work: (signal: AbortSignal) => Promise<T>,
    timeoutMs = this.#callTimeoutMs,
  ): Promise<T> {
    const named = `${this.address}: ${what}`;
    try {
      return await withDeadline(this.#clock, named, timeoutMs, signal, (signal) =>
        // A call first waits for the host, then for the BMC. In the other order it would block calls to other hosts of that BMC.
        this.#callLimits.run(this.#key, 1, named, signal, () =>
          this.#callLimits.run(this.#service.origin, CALLS_AT_ONCE_MAX, named, signal, () => work(signal)),
        ),
      );
    } catch (error) {
      if (error instanceof BmcError) throw this.#service.sentSecrets.hideIn(error);
      if (signal.aborted) throw new BmcError("Aborted", `${named} was aborted`, { cause: error });
      if (error instanceof DeadlineError) throw new BmcError("Timeout", error.message, { cause: error });
      throw error;
    }
  }

  async #readSystemResource(signal: AbortSignal): Promise<Resource> {
    try {
      const resource = await this.#findSystem(signal);
      this.#memory.readSystems.add(this.#key);
      return resource;
    } catch (error) {
      if (!(error instanceof BmcError) || error.code !== "SystemNotFound" || !this.#memory.readSystems.has(this.#key))
        throw error;
      const why = "it existed a short time ago, and a BMC that starts may not know it yet";
      throw new BmcError("Busy", `${error.message}: ${why}`, { cause: error });
    }
  }

  async #findSystem(signal: AbortSignal): Promise<Resource> {
    const path = (this.#path ??= await chooseSystem(this.#service, this.#system, this.#isHost, signal));
    const resource = await this.#service.find(path, signal);
    if (resource === undefined) {
      throw new BmcError("SystemNotFound", `${this.address}: there is no System at ${path}`);
    }
    this.#path = resource.path;
    return resource;
  }

  async #readSystem(signal: AbortSignal): Promise<System> {
    const system = parseSystem(this.#service.origin, await this.#readSystemResource(signal));
    // Some BMCs show no action while the host is off.
    this.#reset = system.reset ?? this.#reset;
    if (system.reset !== undefined) this.#memory.resetActions.set(this.#resetKey(system), system.reset);
    this.#lastReset = system.lastReset;
    this.#offCheck.noteState(system.power.state);
    return system;
  }

  async #readPower(signal: AbortSignal): Promise<PowerReading> {
    const system = await this.#readSystem(signal);
    const known = this.#identified?.identity;
    // A value that is not reported now, as after a power-on, does not make it another host.
    if (known !== undefined && compareHosts(known, system.identity, { isOff: true }) === "Other") {
      const { systemUUID, serialNumber } = system.identity;
      return { state: "Unknown", raw: `another host answers than before, ${systemUUID ?? serialNumber ?? ""}` };
    }
    return system.power.state === "Off" ? this.#offCheck.assess(system, signal) : system.power;
  }

  async #order(wanted: "Off" | "On", signal: AbortSignal): Promise<void> {
    const order = await this.#chooseOrder(wanted, signal);
    if (order === undefined) return;
    this.#offCheck.forget();
    // No If-Match: an action is not a write to the resource, and iDRAC 10 answers 412 to it.
    const call = { method: "POST", path: order.target, body: { ResetType: order.type } } as const;
    if (wanted === "On") this.#memory.orderedOn.add(this.#key);
    // A host that reports no identity while it is off reports it again when it is on.
    const required = { mayBeUnknown: wanted === "On", offAtLogin: order.offAtLogin };
    let answer = await this.#change(call, required, signal);
    // Some BMCs require If-Match for an action as well. The action was not carried out (RFC 6585, section 3).
    if (answer.status === 428) answer = await this.#change({ ...call, headers: { "if-match": "*" } }, required, signal);
    const refusal = await this.#refusals.refusalOf(`${this.address}: order ${order.type}`, answer, signal);
    if (refusal === undefined) return;
    // iLO answers 400 and iDRAC 409 to an order for the present state. The power state shows whether that is the reason.
    const heard = refusal.code === "Refused" || refusal.code === "Unsupported";
    // Any other failure may come from a gateway, although the BMC has carried out the order.
    if (heard && wanted === "On") this.#memory.orderedOn.delete(this.#key);
    if (heard && (await this.#readPower(signal)).state === wanted) return;
    throw refusal;
  }

  /** Sends a change to the host. @throws BmcError Refused, and nothing is sent, if another host answers. */
  #change(call: Parameters<Service["change"]>[0], required: SameHost, signal: AbortSignal): Promise<RedfishAnswer> {
    return this.#service.change(call, (signal, isAgain) => this.#requireSameHost(required, isAgain, signal), signal);
  }

  /**
   * At a new login, which the caller does not see, the name may lead to another BMC. So the host is identified again in each new
   * login before a change is sent, and before a change that was denied is sent again, because time has passed.
   */
  async #requireSameHost({ mayBeUnknown, offAtLogin }: SameHost, isAgain: boolean, signal: AbortSignal): Promise<void> {
    const known = this.#identified;
    const { logins } = this.#service;
    const isOffStill = offAtLogin === undefined || (offAtLogin === logins && !isAgain);
    const isKnownStill = known === undefined || (known.login === logins && !isAgain);
    if (isKnownStill && isOffStill) return;
    const { identity, power } = await this.#readSystem(signal);
    if (!isOffStill && power.state !== "Off") {
      throw new BmcError("Refused", `${this.address}: not sent: the host is no longer off (${power.raw})`);
    }
    if (known === undefined) return;
    const compared = compareHosts(known.identity, identity, { isOff: power.state === "Off" });
    if (compared === "Other" || (compared === "Unknown" && !mayBeUnknown)) {
      const who = compared === "Other" ? "another host answers" : "the host no longer reports its identity";
      throw new BmcError("Refused", `${this.address}: not sent: ${who} since the last login`);
    }
    this.#identified = { ...known, login: this.#service.logins };
  }

  /** The order to send; undefined if the host already has that state and the BMC allows no such order in it. */
  async #chooseOrder(wanted: "Off" | "On", signal: AbortSignal): Promise<ResetOrder | undefined> {
    const known = this.#reset;
    const knownType = known && (await chooseResetType(this.#service, wanted, known, signal));
    if (known !== undefined && knownType !== undefined) return { target: this.#targetOf(known), type: knownType };
    // Some BMCs list only what they allow in the present state, so a list from before the last order does not count.
    const system = await this.#readSystem(signal);
    const { power } = system;
    const reset = system.reset ?? this.#memory.resetActions.get(this.#resetKey(system));
    if (reset === undefined) throw new BmcError("Unsupported", `${this.address}: the System has no Reset action`);
    const type = await chooseResetType(this.#service, wanted, reset, signal);
    if (type !== undefined) return { target: this.#targetOf(reset), type };
    if (power.state === wanted) return undefined;
    const allowed = await readAllowedTypes(this.#service, reset, signal);
    if (wanted === "On" && allowed?.includes(POWER_BUTTON) === true) return this.#pushButton(reset, signal);
    // A list from another state does not count either, if the BMC shows no action in this one.
    if (system.reset === undefined) return { target: this.#targetOf(reset), type: RESET_TYPES[wanted][0] };
    const offered = allowed?.join(", ").slice(0, 200) ?? "";
    throw new BmcError("Unsupported", `${this.address}: the BMC offers no ${RESET_TYPES[wanted][0]}, only: ${offered}`);
  }

  /** By the System that answers: an address without a System may mean each host of its BMC. */
  #resetKey({ path }: System): string {
    return `${this.#service.origin}${path}`;
  }

  #targetOf({ target }: ResetAction): string {
    return pathOnOrigin(this.#service.origin, target, "the target of the Reset action");
  }

  /**
   * The power button is the only way that the BMC allows to power a host on. It would power a running host off, so it is pushed only
   * right after a fresh Off, and not while an earlier order to power on may still take effect, whatever its answer was.
   *
   * @throws BmcError Busy while that is so, Refused if the host is not known to be off.
   */
  async #pushButton(reset: ResetAction, signal: AbortSignal): Promise<ResetOrder> {
    if (this.#memory.orderedOn.has(this.#key)) {
      const why = "the host was ordered on a short time ago, and may be powering on";
      throw new BmcError("Busy", `${this.address}: the power button is not pushed yet: ${why}`);
    }
    const { state, raw } = await this.#readPower(signal);
    if (state !== "Off") {
      throw new BmcError("Refused", `${this.address}: the power button is not pushed: the host is not off (${raw})`);
    }
    return { target: this.#targetOf(reset), type: POWER_BUTTON, offAtLogin: this.#service.logins };
  }
}
