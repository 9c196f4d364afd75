import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { LostBackups } from "../../../../src/remediator/orphans/lost-backups.ts";
import { VirtualClock } from "../../../lib/virtual-clock.ts";

const DAY_MS = 24 * 3_600_000;

describe("what was saved of a Node whose remediation is gone", () => {
  it("the backup of a Node whose remediation is gone is kept for a day, and not longer", async () => {
    const clock = new VirtualClock();
    const lost = new LostBackups(clock);
    lost.keep("n1", { nodeUID: "uid-1" });
    await clock.advance(DAY_MS - 1);
    lost.keep("n2", { nodeUID: "uid-2" });
    assert.equal(lost.get("n1")?.nodeUID, "uid-1");
    await clock.advance(1);
    assert.equal(lost.size, 1, "it goes though its node is not asked for");
    assert.deepEqual([lost.get("n1"), lost.get("n2")?.nodeUID], [undefined, "uid-2"]);
  });

  it("the backup of a Node whose remediation is gone is kept for a day from its last update", async () => {
    const clock = new VirtualClock();
    const lost = new LostBackups(clock);
    lost.keep("n1", { nodeUID: "uid-1" });
    await clock.advance(DAY_MS - 1);
    lost.keep("n1", { nodeUID: "uid-2" });
    await clock.advance(DAY_MS - 1);
    assert.equal(lost.get("n1")?.nodeUID, "uid-2");
  });

  it("the backup of a Node whose remediation is gone makes room for another one if there are too many", () => {
    const lost = new LostBackups(new VirtualClock());
    for (let number = 0; number <= 1_000; number += 1) lost.keep(`n${number}`, { nodeUID: `uid-${number}` });
    assert.equal(lost.size, 1_000);
    assert.deepEqual([lost.get("n0"), lost.get("n1000")?.nodeUID], [undefined, "uid-1000"]);
  });

  it("the backup of a Node whose remediation is gone is dropped once it was restored", () => {
    const lost = new LostBackups(new VirtualClock());
    lost.keep("n1", { nodeUID: "uid-1" });
    lost.drop("n1");
    assert.equal(lost.get("n1"), undefined);
  });
});
