import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { BmcEvidence, BmcLogEntry } from "../../../../../../src/bmc/evidence/model.ts";
import { judgeEvidence } from "../../../../../../src/remediator/machine/rules/diagnosis/cause.ts";

const LOST = Date.UTC(2026, 10, 23, 12, 0, 0);
const OUTAGE = { lostAtMs: LOST, startedAtMs: LOST + 60_000, orderedAtMs: LOST + 65_000 };
const READ_AT = LOST + 67_000;

function entry(secondsToLoss: number | undefined, changes: Partial<BmcLogEntry> = {}): BmcLogEntry {
  return {
    log: "SEL",
    id: "1",
    bmcTimeMs: secondsToLoss === undefined ? undefined : LOST - secondsToLoss * 1_000,
    topic: "Memory",
    rank: 3,
    text: "Uncorrectable ECC, DIMM B2",
    ...changes,
  };
}

function judge(entries: readonly BmcLogEntry[], changes: Partial<BmcEvidence> = {}): ReturnType<typeof judgeEvidence> {
  const found = { clockAheadMs: 0, entries, sensors: [], lastResetMs: undefined, incomplete: undefined, ...changes };
  return judgeEvidence(found, READ_AT, OUTAGE);
}

describe("the judgement of what a BMC shows", () => {
  const cases: [what: string, entries: readonly BmcLogEntry[], message: string][] = [
    [
      "an entry before the loss is the cause of death",
      [entry(41)],
      "Uncorrectable ECC, DIMM B2, 41 s before the node was lost",
    ],
    [
      "an entry after the loss is the cause of death",
      [entry(-30)],
      "Uncorrectable ECC, DIMM B2, 30 s after the node was lost",
    ],
    ["an entry that is too old is not the cause of death", [entry(1_000)], "The BMC shows no cause"],
    ["an entry after our order is not the cause of death", [entry(-70)], "The BMC shows no cause"],
    [
      "an entry without a time is the cause of death",
      [entry(undefined)],
      "Uncorrectable ECC, DIMM B2, at an unknown time",
    ],
    [
      "an entry without a time is not the cause of death if it is older than an old entry",
      [entry(2_000, { text: "x" }), entry(undefined)],
      "The BMC shows no cause",
    ],
    [
      "the power-off of our own order is not the cause of death",
      [entry(-66, { topic: "Power", rank: 0, text: "Powered off" })],
      "The BMC shows no cause",
    ],
    [
      "a power-off before our order is shown, and is not the cause of death",
      [entry(-1, { topic: "Power", rank: 0, text: "Powered off" })],
      'The BMC shows no cause; its log says "Powered off", 1 s after the node was lost',
    ],
    [
      "the first entry of one failure is the cause of death",
      [entry(3, { topic: "CPU", text: "IERR" }), entry(5, { topic: "PCIe", text: "Fatal bus error" }), entry(4)],
      "Fatal bus error, 5 s before the node was lost",
    ],
    [
      "a failure is the cause of death rather than the watchdog that follows",
      [entry(-50, { topic: "Watchdog", text: "Watchdog reset" }), entry(9, { rank: 2 })],
      "Uncorrectable ECC, DIMM B2, 9 s before the node was lost",
    ],
    [
      "an entry with a time is the cause of death rather than one without",
      [entry(undefined, { text: "Old" }), entry(9)],
      "Uncorrectable ECC, DIMM B2, 9 s before the node was lost",
    ],
    ["an entry without a meaning is not the cause of death", [entry(9, { rank: 0 })], "The BMC shows no cause"],
  ];
  for (const [what, entries, message] of cases) {
    it(what, () => assert.equal(judge(entries).message, message));
  }

  it("the judgement of what a BMC shows takes a sensor if the log shows nothing", () => {
    const found = judge([], { sensors: [{ topic: "Thermal", text: "CPU1 Temp reads 104 °C" }] });
    assert.deepEqual(
      [found.class, found.message],
      ["Thermal", "CPU1 Temp reads 104 °C, when the host was powered off"],
    );
  });

  it("the judgement of what a BMC shows says that a log was not read whole, if what was read shows no cause", () => {
    const incomplete = "GET /SEL/Entries: no answer in 5 s";
    assert.equal(judge([], { incomplete }).message, "The BMC shows no cause in the part of its logs that was read");
    assert.match(judge([entry(41)], { incomplete }).message, /^Uncorrectable ECC/);
  });

  it("the judgement of what a BMC shows names a reset that no order of the agent explains", () => {
    const found = judge([], { lastResetMs: LOST - 12_000 });
    assert.equal(found.message, "The BMC shows no cause; the host was last reset 12 s before the node was lost");
    assert.equal(judge([], { lastResetMs: OUTAGE.orderedAtMs }).lastReset, undefined);
  });

  it("the judgement of what a BMC shows does not take an entry from the agent's own NMI for the cause", () => {
    const nmiAtMs = LOST + 61_000;
    const found = { clockAheadMs: 0, sensors: [], lastResetMs: undefined, incomplete: undefined };
    const judgeAfterNmi = (entries: readonly BmcLogEntry[]): ReturnType<typeof judgeEvidence> =>
      judgeEvidence({ ...found, entries }, READ_AT, { ...OUTAGE, nmiAtMs });
    const ours = [
      entry(-62, { topic: "Watchdog", text: "Run-time critical stop" }),
      entry(-61, { topic: "PCIe", rank: 1, text: "Front panel NMI" }),
      entry(-63, { topic: "CPU", text: "An Unrecoverable System Error (NMI) has occurred" }),
      entry(undefined, { log: "untimed", topic: "Watchdog", text: "Kernel panic" }),
    ];
    assert.equal(judgeAfterNmi(ours).message, "The BMC shows no cause");
    assert.match(judgeAfterNmi([...ours, entry(-64)]).message, /^Uncorrectable ECC, DIMM B2, 64 s after/);
    const before = entry(-40, { topic: "Watchdog", text: "Run-time critical stop" });
    assert.match(judgeAfterNmi([before]).message, /^Run-time critical stop, 40 s after/);
  });

  it("the judgement of what a BMC shows keeps a bounded list, each event once", () => {
    const many = Array.from({ length: 60 }, (_, at) =>
      entry(at * 10, { id: String(at), text: `Error ${at}`, rank: 2 }),
    );
    assert.equal(judge(many).entries.length, 8);
    assert.equal(judge([entry(41), entry(41, { log: "Lclog" })]).entries.length, 1);
  });
});
