import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { strictestHold } from "../../../../src/remediator/controller/take-snapshot.ts";
import type { Hold } from "../../../../src/remediator/machine/model/facts/hold.ts";

const PAUSED: Hold = { reason: "Paused", message: "paused by alice" };
const UNREAD: Hold = { reason: "PauseUnknown", message: "the switch is not read yet" };
const MAINTENANCE: Hold = { reason: "Maintenance", message: "a disk is changed" };

describe("what holds orders, as it is watched and by a live read", () => {
  it("the hold on orders is the pause that was read, by the watch or live, if the other cannot be read", () => {
    assert.equal(strictestHold(UNREAD, PAUSED), PAUSED);
    assert.equal(strictestHold(PAUSED, UNREAD), PAUSED);
  });

  it("the hold on orders stays the unread switch if the live read does not find a pause", () => {
    assert.equal(strictestHold(UNREAD, undefined), UNREAD);
    assert.equal(strictestHold(UNREAD, { ...UNREAD }), UNREAD);
    assert.equal(strictestHold(undefined, UNREAD), UNREAD);
  });

  it("maintenance holds orders, whether the watch or a live read finds it", () => {
    for (const other of [undefined, PAUSED, UNREAD]) {
      assert.equal(strictestHold(MAINTENANCE, other), MAINTENANCE);
      assert.equal(strictestHold(other, MAINTENANCE), MAINTENANCE);
    }
  });
});
