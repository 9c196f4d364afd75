import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { OrderFacts } from "../../../../../../src/remediator/machine/rules/orders/order-obstacle.ts";
import {
  obstacleBesidesIdentity,
  orderObstacle,
} from "../../../../../../src/remediator/machine/rules/orders/order-obstacle.ts";
import { IDENTITY_AGE_MAX_MS } from "../../../../../../src/remediator/machine/model/decision/timings.ts";

const VERIFIED = { check: { verified: true, message: "" }, atMs: 1_000 } as const;
const MISMATCH = { check: { verified: false, reason: "Mismatch", message: "" }, atMs: 1_000 } as const;
const PAUSED = { reason: "Paused", message: "" } as const;
const MAINTENANCE = { reason: "Maintenance", message: "" } as const;
const CLEAR: OrderFacts = {
  isSameHost: true,
  watchedHold: undefined,
  readHold: { found: undefined, failed: false, atMs: 0 },
};

describe("a power order that was decided on", () => {
  it("a power order may be sent while the check of the identity is fresh, and not a millisecond later", () => {
    for (const action of ["ForceOff", "On"] as const) {
      assert.equal(orderObstacle(action, VERIFIED, CLEAR, 1_000 + IDENTITY_AGE_MAX_MS), undefined);
      assert.equal(orderObstacle(action, VERIFIED, CLEAR, 1_001 + IDENTITY_AGE_MAX_MS), "IdentityTooOld");
      assert.equal(orderObstacle(action, undefined, CLEAR, 0), "IdentityTooOld");
    }
  });

  it("a power-on is refused if another host answers", () =>
    assert.equal(orderObstacle("On", MISMATCH, CLEAR, 1_000), "IdentityRefused"));

  it("a power order is refused if its host has changed, or if the holds were not read", () => {
    for (const action of ["ForceOff", "On"] as const) {
      assert.equal(obstacleBesidesIdentity(action, { ...CLEAR, isSameHost: false }), "HostChanged");
      assert.equal(obstacleBesidesIdentity(action, { ...CLEAR, readHold: undefined }), "Held");
    }
  });

  it("a pause holds a power-off and maintenance holds every order, by the watch or by the live read", () => {
    const holdsOf = (action: "ForceOff" | "On", hold: typeof PAUSED | typeof MAINTENANCE) => [
      obstacleBesidesIdentity(action, { ...CLEAR, watchedHold: hold }),
      obstacleBesidesIdentity(action, { ...CLEAR, readHold: { found: hold, failed: false, atMs: 0 } }),
    ];
    assert.deepEqual(holdsOf("ForceOff", PAUSED), ["Held", "Held"]);
    assert.deepEqual(holdsOf("On", PAUSED), [undefined, undefined]);
    for (const action of ["ForceOff", "On"] as const) assert.deepEqual(holdsOf(action, MAINTENANCE), ["Held", "Held"]);
  });
});
