import { BmcError } from "../../bmc/interface/errors.ts";
import type { PowerDriver } from "../../bmc/interface/driver.ts";
import type { Clock } from "../../runtime/clock.ts";
import { sleep } from "../../runtime/clock.ts";
import { DeadlineError, withDeadline } from "../../runtime/deadline.ts";
import { CommandFailure } from "../errors/failures.ts";

/** How long an outlet may take until it reads as it was ordered. PDUs delay an order by some seconds. */
const SWITCH_MAX_MS = 90_000;
const POLL_MS = 1_000;
/** How long the command waits before it repeats an order that had no effect. */
const REORDER_MS = 15_000;

/** Switches outlets, and reads each twice to prove that it was switched. */
export class OutletSwitch {
  readonly #clock: Clock;
  /** Outlets that may be off because of this command. */
  readonly #off = new Set<PowerDriver>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Whether an outlet may be off because of this command. */
  get mayBeOff(): boolean {
    return this.#off.size > 0;
  }

  get leftOff(): string[] {
    return [...this.#off].map(({ address }) => address);
  }

  async off(outlets: readonly PowerDriver[], signal: AbortSignal): Promise<void> {
    for (const outlet of outlets) this.#off.add(outlet);
    await Promise.all(outlets.map((outlet) => outlet.forceOff(signal)));
    await Promise.all(outlets.map((outlet) => this.#until(outlet, "Off", signal)));
  }

  /**
   * Switches on every outlet that may be off. It has a signal of its own, because that of the command may have been
   * aborted.
   */
  async on(): Promise<void> {
    const { signal } = new AbortController();
    const settled = await Promise.allSettled(
      [...this.#off].map(async (outlet) => {
        await this.#until(outlet, "On", signal);
        this.#off.delete(outlet);
      }),
    );
    const failed = settled.find((result) => result.status === "rejected");
    if (failed !== undefined) throw failed.reason;
  }

  async #until(outlet: PowerDriver, wanted: "Off" | "On", signal: AbortSignal): Promise<void> {
    const endMs = this.#clock.monotonicMs() + SWITCH_MAX_MS;
    let orderedAtMs = wanted === "Off" ? this.#clock.monotonicMs() : -Infinity;
    let reads = 0;
    let last = "nothing";
    while (this.#clock.monotonicMs() < endMs) {
      const leftMs = Math.max(endMs - this.#clock.monotonicMs(), 1);
      try {
        await withDeadline(this.#clock, `switching ${outlet.address}`, leftMs, signal, async (bounded) => {
          if (reads === 0 && this.#clock.monotonicMs() - orderedAtMs >= REORDER_MS) {
            orderedAtMs = this.#clock.monotonicMs();
            await (wanted === "On" ? outlet.on(bounded) : outlet.forceOff(bounded));
          }
          const { state, raw } = await outlet.readPower(bounded);
          reads = state === wanted ? reads + 1 : 0;
          last = raw;
        });
      } catch (error) {
        if (signal.aborted || !(error instanceof BmcError || error instanceof DeadlineError)) throw error;
        reads = 0;
        last = error.message;
      }
      if (reads >= 2) return;
      await sleep(this.#clock, POLL_MS, signal);
    }
    const why = `${outlet.address} did not read ${wanted} within ${SWITCH_MAX_MS / 1_000} s; it reports: ${last}`;
    throw new CommandFailure("EnrolmentFailed", why);
  }
}
