import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { decide } from "../../../../../../src/remediator/machine/decide.ts";
import type { Decision } from "../../../../../../src/remediator/machine/model/decision/decision.ts";
import {
  POWER_PROOF_AGE_MAX_MS,
  POWER_REREAD_MS,
} from "../../../../../../src/remediator/machine/model/decision/timings.ts";
import type { Observations } from "../../../../../../src/remediator/machine/model/facts/observations.ts";
import type { SnapshotChanges } from "../../snapshots.ts";
import { DEVICE_AWAY, NOW, PROVEN, STALE_LEASE, snapshot } from "../../snapshots.ts";

const TAINTED: Observations["taint"] = { attemptId: "a1", found: "Ours" };

/** The decision while the host is being powered off. */
function poweringOff(observations: Partial<Observations>, changes: Partial<SnapshotChanges> = {}): Decision {
  return decide(snapshot({ state: "PoweringOff", observations, ...changes }), NOW);
}

/** The decision while the workloads are being released, with a proof of this age. */
function releasing({ ageMs }: { ageMs: number }, observations: Partial<Observations> = {}): Decision {
  const power = { ...PROVEN, offAtMs: NOW.monotonicMs - ageMs };
  return decide(snapshot({ state: "Releasing", observations: { power, taint: TAINTED, ...observations } }), NOW);
}

describe("the proof that a host is off", () => {
  const proven = (changes: Omit<SnapshotChanges, "state" | "observations">): Decision =>
    poweringOff({ power: PROVEN, lease: STALE_LEASE, taint: TAINTED }, changes);

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

  it("neither a wait for the lease to be silent nor the pause of a device lasts longer than the proof that a host is off", () => {
    const lease = { ...STALE_LEASE, renewedAtMs: NOW.monotonicMs - 1_000 };
    const waiting = poweringOff({ power: PROVEN, lease });
    assert.ok((waiting.nextCheckMs ?? Infinity) <= POWER_REREAD_MS);
    const device = { ...DEVICE_AWAY, retryAtMs: NOW.monotonicMs + 60_000 };
    assert.equal(releasing({ ageMs: 4_900 }, { device }).nextCheckMs, POWER_PROOF_AGE_MAX_MS - 4_900);
  });

  it("the proof that a host is off leaves a late reading a second, and an early one as long as the proof lasts", () => {
    const withinMs = (ageMs: number): number | undefined => {
      const [effect] = releasing({ ageMs }).effects;
      return effect?.do === "readPower" ? effect.withinMs : undefined;
    };
    assert.deepEqual([withinMs(4_900), withinMs(2_000)], [1_000, POWER_PROOF_AGE_MAX_MS - 2_000]);
  });

  it("the age of a proof limits the time until the next reading, the release of pods and every wait", () => {
    for (const ageMs of [0, 400, 1_400, 1_600, 3_000, 4_900]) {
      const drain = { pods: 1, attachments: 0, atMs: NOW.monotonicMs - 100, checks: 6, isReported: true };
      const leftMs = POWER_PROOF_AGE_MAX_MS - ageMs;
      const decided = [{}, { drain }].map((observations) => releasing({ ageMs }, observations));
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
