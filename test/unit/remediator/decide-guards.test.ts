import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { bareMetalRemediationSpecSchema } from "../../../src/api/bare-metal-remediation.ts";
import { decide } from "../../../src/remediator/machine/decide.ts";
import { planOf } from "../../../src/remediator/machine/model/strategy.ts";
import type { Seen } from "../../../src/remediator/machine/model/observations.ts";
import { POWER_PROOF_AGE_MAX_MS, POWER_REREAD_MS } from "../../../src/remediator/machine/model/timings.ts";
import type { SnapshotChanges } from "./snapshots.ts";
import {
  DEVICE_AWAY,
  NOW,
  OWNER,
  PROVEN,
  STALE_LEASE,
  UNDOING,
  READ_ON,
  VERIFIED,
  ordered,
  node,
  said,
  seenAfter,
  snapshot,
  stateOf,
} from "./snapshots.ts";
import type { Decision } from "../../../src/remediator/machine/model/decision.ts";
import { nothingObserved } from "../../../src/remediator/machine/observe.ts";

// What a decision rests on, beyond the single steps of `steps/`.

const TAINTED: Seen["taint"] = { attemptId: "a1", found: "Ours" };

describe("the proof that a host is off", () => {
  const proven = (changes: Omit<SnapshotChanges, "state" | "seen">): Decision =>
    decide(
      snapshot({ state: "PoweringOff", seen: { power: PROVEN, lease: STALE_LEASE, taint: TAINTED }, ...changes }),
      NOW,
    );

  it("counts as one reboot, however often it is lost and made anew in its cycle", () => {
    assert.equal(proven({}).status?.provenReboots, 1);
    const again = { attempt: { offConfirmedAtMs: NOW.epochMs - 60_000 }, status: { provenReboots: 1 } };
    assert.equal(proven(again).status?.provenReboots, 1);
  });

  it("counts as none in a reprovision, which rests on reboots before it", () => {
    assert.equal(proven({ attempt: { kind: "Reprovision" } }).status?.provenReboots, 0);
  });

  it("begins the time of the release when that begins, and once in its cycle", () => {
    const plan = { drainTimeoutMs: 300_000 };
    const first = proven({ attempt: { offConfirmedAtMs: NOW.epochMs - 60_000 }, plan });
    assert.equal(Date.parse(first.status?.attempt?.deadline ?? ""), NOW.epochMs + 300_000);
    const again = proven({ attempt: { releasingSinceMs: NOW.epochMs - 60_000 }, plan });
    assert.equal(Date.parse(again.status?.attempt?.deadline ?? ""), NOW.epochMs + 240_000);
  });

  it("is stored with the time of the reading that made it", () => {
    const { attempt } = proven({}).status ?? {};
    assert.deepEqual([attempt?.offConfirmedAt, attempt?.done], ["2026-01-01T11:59:59.900000Z", true]);
    const again = proven({ attempt: { offConfirmedAtMs: NOW.epochMs - 60_000 } }).status?.attempt;
    assert.equal(again?.offConfirmedAt, "2026-01-01T11:59:00.000000Z");
  });

  it("is not outlived by a wait for the lease to be silent, nor by the pause of a device", () => {
    const lease = { ...STALE_LEASE, renewedAtMs: NOW.monotonicMs - 1_000 };
    const waiting = decide(snapshot({ state: "PoweringOff", seen: { power: PROVEN, lease } }), NOW);
    assert.ok((waiting.nextCheckMs ?? Infinity) <= POWER_REREAD_MS);
    const power = { ...PROVEN, offAtMs: NOW.monotonicMs - 4_900 };
    const seen = { power, taint: TAINTED, device: { ...DEVICE_AWAY, retryAtMs: NOW.monotonicMs + 60_000 } };
    assert.equal(decide(snapshot({ state: "Releasing", seen }), NOW).nextCheckMs, POWER_PROOF_AGE_MAX_MS - 4_900);
  });

  it("leaves a late reading a second, and an early one as long as the proof lasts", () => {
    const withinMs = (ageMs: number): number | undefined => {
      const power = { ...PROVEN, offAtMs: NOW.monotonicMs - ageMs };
      const [effect] = decide(snapshot({ state: "Releasing", seen: { power, taint: TAINTED } }), NOW).effects;
      return effect?.do === "readPower" ? effect.withinMs : undefined;
    };
    assert.deepEqual([withinMs(4_900), withinMs(2_000)], [1_000, POWER_PROOF_AGE_MAX_MS - 2_000]);
  });

  it("bounds what rests on it: reading anew, pods that are released, and any wait", () => {
    for (const ageMs of [0, 400, 1_400, 1_600, 3_000, 4_900]) {
      const power = { ...PROVEN, offAtMs: NOW.monotonicMs - ageMs };
      const drain = { pods: 1, attachments: 0, atMs: NOW.monotonicMs - 100, checks: 6 };
      const leftMs = POWER_PROOF_AGE_MAX_MS - ageMs;
      const decided = [{}, { drain }].map((seen) =>
        decide(snapshot({ state: "Releasing", seen: { power, taint: TAINTED, ...seen } }), NOW),
      );
      for (const { effects, nextCheckMs = 0 } of decided) {
        assert.ok(
          nextCheckMs <= POWER_REREAD_MS - ageMs || nextCheckMs === 0,
          `waits ${nextCheckMs} ms at ${ageMs} ms`,
        );
        for (const effect of effects) {
          if (effect.do === "readPower") assert.ok((effect.withinMs ?? Infinity) <= Math.max(leftMs, 1_000));
          if (effect.do === "releasePods") assert.ok(effect.withinMs <= leftMs);
        }
      }
    }
  });
});

describe("the count of power-offs", () => {
  const orders = (seen: Partial<Seen>): number | undefined => {
    const attempt = { orders: 2, actionAtMs: NOW.epochMs - 25_000 };
    const fresh = { taintCleared: true, examined: { node: node() }, identity: VERIFIED, ...seen };
    return decide(snapshot({ state: "PoweringOff", attempt, seen: fresh }), NOW).status?.attempt?.orders;
  };

  it("grows with each order that may have had an effect", () => assert.equal(orders({ power: READ_ON }), 3));

  it("does not grow with an order that was refused", () =>
    assert.equal(orders({ order: ordered("Rejected", 3_000) }), 2));
});

describe("the intent to boot from the network", () => {
  it("is stored before the boot override is set, so that a restart clears it", () => {
    const seen = { power: PROVEN, identity: VERIFIED };
    const { status, effects } = decide(snapshot({ state: "Provisioning", seen }), NOW);
    assert.deepEqual([status?.attempt?.bootOverride, effects], [true, []]);
  });
});

describe("a stop switch that cannot be read", () => {
  const given = (remainingMs: number): SnapshotChanges => {
    const stop = { reason: "Paused", message: "the switch is not read yet", isUnread: true } as const;
    const attempt = { action: "ForceOff", sent: true, done: false } as const;
    return { state: "Verifying", attempt, other: { stop, remainingMs } };
  };

  it("is waited for until the state is out of time, where an earlier attempt may have left the host off", () => {
    const said = decide(snapshot(given(60_000)), NOW);
    const waiting = decide(snapshot({ ...given(60_000), status: said.status ?? assert.fail("it says so") }), NOW);
    assert.deepEqual(
      { effects: waiting.effects, nextCheckMs: waiting.nextCheckMs },
      { effects: [], nextCheckMs: 60_000 },
    );
  });

  it("has the power read once that time is over", () => {
    assert.deepEqual(decide(snapshot(given(0)), NOW).effects, [{ do: "readPower" }]);
  });
});

describe("the intent to power on", () => {
  it("is neither sent nor done: whatever ends the remediation now owes the host an On, and has the time for it", () => {
    const seen = { power: PROVEN, swapped: true, drain: { pods: 0, attachments: 0, atMs: NOW.monotonicMs, checks: 1 } };
    const { status } = decide(snapshot({ state: "Releasing", seen, plan: { powerOnTimeoutMs: 90_000 } }), NOW);
    const { action, sent, done, orders, deadline = "" } = status?.attempt ?? {};
    assert.deepEqual({ action, sent, done, orders }, { action: "On", sent: false, done: false, orders: 0 });
    assert.equal(Date.parse(deadline), NOW.epochMs + 90_000);
  });
});

describe("a device that could not be reached", () => {
  const decided = (state: "PoweringOff" | "Undoing", pauseMs: number) => {
    const device = { ...DEVICE_AWAY, retryAtMs: NOW.monotonicMs + pauseMs };
    const status = { conditions: [said(DEVICE_AWAY.reason, DEVICE_AWAY.message)] };
    return decide(snapshot({ state, seen: { ...UNDOING, device }, status }), NOW);
  };

  for (const [state, effect] of [
    ["PoweringOff", "readPower"],
    ["Undoing", "readWhole"],
  ] as const) {
    it(`is called again when its pause is over, and not before (${state})`, () => {
      assert.deepEqual(decided(state, 700), { notes: [], effects: [], nextCheckMs: 700 });
      assert.equal(decided(state, 0).effects[0]?.do, effect);
    });
  }
});

describe("the duration of a step", () => {
  const planOfStrategy = (strategy: object) => planOf(bareMetalRemediationSpecSchema.parse({ strategy }));

  it("is never too short to power the host on again, nor so long that it cannot be written", () => {
    assert.equal(planOfStrategy({ powerOnTimeout: "0s" }).powerOnTimeoutMs, 30_000);
    for (const field of ["powerOffTimeout", "drainTimeout", "powerOnTimeout", "timeout"] as const) {
      assert.equal(planOfStrategy({ [field]: "9999999999h" })[`${field}Ms`], 24 * 3_600_000);
    }
  });
});

describe("what a process has seen", () => {
  const seen: Seen = {
    ...nothingObserved(),
    claim: { owned: true, targetUid: "target-uid" },
    examined: { node: node() },
    power: PROVEN,
    drain: { pods: 0, attachments: 0, atMs: NOW.monotonicMs, checks: 3 },
    released: true,
    taintCleared: true,
    marksCleared: true,
  };

  it("of pods and volumes counts for the release that it belongs to, and no later one", () => {
    const { drain, released } = seenAfter(seen, stateOf("PoweringOff"), stateOf("Releasing"));
    assert.deepEqual([drain, released], [undefined, false]);
    assert.equal(seenAfter(seen, stateOf("Releasing"), stateOf("Releasing")).drain, seen.drain);
  });

  it("of marks is looked at again by an undo, and so is who else has the host", () => {
    const undone = seenAfter(seen, stateOf("Releasing"), stateOf("Undoing"));
    assert.deepEqual([undone.taintCleared, undone.marksCleared, undone.claim], [false, false, seen.claim]);
    const others: Seen = { ...seen, claim: { owned: false, by: OWNER, undoing: false, atMs: 0 } };
    assert.equal(seenAfter(others, stateOf("Releasing"), stateOf("Undoing")).claim, undefined);
  });

  it("of host and node is forgotten by the next attempt; who owns the host is not", () => {
    const next = seenAfter(seen, stateOf("Rejoining"), stateOf("Verifying", { id: "a2" }));
    assert.deepEqual([next.examined, next.power.provenAtMs, next.claim], [undefined, undefined, seen.claim]);
    const verifying = stateOf("Verifying");
    assert.equal(seenAfter(seen, verifying, verifying), seen, "a wait is stored in the same attempt");
    assert.equal(seenAfter(seen, verifying, stateOf("Verifying", { id: "a2" })).examined, undefined);
  });
});
