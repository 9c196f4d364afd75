import { pathOnOrigin } from "./http/reference.ts";
import { readAllowedTypes, resetTarget } from "./orders/allowed-types.ts";
import { readEvidence } from "./logs/read-evidence.ts";
import { BootSettings } from "./orders/boot-settings.ts";
import { findOrderObstacle } from "./orders/off-obstacles.ts";
import { PowerOrders } from "./orders/power-orders.ts";
import { RefusalWatch } from "./orders/refusal-watch.ts";
import { supportedOrders } from "./orders/reset-types.ts";
import type { Service } from "./session/service.ts";
import { FencedSystem } from "./system/fenced-system.ts";
import { findMissingPrivilege } from "./system/privileges.ts";
import { parseManagerReset } from "./system/system.ts";
import type { BmcEvidence } from "../evidence/model.ts";
import { ReadingBudget } from "../gate/limits/reading-budget.ts";
import type { BmcGate } from "../gate/bmc-gate.ts";
import type { HostIdentity } from "../identity/host-identity.ts";
import type { RedfishAddress } from "../interface/address.ts";
import type { IsHost } from "../interface/device-config.ts";
import type {
  BootOverride,
  OffObstacle,
  PowerDriver,
  PowerLossSigns,
  PowerReading,
  SupportedOrders,
} from "../interface/driver.ts";
import { BmcError } from "../interface/errors.ts";
import type { Clock } from "../../runtime/clock.ts";
import { DeadlineError, withDeadline } from "../../runtime/deadline.ts";

/**
 * The deadline for reading the privileges of the account: up to 20 requests, during which other calls to the host wait.
 */
const PRIVILEGES_READ_MS_MAX = 5_000;
/**
 * How many calls to the hosts of one BMC run concurrently (an enclosure has several hosts). Slow BMCs do not handle
 * more.
 */
const CALLS_AT_ONCE_MAX = 4;

/** Drives one ComputerSystem of a Redfish service (DSP0266, DSP0268). */
export class RedfishDriver implements PowerDriver {
  readonly address: string;
  /** Equal in all drivers of this host. */
  readonly #key: string;
  readonly #service: Service;
  readonly #callTimeoutMs: number;
  readonly #clock: Clock;
  readonly #gate: BmcGate;
  readonly #system: FencedSystem;
  readonly #refusals: RefusalWatch;
  readonly #orders: PowerOrders;
  readonly #boot: BootSettings;

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
    const { callTimeoutMs, clock, gate, isHost, powerChassis } = options;
    const { memory } = gate;
    const system = new FencedSystem(address, service, { clock, memory, isHost, powerChassis });
    const refusals = new RefusalWatch(service, clock, callTimeoutMs);
    this.address = address.text;
    this.#key = address.key;
    this.#service = service;
    this.#callTimeoutMs = callTimeoutMs;
    this.#clock = clock;
    this.#gate = gate;
    this.#system = system;
    this.#refusals = refusals;
    this.#orders = new PowerOrders({ address, service, system, refusals, memory });
    this.#boot = new BootSettings({
      address: address.text,
      service,
      refusals,
      readSystem: (signal) => system.readResource(signal),
      change: (call, signal) => system.change(call, { mayBeUnknown: false }, signal),
    });
  }

  get lastReset(): string | undefined {
    return this.#system.lastReset;
  }

  get certificateUntilMs(): number | undefined {
    return this.#service.certificateUntilMs;
  }

  identify(signal: AbortSignal): Promise<HostIdentity> {
    return this.#call("identify", signal, (signal) => this.#system.identify(signal));
  }

  readPower(signal: AbortSignal): Promise<PowerReading> {
    return this.#call("read of the power state", signal, async (signal) => {
      const reading = await this.#system.readPower(signal);
      return { ...reading, raw: this.#service.sentSecrets.hide(reading.raw) };
    });
  }

  forceOff(signal: AbortSignal): Promise<void> {
    return this.#call("order off", signal, (signal) => this.#orders.send("Off", signal));
  }

  on(signal: AbortSignal): Promise<void> {
    return this.#call("order on", signal, (signal) => this.#orders.send("On", signal));
  }

  sendNmi(signal: AbortSignal): Promise<void> {
    return this.#call("NMI", signal, (signal) => this.#orders.sendNmi(signal));
  }

  acCycle(signal: AbortSignal): Promise<void> {
    return this.#call("AC cycle", signal, (signal) => this.#orders.acCycle(signal));
  }

  setBootOverride(override: BootOverride, signal: AbortSignal): Promise<void> {
    return this.#call("change of the boot override", signal, (signal) => this.#boot.setOverride(override, signal));
  }

  readBootOverride(signal: AbortSignal): Promise<BootOverride> {
    return this.#call("read of the boot override", signal, (signal) => this.#boot.readOverride(signal));
  }

  readSupportedOrders(signal: AbortSignal): Promise<SupportedOrders> {
    return this.#call("read of the supported orders", signal, async (signal) => {
      const { reset } = await this.#system.read(signal);
      const allowed = reset === undefined ? [] : await readAllowedTypes(this.#service, reset, signal);
      // Throws if the target is not usable.
      if (reset !== undefined) resetTarget(this.#service.origin, reset);
      return supportedOrders(allowed, (await this.#boot.find(signal))?.body);
    });
  }

  async findOffObstacle(signal: AbortSignal): Promise<OffObstacle | undefined> {
    const found = await this.#call("check of a power-off", signal, async (signal) => {
      const system = await this.#system.read(signal);
      const ofOrder = await findOrderObstacle(this.#service, this.address, system, signal);
      return ofOrder ?? (await this.#system.findProofObstacle(system, signal));
    });
    const obstacle = found ?? (await this.#findPrivilegeObstacle(signal));
    return obstacle && { ...obstacle, message: this.#service.sentSecrets.hide(obstacle.message) };
  }

  /**
   * Checks the privileges of the account. If they cannot be read in time, they are not an obstacle: an order will show
   * whether they suffice.
   */
  async #findPrivilegeObstacle(signal: AbortSignal): Promise<OffObstacle | undefined> {
    const { account } = this.#service;
    const { sufficientPrivileges } = this.#gate.memory;
    if (sufficientPrivileges.has(account)) return undefined;
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
    sufficientPrivileges.add(account);
    return undefined;
  }

  async readEvidence(signal: AbortSignal): Promise<BmcEvidence> {
    const system = this.#system.lastRead;
    if (system === undefined) throw new BmcError("Unsupported", `${this.address}: the host was not read before`);
    const budget = new ReadingBudget(this.#clock, this.#gate.precedence, this.#service.origin);
    try {
      return await readEvidence(this.#service, system, budget, this.#clock, signal);
    } finally {
      await this.#service.endBesides();
    }
  }

  resetBmc(signal: AbortSignal): Promise<void> {
    return this.#call("restart of the BMC", signal, async (signal) => {
      const { managers } = await this.#system.read(signal);
      const what = "the System's link to its Manager";
      const manager = await this.#service.get(pathOnOrigin(this.#service.origin, managers[0], what), signal);
      const restart = parseManagerReset(manager.body);
      if (restart === undefined) {
        throw new BmcError("Unsupported", `${this.address}: the BMC does not support a restart of itself`);
      }
      const path = pathOnOrigin(this.#service.origin, restart.target, "the target of the Manager's Reset");
      const call = { method: "POST", path, body: { ResetType: restart.type } } as const;
      const answer = await this.#system.change(call, { mayBeUnknown: false }, signal);
      const refusal = await this.#refusals.refusalOf(`${this.address}: restart of the BMC`, answer, signal);
      if (refusal !== undefined) throw refusal;
    });
  }

  readPowerLossSigns(signal: AbortSignal): Promise<PowerLossSigns> {
    return this.#call("read of the start of the BMC", signal, async (signal) => {
      const bmcUpMs = await this.#system.readBmcUpMs(signal);
      return bmcUpMs === undefined ? {} : { bmcUpMs };
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
    const { callLimits, precedence } = this.#gate;
    try {
      return await precedence.first(this.#service.origin, () =>
        withDeadline(this.#clock, named, timeoutMs, signal, (signal) =>
          // A call first waits for the host, then for the BMC. In the other order it would block calls to other hosts
          // of that BMC.
          callLimits.run(this.#key, 1, named, signal, () =>
            callLimits.run(this.#service.origin, CALLS_AT_ONCE_MAX, named, signal, () => work(signal)),
          ),
        ),
      );
    } catch (error) {
      if (error instanceof BmcError) throw this.#service.sentSecrets.hideIn(error);
      if (signal.aborted) throw new BmcError("Aborted", `${named} was aborted`, { cause: error });
      if (error instanceof DeadlineError) throw new BmcError("Timeout", error.message, { cause: error });
      throw error;
    }
  }
}
