import type { Node } from "../../../api/core.ts";
import type { BareMetalHost } from "../../../api/metal3.ts";
import type { PowerDriver, PowerReading } from "../../../bmc/driver.ts";
import { BmcError } from "../../../bmc/errors.ts";
import type { IdentityVerdict } from "../../../bmc/topology.ts";
import type { Clock } from "../../../runtime/clock.ts";
import { parseTimeMs } from "../../../runtime/time.ts";
import { isHeld, storedRequest } from "./host-store.ts";
import { judgeHost } from "./judge-host.ts";
import type { HostOwner } from "../../machine/model/host-facts.ts";

/** How the power of a host is looked at whose operator gives the orders. */
export interface PowerSense {
  /** The system UUID of the host that was accepted; undefined where none was told, or none was accepted yet. */
  readonly systemUUID: string | undefined;
  verify(node: Node | undefined, signal: AbortSignal): Promise<IdentityVerdict>;
  /** @throws BmcError where the host that answers has not been accepted. */
  requireVerified(signal: AbortSignal): Promise<void>;
  /** Freshly; `Unknown` while another host answers, or nobody can tell. */
  read(signal: AbortSignal): Promise<PowerReading>;
  close(): Promise<void>;
}

/** Our own look at the BMC. */
export class BmcSense implements PowerSense {
  readonly #driver: PowerDriver;
  readonly #host: () => BareMetalHost;
  readonly #twin: () => BareMetalHost | undefined;
  #verdict: IdentityVerdict | undefined;
  #systemUUID: string | undefined;

  /**
   * @param host the host as it is known when asked.
   * @param twin another one with the same serial number, if there is one then.
   */
  constructor(driver: PowerDriver, host: () => BareMetalHost, twin: () => BareMetalHost | undefined) {
    this.#driver = driver;
    this.#host = host;
    this.#twin = twin;
  }

  get systemUUID(): string | undefined {
    return this.#systemUUID;
  }

  async verify(node: Node | undefined, signal: AbortSignal): Promise<IdentityVerdict> {
    this.#verdict = undefined;
    const answer = await this.#driver.identify(signal);
    const verdict = judgeHost(this.#host(), node, answer, this.#twin());
    this.#verdict = verdict;
    this.#systemUUID = verdict.verified ? answer.systemUUID : undefined;
    return verdict;
  }

  async requireVerified(signal: AbortSignal): Promise<void> {
    const verdict = this.#verdict ?? (await this.verify(undefined, signal));
    if (verdict.verified) return;
    const code = verdict.reason === "Mismatch" ? "SystemNotFound" : "Unsupported";
    throw new BmcError(code, `no order is given: ${verdict.message}`);
  }

  async read(signal: AbortSignal): Promise<PowerReading> {
    const verdict = this.#verdict ?? (await this.verify(undefined, signal));
    return verdict.verified ? this.#driver.readPower(signal) : { state: "Unknown", raw: verdict.message };
  }

  close(): Promise<void> {
    return this.#driver.close();
  }
}

/**
 * How long the status must have said off, in one live look after the other, before it is believed: the operator hears of the
 * power by a mirror of its own.
 */
export const STATUS_SETTLE_MS = 10_000;

/**
 * The operator's word, for hosts whose BMC nobody else can reach and whose owner has opted in: `poweredOn` false is off only
 * where it became so after our request, by an operator that had read it, and nothing speaks against it. The operator writes its
 * status to the version that it has read, so whatever was written after our request was written by one that knew of it.
 */
export class StatusSense implements PowerSense {
  readonly systemUUID = undefined;
  readonly #clock: Clock;
  readonly #owner: HostOwner | undefined;
  readonly #readHost: (signal: AbortSignal) => Promise<BareMetalHost>;
  /** When the status was first seen to say off, in a row of looks without anything else. */
  #offSinceMs: number | undefined;

  constructor(clock: Clock, owner: HostOwner | undefined, readHost: (signal: AbortSignal) => Promise<BareMetalHost>) {
    this.#clock = clock;
    this.#owner = owner;
    this.#readHost = readHost;
  }

  verify(): Promise<IdentityVerdict> {
    const message = "not checked: by its annotation the host's operator is trusted, which alone reaches the BMC";
    return Promise.resolve({ verified: true, message });
  }

  requireVerified(): Promise<void> {
    return Promise.resolve();
  }

  async read(signal: AbortSignal): Promise<PowerReading> {
    const before = this.#offSinceMs;
    this.#offSinceMs = undefined;
    const host = await this.#readHost(signal);
    const told = powerByStatus(host, this.#owner);
    if (told.state !== "Off") return told;
    const nowMs = this.#clock.monotonicMs();
    this.#offSinceMs = before ?? nowMs;
    const isSettled = nowMs - this.#offSinceMs >= STATUS_SETTLE_MS;
    return isSettled ? told : { state: "Changing", raw: `${told.raw}, but not for long enough yet` };
  }

  close(): Promise<void> {
    return Promise.resolve();
  }
}

/** What a host's status says of its power, with our request in view. Pure. */
export function powerByStatus(host: BareMetalHost, owner: HostOwner | undefined): PowerReading {
  const { poweredOn, lastUpdated, errorType, disablePowerOff } = host;
  if (errorType !== undefined) return { state: "Unknown", raw: `status.errorType ${errorType}` };
  if (disablePowerOff) return { state: "Unknown", raw: "spec.disablePowerOff" };
  if (poweredOn === undefined) return { state: "Unknown", raw: "no status.poweredOn" };
  if (poweredOn) return { state: "On", raw: "status.poweredOn true" };
  const raw = "status.poweredOn false";
  const request = owner !== undefined && isHeld(host, owner) ? storedRequest(host, owner) : undefined;
  if (request === undefined) return { state: "Changing", raw: `${raw}, but no hold of ironfence keeps it off` };
  const isNews = request.poweredOn === "true" || isLater(lastUpdated, request.lastUpdated);
  return isNews ? { state: "Off", raw } : { state: "Changing", raw: `${raw}, as before our request` };
}

function isLater(time: string | undefined, before: string | undefined): boolean {
  return (parseTimeMs(time) ?? -Infinity) > (parseTimeMs(before) ?? -Infinity);
}
