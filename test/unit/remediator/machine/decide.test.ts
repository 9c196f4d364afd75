import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { decide } from "../../../../src/remediator/machine/decide.ts";
import type { Observations } from "../../../../src/remediator/machine/model/facts/observations.ts";
import { STATE_NAMES } from "../../../../src/remediator/machine/model/decision/state.ts";
import type { StateName } from "../../../../src/remediator/machine/model/decision/state.ts";
import { demote } from "./demote.ts";
import { ARROWS } from "./diagram.ts";
import type { SnapshotChanges } from "./snapshots.ts";
import {
  DEVICE_AWAY,
  node,
  NOW,
  OWNER,
  PROVEN,
  READ_OFF,
  READ_ON,
  snapshot,
  STALE_LEASE,
  told,
  VERIFIED,
} from "./snapshots.ts";
import { STEPS } from "./steps/all.ts";

// A table of what `decide` does for each pair of state and event.

/** The leader stops. The next leader has no observations and reads all objects again. */
const DEMOTED = "agent demoted";

const EVENTS: Record<string, Omit<SnapshotChanges, "state">> = {
  restart: { observations: { claim: undefined } },
  deleted: { remediation: { deleting: true } },
  "timed out": { remediation: { timedOut: true } },
  "target gone": { other: { host: { found: false, reason: "NoTarget", message: "the target is gone" } } },
  "host lost": { observations: { claim: { owned: false, by: OWNER, undoing: false, atMs: NOW.monotonicMs } } },
  stop: { other: { hold: { reason: "Paused", message: "by a test" } } },
  "out of time": { other: { remainingMs: 0 } },
  "out of time, no retry": { other: { remainingMs: 0 }, strategy: { retryLimit: 0 } },
  "out of time, Escalate after proven reboots": {
    other: { remainingMs: 0 },
    strategy: { type: "Escalate", retryLimit: 0 },
    status: { provenReboots: 1 },
  },
  "out of time, Escalate without proof": { other: { remainingMs: 0 }, strategy: { type: "Escalate", retryLimit: 0 } },
  "device away": { observations: { device: DEVICE_AWAY } },
  "password wrong": { observations: { device: { ...DEVICE_AWAY, reason: "BMCAuthenticationFailed", final: true } } },
  "host read On": { observations: { power: READ_ON } },
  "node gone": { other: { node: undefined } },
  "node joined again": { other: { node: node({ uid: "new-uid", bootID: "new-boot" }) } },
  "node Ready again": {
    other: { node: node({ ready: "True" }) },
    observations: { examined: { node: node({ ready: "True" }) } },
    status: { node: { name: "n1", uid: "node-uid", bootID: "old-boot", wasReady: false } },
  },
  "node back in a new boot": { other: { node: node({ ready: "True", bootID: "new-boot" }) } },
  "spec edited": { strategy: { type: "Reprovision", workloadRelease: "DeleteNode" } },
  "not admitted": { other: { admission: { granted: false, reason: "WaitingForTurn", message: "2 of 2 hosts" } } },
  "agent runs on the node": { other: { runsHere: true } },
  "etcd needs the node": {
    observations: {
      members: [
        { node: "n1", up: false },
        { node: "n2", up: false },
        { node: "n3", up: true },
      ],
    },
  },
  [DEMOTED]: { observations: { claim: undefined } },
  nothing: {},
};

/** The observations of a process in the middle of a state, if it has not just taken over. */
function observationsBy(state: StateName): Partial<Observations> {
  const isOff = ["PoweringOff", "Releasing", "Provisioning"].includes(state);
  const isOn = ["Rejoining", "Restoring"].includes(state);
  return {
    examined: { node: node() },
    identity: VERIFIED,
    lease: STALE_LEASE,
    power: isOff ? PROVEN : isOn ? READ_ON : READ_OFF,
    order: {
      attemptId: "a1",
      action: isOn || state === "PoweringOn" ? "On" : "ForceOff",
      outcome: "Acknowledged",
      atMs: NOW.monotonicMs - 2_000,
    },
    taint: { attemptId: "a1", found: "Ours" },
    taintCleared: state !== "Releasing",
    devicesClosed: isOn,
    successor: { waiting: false, atMs: NOW.monotonicMs },
  };
}

type Told = readonly [byAProcessThatTookOver: string, byOneThatHasSeenItAll: string];

const TABLE: Record<StateName, Record<string, Told>> = {
  Resolving: {
    restart: ["claimHost", "claimHost"],
    deleted: ["→ Undoing (RemediationDeleted)", "→ Undoing (RemediationDeleted)"],
    "timed out": ["→ Undoing (TimedOut)", "→ Undoing (TimedOut)"],
    "target gone": ["withdrawAdmission", "withdrawAdmission"],
    "host lost": ["stay (HostBusy)", "stay (HostBusy)"],
    stop: ["withdrawAdmission", "withdrawAdmission"],
    "out of time": ["→ Verifying (HostClaimed)", "→ Verifying (HostClaimed)"],
    "out of time, no retry": ["→ Verifying (HostClaimed)", "→ Verifying (HostClaimed)"],
    "out of time, Escalate after proven reboots": ["→ Verifying (HostClaimed)", "→ Verifying (HostClaimed)"],
    "out of time, Escalate without proof": ["→ Verifying (HostClaimed)", "→ Verifying (HostClaimed)"],
    "device away": ["→ Verifying (HostClaimed)", "→ Verifying (HostClaimed)"],
    "password wrong": ["→ Verifying (HostClaimed)", "→ Verifying (HostClaimed)"],
    "host read On": ["→ Verifying (HostClaimed)", "→ Verifying (HostClaimed)"],
    "node gone": ["→ Verifying (HostClaimed)", "→ Verifying (HostClaimed)"],
    "node joined again": ["→ Verifying (HostClaimed)", "→ Verifying (HostClaimed)"],
    "node Ready again": ["→ Verifying (HostClaimed)", "→ Verifying (HostClaimed)"],
    "node back in a new boot": ["→ Verifying (HostClaimed)", "→ Verifying (HostClaimed)"],
    "spec edited": ["→ Verifying (HostClaimed)", "→ Verifying (HostClaimed)"],
    "not admitted": ["stay (WaitingForTurn)", "stay (WaitingForTurn)"],
    "agent runs on the node": ["stay (OwnNode), handOver", "stay (OwnNode), handOver"],
    "etcd needs the node": ["→ Verifying (HostClaimed)", "→ Verifying (HostClaimed)"],
    [DEMOTED]: ["claimHost", "stops"],
    nothing: ["→ Verifying (HostClaimed)", "→ Verifying (HostClaimed)"],
  },
  Verifying: {
    restart: ["claimHost", "claimHost"],
    deleted: ["→ Undoing (RemediationDeleted)", "→ Undoing (RemediationDeleted)"],
    "timed out": ["→ Undoing (TimedOut)", "→ Undoing (TimedOut)"],
    "target gone": ["→ Undoing (TargetGone)", "→ Undoing (TargetGone)"],
    "host lost": ["→ Undoing (HostLost)", "→ Undoing (HostLost)"],
    stop: ["clearMarks", "clearMarks"],
    "out of time": ["stay (AttemptFailed)", "stay (AttemptFailed)"],
    "out of time, no retry": ["→ Undoing (VerifyTimeout)", "→ Undoing (VerifyTimeout)"],
    "out of time, Escalate after proven reboots": ["stay (AttemptFailed)", "stay (AttemptFailed)"],
    "out of time, Escalate without proof": ["→ Undoing (RebootsNotProven)", "→ Undoing (RebootsNotProven)"],
    "device away": ["stay (BMCUnreachable)", "stay (BMCUnreachable)"],
    "password wrong": ["→ Undoing (BMCAuthenticationFailed)", "→ Undoing (BMCAuthenticationFailed)"],
    "host read On": ["examine", "→ PoweringOff (PoweringOff), forceOff"],
    "node gone": ["examine", "→ PoweringOff (PoweringOff), forceOff"],
    "node joined again": ["examine", "→ PoweringOff (PoweringOff), forceOff"],
    "node Ready again": ["clearMarks", "clearMarks"],
    "node back in a new boot": ["examine", "→ PoweringOff (PoweringOff), forceOff"],
    "spec edited": ["examine", "→ PoweringOff (PoweringOff), forceOff"],
    "not admitted": ["examine", "→ PoweringOff (PoweringOff), forceOff"],
    "agent runs on the node": ["stay (OwnNode), handOver", "stay (OwnNode), handOver"],
    "etcd needs the node": ["examine", "stay (ControlPlaneQuorum)"],
    [DEMOTED]: ["claimHost", "stops"],
    nothing: ["examine", "→ PoweringOff (PoweringOff), forceOff"],
  },
  PoweringOff: {
    restart: ["claimHost", "claimHost"],
    deleted: ["→ Undoing (RemediationDeleted)", "→ Undoing (RemediationDeleted)"],
    "timed out": ["→ Undoing (TimedOut)", "→ Undoing (TimedOut)"],
    "target gone": ["→ Undoing (TargetGone)", "→ Undoing (TargetGone)"],
    "host lost": ["→ Undoing (HostLost)", "→ Undoing (HostLost)"],
    stop: ["untaint", "→ Releasing (PowerOffConfirmed)"],
    "out of time": ["untaint", "→ Releasing (PowerOffConfirmed)"],
    "out of time, no retry": ["untaint", "→ Releasing (PowerOffConfirmed)"],
    "out of time, Escalate after proven reboots": ["untaint", "→ Releasing (PowerOffConfirmed)"],
    "out of time, Escalate without proof": ["untaint", "→ Releasing (PowerOffConfirmed)"],
    "device away": ["untaint", "→ Releasing (PowerOffConfirmed)"],
    "password wrong": ["untaint", "→ Releasing (PowerOffConfirmed)"],
    "host read On": ["untaint", "wait"],
    "node gone": ["untaint", "→ Releasing (PowerOffConfirmed)"],
    "node joined again": ["untaint", "→ Releasing (PowerOffConfirmed)"],
    "node Ready again": ["untaint", "wait"],
    "node back in a new boot": ["untaint", "wait"],
    "spec edited": ["untaint", "→ Releasing (PowerOffConfirmed)"],
    "not admitted": ["untaint", "→ Releasing (PowerOffConfirmed)"],
    "agent runs on the node": ["untaint", "→ Releasing (PowerOffConfirmed)"],
    "etcd needs the node": ["untaint", "→ Releasing (PowerOffConfirmed)"],
    [DEMOTED]: ["claimHost", "stops"],
    nothing: ["untaint", "→ Releasing (PowerOffConfirmed)"],
  },
  Releasing: {
    restart: ["claimHost", "claimHost"],
    deleted: ["→ Undoing (RemediationDeleted)", "→ Undoing (RemediationDeleted)"],
    "timed out": ["→ Undoing (TimedOut)", "→ Undoing (TimedOut)"],
    "target gone": ["→ Undoing (TargetGone)", "→ Undoing (TargetGone)"],
    "host lost": ["→ Undoing (HostLost)", "→ Undoing (HostLost)"],
    stop: ["readPower", "releasePods"],
    "out of time": ["readPower", "swapMarks"],
    "out of time, no retry": ["readPower", "swapMarks"],
    "out of time, Escalate after proven reboots": ["readPower", "swapMarks"],
    "out of time, Escalate without proof": ["readPower", "swapMarks"],
    "device away": ["untaint", "releasePods"],
    "password wrong": ["untaint", "releasePods"],
    "host read On": ["untaint", "untaint"],
    "node gone": ["readPower", "releasePods"],
    "node joined again": ["readPower", "releasePods"],
    "node Ready again": ["readPower", "releasePods"],
    "node back in a new boot": ["readPower", "releasePods"],
    "spec edited": ["readPower", "backupNode"],
    "not admitted": ["readPower", "releasePods"],
    "agent runs on the node": ["readPower", "releasePods"],
    "etcd needs the node": ["readPower", "releasePods"],
    [DEMOTED]: ["claimHost", "stops"],
    nothing: ["readPower", "releasePods"],
  },
  Provisioning: {
    restart: ["claimHost", "claimHost"],
    deleted: ["→ Undoing (RemediationDeleted)", "→ Undoing (RemediationDeleted)"],
    "timed out": ["→ Undoing (TimedOut)", "→ Undoing (TimedOut)"],
    "target gone": ["→ Undoing (TargetGone)", "→ Undoing (TargetGone)"],
    "host lost": ["→ Undoing (HostLost)", "→ Undoing (HostLost)"],
    stop: ["readPower", "stay (BootOverride)"],
    "out of time": ["→ Verifying (AttemptFailed)", "→ Verifying (AttemptFailed)"],
    "out of time, no retry": ["→ Undoing (ProvisionTimeout)", "→ Undoing (ProvisionTimeout)"],
    "out of time, Escalate after proven reboots": ["→ Undoing (ProvisionTimeout)", "→ Undoing (ProvisionTimeout)"],
    "out of time, Escalate without proof": ["→ Undoing (ProvisionTimeout)", "→ Undoing (ProvisionTimeout)"],
    "device away": ["stay (BMCUnreachable)", "stay (BMCUnreachable)"],
    "password wrong": ["→ Undoing (BMCAuthenticationFailed)", "→ Undoing (BMCAuthenticationFailed)"],
    "host read On": ["→ PoweringOff (PowerOffLost)", "→ PoweringOff (PowerOffLost)"],
    "node gone": ["readPower", "stay (BootOverride)"],
    "node joined again": ["readPower", "stay (BootOverride)"],
    "node Ready again": ["readPower", "stay (BootOverride)"],
    "node back in a new boot": ["readPower", "stay (BootOverride)"],
    "spec edited": ["readPower", "stay (BootOverride)"],
    "not admitted": ["readPower", "stay (BootOverride)"],
    "agent runs on the node": ["readPower", "stay (BootOverride)"],
    "etcd needs the node": ["readPower", "stay (BootOverride)"],
    [DEMOTED]: ["claimHost", "stops"],
    nothing: ["readPower", "stay (BootOverride)"],
  },
  PoweringOn: {
    restart: ["claimHost", "claimHost"],
    deleted: ["→ Undoing (RemediationDeleted)", "→ Undoing (RemediationDeleted)"],
    "timed out": ["→ Undoing (TimedOut)", "→ Undoing (TimedOut)"],
    "target gone": ["→ Undoing (TargetGone)", "→ Undoing (TargetGone)"],
    "host lost": ["→ Undoing (HostLost)", "→ Undoing (HostLost)"],
    stop: ["verifyIdentity", "readWhole"],
    "out of time": ["→ Verifying (AttemptFailed)", "→ Verifying (AttemptFailed)"],
    "out of time, no retry": ["→ Undoing (PowerOnTimeout)", "→ Undoing (PowerOnTimeout)"],
    "out of time, Escalate after proven reboots": ["→ Verifying (AttemptFailed)", "→ Verifying (AttemptFailed)"],
    "out of time, Escalate without proof": ["→ Undoing (RebootsNotProven)", "→ Undoing (RebootsNotProven)"],
    "device away": ["stay (BMCUnreachable)", "stay (BMCUnreachable)"],
    "password wrong": ["→ Undoing (BMCAuthenticationFailed)", "→ Undoing (BMCAuthenticationFailed)"],
    "host read On": ["verifyIdentity", "recordReboot"],
    "node gone": ["verifyIdentity", "readWhole"],
    "node joined again": ["verifyIdentity", "readWhole"],
    "node Ready again": ["verifyIdentity", "readWhole"],
    "node back in a new boot": ["verifyIdentity", "readWhole"],
    "spec edited": ["verifyIdentity", "readWhole"],
    "not admitted": ["verifyIdentity", "readWhole"],
    "agent runs on the node": ["verifyIdentity", "readWhole"],
    "etcd needs the node": ["verifyIdentity", "readWhole"],
    [DEMOTED]: ["claimHost", "stops"],
    nothing: ["verifyIdentity", "readWhole"],
  },
  Rejoining: {
    restart: ["claimHost", "claimHost"],
    deleted: ["→ Undoing (RemediationDeleted)", "→ Undoing (RemediationDeleted)"],
    "timed out": ["→ Undoing (TimedOut)", "→ Undoing (TimedOut)"],
    "target gone": ["→ Undoing (TargetGone)", "→ Undoing (TargetGone)"],
    "host lost": ["→ Undoing (HostLost)", "→ Undoing (HostLost)"],
    stop: ["closeDevices", "wait"],
    "out of time": ["closeDevices", "→ Verifying (AttemptFailed)"],
    "out of time, no retry": ["closeDevices", "→ Undoing (RejoinTimeout)"],
    "out of time, Escalate after proven reboots": ["closeDevices", "→ Verifying (AttemptFailed)"],
    "out of time, Escalate without proof": ["closeDevices", "→ Undoing (RebootsNotProven)"],
    "device away": ["closeDevices", "wait"],
    "password wrong": ["closeDevices", "wait"],
    "host read On": ["closeDevices", "wait"],
    "node gone": ["closeDevices", "wait"],
    "node joined again": ["closeDevices", "wait"],
    "node Ready again": ["closeDevices", "wait"],
    "node back in a new boot": ["closeDevices", "wait"],
    "spec edited": ["closeDevices", "wait"],
    "not admitted": ["closeDevices", "wait"],
    "agent runs on the node": ["closeDevices", "wait"],
    "etcd needs the node": ["closeDevices", "wait"],
    [DEMOTED]: ["claimHost", "stops"],
    nothing: ["closeDevices", "wait"],
  },
  Restoring: {
    restart: ["claimHost", "claimHost"],
    deleted: ["→ Undoing (RemediationDeleted)", "→ Undoing (RemediationDeleted)"],
    "timed out": ["→ Undoing (TimedOut)", "→ Undoing (TimedOut)"],
    "target gone": ["→ Undoing (TargetGone)", "→ Undoing (TargetGone)"],
    "host lost": ["→ Undoing (HostLost)", "→ Undoing (HostLost)"],
    stop: ["wait", "wait"],
    "out of time": ["→ Verifying (AttemptFailed)", "→ Verifying (AttemptFailed)"],
    "out of time, no retry": ["→ Undoing (ReadyTimeout)", "→ Undoing (ReadyTimeout)"],
    "out of time, Escalate after proven reboots": ["→ Verifying (AttemptFailed)", "→ Verifying (AttemptFailed)"],
    "out of time, Escalate without proof": ["→ Undoing (RebootsNotProven)", "→ Undoing (RebootsNotProven)"],
    "device away": ["wait", "wait"],
    "password wrong": ["wait", "wait"],
    "host read On": ["wait", "wait"],
    "node gone": ["wait", "wait"],
    "node joined again": ["wait", "wait"],
    "node Ready again": ["wait", "wait"],
    "node back in a new boot": ["closeDevices", "releaseHost"],
    "spec edited": ["wait", "wait"],
    "not admitted": ["wait", "wait"],
    "agent runs on the node": ["wait", "wait"],
    "etcd needs the node": ["wait", "wait"],
    [DEMOTED]: ["claimHost", "stops"],
    nothing: ["wait", "wait"],
  },
  Undoing: {
    restart: ["untaint", "claimHost"],
    deleted: ["untaint", "stay (PoweringOnAgain), powerOn"],
    "timed out": ["untaint", "stay (PoweringOnAgain), powerOn"],
    "target gone": ["untaint", "stay (TargetGone)"],
    "host lost": ["untaint", "clearMarks"],
    stop: ["untaint", "stay (PoweringOnAgain), powerOn"],
    "out of time": ["untaint", "clearMarks"],
    "out of time, no retry": ["untaint", "clearMarks"],
    "out of time, Escalate after proven reboots": ["untaint", "clearMarks"],
    "out of time, Escalate without proof": ["untaint", "clearMarks"],
    "device away": ["untaint", "stay (BMCUnreachable)"],
    "password wrong": ["untaint", "stay (BMCAuthenticationFailed)"],
    "host read On": ["untaint", "stay (PoweringOnAgain), powerOn"],
    "node gone": ["untaint", "stay (PoweringOnAgain), powerOn"],
    "node joined again": ["untaint", "stay (PoweringOnAgain), powerOn"],
    "node Ready again": ["untaint", "stay (PoweringOnAgain), powerOn"],
    "node back in a new boot": ["untaint", "stay (PoweringOnAgain), powerOn"],
    "spec edited": ["untaint", "stay (PoweringOnAgain), powerOn"],
    "not admitted": ["untaint", "stay (PoweringOnAgain), powerOn"],
    "agent runs on the node": ["untaint", "stay (PoweringOnAgain), powerOn"],
    "etcd needs the node": ["untaint", "stay (PoweringOnAgain), powerOn"],
    [DEMOTED]: ["untaint", "stops"],
    nothing: ["untaint", "stay (PoweringOnAgain), powerOn"],
  },
  Succeeded: finalRow(),
  Failed: finalRow(),
};

function finalRow(): Record<string, Told> {
  // The verdict is stored, so the finalizer is removed in any case.
  const letGo: Told = ["dropFinalizer", "dropFinalizer"];
  const rows = Object.fromEntries(Object.keys(EVENTS).map((event) => [event, letGo]));
  return { ...rows, [DEMOTED]: ["dropFinalizer", "stops"] };
}

function changesOf(state: StateName, event: string, knows: boolean): SnapshotChanges {
  const changes = EVENTS[event] ?? {};
  return { state, ...changes, observations: { ...(knows && observationsBy(state)), ...changes.observations } };
}

const tell = (changes: SnapshotChanges): string => told(decide(snapshot(changes), NOW), changes.state);

describe("decide", () => {
  for (const state of STATE_NAMES) {
    for (const event of Object.keys(EVENTS)) {
      it(`decide gives the expected decision in ${state} after the event “${event}”`, async () => {
        const tookOver = tell(changesOf(state, event, false));
        const seenItAll = event === DEMOTED ? await demote(state) : tell(changesOf(state, event, true));
        assert.deepEqual([tookOver, seenItAll], TABLE[state][event]);
      });
    }
  }
});

for (const [who, steps] of Object.entries(STEPS)) {
  describe(who, () => {
    for (const { name, given, expected } of steps) it(name, () => assert.equal(tell(given), expected));
  });
}

describe("a power-off order", () => {
  const order = (changes: SnapshotChanges) =>
    decide(snapshot(changes), NOW).effects.find((effect) => effect.do === "forceOff")?.attemptId;

  it("a power-off order has the attempt's own id", () => {
    const changes = { state: "Verifying", observations: { examined: { node: node() }, identity: VERIFIED } } as const;
    assert.equal(order(changes), "a1");
  });

  it("a further power-off order of an attempt has a new id, so that no id is used for two orders", () => {
    const observations = { taintCleared: true, power: READ_ON, identity: VERIFIED, examined: { node: node() } };
    assert.equal(order({ state: "PoweringOff", attempt: { actionAtMs: NOW.epochMs - 21_000 }, observations }), "fresh");
  });
});

describe("the diagram in docs/explanation/remediation.md", () => {
  it("the diagram in docs/explanation/remediation.md draws the moves that these cases make, all of them and no other", () => {
    const pairs = STATE_NAMES.flatMap((state) =>
      Object.keys(EVENTS).flatMap((event) => [changesOf(state, event, false), changesOf(state, event, true)]),
    );
    const moves = new Set<string>();
    const steps = Object.values(STEPS).flat();
    for (const changes of [...pairs, ...steps.map(({ given }) => given)]) {
      const { state } = changes;
      const decision = decide(snapshot(changes), NOW);
      const to = decision.status?.phase;
      // A further attempt stays in its state, but the diagram has an arrow for it.
      const isAttempt = decision.notes.some(({ reason }) => reason === "AttemptFailed");
      if (to !== undefined && (to !== state || isAttempt)) moves.add(`${state} --> ${to}`);
    }
    const drawn = ARROWS.filter(({ from, to }) => from !== "[*]" && to !== "[*]");
    assert.deepEqual([...moves].sort(), drawn.map(({ from, to }) => `${from} --> ${to}`).sort());
  });
});
