import { failure } from "./answer.ts";
import type { Answer } from "./answer.ts";
import {
  bootMode,
  bootPatches,
  hasBoot,
  ifMatch,
  lacksNetworkBoot,
  parseBootOverride,
  settingsReference,
} from "./boot.ts";
import { chooseSystem } from "./choose-system.ts";
import type { IsHost } from "./choose-system.ts";
import { EMPTY, isObject, listAt, stringAt } from "./json.ts";
import type { JsonObject } from "./json.ts";
import { orderOffer, POWER_BUTTON, RESET_TYPES, resetType } from "./offer.ts";
import { OffCheck } from "./off-check.ts";
import { pathOnOrigin } from "./reference.ts";
import { findMissingRight } from "./rights.ts";
import type { Resource, Service } from "./service.ts";
import { parseAllowed, parseManagerReset, parseSystem } from "./system.ts";
import type { System } from "./system.ts";
import { parseTask, retryAfterMs, taskReference } from "./task.ts";
import type { RedfishAddress } from "../address.ts";
import { compareHosts } from "../driver.ts";
import type { BootOverride, HostIdentity, OffObstacle, OrderOffer, PowerDriver, PowerReading } from "../driver.ts";
import { callLimitsOn } from "../call-limits.ts";
import type { BmcErrorCode } from "../errors.ts";
import { BmcError } from "../errors.ts";
import { sharedOn } from "../shared.ts";
import type { Shared } from "../shared.ts";
import { sleep } from "../../runtime/clock.ts";
import type { Clock } from "../../runtime/clock.ts";
import { DeadlineError, withDeadline } from "../../runtime/deadline.ts";
import type { ResetAction } from "./reset-memory.ts";

/**
 * How long an order that runs as a task is watched for an early refusal. After that the order counts as accepted: the power
 * power state shows the rest, and sooner than most tasks do.
 */
const TASK_WATCH_MS = 600;

/** How long the permissions of the account may take to be read: up to 20 requests, for which the host's turn is held. */
const RIGHTS_READ_MAX_MS = 5_000;
/** Answers by which a service says no more than that it does not show the info of an action. */
const UNREAD_INFO: ReadonlySet<BmcErrorCode> = new Set(["BadResponse", "PrivilegeTooLow", "Unsupported", "Refused"]);

/** Calls to the hosts of one BMC (an enclosure has several): slow ones do not bear more. */
const CALLS_AT_ONCE_MAX = 4;

/** A power state of the standard's that is neither on nor off. */
const HALTED = "Paused";

/** A power order as it is sent. */
interface Order {
  target: string;
  type: string;
  /** The log-in in which the host was read Off, where the order must not reach one that is on. */
  offAtLogin?: number;
}

/** What has to hold right before something that changes the host is sent. */
interface SameHost {
  /** Whether a host that does not say any more who it is will do. */
  mayBeUnknown: boolean;
  /** As in `Order`. */
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
  readonly #ordersOn: Shared["ordersOn"];
  readonly #rights: Shared["rights"];
  readonly #systems: Shared["systems"];
  readonly #resets: Shared["resets"];
  /** Who answered when asked last, and in which log-in: the power of anybody else is not this host's. */
  #identified: { identity: HostIdentity; login: number } | undefined;
  // Learned at the first read and kept while the driver is open; the power state never is.
  #path: string | undefined;
  #reset: ResetAction | undefined;
  #lastReset: string | undefined;

  constructor(
    address: RedfishAddress,
    service: Service,
    options: {
      callTimeoutMs: number;
      clock: Clock;
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
    const { ordersOn, rights, systems, resets } = sharedOn(options.clock);
    this.#ordersOn = ordersOn;
    this.#rights = rights;
    this.#systems = systems;
    this.#resets = resets;
  }

  get lastReset(): string | undefined {
    return this.#lastReset;
  }

  identify(signal: AbortSignal): Promise<HostIdentity> {
    return this.#call("identify", signal, async (signal) => {
      const { identity } = await this.#readSystem(signal);
      this.#identified = { identity, login: this.#service.logins };
      return identity;
    });
  }

  readPower(signal: AbortSignal): Promise<PowerReading> {
    return this.#call("read of the power state", signal, (signal) => this.#readPower(signal));
  }

  forceOff(signal: AbortSignal): Promise<void> {
    return this.#call("order off", signal, (signal) => this.#order("Off", signal));
  }

  on(signal: AbortSignal): Promise<void> {
    return this.#call("order on", signal, (signal) => this.#order("On", signal));
  }

  setBootOverride(override: BootOverride, signal: AbortSignal): Promise<void> {
    return this.#call("change of the boot override", signal, (signal) => this.#setBoot(override, signal));
  }

  readBootOverride(signal: AbortSignal): Promise<BootOverride> {
    return this.#call("read of the boot override", signal, async (signal) =>
      parseBootOverride((await this.#readBoot(signal)).body),
    );
  }

  readOffer(signal: AbortSignal): Promise<OrderOffer> {
    return this.#call("read of the orders offered", signal, async (signal) => {
      const { reset } = await this.#readSystem(signal);
      const listed = reset === undefined ? [] : await this.#listedTypes(reset, signal);
      if (reset !== undefined) this.#targetOf(reset);
      return orderOffer(listed, (await this.#findBoot(signal))?.body);
    });
  }

  async findOffObstacle(signal: AbortSignal): Promise<OffObstacle | undefined> {
    const found = await this.#call("rehearsal of a power-off", signal, async (signal) => {
      const system = await this.#readSystem(signal);
      return (await this.#offerObstacle(system, signal)) ?? (await this.#offCheck.findObstacle(system, signal));
    });
    return found ?? this.#rightsObstacle(signal);
  }

  /** Permissions that cannot be read, or not in time, are no obstacle: an order will show it. */
  async #rightsObstacle(signal: AbortSignal): Promise<OffObstacle | undefined> {
    const account = `${this.#service.origin} ${this.#service.username}`;
    if (this.#rights.isRecent(account)) return undefined;
    try {
      const missing = await this.#call(
        "read of the permissions",
        signal,
        (signal) => findMissingRight(this.#service, signal),
        // A fence that begins meanwhile waits for it.
        Math.min(RIGHTS_READ_MAX_MS, this.#callTimeoutMs),
      );
      if (missing !== undefined) {
        const advice = "give the account a role that may power hosts, such as Operator, on the BMC";
        return { reason: "OffNotPermitted", message: `${this.address}: ${missing}: ${advice}` };
      }
    } catch (error) {
      signal.throwIfAborted();
      if (!(error instanceof BmcError)) throw error;
    }
    this.#rights.note(account);
    return undefined;
  }

  async #offerObstacle({ reset, power }: System, signal: AbortSignal): Promise<OffObstacle | undefined> {
    if (power.state === "Unknown" && power.raw !== HALTED) {
      const what = `the System shows no power state that is known (${power.raw}), so nothing would prove an Off`;
      const advice = "update the firmware, or use IPMI or another device";
      return { reason: "PowerUnreadable", message: `${this.address}: ${what}: ${advice}` };
    }
    const notOffered = (what: string): OffObstacle => ({
      reason: "OffNotOffered",
      message: `${this.address}: ${what}`,
    });
    // Some show the action of a host that is on alone.
    if (reset === undefined && power.state === "Off") return undefined;
    if (reset === undefined) return notOffered("the System has no Reset action: use IPMI, or another device");
    this.#targetOf(reset);
    // Some list what they take in the present state alone: of a host that is off, a missing ForceOff says nothing.
    if (power.state !== "On" || (await this.#chooseType("Off", reset, signal)) !== undefined) return undefined;
    const offered = ((await this.#listedTypes(reset, signal)) ?? []).join(", ").slice(0, 200);
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
        throw new BmcError("Unsupported", `${this.address}: the BMC offers no restart of itself`);
      }
      const path = pathOnOrigin(this.#service.origin, restart.target, "the target of the Manager's Reset");
      const call = { method: "POST", path, body: { ResetType: restart.type } } as const;
      const answer = await this.#change(call, { mayBeUnknown: false }, signal);
      const refusal = await this.#followToRefusal(`${this.address}: restart of the BMC`, answer, signal);
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
      const limits = callLimitsOn(this.#clock);
      return await withDeadline(this.#clock, named, timeoutMs, signal, (signal) =>
        // Who has its turn at the host waits for the BMC, never the other way round: others of that BMC would wait behind it.
        limits.run(this.#key, 1, named, signal, () =>
          limits.run(this.#service.origin, CALLS_AT_ONCE_MAX, named, signal, () => work(signal)),
        ),
      );
    } catch (error) {
      if (error instanceof BmcError) throw error;
      if (signal.aborted) throw new BmcError("Aborted", `${named} was aborted`, { cause: error });
      if (error instanceof DeadlineError) throw new BmcError("Timeout", error.message, { cause: error });
      throw error;
    }
  }

  async #readSystemResource(signal: AbortSignal): Promise<Resource> {
    try {
      const resource = await this.#findSystem(signal);
      this.#systems.note(this.#key);
      return resource;
    } catch (error) {
      if (!(error instanceof BmcError) || error.code !== "SystemNotFound" || !this.#systems.isRecent(this.#key))
        throw error;
      const why = "it was there a short time ago, and a BMC that starts may not know it yet";
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
    // Some show no action to a host that is off.
    this.#reset = system.reset ?? this.#reset;
    if (system.reset !== undefined) this.#resets.note(this.#resetKey(system), system.reset);
    this.#lastReset = system.lastReset;
    this.#offCheck.noteState(system.power.state);
    return system;
  }

  async #readPower(signal: AbortSignal): Promise<PowerReading> {
    const system = await this.#readSystem(signal);
    const known = this.#identified?.identity;
    // A reading of the host alone: what is not reported now, as after a power-on, makes it no other's.
    if (known !== undefined && compareHosts(known, system.identity, { isOff: true }) === "Other") {
      const { systemUUID, serialNumber } = system.identity;
      return { state: "Unknown", raw: `another host answers than before, ${systemUUID ?? serialNumber ?? ""}` };
    }
    return system.power.state === "Off" ? this.#offCheck.weigh(system, signal) : system.power;
  }

  async #order(wanted: "Off" | "On", signal: AbortSignal): Promise<void> {
    const order = await this.#chooseOrder(wanted, signal);
    if (order === undefined) return;
    this.#offCheck.forget();
    // No If-Match: an action is no write to the resource, and iDRAC 10 answers 412 to one.
    const call = { method: "POST", path: order.target, body: { ResetType: order.type } } as const;
    if (wanted === "On") this.#ordersOn.note(this.#key);
    // A host that has lost its identity with its power gets it back with it.
    const required = { mayBeUnknown: wanted === "On", offAtLogin: order.offAtLogin };
    let answer = await this.#change(call, required, signal);
    // Some want one with an action as well; it was not carried out (RFC 6585, section 3).
    if (answer.status === 428) answer = await this.#change({ ...call, headers: { "if-match": "*" } }, required, signal);
    const refusal = await this.#followToRefusal(`${this.address}: order ${order.type}`, answer, signal);
    if (refusal === undefined) return;
    // iLO says 400 and iDRAC 409 to an order for the state that the host is in already: the power state shows which it is.
    const heard = refusal.code === "Refused" || refusal.code === "Unsupported";
    // Any other failure may come from a gateway, after the BMC has carried the order out.
    if (heard && wanted === "On") this.#ordersOn.forget(this.#key);
    if (heard && (await this.#readPower(signal)).state === wanted) return;
    throw refusal;
  }

  /** Sends something that changes the host. @throws BmcError Refused, and nothing is sent, where another host answers. */
  #change(call: Parameters<Service["change"]>[0], required: SameHost, signal: AbortSignal): Promise<Answer> {
    return this.#service.change(call, (signal, isAgain) => this.#requireSameHost(required, isAgain, signal), signal);
  }

  /**
   * A name may lead to another BMC by the time of a new log-in, which the caller does not see: so the host is identified in each
   * new login before anything is changed; and before something that was denied is sent again, since time has passed.
   */
  async #requireSameHost({ mayBeUnknown, offAtLogin }: SameHost, isAgain: boolean, signal: AbortSignal): Promise<void> {
    const known = this.#identified;
    const { logins } = this.#service;
    const isOffStill = offAtLogin === undefined || (offAtLogin === logins && !isAgain);
    const isKnownStill = known === undefined || (known.login === logins && !isAgain);
    if (isKnownStill && isOffStill) return;
    const { identity, power } = await this.#readSystem(signal);
    if (!isOffStill && power.state !== "Off") {
      throw new BmcError("Refused", `${this.address}: not sent: the host is not off any more (${power.raw})`);
    }
    if (known === undefined) return;
    const compared = compareHosts(known.identity, identity, { isOff: power.state === "Off" });
    if (compared === "Other" || (compared === "Unknown" && !mayBeUnknown)) {
      const who = compared === "Other" ? "another host answers" : "the host does not say any more who it is";
      throw new BmcError("Refused", `${this.address}: not sent: ${who} since the last log-in`);
    }
    this.#identified = { ...known, login: this.#service.logins };
  }

  /** The order to send; undefined where the host is there already, and the BMC takes no such order in that state. */
  async #chooseOrder(wanted: "Off" | "On", signal: AbortSignal): Promise<Order | undefined> {
    const known = this.#reset;
    const knownType = known && (await this.#chooseType(wanted, known, signal));
    if (known !== undefined && knownType !== undefined) return { target: this.#targetOf(known), type: knownType };
    // Some list what they take in the present state alone: a list that was read before the last order is no answer.
    const system = await this.#readSystem(signal);
    const { power } = system;
    const reset = system.reset ?? this.#resets.of(this.#resetKey(system));
    if (reset === undefined) throw new BmcError("Unsupported", `${this.address}: the System has no Reset action`);
    const type = await this.#chooseType(wanted, reset, signal);
    if (type !== undefined) return { target: this.#targetOf(reset), type };
    if (power.state === wanted) return undefined;
    const allowed = await this.#listedTypes(reset, signal);
    if (wanted === "On" && allowed?.includes(POWER_BUTTON) === true) return this.#pushButton(reset, signal);
    // Nor is one that was listed in another state, where none is shown in this one.
    if (system.reset === undefined) return { target: this.#targetOf(reset), type: RESET_TYPES[wanted][0] };
    const offered = allowed?.join(", ").slice(0, 200) ?? "";
    throw new BmcError("Unsupported", `${this.address}: the BMC offers no ${RESET_TYPES[wanted][0]}, only: ${offered}`);
  }

  /** By the System that answers: an address that names none may stand for each host of its BMC. */
  #resetKey({ path }: System): string {
    return `${this.#service.origin}${path}`;
  }

  #targetOf({ target }: ResetAction): string {
    return pathOnOrigin(this.#service.origin, target, "the target of the Reset action");
  }

  /**
   * The power button is all that the BMC offers to power a host on. It would power a running host off, so it is pushed right after
   * a fresh Off alone, and not while an earlier order to power on, a push or another one, may still be on its way, whatever happened
   * to its answer.
   *
   * @throws BmcError Busy while that is so, Refused where the host is not known to be off.
   */
  async #pushButton(reset: ResetAction, signal: AbortSignal): Promise<Order> {
    if (this.#ordersOn.isRecent(this.#key)) {
      const why = "the host was ordered on a short time ago, and may be on its way";
      throw new BmcError("Busy", `${this.address}: the power button is not pushed yet: ${why}`);
    }
    const { state, raw } = await this.#readPower(signal);
    if (state !== "Off") {
      throw new BmcError("Refused", `${this.address}: the power button is not pushed: the host is not off (${raw})`);
    }
    return { target: this.#targetOf(reset), type: POWER_BUTTON, offAtLogin: this.#service.logins };
  }

  /** What to send for an order; undefined where neither of the two lists has anything that will do. */
  async #chooseType(wanted: "Off" | "On", reset: ResetAction, signal: AbortSignal): Promise<string | undefined> {
    const listed = reset.allowedTypes === undefined ? undefined : resetType(wanted, reset.allowedTypes);
    return listed ?? resetType(wanted, await this.#listedTypes(reset, signal));
  }

  /** All that the service lists, next to the action and in its info; undefined where it lists nothing. */
  async #listedTypes(reset: ResetAction, signal: AbortSignal): Promise<readonly string[] | undefined> {
    const { allowedTypes } = reset;
    const inInfo = await this.#typesOfInfo(reset, signal);
    if (allowedTypes === undefined || inInfo === undefined) return allowedTypes ?? inInfo;
    return [...new Set([...allowedTypes, ...inInfo])];
  }

  async #typesOfInfo(reset: ResetAction, signal: AbortSignal): Promise<readonly string[] | undefined> {
    if (reset.actionInfo === undefined) return undefined;
    const path = pathOnOrigin(this.#service.origin, reset.actionInfo, "the link to the Reset action's info");
    // Types that cannot be read are types that are not listed: they must not keep an Off from being sent.
    const info = await this.#service.find(path, signal).catch((error: unknown) => {
      if (error instanceof BmcError && UNREAD_INFO.has(error.code)) return undefined;
      throw error;
    });
    const parameters = (listAt(info?.body ?? EMPTY, "Parameters") ?? []).filter((item) => isObject(item));
    const resetType = parameters.find((parameter) => stringAt(parameter, "Name") === "ResetType");
    return parseAllowed(resetType ?? EMPTY, "AllowableValues");
  }

  /** Why the service will not do what it was asked, if it says so, at once or within `TASK_WATCH_MS` of a task. */
  async #followToRefusal(what: string, answer: Answer, signal: AbortSignal): Promise<BmcError | undefined> {
    if (answer.status < 200 || answer.status >= 300) return failure(what, answer);
    const reference = taskReference(answer);
    if (reference === undefined) return undefined;
    const monitor = pathOnOrigin(this.#service.origin, reference, "the location of the task");
    const endMs = this.#clock.monotonicMs() + Math.min(TASK_WATCH_MS, this.#callTimeoutMs / 4);
    let waitMs = retryAfterMs(answer);
    while (this.#clock.monotonicMs() + waitMs <= endMs) {
      await sleep(this.#clock, waitMs, signal);
      const stand = parseTask(what, await this.#service.monitor(monitor, signal));
      if (stand.state === "Ended") return undefined;
      if (stand.state === "Failed") return stand.error;
      waitMs = stand.retryAfterMs;
    }
    return undefined;
  }

  /** The resource whose Boot object takes writes: the settings object where it has one, else the System. */
  async #readBoot(signal: AbortSignal): Promise<Resource> {
    const boot = await this.#findBoot(signal);
    if (boot === undefined) throw new BmcError("Unsupported", `${this.address}: the System has no boot override`);
    return boot;
  }

  async #findBoot(signal: AbortSignal): Promise<Resource | undefined> {
    const system = await this.#readSystemResource(signal);
    const reference = settingsReference(system.body);
    if (reference !== undefined) {
      const path = pathOnOrigin(this.#service.origin, reference, "the link to the settings");
      const settings = await this.#service.find(path, signal);
      if (settings !== undefined && hasBoot(settings.body)) return settings;
    }
    return hasBoot(system.body) ? system : undefined;
  }

  async #setBoot(override: BootOverride, signal: AbortSignal): Promise<void> {
    const boot = await this.#readBoot(signal);
    if (override === "None" && parseBootOverride(boot.body) === "None") return;
    if (override === "NetworkOnce" && lacksNetworkBoot(boot.body)) {
      throw new BmcError("Unsupported", `${this.address}: the BMC offers no network boot`);
    }
    const patches = bootPatches(override, boot.body);
    let refusal: BmcError | undefined;
    for (const patch of patches) {
      refusal = await this.#writeBoot(patch, boot, signal);
      if (refusal?.code !== "Refused" && refusal?.code !== "Unsupported") break;
    }
    if (refusal !== undefined) throw refusal;
    // Some (Supermicro) fall back to their default mode when the target changes: then it is named as well.
    const withMode = patches.at(-1);
    if (override === "None" || withMode === undefined || bootMode(boot.body) === undefined) return;
    const written = await this.#readBoot(signal);
    if (bootMode(written.body) === bootMode(boot.body)) return;
    refusal = await this.#writeBoot(withMode, written, signal);
    if (refusal !== undefined) throw refusal;
  }

  async #writeBoot(patch: JsonObject, read: Resource, signal: AbortSignal): Promise<BmcError | undefined> {
    let { path, etag } = read;
    for (let tries = 1; ; tries += 1) {
      const precondition = ifMatch(etag, tries);
      const headers = precondition === undefined ? {} : { "if-match": precondition };
      const answer = await this.#change(
        { method: "PATCH", path, body: patch, headers },
        { mayBeUnknown: false },
        signal,
      );
      const isUnmet = answer.status === 412 || answer.status === 428;
      if (!isUnmet) return this.#followToRefusal(`${this.address}: boot override`, answer, signal);
      if (precondition === "*") throw failure(`${this.address}: boot override`, answer);
      // Another client may have changed the resource between our read and our write.
      ({ path, etag } = await this.#readBoot(signal));
    }
  }
}
