import type { PowerDriver } from "../../bmc/interface/driver.ts";
import { BmcError } from "../../bmc/interface/errors.ts";
import type { Clock } from "../../runtime/clock.ts";
import { DeadlineError, withDeadline } from "../../runtime/deadline.ts";
import { parseTimeMs } from "../../runtime/time.ts";
import { CommandFailure } from "../errors/failures.ts";

/** How long a BMC may take: it may have lost its power together with its host. */
const CALL_MS = 5_000;
/** What the clock of a BMC is read wrong by at most. */
const CLOCK_SLACK_MS = 5_000;

/**
 * What the BMCs of a host say about a loss of power. They can contradict it. One that does not answer shows nothing.
 */
export class BmcWitness {
  readonly #clock: Clock;
  readonly #bmcs: readonly PowerDriver[];
  readonly #before = new Map<PowerDriver, string>();

  constructor(clock: Clock, bmcs: readonly PowerDriver[]) {
    this.#clock = clock;
    this.#bmcs = bmcs;
  }

  async begin(signal: AbortSignal): Promise<void> {
    for (const bmc of this.#bmcs) {
      const lastReset = await this.#ask(bmc, signal, async (bounded) => {
        await bmc.identify(bounded);
        return bmc.lastReset;
      });
      if (lastReset !== undefined) this.#before.set(bmc, lastReset);
    }
  }

  /** @throws CommandFailure if a BMC shows the host On although all outlets are off. */
  async ensureNotOn(signal: AbortSignal): Promise<void> {
    for (const bmc of this.#bmcs) {
      const reading = await this.#ask(bmc, signal, (bounded) => bmc.readPower(bounded));
      if (reading?.state !== "On") continue;
      const why = `${bmc.address} reads On although all outlets are off: the host has a supply that no outlet of the target feeds`;
      throw new CommandFailure("EnrolmentFailed", `nothing is enrolled: ${why}`);
    }
  }

  /**
   * Compares the history of each BMC that had one with the time in which all outlets were off, on the wall clock.
   *
   * @returns whether each of them has answered.
   * @throws CommandFailure if it shows no reset since, or one within that time: the node was reset by something else.
   */
  async agrees(dark: { offAtMs: number; onAtMs: number }, signal: AbortSignal): Promise<boolean> {
    for (const [bmc, before] of this.#before) {
      const evidence = await this.#ask(bmc, signal, async (bounded) => {
        await bmc.identify(bounded);
        return { lastReset: bmc.lastReset, shown: await bmc.readEvidence?.(bounded) };
      });
      if (evidence === undefined) return false;
      const { lastReset, shown } = evidence;
      // A BMC that has lost its power with its host may have lost its history as well.
      if (lastReset === undefined) continue;
      const resetAtMs = parseTimeMs(lastReset);
      const ahead = shown?.clockAheadMs;
      const atMs = resetAtMs === undefined || ahead === undefined ? Infinity : resetAtMs - ahead;
      const isInDark = atMs > dark.offAtMs - CLOCK_SLACK_MS && atMs < dark.onAtMs - CLOCK_SLACK_MS;
      if (lastReset !== before && !isInDark) continue;
      const why = `${bmc.address} says that the host was last reset at ${lastReset}, which is not when its outlets were switched on: something else has reset it`;
      throw new CommandFailure("EnrolmentFailed", `nothing is enrolled: ${why}`);
    }
    return true;
  }

  async #ask<T>(
    bmc: PowerDriver,
    signal: AbortSignal,
    ask: (signal: AbortSignal) => Promise<T>,
  ): Promise<T | undefined> {
    try {
      return await withDeadline(this.#clock, `call of ${bmc.address}`, CALL_MS, signal, ask);
    } catch (error) {
      if (signal.aborted || !(error instanceof BmcError || error instanceof DeadlineError)) throw error;
      return undefined;
    }
  }
}
