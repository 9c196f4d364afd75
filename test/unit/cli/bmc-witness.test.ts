import assert from "node:assert/strict";
import { test } from "node:test";
import type { PowerDriver, PowerLossSigns, PowerState } from "../../../src/bmc/interface/driver.ts";
import { BmcWitness } from "../../../src/cli/enroll/bmc-witness.ts";
import { VirtualClock } from "../../lib/virtual-clock.ts";

// What a BMC shows about a loss of power. test/sim/enroll.test.ts covers hosts and outlets.

const signal = new AbortController().signal;
const HOUR = 3_600_000;

interface Bmc {
  before?: PowerLossSigns;
  after?: PowerLossSigns;
  /** The readings while all outlets are off. After the end of the list, the BMC does not answer. */
  dark?: readonly PowerState[];
  /** The last reset of the host, in seconds after the outlets were switched on. */
  resetAfterS?: number;
  /** By how many milliseconds its clock is ahead. */
  aheadMs?: number;
}

/**
 * Runs a minute without power and another one with it. @returns why the BMC does not show the loss; empty if it does.
 */
async function lackOf({ before = {}, after = {}, dark = [], resetAfterS, aheadMs = 0 }: Bmc): Promise<string> {
  const clock = new VirtualClock();
  let isBack = false;
  let onAtMs = 0;
  const reads = [...dark];
  const bmc = {
    address: "ipmi://bmc-1",
    identify: async () => ({ device: "ipmi://bmc-1" }),
    get lastReset() {
      if (resetAfterS === undefined) return undefined;
      return isBack ? new Date(onAtMs + resetAfterS * 1_000 + aheadMs).toISOString() : "2020-01-01T00:00:00Z";
    },
    readPowerLossSigns: async () => (isBack ? after : before),
    readPower: async () => ({ state: reads.shift() ?? "Unknown", raw: "" }),
    readEvidence: async () => ({ clockAheadMs: aheadMs }),
  } as unknown as PowerDriver;
  const witness = new BmcWitness(clock, [bmc], () => ({ verified: true, message: "" }));
  try {
    await witness.begin(signal);
    for (let read = 0; read < 5; read += 1) await witness.ensureNotOn(signal);
    onAtMs = clock.nowMs();
    await clock.advance(60_000);
    isBack = true;
    return (await witness.findLack(onAtMs, signal)) ?? "";
  } catch (error) {
    return (error as Error).message;
  }
}

const OFF = ["Off", "Off", "Off", "Off", "Off"] as const;

for (const [what, bmc] of [
  [
    "that has started since the outlets were switched on again",
    { before: { bmcUpMs: HOUR }, after: { bmcUpMs: 50_000 } },
  ],
  [
    "that names mains power as the cause of its last start, and did not before",
    { before: { isStartedByMains: false }, after: { isStartedByMains: true } },
  ],
  ["that reads Off at each reading while the outlets are off", { dark: OFF }],
  [
    "with a wrong clock whose host was reset when its power came back",
    { before: { bmcUpMs: HOUR }, after: { bmcUpMs: 50_000 }, resetAfterS: 5, aheadMs: -20 * HOUR },
  ],
] as const satisfies readonly (readonly [string, Bmc])[]) {
  test(`a BMC ${what} shows that its host lost its power`, async () => {
    assert.equal(await lackOf(bmc), "");
  });
}

const NONE = /no BMC of the target shows/;
for (const [what, bmc, why] of [
  ["that shows nothing", {}, NONE],
  ["that has been up for longer", { before: { bmcUpMs: HOUR }, after: { bmcUpMs: HOUR + 120_000 } }, NONE],
  [
    "that has started before the outlets were on again",
    { before: { bmcUpMs: HOUR }, after: { bmcUpMs: 80_000 } },
    NONE,
  ],
  ["whose clock has stopped", { before: { bmcUpMs: 20_000 }, after: { bmcUpMs: 20_000 } }, NONE],
  ["that showed no time of its start before", { after: { bmcUpMs: 50_000 } }, NONE],
  [
    "that has named mains power before",
    { before: { isStartedByMains: true }, after: { isStartedByMains: true } },
    NONE,
  ],
  ["that has named no cause before", { after: { isStartedByMains: true } }, NONE],
  ["that does not read Off once", { dark: ["Off", "Off", "Unknown", "Off", "Off"] }, NONE],
  ["that reads On once", { dark: ["Off", "On", "Off", "Off", "Off"] }, /reads On although all outlets are off/],
  [
    "that names another cause",
    { dark: OFF, after: { isStartedByMains: false } },
    /something other than restored mains power last started/,
  ],
  ["whose host was reset while the outlets were off", { dark: OFF, resetAfterS: -20 }, /something else has reset it/],
  ["whose host was reset 15 min later", { dark: OFF, resetAfterS: 900 }, /something else has reset it/],
] as const satisfies readonly (readonly [string, Bmc, RegExp])[]) {
  test(`a BMC ${what} does not show that its host lost its power`, async () => {
    assert.match(await lackOf(bmc), why);
  });
}
