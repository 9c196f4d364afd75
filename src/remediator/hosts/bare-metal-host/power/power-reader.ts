import type { Node } from "../../../../api/kubernetes/core.ts";
import type { BareMetalHost } from "../../../../api/metal3/metal3.ts";
import type { BmcEvidence } from "../../../../bmc/evidence/model.ts";
import type { PowerDriver, PowerReading } from "../../../../bmc/interface/driver.ts";
import { BmcError } from "../../../../bmc/interface/errors.ts";
import type { IdentityCheck } from "../../../../bmc/identity/identity-check.ts";
import type { Clock } from "../../../../runtime/clock.ts";
import { parseTimeMs } from "../../../../runtime/time.ts";
import { isOffRequested, storedRequest } from "../store/host-annotations.ts";
import { judgeHost } from "./judge-host.ts";
import type { HostOwner } from "../../../machine/model/facts/host-facts.ts";

/** How the power of a host is read if its operator gives the orders. */
export interface PowerReader {
  /** The system UUID of the accepted host; undefined if none was reported, or no host is accepted yet. */
  readonly systemUUID: string | undefined;
  verify(node: Node | undefined, signal: AbortSignal): Promise<IdentityCheck>;
  /** @throws BmcError if the host that answers is not accepted. */
  requireVerified(signal: AbortSignal): Promise<void>;
  /** A fresh reading; `Unknown` while another host answers, or the identity is unknown. */
  read(signal: AbortSignal): Promise<PowerReading>;
  /** What the BMC of the accepted host shows about why the host died. */
  readEvidence?(signal: AbortSignal): Promise<BmcEvidence | undefined>;
  close(): Promise<void>;
}

/** Reads the BMC directly. */
export class BmcPowerReader implements PowerReader {
  readonly #driver: PowerDriver;
  readonly #host: () => BareMetalHost;
  readonly #sameSerial: () => BareMetalHost | undefined;
  #check: IdentityCheck | undefined;
  #systemUUID: string | undefined;

  /**
   * @param host returns the host as it is known at that time.
   * @param sameSerial returns another host with the same serial number, if there is one at that time.
   */
  constructor(driver: PowerDriver, host: () => BareMetalHost, sameSerial: () => BareMetalHost | undefined) {
    this.#driver = driver;
    this.#host = host;
    this.#sameSerial = sameSerial;
  }

  get systemUUID(): string | undefined {
    return this.#systemUUID;
  }

  async verify(node: Node | undefined, signal: AbortSignal): Promise<IdentityCheck> {
    this.#check = undefined;
    const answer = await this.#driver.identify(signal);
    const check = judgeHost(this.#host(), node, answer, this.#sameSerial());
    this.#check = check;
    this.#systemUUID = check.verified ? answer.systemUUID : undefined;
    return check;
  }

  async requireVerified(signal: AbortSignal): Promise<void> {
    const check = this.#check ?? (await this.verify(undefined, signal));
    if (check.verified) return;
    const code = check.reason === "Mismatch" ? "SystemNotFound" : "Unsupported";
    throw new BmcError(code, `no order is sent: ${check.message}`);
  }

  async read(signal: AbortSignal): Promise<PowerReading> {
    const check = this.#check ?? (await this.verify(undefined, signal));
    return check.verified ? this.#driver.readPower(signal) : { state: "Unknown", raw: check.message };
  }

  async readEvidence(signal: AbortSignal): Promise<BmcEvidence | undefined> {
    return this.#check?.verified === true ? this.#driver.readEvidence?.(signal) : undefined;
  }

  close(): Promise<void> {
    return this.#driver.close();
  }
}

/**
 * How long all live reads of the status must have shown off before it counts, because the operator notices a change of
 * the power with a delay.
 */
export const STATUS_SETTLE_MS = 10_000;

/**
 * Reads the status that the operator writes, for hosts whose BMC only the operator can reach and whose administrator
 * has opted in by an annotation. `poweredOn: false` is off only if it changed after our request, and nothing
 * contradicts it. The operator writes its status to the version that it has read, so a status that was written after
 * our request comes from an operator that knew of it.
 */
export class StatusPowerReader implements PowerReader {
  readonly systemUUID = undefined;
  readonly #clock: Clock;
  readonly #owner: HostOwner | undefined;
  readonly #readHost: (signal: AbortSignal) => Promise<BareMetalHost>;
  /**
   * The time of the first read in the present series of reads that all showed off; undefined if the last read did not.
   */
  #offSinceMs: number | undefined;

  constructor(clock: Clock, owner: HostOwner | undefined, readHost: (signal: AbortSignal) => Promise<BareMetalHost>) {
    this.#clock = clock;
    this.#owner = owner;
    this.#readHost = readHost;
  }

  verify(): Promise<IdentityCheck> {
    const message =
      "not checked: an annotation on the host says to trust its operator, because only the operator reaches the BMC";
    return Promise.resolve({ verified: true, message });
  }

  requireVerified(): Promise<void> {
    return Promise.resolve();
  }

  async read(signal: AbortSignal): Promise<PowerReading> {
    const before = this.#offSinceMs;
    this.#offSinceMs = undefined;
    const host = await this.#readHost(signal);
    const reported = powerByStatus(host, this.#owner);
    if (reported.state !== "Off") return reported;
    const nowMs = this.#clock.monotonicMs();
    this.#offSinceMs = before ?? nowMs;
    const isSettled = nowMs - this.#offSinceMs >= STATUS_SETTLE_MS;
    return isSettled ? reported : { state: "Changing", raw: `${reported.raw}, but not for long enough yet` };
  }

  close(): Promise<void> {
    return Promise.resolve();
  }
}

/** What the status of a host says about its power, given our request. Pure. */
export function powerByStatus(host: BareMetalHost, owner: HostOwner | undefined): PowerReading {
  const { poweredOn, lastUpdated, errorType, disablePowerOff } = host;
  if (errorType !== undefined) return { state: "Unknown", raw: `status.errorType ${errorType}` };
  if (disablePowerOff) return { state: "Unknown", raw: "spec.disablePowerOff" };
  if (poweredOn === undefined) return { state: "Unknown", raw: "no status.poweredOn" };
  if (poweredOn) return { state: "On", raw: "status.poweredOn true" };
  const raw = "status.poweredOn false";
  const request = owner !== undefined && isOffRequested(host, owner) ? storedRequest(host, owner) : undefined;
  if (request === undefined) return { state: "Changing", raw: `${raw}, but no off request of ironfence keeps it off` };
  const isNews = request.poweredOn === "true" || isLater(lastUpdated, request.lastUpdated);
  return isNews ? { state: "Off", raw } : { state: "Changing", raw: `${raw}, as before our request` };
}

function isLater(time: string | undefined, before: string | undefined): boolean {
  return (parseTimeMs(time) ?? -Infinity) > (parseTimeMs(before) ?? -Infinity);
}
