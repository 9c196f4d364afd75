import assert from "node:assert/strict";
import { beforeEach, describe, it } from "node:test";
import { createApiServer } from "../../../../hack/kube-mock/api-server.ts";
import type { ApiServer } from "../../../../hack/kube-mock/api-server.ts";
import { NAMESPACES } from "../../../../hack/kube-mock/controllers/cluster-types.ts";
import { readCrds } from "../../../../hack/lib/crds.ts";
import { FENCED_BY, QUARANTINED_BY } from "../../../../src/api/names/annotations.ts";
import type {
  BareMetalRemediation,
  BareMetalRemediationStatus,
} from "../../../../src/api/ironfence/bare-metal-remediation.ts";
import { BARE_METAL_REMEDIATIONS } from "../../../../src/api/ironfence/bare-metal-remediation.ts";
import { NODES, PODS } from "../../../../src/api/kubernetes/core-types.ts";
import type { Node, Taint } from "../../../../src/api/kubernetes/core.ts";
import { FENCED, OUT_OF_SERVICE, QUARANTINE, sameTaint } from "../../../../src/api/kubernetes/taints.ts";
import { KubeError } from "../../../../src/kube/errors.ts";
import { createKubeRuntime } from "../../../../src/kube/connection/create-runtime.ts";
import type { EffectContext } from "../../../../src/remediator/effects/context/effect-context.ts";
import { FINALIZER } from "../../../../src/remediator/effects/objects/finalizer.ts";
import { runEffect } from "../../../../src/remediator/effects/run-effect.ts";
import { RemediationSession } from "../../../../src/remediator/controller/session/session.ts";
import type { Observations } from "../../../../src/remediator/machine/model/facts/observations.ts";
import { formatAttempt } from "../../../../src/remediator/machine/model/decision/state.ts";
import { createLogger } from "../../../../src/telemetry/logger.ts";
import { seededRandom } from "../../../lib/seeded-random.ts";
import { oneCluster } from "../../../lib/workload-clusters.ts";
import { VirtualClock } from "../../../lib/virtual-clock.ts";
import { attempt, know } from "../machine/snapshots.ts";
import type { Effect } from "../../../../src/remediator/machine/model/decision/decision.ts";

// Effects on nodes with live reads, on an in-memory API server.

const SIGNAL = new AbortController().signal;
const NAMESPACE = "ironfence";
const CRDS = (await readCrds()).filter((text) => text.includes("kind: BareMetalRemediation\n"));

let clock: VirtualClock;
let server: ApiServer;

beforeEach(() => {
  clock = new VirtualClock(Date.UTC(2026, 0, 1));
  server = createApiServer({ clock, random: seededRandom(1) });
  for (const text of CRDS) server.load(text);
  server.collection(NAMESPACES).create({ metadata: { name: NAMESPACE } });
});

interface NodeParts {
  taints?: Taint[];
  annotations?: Record<string, string>;
  bootID?: string;
}

function createNode({ taints = [], annotations = {}, bootID = "old-boot" }: NodeParts = {}): Node {
  server.collection<Node>(NODES).create({ metadata: { name: "n1", annotations }, spec: { taints } });
  return server.collection<Node>(NODES).mergePatch({ name: "n1" }, { status: { nodeInfo: { bootID } } }, "status");
}

function liveNode(): Node {
  return server.collection<Node>(NODES).get({ name: "n1" }) ?? assert.fail("there is a node n1");
}

function bears(taint: Pick<Taint, "key" | "effect">): boolean {
  return (liveNode().spec.taints ?? []).some((present) => sameTaint(present, taint));
}

function recreateNode(): Node {
  server.collection(NODES).delete({ name: "n1" });
  return createNode();
}

/** Effects of remediation r on node n1. */
function start(status: BareMetalRemediationStatus = {}): EffectContext {
  const runtime = createKubeRuntime({
    transport: server.transport({ client: "agent" }),
    clock,
    random: seededRandom(2),
    logger: createLogger("silent"),
    controllerName: "ironfence.io/agent",
    instance: "test",
  });
  const metadata = { namespace: NAMESPACE, name: "r", finalizers: ["example.com/other", FINALIZER] };
  const remediation = server.collection<BareMetalRemediation>(BARE_METAL_REMEDIATIONS).create({ metadata, spec: {} });
  const session = new RemediationSession(
    { runtime, clusters: oneCluster(runtime) },
    { ...remediation, status: { node: { name: "n1" }, ...status } },
    () => undefined,
  );
  know(session, { claim: { owned: true, targetUid: "target-uid" } });
  return {
    runtime,
    nodeRuntime: runtime,
    session,
    host: undefined,
    node: undefined,
    siblings: [],
    admissions: { ask: () => undefined, withdraw: () => undefined, askToReplace: () => ({ granted: true }) },
    handOver: () => undefined,
    etcdNodes: () => [],
    hasExternalEtcd: false,
    orderFacts: () => ({
      isSameHost: true,
      watchedHold: undefined,
      readHold: { found: undefined, failed: false, atMs: 0 },
    }),
    readStopSwitch: () => Promise.resolve(undefined),
    identifyOwnCluster: () => Promise.resolve(),
  };
}

async function run(context: EffectContext, effect: Effect): Promise<Observations> {
  await runEffect(context, effect, SIGNAL);
  return context.session.observations;
}

/** A status that records this node. */
function onRecord({ metadata, status }: Node): BareMetalRemediationStatus {
  const bootID = status.nodeInfo?.bootID;
  return { node: { name: "n1", uid: metadata.uid, ...(bootID !== undefined && { bootID }) } };
}

describe("a Node that has joined again under the name of the fenced one", () => {
  it("a Node that has joined again under the name of the fenced one keeps its pods", async () => {
    const context = start(onRecord(createNode()));
    recreateNode();
    const spec = { nodeName: "n1", containers: [{ name: "main", image: "none" }] };
    server.collection(PODS).create({ metadata: { namespace: "default", name: "db" }, spec });
    await run(context, { do: "releasePods", withinMs: 2_000 });
    assert.notEqual(server.collection(PODS).get({ namespace: "default", name: "db" }), undefined);
  });

  it("a Node that has joined again under the name of the fenced one gets no taint", async () => {
    const context = start(onRecord(createNode()));
    recreateNode();
    const { taint } = await run(context, { do: "taint", attemptId: "a1" });
    assert.equal(taint?.found, "NoNode");
    assert.equal(bears(OUT_OF_SERVICE), false);
  });

  it("a Node that has joined again under the name of the fenced one is not saved as the other, nor deleted for it", async () => {
    const context = start(onRecord(createNode()));
    const { backup } = await run(context, { do: "backupNode" });
    const { uid } = recreateNode().metadata;
    await assert.rejects(run(context, { do: "deleteNode" }), { code: "Conflict" });
    assert.equal(liveNode().metadata.uid, uid);
    know(context.session, { backup });
    assert.equal((await run(context, { do: "backupNode" })).nodeDeleted, true);
  });
});

describe("a Node that is to be deleted", () => {
  it("a Node that is to be deleted stays if a user has changed it since it was saved, and is saved again", async () => {
    const context = start(onRecord(createNode()));
    await run(context, { do: "backupNode" });
    server.collection(NODES).mergePatch({ name: "n1" }, { metadata: { labels: { rack: "r7" } } });
    await assert.rejects(run(context, { do: "deleteNode" }), { code: "Conflict" });
    assert.equal(liveNode().metadata.labels?.["rack"], "r7");
    const { observations } = context.session;
    assert.deepEqual([observations.nodeDeleted, observations.backup], [false, undefined]);
    assert.equal((await run(context, { do: "backupNode" })).backup?.status.labels?.["rack"], "r7");
    assert.equal((await run(context, { do: "deleteNode" })).nodeDeleted, true);
  });

  it("a Node that is to be deleted does not get back what was saved of it", async () => {
    const node = createNode();
    const backup = { nodeUID: node.metadata.uid, labels: { rack: "r7" } };
    await run(start({ ...onRecord(node), backup }), { do: "restoreNode" });
    assert.equal(liveNode().metadata.labels?.["rack"], undefined);
  });
});

describe("a read of the node before its host is powered off", () => {
  it("a read of the node before its host is powered off finds the members of etcd as they are, not as they are watched", async () => {
    createNode();
    const nodes = server.collection<Node>(NODES);
    const labels = { "node-role.kubernetes.io/control-plane": "" };
    nodes.mergePatch({ name: "n1" }, { metadata: { labels } });
    const conditions = [{ type: "Ready", status: "True" }];
    nodes.create({ metadata: { name: "n2", labels }, spec: {} });
    const watched = nodes.mergePatch({ name: "n2" }, { status: { conditions } }, "status");
    nodes.mergePatch({ name: "n2" }, { status: { conditions: [{ type: "Ready", status: "Unknown" }] } }, "status");
    const { members } = await run({ ...start(), etcdNodes: () => [watched] }, { do: "examine" });
    assert.deepEqual(members, [{ node: "n2", up: false, external: false }]);
  });

  it("a read of the node before its host is powered off fails, and ends nothing else, if its BMC's Secret is refused while the node is still being read", async () => {
    createNode();
    const match = { resource: "nodes", verbs: ["get"] } as const;
    server.faults.inject({ match, times: 1, action: { kind: "delay", delayMs: 1_000 } });
    const refused = new KubeError("Forbidden", "get Secret ironfence/bmc: 403");
    // Nothing else of the host is used before this call fails.
    const host = {
      ref: { kind: "FencingTarget", namespace: NAMESPACE, name: "n1", uid: "target-uid" },
      open: () => Promise.reject(refused),
      readMaintenance: () => Promise.resolve(undefined),
    } as unknown as NonNullable<EffectContext["host"]>;
    const examined = run({ ...start(), host }, { do: "examine" });
    const failed = assert.rejects(examined, refused);
    // An unhandled rejection would be reported here. In the agent, it would end the process.
    await new Promise((resolve) => setImmediate(resolve));
    await clock.advance(1_000);
    await failed;
  });

  it("a read of the node before the power-off concludes that it has no taint of ironfence only if it shows none", async () => {
    createNode({ taints: [OUT_OF_SERVICE, { ...FENCED, value: "other-uid" }] });
    const context = start();
    assert.equal((await run(context, { do: "examine" })).taintCleared, false);
    recreateNode();
    assert.equal((await run(context, { do: "examine" })).taintCleared, true);
  });
});

describe("a mark", () => {
  it("a mark counts as present from the moment at which its patch is sent: the answer may be lost", async () => {
    const context = start(onRecord(createNode()));
    know(context.session, { taintCleared: true, marksCleared: true, swapped: true });
    const match = { method: "PATCH", pathPrefix: "/api/v1/nodes" };
    server.faults.inject({ match, times: 9, action: { kind: "loseAnswer" } });
    await assert.rejects(run(context, { do: "taint", attemptId: "a1" }));
    const { taintCleared, marksCleared, swapped } = context.session.observations;
    assert.deepEqual(
      { taintCleared, marksCleared, swapped },
      { taintCleared: false, marksCleared: false, swapped: false },
    );
    assert.equal(bears(OUT_OF_SERVICE), true);
  });

  for (const mark of ["quarantine", "swapMarks"] as const) {
    it(`a mark is still to be removed after ${mark}`, async () => {
      const context = start(onRecord(createNode()));
      know(context.session, { marksCleared: true });
      assert.equal((await run(context, { do: mark, attemptId: "a1" })).marksCleared, false);
      assert.equal(bears(QUARANTINE), true);
    });
  }

  it("a mark of another remediation stays if the host is not owned", async () => {
    const node = createNode({ taints: [OUT_OF_SERVICE, { ...FENCED, value: "other-uid" }] });
    const context = start(onRecord(node));
    know(context.session, { claim: undefined });
    await run(context, { do: "untaint" });
    assert.equal(bears(OUT_OF_SERVICE), true);
    know(context.session, { claim: { owned: true, targetUid: "target-uid" }, hostReleased: true });
    await run(context, { do: "untaint" });
    assert.equal(bears(OUT_OF_SERVICE), true, "nor where it was given up");
    know(context.session, { hostReleased: false });
    await run(context, { do: "untaint" });
    assert.equal(bears(OUT_OF_SERVICE), false);
  });

  describe("a mark that version 0.1.0 put on, which signed it by an annotation alone", () => {
    /** A remediation with the stored attempt a1, and its node, whose annotation names one of its attempts. */
    const tainted = (signedFor = "a1", secondTaint = false): EffectContext => {
      const stored = formatAttempt(attempt({ id: "a1", secondTaint }));
      const status = { phase: "Releasing", stateVersion: 1, attempt: stored };
      const context = start({ ...onRecord(createNode({ taints: [OUT_OF_SERVICE] })), ...status });
      const annotations = { [FENCED_BY]: `${context.session.uid}/${signedFor}` };
      server.collection(NODES).mergePatch({ name: "n1" }, { metadata: { annotations } });
      return context;
    };

    it("a mark that version 0.1.0 signed by an annotation alone is removed if that version chose the stored id, though a later one has stored the status since", async () => {
      await run(tainted(), { do: "untaint" });
      assert.equal(bears(OUT_OF_SERVICE), false);
    });

    it("a mark that version 0.1.0 put on, which signed it by an annotation alone, gets the second taint when it is put on again for a new proof", async () => {
      assert.equal((await run(tainted(), { do: "taint", attemptId: "a2" })).taint?.found, "Ours");
      assert.equal(bears(FENCED), true);
    });

    it("a mark that version 0.1.0 signed by an annotation alone is recognized by the read before a power-off", async () => {
      assert.equal((await run(tainted(), { do: "examine" })).taintCleared, false);
    });

    it("a mark that version 0.1.0 put on, which signed it by an annotation alone, stays if the annotation names another attempt", async () => {
      await run(tainted("a0"), { do: "untaint" });
      assert.equal(bears(OUT_OF_SERVICE), true);
    });

    it("a mark that version 0.1.0 put on, which signed it by an annotation alone, stays if a later version chose the id: a kubelet may have written the annotation", async () => {
      await run(tainted("a1", true), { do: "untaint" });
      assert.equal(bears(OUT_OF_SERVICE), true);
    });
  });

  it("a mark that is the quarantine is removed only if the live node is in a new boot, whatever a watch has shown", async () => {
    const node = createNode({ taints: [QUARANTINE], annotations: { [QUARANTINED_BY]: "uid/a1" } });
    const context = start(onRecord(node));
    assert.equal((await run(context, { do: "liftQuarantine" })).quarantineLifted, false);
    assert.equal(bears(QUARANTINE), true);
    server.collection(NODES).mergePatch({ name: "n1" }, { status: { nodeInfo: { bootID: "new-boot" } } }, "status");
    assert.equal((await run(context, { do: "liftQuarantine" })).quarantineLifted, true);
    assert.equal(bears(QUARANTINE), false);
  });
});

describe("a read that takes long", () => {
  it("a read that takes long overwrites nothing that is seen meanwhile", async () => {
    const context = start();
    const { session } = context;
    let looks = 0;
    const readStopSwitch = async () => {
      looks += 1;
      // The first read becomes too old for an order. The second one happens together with the reading of the power.
      if (looks === 1) await clock.advance(2_000);
      else await Promise.resolve().then(() => know(session, { quarantined: true }));
      return undefined;
    };
    const observations = await run({ ...context, readStopSwitch }, { do: "verifyIdentity" });
    assert.deepEqual([looks, observations.quarantined], [2, true]);
  });
});

describe("what is left on a node", () => {
  it("pods that are left on a node are released again: a pod may have changed as it was being deleted, or be new", async () => {
    const context = start(onRecord(createNode()));
    know(context.session, { released: true });
    const spec = { nodeName: "n1", containers: [{ name: "main", image: "none" }] };
    server.collection(PODS).create({ metadata: { namespace: "default", name: "db" }, spec });
    assert.equal((await run(context, { do: "checkDrained" })).released, false);
  });
});

describe("the finalizer", () => {
  it("the finalizer of a remediation is removed without a change of other finalizers", async () => {
    const context = start();
    await run(context, { do: "dropFinalizer" });
    assert.deepEqual(context.session.remediation.metadata.finalizers, ["example.com/other"]);
    await run(context, { do: "addFinalizer" });
    assert.deepEqual(context.session.remediation.metadata.finalizers, ["example.com/other", FINALIZER]);
  });
});
