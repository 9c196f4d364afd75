import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { EARLY_WAIT_MAX_MS, EarlyWait } from "../../../../src/remediator/controller/session/early-wait.ts";

describe("the wait of a host that was released early", () => {
  it("the wait of a host that was released early continues on the monotonic clock if the clock of the API server is set", () => {
    const wait = new EarlyWait();
    assert.equal(wait.remainingMs(300_000, 0, 1_000), 300_000);
    assert.equal(wait.remainingMs(300_000, 500_000, 2_000), 299_000, "set forward");
    assert.equal(wait.remainingMs(300_000, -500_000, 301_000), 0, "set back");
  });

  it("the wait of a host that was released early has a limit", () => {
    assert.equal(new EarlyWait().remainingMs(Infinity, 0, 0), EARLY_WAIT_MAX_MS);
  });

  it("the wait of a host that was released early becomes shorter, but not longer, if spec.powerOnNotBefore is edited", () => {
    const wait = new EarlyWait();
    wait.remainingMs(300_000, 0, 0);
    assert.equal(wait.remainingMs(600_000, 10_000, 10_000), 290_000);
    assert.equal(wait.remainingMs(30_000, 20_000, 20_000), 10_000);
  });
});
