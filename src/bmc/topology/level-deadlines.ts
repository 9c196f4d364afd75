import { DeadlineError, withDeadline } from "../../runtime/deadline.ts";
import type { Clock } from "../../runtime/clock.ts";
import type { PowerDriver } from "../interface/driver.ts";
import { BmcError } from "../interface/errors.ts";
import { isOutletLevel } from "./outlets.ts";

/**
 * The deadline for a call to a BMC whose last call failed, if the host also has outlets. Such a BMC has usually lost
 * its power together with the host, and a proof of Off lasts only 5 s.
 */
const SILENT_BMC_MS = 2_000;

/**
 * The same deadline while no proof of Off is awaited: the BMC has its power again, and answers slowly while it starts.
 */
export const STARTING_BMC_MS = 8_000;

/** Bounds the calls to levels of BMCs that did not answer before. */
export class LevelDeadlines {
  readonly #clock: Clock | undefined;
  /** Levels of BMCs whose last call failed. */
  readonly #silent = new Set<readonly PowerDriver[]>();

  /** @param clock Undefined if the host has no outlets that may be used. */
  constructor(clock: Clock | undefined) {
    this.#clock = clock;
  }

  /** Records that a call to a level ended in time, but without an answer of its BMC. */
  noteFailure(level: readonly PowerDriver[], { code }: BmcError): void {
    if (code === "Timeout" || code === "Unreachable") this.#silent.add(level);
  }

  /** Calls one level, for `silentMs` at most if its last call failed and the host has outlets. */
  async call<T>(
    level: readonly PowerDriver[],
    signal: AbortSignal,
    call: (signal: AbortSignal) => Promise<T>,
    silentMs = SILENT_BMC_MS,
  ): Promise<T> {
    const clock = this.#clock;
    if (clock === undefined || isOutletLevel(level)) return call(signal);
    const wasSilent = this.#silent.has(level);
    this.#silent.add(level);
    const what = `call of ${level[0]?.address ?? ""}, which did not answer before`;
    try {
      const result = await (wasSilent ? withDeadline(clock, what, silentMs, signal, call) : call(signal));
      this.#silent.delete(level);
      return result;
    } catch (error) {
      throw error instanceof DeadlineError ? new BmcError("Timeout", error.message, { cause: error }) : error;
    }
  }
}
