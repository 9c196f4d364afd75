import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Observations } from "../../../../../../src/remediator/machine/model/facts/observations.ts";
import { decide } from "../../../../../../src/remediator/machine/decide.ts";
import { silentAtMs } from "../../../../../../src/remediator/machine/rules/outage/lease-silence.ts";
import type { AttemptSnapshot, Snapshot } from "../../../../../../src/remediator/machine/model/facts/snapshot.ts";
import type { SnapshotChanges } from "../../snapshots.ts";
import { node, NOW, PROVEN, READ_OFF, READ_ON, snapshot, STALE_LEASE, told, VERIFIED } from "../../snapshots.ts";

const EARLY = { earlyForMs: 300_000 };
const READY = node({ ready: "True" });
const RENEWED = { ...STALE_LEASE, renewedAtMs: NOW.monotonicMs - 1_000, firstRenewedAtMs: NOW.monotonicMs - 1_000 };
const JUST_READ: Observations["power"]["last"] = { state: "Off", raw: "Off", atMs: NOW.monotonicMs - 500 };
const RETURNED = {
  conditions: [
    {
      type: "PowerOffConfirmed",
      status: "False" as const,
      reason: "HostReturned",
      message: "",
      lastTransitionTime: "2026-01-01T11:00:00Z",
    },
  ],
};
/** The observations of a remediation that is about to order its host off. */
const VERIFYING: Partial<Observations> = {
  examined: { node: READY },
  identity: VERIFIED,
  quarantined: true,
  lease: STALE_LEASE,
};
const LATE = { deadlineMs: NOW.epochMs + 900_000 };

const PROVEN_LEASE = { uid: STALE_LEASE.uid, resourceVersion: STALE_LEASE.resourceVersion };

const decided = ({ strategy = { provenLease: PROVEN_LEASE }, ...changes }: SnapshotChanges): string =>
  told(
    decide(snapshot({ ...changes, strategy, other: { node: READY, ...EARLY, ...changes.other } }), NOW),
    changes.state,
  );

describe("a remediation that began before the duration of its node", () => {
  it("a remediation that began early orders its host off only after a reading of Off that is at most 1.5 s old", () => {
    const state = "Verifying";
    const power = (last: Observations["power"]["last"]) => ({ ...READ_OFF, last });
    assert.equal(decided({ state, observations: { ...VERIFYING } }), "readPower");
    const old = { state: "Off" as const, raw: "Off", atMs: NOW.monotonicMs - 1_501 };
    assert.equal(decided({ state, observations: { ...VERIFYING, power: power(old) } }), "readPower");
    assert.equal(
      decided({ state, observations: { ...VERIFYING, power: power(JUST_READ) } }),
      "→ PoweringOff (PoweringOff), forceOff",
    );
  });

  it("a remediation that began early leaves a host alone that reads On, or whose node renews its lease, before the order", () => {
    const state = "Verifying";
    assert.equal(decided({ state, attempt: LATE, observations: { ...VERIFYING, power: READ_ON } }), "wait");
    const power = { ...READ_OFF, last: JUST_READ };
    assert.equal(decided({ state, attempt: LATE, observations: { ...VERIFYING, power, lease: RENEWED } }), "readPower");
    assert.equal(decided({ state, observations: { ...VERIFYING, power: READ_ON } }), "stay (HostReturning)");
  });

  it("a remediation that began early does not force a host off again that is on after the order", () => {
    const state = "PoweringOff";
    const order = {
      attemptId: "a1",
      action: "ForceOff",
      outcome: "Acknowledged",
      atMs: NOW.monotonicMs - 60_000,
    } as const;
    const observations = { taintCleared: true, power: READ_ON, order, examined: { node: READY }, identity: VERIFIED };
    const attempt = { ...LATE, actionAtMs: NOW.epochMs - 60_000 };
    assert.equal(decided({ state, attempt, observations }), "wait");
    assert.match(decided({ state, attempt, observations, other: { earlyForMs: 0 } }), /forceOff/);
  });

  it("a remediation that began early ends its release at the first reading that is not Off: taint first, and no order", () => {
    const state = "Releasing";
    const observations = { power: READ_ON, lease: STALE_LEASE };
    assert.equal(decided({ state, observations }), "untaint");
    assert.equal(
      decided({ state, observations: { ...observations, taintCleared: true } }),
      "→ PoweringOff (HostReturned)",
    );
  });

  it("a remediation that began early ends its release at a renewal of the lease", () => {
    const state = "Releasing";
    const observations = { power: PROVEN, lease: RENEWED };
    assert.equal(decided({ state, observations }), "untaint");
    assert.equal(
      decided({ state, observations: { ...observations, taintCleared: true } }),
      "→ PoweringOff (HostReturned)",
    );
    assert.notEqual(decided({ state, observations, other: { earlyForMs: 0 } }), "untaint");
  });

  it("a remediation that began early reads the lease live during its release as often as the power", () => {
    const at = (ageMs: number) => ({ ...STALE_LEASE, readAtMs: NOW.monotonicMs - ageMs });
    const during = (lease: Observations["lease"], earlyForMs?: number) =>
      decided({
        state: "Releasing",
        observations: { power: PROVEN, lease },
        ...(earlyForMs !== undefined && { other: { earlyForMs } }),
      });
    assert.equal(during(at(1_500)), "readLease");
    assert.equal(during(undefined), "readLease");
    assert.notEqual(during(at(1_499)), "readLease");
    assert.notEqual(during(at(1_500), 0), "readLease");
  });

  it("a remediation that began early, and does not name the lease that was silent, waits for the end of the duration", () => {
    const strategy = {};
    const power = { ...READ_OFF, last: JUST_READ };
    const verifying = { ...VERIFYING, power };
    assert.equal(decided({ strategy, state: "Verifying", attempt: LATE, observations: verifying }), "readPower");
    const off = { power: PROVEN, lease: STALE_LEASE, taintCleared: true };
    const sent = { ...LATE, sent: true };
    const inPoweringOff = { strategy, state: "PoweringOff", attempt: sent, observations: off } as const;
    assert.equal(decided(inPoweringOff), "stay (HostReturned)");
    assert.equal(decided({ strategy, state: "Releasing", observations: off }), "→ PoweringOff (HostReturned)");
    assert.equal(decided({ strategy, state: "Releasing", observations: { ...off, taintCleared: false } }), "untaint");
  });

  it("a remediation that began early keeps proving a host whose BMC does not answer for a while", () => {
    const device = {
      reason: "BMCUnreachable",
      message: "",
      final: false,
      failures: 1,
      retryAtMs: NOW.monotonicMs,
    } as const;
    const observations = { power: { ...READ_OFF, last: undefined }, device, lease: STALE_LEASE, taintCleared: true };
    assert.equal(decided({ state: "Releasing", observations }), "→ PoweringOff (PowerOffLost)");
  });

  it("a remediation that began early releases nothing more of a host that has come back, though it reads Off again", () => {
    const state = "PoweringOff";
    const attempt = { ...LATE, done: true, offConfirmedAtMs: NOW.epochMs - 5_000 };
    const observations = { power: PROVEN, lease: STALE_LEASE, taintCleared: true };
    assert.equal(decided({ state, attempt, observations, status: RETURNED }), "wait");
    assert.equal(
      decided({ state, attempt, observations: { ...observations, taintCleared: false }, status: RETURNED }),
      "untaint",
    );
  });

  it("a remediation that began early ends as a success once its node is Ready in another boot and its host On", () => {
    const back = node({ ready: "True", bootID: "new-boot" });
    const observations = {
      power: READ_ON,
      lease: RENEWED,
      taintCleared: true,
      marksCleared: true,
      examined: { node: back },
      identity: VERIFIED,
    };
    const attempt = { ...LATE, done: true, offConfirmedAtMs: NOW.epochMs - 5_000 };
    const other = { node: back };
    const power = { ...READ_ON, last: { state: "On" as const, raw: "On", atMs: NOW.monotonicMs - 100, runs: true } };
    assert.equal(
      decided({ state: "PoweringOff", attempt, observations: { ...observations, power }, status: RETURNED, other }),
      "→ Restoring (BroughtBack)",
    );
    assert.equal(decided({ state: "Verifying", observations, other }), "→ Restoring (Recovered)");
  });

  it("a remediation that began early fails as WrongHost if its node renews its lease for 30 s in the boot that was to be over", () => {
    const status = {
      ...RETURNED,
      node: { name: "n1", uid: "node-uid", bootID: "old-boot", bootIDAtStart: "old-boot" },
    };
    const attempt = { ...LATE, done: true, offConfirmedAtMs: NOW.epochMs - 5_000 };
    const since = (ms: number) => ({ ...RENEWED, firstRenewedAtMs: NOW.monotonicMs - ms });
    const observations = (ms: number) => ({ power: READ_ON, taintCleared: true, lease: since(ms) });
    const state = "PoweringOff";
    assert.equal(decided({ state, attempt, status, observations: observations(29_999) }), "wait");
    assert.equal(decided({ state, attempt, status, observations: observations(30_000) }), "→ Undoing (WrongHost)");
    const lease = { ...RENEWED, renewedAtMs: NOW.monotonicMs - 30_000, firstRenewedAtMs: NOW.monotonicMs - 30_000 };
    const once = { ...observations(30_000), lease };
    assert.equal(decided({ state, attempt, status, observations: once }), "wait", "a single renewal");
  });

  it("a remediation that began early powers its host on when the duration is over, and reads it every 5 s until then", () => {
    const state = "PoweringOn";
    const attempt = { orders: 0 };
    const off = (ageMs: number) => ({
      ...READ_OFF,
      last: { state: "Off" as const, raw: "Off", atMs: NOW.monotonicMs - ageMs },
    });
    const observations = { identity: VERIFIED, lease: STALE_LEASE };
    assert.equal(decided({ state, attempt, observations: { ...observations, power: off(4_999) } }), "wait");
    assert.equal(decided({ state, attempt, observations: { ...observations, power: off(5_000) } }), "readWhole");
    assert.equal(
      decided({ state, attempt, observations: { ...observations, power: off(100) }, other: { earlyForMs: 0 } }),
      "stay (PoweringOn), powerOn",
    );
  });
});

describe("the silence of a lease for a remediation that began early", () => {
  const of = (changes: Partial<Snapshot>): AttemptSnapshot => {
    const base = snapshot({ state: "PoweringOff", other: { node: READY, ...EARLY, ...changes } });
    return { ...base, attempt: base.state.name === "PoweringOff" ? base.state.attempt : assert.fail() };
  };
  const pace = { durationMs: 40_000, gapsMs: [10_000, 10_000] };
  const unchanged = { uid: "lease-uid", resourceVersion: "1", sinceMs: NOW.monotonicMs - 15_000, ...pace };
  const provenAtMs = NOW.monotonicMs - 100;

  it("the silence of a lease that this agent has seen unchanged for 16 s lets an early release begin", () => {
    assert.equal(silentAtMs(of({ leaseUnchanged: unchanged }), STALE_LEASE, provenAtMs), NOW.monotonicMs + 1_000);
  });

  it("the silence of another version, or of a lease that was renewed since, is not that of the lease", () => {
    const usualMs = provenAtMs + 12_000;
    assert.equal(silentAtMs(of({ leaseUnchanged: undefined }), STALE_LEASE, provenAtMs), usualMs);
    const other = { ...unchanged, resourceVersion: "2" };
    assert.equal(silentAtMs(of({ leaseUnchanged: other }), STALE_LEASE, provenAtMs), usualMs);
    const another = { ...unchanged, uid: "other" };
    assert.equal(silentAtMs(of({ leaseUnchanged: another }), STALE_LEASE, provenAtMs), usualMs);
    assert.equal(
      silentAtMs(of({ leaseUnchanged: unchanged }), RENEWED, provenAtMs),
      Math.max(provenAtMs, NOW.monotonicMs - 1_000) + 12_000,
    );
  });
});
