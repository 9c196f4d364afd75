import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { Precedence } from "../../../../../src/bmc/gate/limits/precedence.ts";
import { ReadingBudget } from "../../../../../src/bmc/gate/limits/reading-budget.ts";
import { abortReason, sleep } from "../../../../../src/runtime/clock.ts";
import { VirtualClock } from "../../../../lib/virtual-clock.ts";

const KEY = "bmc";
const NEVER = new AbortController().signal;
/** Time between two readings of the power, during and after the power-off. */
const POLL_MS = 330;
const REREAD_MS = 1_500;
/** How long a reading of the power takes, and how long the host takes to be off. */
const READING_MS = 60;
const OFF_AFTER_MS = 3_000;

/** A BMC that answers one request at a time, in order. If a request is ended, it continues with the next. */
class SerialBmc {
  readonly #clock: VirtualClock;
  #last: Promise<void> = Promise.resolve();

  constructor(clock: VirtualClock) {
    this.#clock = clock;
  }

  async serve(takesMs: number, signal: AbortSignal): Promise<void> {
    const before = this.#last;
    let leave: () => void = () => undefined;
    this.#last = new Promise((resolve) => (leave = resolve));
    try {
      await before;
      if (signal.aborted) throw abortReason(signal);
      await sleep(this.#clock, takesMs, signal);
    } finally {
      leave();
    }
  }
}

interface Played {
  /** The time of the second reading of Off. */
  provenMs: number;
  /** The number of answered requests for the log. */
  answered: number;
  incomplete: string | undefined;
}

/** Powers a host off while its log is read in `requests` requests that take `logMs` each. */
async function play(logMs: number, requests: number): Promise<Played> {
  const clock = new VirtualClock();
  const bmc = new SerialBmc(clock);
  const precedence = new Precedence(clock);
  const budget = new ReadingBudget(clock, precedence, KEY);
  let answered = 0;
  const readLog = async (): Promise<void> => {
    for (let at = 0; at < requests; at += 1) {
      const done = await budget.send("log", NEVER, async (signal) => {
        await bmc.serve(logMs, signal);
        return true;
      });
      if (done === true) answered += 1;
    }
  };
  let provenMs = NaN;
  const powerOff = async (): Promise<void> => {
    const startMs = clock.monotonicMs();
    let offs = 0;
    for (let readings = 0; readings < 60; readings += 1) {
      await precedence.first(KEY, () => bmc.serve(READING_MS, NEVER));
      offs = clock.monotonicMs() - startMs >= OFF_AFTER_MS ? offs + 1 : 0;
      if (offs === 2) provenMs = clock.monotonicMs() - startMs;
      await sleep(clock, offs >= 2 ? REREAD_MS : POLL_MS, NEVER);
    }
  };
  const played = Promise.all([powerOff(), readLog()]);
  await clock.advance(120_000);
  await played;
  return { provenMs, answered, incomplete: budget.incomplete };
}

describe("a BMC that answers one request at a time", () => {
  it("a BMC that answers one request at a time, and gives its log slowly, delays the proof of Off by 0.3 s at most", async () => {
    const alone = await play(0, 0);
    for (const logMs of [400, 900, 2_000, 10_000]) {
      const { provenMs } = await play(logMs, 8);
      assert.ok(provenMs - alone.provenMs <= 300, `${logMs} ms: ${provenMs} instead of ${alone.provenMs} ms`);
    }
  });

  it("a BMC that answers one request at a time has its slow log read once the host is proven off", async () => {
    const { answered, incomplete } = await play(700, 4);
    assert.deepEqual([answered, incomplete], [4, undefined]);
  });

  it("a BMC that answers one request at a time, and gives no log, is asked for it four times at most", async () => {
    const { answered, incomplete } = await play(60_000, 8);
    assert.equal(answered, 0);
    assert.match(incomplete ?? "", /the power-off came first|within/);
  });
});
