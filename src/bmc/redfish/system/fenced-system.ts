import { chooseSystem } from "./choose-system.ts";
import { OffCheck } from "./off-check.ts";
import { parseSystem } from "./system.ts";
import type { System } from "./system.ts";
import type { RedfishAnswer } from "../http/answer.ts";
import type { Resource, Service } from "../session/service.ts";
import type { BmcMemory } from "../../gate/memory/bmc-memory.ts";
import type { ResetAction } from "../../gate/memory/reset-actions.ts";
import { compareHosts } from "../../identity/host-identity.ts";
import type { HostIdentity } from "../../identity/host-identity.ts";
import type { RedfishAddress } from "../../interface/address.ts";
import type { IsHost } from "../../interface/device-config.ts";
import type { OffObstacle, PowerReading } from "../../interface/driver.ts";
import { BmcError } from "../../interface/errors.ts";
import type { Clock } from "../../../runtime/clock.ts";

/** What has to be true right before a change is sent to the host. */
export interface ChangeConditions {
  /** Whether a host that no longer reports its identity is accepted. */
  mayBeUnknown: boolean;
  /** If the change must not reach a host that is on: the login in which the host was read Off. */
  offAtLogin?: number | undefined;
}

/**
 * The ComputerSystem of the host that is fenced. It reads the System and its identity, and sends changes to no other
 * host.
 */
export class FencedSystem {
  readonly #address: RedfishAddress;
  readonly #service: Service;
  readonly #memory: BmcMemory;
  readonly #isHost: IsHost | undefined;
  readonly #offCheck: OffCheck;
  /**
   * The identity that `identify` returned, and the login in which it was last confirmed. The power of any other host
   * does not count.
   */
  #identified: { identity: HostIdentity; login: number } | undefined;
  // Kept while the driver is open. The power state is read again each time.
  #path: string | undefined;
  #reset: ResetAction | undefined;
  #lastReset: string | undefined;
  #lastRead: System | undefined;

  constructor(
    address: RedfishAddress,
    service: Service,
    options: {
      clock: Clock;
      memory: BmcMemory;
      isHost: IsHost | undefined;
      powerChassis: readonly string[] | undefined;
    },
  ) {
    this.#address = address;
    this.#service = service;
    this.#memory = options.memory;
    this.#isHost = options.isHost;
    this.#offCheck = new OffCheck(service, options.clock, options.powerChassis);
  }

  get lastReset(): string | undefined {
    return this.#lastReset;
  }

  /** The System at its last read; undefined before the first one. */
  get lastRead(): System | undefined {
    return this.#lastRead;
  }

  /** The Reset action of the last read that had one: some BMCs show none while the host is off. */
  get lastResetAction(): ResetAction | undefined {
    return this.#reset;
  }

  /** Reads the identity of the host that every later call has to reach. */
  async identify(signal: AbortSignal): Promise<HostIdentity> {
    const { identity } = await this.read(signal);
    this.#identified = { identity, login: this.#service.logins };
    return identity;
  }

  async read(signal: AbortSignal): Promise<System> {
    const system = parseSystem(this.#service.origin, await this.readResource(signal));
    this.#reset = system.reset ?? this.#reset;
    if (system.reset !== undefined) this.#memory.resetActions.set(this.#resetKey(system), system.reset);
    this.#lastReset = system.lastReset;
    this.#lastRead = system;
    this.#offCheck.noteState(system.power.state);
    return system;
  }

  async readResource(signal: AbortSignal): Promise<Resource> {
    const { key } = this.#address;
    try {
      const resource = await this.#find(signal);
      this.#memory.readSystems.add(key);
      return resource;
    } catch (error) {
      if (!(error instanceof BmcError) || error.code !== "SystemNotFound" || !this.#memory.readSystems.has(key))
        throw error;
      const why = "it existed before, so the BMC may still be starting";
      throw new BmcError("Busy", `${error.message}: ${why}`, { cause: error });
    }
  }

  /** Reads the power. It is `Unknown` for an Off in doubt, and while another host answers. */
  async readPower(signal: AbortSignal): Promise<PowerReading> {
    const system = await this.read(signal);
    const known = this.#identified?.identity;
    // A value that is missing, for example after a power-on, does not mean another host.
    if (known !== undefined && compareHosts(known, system.identity, { isOff: true }) === "Other") {
      const { systemUUID, serialNumber } = system.identity;
      return { state: "Unknown", raw: `another host answers now: ${systemUUID ?? serialNumber ?? ""}` };
    }
    return system.power.state === "Off" ? this.#offCheck.assess(system, signal) : system.power;
  }

  /** How long the BMC of the System has been up; undefined if it does not report the time of its start. */
  async readBmcUpMs(signal: AbortSignal): Promise<number | undefined> {
    return this.#offCheck.readUpMs(this.#lastRead ?? (await this.read(signal)), signal);
  }

  /** Finds what would prevent a proof of Off for this System, whatever its power is now. */
  findProofObstacle(system: System, signal: AbortSignal): Promise<OffObstacle | undefined> {
    return this.#offCheck.findObstacle(system, signal);
  }

  /** Called before a power order is sent: earlier reads prove nothing about the time after it. */
  forgetOff(): void {
    this.#offCheck.forget();
  }

  /** The Reset action of this System. If it shows none now, the one that it showed before. */
  resetActionOf(system: System): ResetAction | undefined {
    return system.reset ?? this.#memory.resetActions.get(this.#resetKey(system));
  }

  /** Sends a change to the host. @throws BmcError Refused, and nothing is sent, if another host answers. */
  change(
    call: Parameters<Service["change"]>[0],
    conditions: ChangeConditions,
    signal: AbortSignal,
  ): Promise<RedfishAnswer> {
    return this.#service.change(call, (signal, isAgain) => this.#requireSameHost(conditions, isAgain, signal), signal);
  }

  async #find(signal: AbortSignal): Promise<Resource> {
    const { system, text } = this.#address;
    const path = (this.#path ??= await chooseSystem(this.#service, system, this.#isHost, signal));
    const resource = await this.#service.find(path, signal);
    if (resource === undefined) throw new BmcError("SystemNotFound", `${text}: there is no System at ${path}`);
    this.#path = resource.path;
    return resource;
  }

  /**
   * Identifies the host again before a change is sent in a new login, because the name may then lead to another BMC,
   * and before a change that was denied is sent again, because time has passed.
   */
  async #requireSameHost(
    { mayBeUnknown, offAtLogin }: ChangeConditions,
    isAgain: boolean,
    signal: AbortSignal,
  ): Promise<void> {
    const known = this.#identified;
    const { logins } = this.#service;
    const { text } = this.#address;
    const isOffStill = offAtLogin === undefined || (offAtLogin === logins && !isAgain);
    const isKnownStill = known === undefined || (known.login === logins && !isAgain);
    if (isKnownStill && isOffStill) return;
    const { identity, power } = await this.read(signal);
    if (!isOffStill && power.state !== "Off") {
      throw new BmcError("Refused", `${text}: not sent: the host is no longer off (${power.raw})`);
    }
    if (known === undefined) return;
    const compared = compareHosts(known.identity, identity, { isOff: power.state === "Off" });
    if (compared === "Other" || (compared === "Unknown" && !mayBeUnknown)) {
      const who = compared === "Other" ? "another host answers" : "the host no longer reports its identity";
      throw new BmcError("Refused", `${text}: not sent: ${who} since the last login`);
    }
    this.#identified = { ...known, login: this.#service.logins };
  }

  /**
   * The key of a Reset action: the System that answers, because an address without a System may mean any host of the
   * BMC.
   */
  #resetKey({ path }: System): string {
    return `${this.#service.origin}${path}`;
  }
}
