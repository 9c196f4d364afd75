import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { bareMetalRemediationSpecSchema } from "../../../../src/api/ironfence/bare-metal-remediation.ts";
import { decide } from "../../../../src/remediator/machine/decide.ts";
import { strategyOf } from "../../../../src/remediator/machine/model/decision/strategy.ts";
import type { Observations } from "../../../../src/remediator/machine/model/facts/observations.ts";
import { POWER_PROOF_AGE_MAX_MS, POWER_REREAD_MS } from "../../../../src/remediator/machine/model/decision/timings.ts";
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
  observationsAfter,
  snapshot,
  stateOf,
} from "./snapshots.ts";
import type { Decision } from "../../../../src/remediator/machine/model/decision/decision.ts";
import { nothingObserved } from "../../../../src/remediator/machine/observe.ts";

// What a decision rests on, beyond the single steps of `steps/`.

const TAINTED: Observations["taint"] = { attemptId: "a1", found: "Ours" };

describe("the proof that a host is off", () => {
  const proven = (changes: Omit<SnapshotChanges, "state" | "observations">): Decision =>
    decide(
      snapshot({
        state: "PoweringOff",
        observations: { power: PROVEN, lease: STALE_LEASE, taint: TAINTED },
        ...changes,
      }),
      NOW,
    );

  it("the proof that a host is off counts as one reboot, however often it is lost and created again in its cycle", () => {
    assert.equal(proven({}).status?.provenReboots, 1);
    const again = { attempt: { offConfirmedAtMs: NOW.epochMs - 60_000 }, status: { provenReboots: 1 } };
    assert.equal(proven(again).status?.provenReboots, 1);
  });

  it("the proof that a host is off does not count as a reboot for a reprovision, which requires earlier reboots", () => {
    assert.equal(proven({ attempt: { kind: "Reprovision" } }).status?.provenReboots, 0);
  });

  it("the proof that a host is off begins the time of the release when that begins, and once in its cycle", () => {
    const strategy = { drainTimeoutMs: 300_000 };
    const first = proven({ attempt: { offConfirmedAtMs: NOW.epochMs - 60_000 }, strategy });
    assert.equal(Date.parse(first.status?.attempt?.deadline ?? ""), NOW.epochMs + 300_000);
    const again = proven({ attempt: { releasingSinceMs: NOW.epochMs - 60_000 }, strategy });
    assert.equal(Date.parse(again.status?.attempt?.deadline ?? ""), NOW.epochMs + 240_000);
  });

  it("the proof that a host is off is stored with the time of the reading that made it", () => {
    const { attempt } = proven({}).status ?? {};
    assert.deepEqual([attempt?.offConfirmedAt, attempt?.done], ["2026-01-01T11:59:59.900000Z", true]);
    const again = proven({ attempt: { offConfirmedAtMs: NOW.epochMs - 60_000 } }).status?.attempt;
    assert.equal(again?.offConfirmedAt, "2026-01-01T11:59:00.000000Z");
  });

  it("the proof that a host is off is not outlived by a wait for the lease to be silent, nor by the pause of a device", () => {
    const lease = { ...STALE_LEASE, renewedAtMs: NOW.monotonicMs - 1_000 };
    const waiting = decide(snapshot({ state: "PoweringOff", observations: { power: PROVEN, lease } }), NOW);
    assert.ok((waiting.nextCheckMs ?? Infinity) <= POWER_REREAD_MS);
    const power = { ...PROVEN, offAtMs: NOW.monotonicMs - 4_900 };
    const observations = { power, taint: TAINTED, device: { ...DEVICE_AWAY, retryAtMs: NOW.monotonicMs + 60_000 } };
    assert.equal(
      decide(snapshot({ state: "Releasing", observations }), NOW).nextCheckMs,
      POWER_PROOF_AGE_MAX_MS - 4_900,
    );
  });

  it("the proof that a host is off leaves a late reading a second, and an early one as long as the proof lasts", () => {
    const withinMs = (ageMs: number): number | undefined => {
      const power = { ...PROVEN, offAtMs: NOW.monotonicMs - ageMs };
      const [effect] = decide(snapshot({ state: "Releasing", observations: { power, taint: TAINTED } }), NOW).effects;
      return effect?.do === "readPower" ? effect.withinMs : undefined;
    };
    assert.deepEqual([withinMs(4_900), withinMs(2_000)], [1_000, POWER_PROOF_AGE_MAX_MS - 2_000]);
  });

  it("the age of a proof limits the time until the next reading, the release of pods and every wait", () => {
    for (const ageMs of [0, 400, 1_400, 1_600, 3_000, 4_900]) {
      const power = { ...PROVEN, offAtMs: NOW.monotonicMs - ageMs };
      const drain = { pods: 1, attachments: 0, atMs: NOW.monotonicMs - 100, checks: 6, isReported: true };
      const leftMs = POWER_PROOF_AGE_MAX_MS - ageMs;
      const decided = [{}, { drain }].map((observations) =>
        decide(snapshot({ state: "Releasing", observations: { power, taint: TAINTED, ...observations } }), NOW),
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
  const orders = (observations: Partial<Observations>): number | undefined => {
    const attempt = { orders: 2, actionAtMs: NOW.epochMs - 25_000 };
    const fresh = { taintCleared: true, examined: { node: node() }, identity: VERIFIED, ...observations };
    return decide(snapshot({ state: "PoweringOff", attempt, observations: fresh }), NOW).status?.attempt?.orders;
  };

  it("the count of power-offs grows with each order that may have had an effect", () =>
    assert.equal(orders({ power: READ_ON }), 3));

  it("the count of power-offs does not grow with an order that was refused", () =>
    assert.equal(orders({ order: ordered("Rejected", 3_000) }), 2));
});

describe("the intent to boot from the network", () => {
  it("the intent to boot from the network is stored before the boot override is set, so that a restart clears it", () => {
    const observations = { power: PROVEN, identity: VERIFIED };
    const { status, effects } = decide(snapshot({ state: "Provisioning", observations }), NOW);
    assert.deepEqual([status?.attempt?.bootOverride, effects], [true, []]);
  });
});

describe("a stop switch that cannot be read", () => {
  const given = (remainingMs: number): SnapshotChanges => {
    const hold = { reason: "PauseUnknown", message: "the switch is not read yet" } as const;
    const attempt = { action: "ForceOff", sent: true, done: false } as const;
    return { state: "Verifying", attempt, other: { hold, remainingMs } };
  };

  it("a stop switch that cannot be read is waited for until the state is out of time, if an earlier attempt may have left the host off", () => {
    const said = decide(snapshot(given(60_000)), NOW);
    const waiting = decide(snapshot({ ...given(60_000), status: said.status ?? assert.fail("it says so") }), NOW);
    assert.deepEqual(
      { effects: waiting.effects, nextCheckMs: waiting.nextCheckMs },
      { effects: [], nextCheckMs: 60_000 },
    );
  });

  it("a stop switch that cannot be read has the power read once that time is over", () => {
    assert.deepEqual(decide(snapshot(given(0)), NOW).effects, [{ do: "readPower" }]);
  });
});

describe("a stop switch that could be read again", () => {
  const resumed = (reason: string): string | undefined => {
    const attempt = { action: "ForceOff", deadlineMs: NOW.epochMs + 7_000 } as const;
    const status = { conditions: [said(reason, "held")] };
    const observations = { taintCleared: true };
    const { status: next } = decide(snapshot({ state: "PoweringOff", attempt, status, observations }), NOW);
    assert.equal(next?.timeline?.at(-1)?.step, "Resumed");
    return next.attempt?.deadline;
  };

  it("a stop switch that could be read again leaves the state the time that it had left, unless an operator had paused power-offs", () => {
    assert.equal(Date.parse(resumed("PauseUnknown") ?? ""), NOW.epochMs + 7_000);
    assert.ok(Date.parse(resumed("Paused") ?? "") > NOW.epochMs + 7_000);
  });
});

describe("a pause that cannot be read any more", () => {
  for (const reason of ["Paused", "Maintenance"]) {
    it(`a pause that cannot be read any more is reported as unknown after ${reason}, and the state has its whole time again`, () => {
      const hold = { reason: "PauseUnknown", message: "the switch is not read" } as const;
      const status = { conditions: [said(reason, "held by an operator")] };
      const observations = { taintCleared: true };
      const attempt = { action: "ForceOff", deadlineMs: NOW.epochMs - 3_600_000 } as const;
      for (const state of ["PoweringOff", "Verifying"] as const) {
        const { status: next, effects } = decide(
          snapshot({ state, attempt, status, observations, other: { hold } }),
          NOW,
        );
        assert.deepEqual([next?.timeline?.at(-1)?.step, effects], ["PauseUnknown", []]);
        assert.ok(Date.parse(next?.attempt?.deadline ?? "") > NOW.epochMs);
      }
    });
  }
});

describe("the intent to power on", () => {
  it("the stored intent to power on is neither sent nor done, so a remediation that ends now still sends the On in time", () => {
    const observations = {
      power: PROVEN,
      swapped: true,
      drain: { pods: 0, attachments: 0, atMs: NOW.monotonicMs, checks: 1, isReported: true },
    };
    const { status } = decide(
      snapshot({ state: "Releasing", observations, strategy: { powerOnTimeoutMs: 90_000 } }),
      NOW,
    );
    const { action, sent, done, orders, deadline = "" } = status?.attempt ?? {};
    assert.deepEqual({ action, sent, done, orders }, { action: "On", sent: false, done: false, orders: 0 });
    assert.equal(Date.parse(deadline), NOW.epochMs + 90_000);
  });
});

describe("a device that could not be reached", () => {
  const decided = (state: "PoweringOff" | "Undoing", pauseMs: number) => {
    const device = { ...DEVICE_AWAY, retryAtMs: NOW.monotonicMs + pauseMs };
    const status = { conditions: [said(DEVICE_AWAY.reason, DEVICE_AWAY.message)] };
    return decide(snapshot({ state, observations: { ...UNDOING, device }, status }), NOW);
  };

  for (const [state, effect] of [
    ["PoweringOff", "readPower"],
    ["Undoing", "readWhole"],
  ] as const) {
    it(`a device that could not be reached is called again when its pause is over, and not before (${state})`, () => {
      assert.deepEqual(decided(state, 700), { notes: [], effects: [], nextCheckMs: 700 });
      assert.equal(decided(state, 0).effects[0]?.do, effect);
    });
  }
});

describe("the duration of a step", () => {
  const strategyWith = (strategy: object) => strategyOf(bareMetalRemediationSpecSchema.parse({ strategy }));

  it("the duration of a step is never too short to power the host on again, nor so long that it cannot be written", () => {
    assert.equal(strategyWith({ powerOnTimeout: "0s" }).powerOnTimeoutMs, 30_000);
    for (const field of ["powerOffTimeout", "drainTimeout", "powerOnTimeout", "timeout"] as const) {
      assert.equal(strategyWith({ [field]: "9999999999h" })[`${field}Ms`], 24 * 3_600_000);
    }
  });
});

describe("what a process has seen", () => {
  const observations: Observations = {
    ...nothingObserved(),
    claim: { owned: true, targetUid: "target-uid" },
    examined: { node: node() },
    power: PROVEN,
    drain: { pods: 0, attachments: 0, atMs: NOW.monotonicMs, checks: 3, isReported: true },
    released: true,
    taintCleared: true,
    marksCleared: true,
  };

  it("observations of pods and volumes count for the release that they belong to, and for no later one", () => {
    const { drain, released } = observationsAfter(observations, stateOf("PoweringOff"), stateOf("Releasing"));
    assert.deepEqual([drain, released], [undefined, false]);
    const again = observationsAfter(observations, stateOf("Releasing"), stateOf("Releasing"));
    assert.deepEqual(again.drain, observations.drain);
  });

  it("an undo reads the marks again, and the owner of the host", () => {
    const undone = observationsAfter(observations, stateOf("Releasing"), stateOf("Undoing"));
    assert.deepEqual([undone.taintCleared, undone.marksCleared, undone.claim], [false, false, observations.claim]);
    const others: Observations = { ...observations, claim: { owned: false, by: OWNER, undoing: false, atMs: 0 } };
    assert.equal(observationsAfter(others, stateOf("Releasing"), stateOf("Undoing")).claim, undefined);
  });

  it("observations of host and node are forgotten by the next attempt; the owner of the host is not", () => {
    const next = observationsAfter(observations, stateOf("Rejoining"), stateOf("Verifying", { id: "a2" }));
    assert.deepEqual([next.examined, next.power.provenAtMs, next.claim], [undefined, undefined, observations.claim]);
    const verifying = stateOf("Verifying");
    assert.equal(
      observationsAfter(observations, verifying, verifying),
      observations,
      "a wait is stored in the same attempt",
    );
    assert.equal(observationsAfter(observations, verifying, stateOf("Verifying", { id: "a2" })).examined, undefined);
  });
});
