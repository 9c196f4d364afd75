import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { BareMetalRemediation } from "../../../../src/api/ironfence/bare-metal-remediation.ts";
import { bareMetalRemediationSpecSchema } from "../../../../src/api/ironfence/bare-metal-remediation.ts";
import { KubeError } from "../../../../src/kube/errors.ts";
import type { KubeRuntime } from "../../../../src/kube/runtime.ts";
import { strategyOf } from "../../../../src/remediator/machine/model/decision/strategy.ts";
import { RemediationSession } from "../../../../src/remediator/controller/session/session.ts";
import { refresh } from "../../../../src/remediator/controller/recover.ts";
import type { HostPower } from "../../../../src/remediator/hosts/model/host.ts";
import { createLogger } from "../../../../src/telemetry/logger.ts";
import { seededRandom } from "../../../lib/seeded-random.ts";
import { VirtualClock } from "../../../lib/virtual-clock.ts";
import { oneCluster } from "../../../lib/workload-clusters.ts";
import { formatAttempt } from "../../../../src/remediator/machine/model/decision/state.ts";
import { attempt, PROVEN, VERIFIED, know, stateOf } from "../machine/snapshots.ts";
import { IN_CONTACT } from "../../../lib/contact.ts";

const SPEC = bareMetalRemediationSpecSchema.parse({});
const REF = { kind: "FencingTarget", namespace: "ironfence", name: "n1", uid: "target-uid" };

/** A clock whose wall time can be set. */
class SetClock extends VirtualClock {
  aheadMs = 0;

  override nowMs(): number {
    return super.nowMs() + this.aheadMs;
  }
}

function begin(client: Partial<KubeRuntime["client"]> = {}): {
  session: RemediationSession;
  runtime: KubeRuntime;
  lines: string[];
  clock: SetClock;
  closed: () => number;
} {
  const clock = new SetClock();
  const lines: string[] = [];
  const unused = (): never => {
    throw new Error("not part of this test");
  };
  const runtime: KubeRuntime = {
    client: client as KubeRuntime["client"],
    clock,
    random: seededRandom(1),
    logger: createLogger("warn", { write: (line) => void lines.push(line) }),
    contact: () => IN_CONTACT,
    events: { record: () => undefined },
    watch: unused,
  };
  const session = new RemediationSession({ runtime, clusters: oneCluster(runtime) }, version("5"), () => undefined);
  let closed = 0;
  session.power = { close: () => Promise.resolve(void (closed += 1)) } as unknown as HostPower;
  return { session, runtime, lines, clock, closed: () => closed };
}

function version(resourceVersion: string): BareMetalRemediation {
  return {
    apiVersion: "ironfence.io/v1alpha1",
    kind: "BareMetalRemediation",
    metadata: { namespace: "ns", name: "n1", uid: "uid", resourceVersion },
    spec: SPEC,
  };
}

describe("what is known of a host", () => {
  it("observations of a host do not count once its target is edited, because they may be of another host", async () => {
    const { session, closed } = begin();
    await session.useTarget({ ref: REF, version: "target-uid/1" });
    know(session, { power: PROVEN, identity: VERIFIED, override: "None" });
    await session.useTarget({ ref: REF, version: "target-uid/1" });
    assert.deepEqual([session.observations.power.provenAtMs !== undefined, closed()], [true, 0]);
    await session.useTarget({ ref: REF, version: "target-uid/2" });
    const { power, identity, override } = session.observations;
    assert.deepEqual([power.offReads, power.provenAtMs, identity, override], [0, undefined, undefined, undefined]);
    assert.deepEqual([closed(), session.power], [1, undefined], "its connections lead to the devices of before");
  });

  it("observations of a host do not claim it if its target was created again", async () => {
    const { session } = begin();
    know(session, { claim: { owned: true, targetUid: "an-earlier-uid" } });
    await session.useTarget({ ref: REF, version: "target-uid/1" });
    assert.equal(session.observations.claim, undefined);
  });
});

describe("the newest state of a remediation", () => {
  it("the newest state of a remediation is not replaced by an older one that a watch shows late", () => {
    const { session } = begin();
    session.absorb(version("4"));
    assert.equal(session.remediation.metadata.resourceVersion, "5");
    session.absorb(version("6"));
    assert.equal(session.remediation.metadata.resourceVersion, "6");
  });

  it("the newest state of a remediation is the watch's object if that equals the answer to our own write", () => {
    const { session } = begin();
    const stored = (): BareMetalRemediation => ({ ...version("6"), status: { phase: "Resolving" } });
    session.learn(stored());
    const { state } = session;
    know(session, { quarantineLifted: true });
    const watched = stored();
    session.absorb(watched);
    assert.equal(session.remediation, watched);
    assert.equal(session.state, state, "nothing is read again");
    assert.deepEqual([session.observations.quarantineLifted, session.wasReadLive], [true, true]);
  });

  it("the newest state of a remediation is not replaced by another object of the same version", () => {
    const { session } = begin();
    session.learn(version("6"));
    const { remediation } = session;
    session.absorb({ ...version("6"), status: { phase: "Undoing" } });
    session.absorb({ ...version("6"), metadata: { ...version("6").metadata, uid: "another" } });
    assert.equal(session.remediation, remediation);
  });

  it("the newest state of a remediation keeps nothing of an answer that the watch does not keep", () => {
    const { session } = begin();
    const answer = version("6");
    const annotations = { "remediation.medik8s.io/node-name": "n1", "example.com/other": "x" };
    Object.assign(answer.metadata, { managedFields: [{ manager: "ironfence" }], annotations });
    session.learn(answer);
    const { metadata } = session.remediation;
    assert.deepEqual(metadata, {
      ...version("6").metadata,
      annotations: { "remediation.medik8s.io/node-name": "n1" },
    });
  });
});

describe("a status whose answer was lost", () => {
  it("a status whose answer was lost counts as stored once the watch shows it: what was seen of the attempt before counts no more", () => {
    const { session } = begin();
    const inAttempt = (resourceVersion: string, id: string): BareMetalRemediation => ({
      ...version(resourceVersion),
      status: { phase: "Verifying", attempt: formatAttempt(attempt({ id })) },
    });
    session.absorb(inAttempt("6", "a1"));
    know(session, { quarantineLifted: true, nodeDeleted: true });
    session.absorb(inAttempt("7", "a1"));
    assert.equal(session.observations.quarantineLifted, true, "nothing has changed");
    session.absorb(inAttempt("8", "a2"));
    assert.deepEqual([session.observations.quarantineLifted, session.observations.nodeDeleted], [false, false]);
  });

  it("a status whose answer was lost names a node that has not been observed yet", () => {
    const { session } = begin();
    const named = (resourceVersion: string, name?: string): BareMetalRemediation => ({
      ...version(resourceVersion),
      spec: { ...SPEC, machineRef: { name: "m1", namespace: "ns" } } as BareMetalRemediation["spec"],
      status: { phase: "Verifying", attempt: formatAttempt(attempt()), ...(name !== undefined && { node: { name } }) },
    });
    session.absorb(named("6"));
    know(session, { examined: { node: undefined, dispute: undefined } });
    session.absorb(named("7", "n9"));
    assert.deepEqual([session.nodeName, session.observations.examined], ["n9", undefined]);
  });
});

describe("a report of a wait that is postponed", () => {
  const NODE = { name: "n1", uid: "node-uid", bootIDAtStart: "boot-1", wasReady: false };
  const MACHINE = {
    apiVersion: "machine.openshift.io/v1beta1",
    kind: "Machine",
    namespace: "ns",
    name: "m1",
    uid: "m",
  };
  const unused = (): never => assert.fail("it has a reservation");

  it("a report of a wait that is postponed keeps its reservation until it may be stored", async () => {
    const { session, clock } = begin();
    assert.equal(
      session.postponeReport({ node: NODE }, () => 200),
      200,
    );
    await clock.advance(150);
    assert.equal(session.postponeReport({ node: NODE }, unused), 50);
    await clock.advance(100);
    assert.equal(session.postponeReport({ node: NODE }, unused), -50, "it may be stored");
    assert.equal(
      session.postponeReport({ node: NODE }, () => 300),
      50,
      "the next report needs a reservation of its own",
    );
  });

  it("a report of a wait that is postponed counts for decisions, with the Machine, until it is stored", () => {
    const { session } = begin();
    assert.deepEqual(session.statusWithPostponed, {});
    session.postponeReport({ node: NODE, machine: MACHINE, phase: "Resolving" }, () => 200);
    assert.deepEqual(session.statusWithPostponed, { node: NODE, machine: MACHINE });
    session.absorb({ ...version("6"), status: { phase: "Resolving", node: { ...NODE, bootIDAtStart: "stored" } } });
    assert.equal(session.statusWithPostponed.node?.bootIDAtStart, "stored");
    session.postponeReport({ node: NODE }, () => 200);
    session.absorb(version("7"));
    assert.deepEqual(session.statusWithPostponed, {}, "a status that was removed is not in use any more");
  });

  it("a report of a wait that is postponed says nothing of another node that an edited annotation names", () => {
    const { session } = begin();
    session.postponeReport({ node: NODE }, () => 200);
    const edited = version("6");
    edited.metadata.annotations = { "remediation.medik8s.io/node-name": "n2" };
    session.absorb(edited);
    assert.deepEqual([session.nodeName, session.statusWithPostponed], ["n2", {}]);
  });
});

describe("the time of a state", () => {
  it("the time of a state runs by a clock that cannot jump, from when its deadline was first seen", async () => {
    const { session, clock } = begin();
    const state = stateOf("PoweringOff", { deadlineMs: clock.nowMs() + 60_000 });
    assert.equal(session.remainingMs(state, strategyOf(SPEC)), 60_000);
    clock.aheadMs = 3_600_000;
    await clock.advance(10_000);
    assert.equal(session.remainingMs(state, strategyOf(SPEC)), 50_000);
  });

  it("the time of a state is never longer than any state may take, even if a wrong clock has stored a later deadline", () => {
    const { session, clock } = begin();
    const state = stateOf("PoweringOff", { deadlineMs: clock.nowMs() + 30 * 24 * 3_600_000 });
    assert.ok(session.remainingMs(state, strategyOf(SPEC)) <= 900_000);
  });
});

describe("the time of an intent", () => {
  it("the time of an intent runs by a clock that cannot jump, from when the intent was first seen", async () => {
    const { session, clock } = begin();
    const state = stateOf("Undoing", { actionAtMs: clock.nowMs() - 30_000 });
    const ageMs = (): number => clock.monotonicMs() - session.intentTimes(state).intentAtMs;
    assert.equal(ageMs(), 30_000);
    for (const aheadMs of [3_600_000, -3_600_000]) {
      clock.aheadMs = aheadMs;
      assert.equal(ageMs(), 30_000);
    }
    await clock.advance(10_000);
    assert.equal(ageMs(), 40_000);
  });

  it("the time of an intent is not in the future, even if an agent with another clock has stored it", () => {
    const { session, clock } = begin();
    const { intentAtMs } = session.intentTimes(stateOf("Undoing", { actionAtMs: clock.nowMs() + 600_000 }));
    assert.equal(intentAtMs, clock.monotonicMs());
  });

  it("the time of an intent is no later than when it was first seen, however old its stored time looks", async () => {
    const { session, clock } = begin();
    const state = stateOf("Undoing", { actionAtMs: clock.nowMs() - 600_000 });
    const seenAtMs = clock.monotonicMs();
    assert.equal(session.intentTimes(state).intentSeenAtMs, seenAtMs);
    await clock.advance(10_000);
    assert.equal(session.intentTimes(state).intentSeenAtMs, seenAtMs);
  });
});

describe("a live read of the remediation", () => {
  it("a live read of the remediation that fails is reported, because everything that waits for it would wait silently", async () => {
    const get = (): Promise<never> => Promise.reject(new KubeError("Unavailable", "etcd has no leader"));
    const { session, runtime, lines } = begin({ get });
    assert.equal(await refresh(runtime, session, new AbortController().signal), true, "it may well be there");
    assert.equal(session.wasReadLive, false);
    assert.match(lines.join(), /etcd has no leader/);
  });
});
