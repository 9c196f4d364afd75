import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { strictest } from "../../../src/remediator/controller/take-snapshot.ts";
import type { Stop } from "../../../src/remediator/machine/model/hold.ts";

const PAUSED: Stop = { reason: "Paused", message: "paused by alice" };
const UNREAD: Stop = { reason: "Paused", message: "the switch is not read yet", isUnread: true };
const MAINTENANCE: Stop = { reason: "Maintenance", message: "a disk is changed" };

describe("what holds orders, as it is watched and by a live look", () => {
  it("is the pause that was read, where the other cannot be read", () => {
    assert.equal(strictest(UNREAD, PAUSED), PAUSED);
    assert.equal(strictest(PAUSED, UNREAD), PAUSED);
  });

  it("stays the switch that cannot be read where the live look does not find a pause", () => {
    assert.equal(strictest(UNREAD, undefined), UNREAD);
    assert.equal(strictest(UNREAD, { ...UNREAD }), UNREAD);
    assert.equal(strictest(undefined, UNREAD), UNREAD);
  });

  it("is maintenance, whoever finds it", () => {
    for (const other of [undefined, PAUSED, UNREAD]) {
      assert.equal(strictest(MAINTENANCE, other), MAINTENANCE);
      assert.equal(strictest(other, MAINTENANCE), MAINTENANCE);
    }
  });
});
