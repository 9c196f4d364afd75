import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { NODE_NAME, QUARANTINED_BY } from "../../../../src/api/names/annotations.ts";
import type {
  BareMetalRemediation,
  BareMetalRemediationStatus,
} from "../../../../src/api/ironfence/bare-metal-remediation.ts";
import { bareMetalRemediationSpecSchema } from "../../../../src/api/ironfence/bare-metal-remediation.ts";
import { NAMESPACES, NODES } from "../../../../src/api/kubernetes/core-types.ts";
import type { Node, Taint } from "../../../../src/api/kubernetes/core.ts";
import type { FencingTarget } from "../../../../src/api/ironfence/fencing-target.ts";
import { QUARANTINE } from "../../../../src/api/kubernetes/taints.ts";
import type { ClusterConnection, ClusterRef } from "../../../../src/clusters/workload-clusters.ts";
import { isKubeError } from "../../../../src/kube/errors.ts";
import type { OwnerReference } from "../../../../src/kube/resource.ts";
import { markPatch, signature, signersOf } from "../../../../src/remediator/machine/node-patches/marks.ts";
import { NodeClusters } from "../../../../src/remediator/clusters/node-clusters.ts";
import { RemediationIndex } from "../../../../src/remediator/controller/remediation-index.ts";
import type { NodeId } from "../../../../src/nodes/subject.ts";
import { isUnresolved, nodeKey, parseNodeKey, subjectOf } from "../../../../src/nodes/subject.ts";
import { World } from "../hosts/targets-fixture.ts";
import { node } from "../machine/snapshots.ts";

const W1: ClusterRef = { namespace: "caps", name: "w1" };
const SIGNAL = new AbortController().signal;
const machineOwner = (apiVersion: string): OwnerReference => ({
  apiVersion,
  kind: "Machine",
  name: "m1",
  uid: "m-uid",
});
const CLUSTER_API = machineOwner("cluster.x-k8s.io/v1beta1");
const OKD = machineOwner("machine.openshift.io/v1beta1");

function remediation(
  name: string,
  changes: { node?: string; owners?: OwnerReference[]; status?: BareMetalRemediationStatus; uid?: string } = {},
): BareMetalRemediation {
  return {
    apiVersion: "ironfence.io/v1alpha1",
    kind: "BareMetalRemediation",
    metadata: {
      name,
      namespace: "caps",
      uid: changes.uid ?? `uid-${name}`,
      resourceVersion: "1",
      ...(changes.node !== undefined && { annotations: { [NODE_NAME]: changes.node } }),
      ...(changes.owners !== undefined && { ownerReferences: changes.owners }),
    },
    spec: bareMetalRemediationSpecSchema.parse({}),
    ...(changes.status !== undefined && { status: changes.status }),
  };
}

describe("the subject of a remediation", () => {
  it("the subject of a remediation is the node that its annotation names, else its own name, if no Machine asked for it", () => {
    assert.deepEqual(subjectOf(remediation("n1", { node: "n2" })).nodeName, "n2");
    assert.deepEqual(subjectOf(remediation("n1")).nodeName, "n1");
  });

  it("the subject of a remediation is not the name of a remediation that a Machine of Cluster API requested", () => {
    const asked = remediation("n1", { node: "n1", owners: [CLUSTER_API] });
    const { nodeName, cluster, machine } = subjectOf(asked);
    assert.deepEqual([nodeName, cluster, machine?.uid, isUnresolved(asked)], [undefined, undefined, "m-uid", true]);
  });

  it("the subject of a remediation is the node that the health check has named for an OKD Machine, which is of the agent's own cluster", () => {
    const asked = remediation("n1", { node: "n1", owners: [OKD] });
    assert.deepEqual([subjectOf(asked).nodeName, isUnresolved(asked)], ["n1", false]);
    assert.equal(isUnresolved(remediation("m1", { owners: [OKD] })), true);
  });

  it("the subject of a remediation stays what was stored, whatever is edited later", () => {
    const machine = {
      apiVersion: "cluster.x-k8s.io/v1beta1",
      kind: "Machine",
      namespace: "caps",
      name: "m1",
      uid: "m",
    };
    const status = { machine, node: { name: "n1", cluster: W1 } };
    const stored = remediation("m1", { node: "n9", owners: [machineOwner("cluster.x-k8s.io/v1beta2")], status });
    assert.deepEqual(subjectOf(stored), { nodeName: "n1", cluster: W1, machine });
    assert.equal(isUnresolved(stored), false);
  });
});

describe("the key of a node", () => {
  it("the key of a node distinguishes namesakes of several clusters, and can be read back", () => {
    const nodes: NodeId[] = [
      { cluster: undefined, name: "n1" },
      { cluster: W1, name: "n1" },
      { cluster: { ...W1, name: "w2" }, name: "n1" },
    ];
    assert.equal(new Set(nodes.map(nodeKey)).size, nodes.length);
    for (const id of nodes) assert.deepEqual(parseNodeKey(nodeKey(id)), id);
  });
});

describe("the agent's own cluster", () => {
  const own = { ...W1, uid: "uid-of-own", own: true };

  it("the agent's own cluster has nodes of one key, by whatever way it is named", () => {
    assert.equal(nodeKey({ cluster: own, name: "n1" }), nodeKey({ cluster: undefined, name: "n1" }));
    const [byName, byMachine] = [
      remediation("by-name", { node: "n1" }),
      remediation("by-machine", { owners: [CLUSTER_API], status: { node: { name: "n1", cluster: own } } }),
    ];
    const index = new RemediationIndex();
    for (const object of [byName, byMachine]) index.apply({ type: "added", object });
    assert.deepEqual(
      index.siblings(byName).map(({ metadata }) => metadata.name),
      ["by-machine"],
    );
    assert.equal(signature("uid", "a1", own), signature("uid", "a1", undefined));
  });
});

describe("the index of remediations", () => {
  const stored = (cluster: ClusterRef | undefined): BareMetalRemediationStatus => ({
    node: { name: "n1", ...(cluster !== undefined && { cluster }) },
  });
  const [here, there, unresolved] = [
    remediation("here", { status: stored(undefined) }),
    remediation("there", { status: stored(W1) }),
    remediation("n1", { owners: [CLUSTER_API], uid: "unresolved" }),
  ];
  const index = new RemediationIndex();
  for (const object of [here, there, unresolved]) index.apply({ type: "added", object });
  const names = (found: readonly BareMetalRemediation[]): string[] => found.map(({ metadata }) => metadata.uid);

  it("the index of remediations holds those of namesakes of several clusters apart", () => {
    assert.deepEqual(names(index.ofNode(undefined, "n1")), ["uid-here"]);
    assert.deepEqual(names(index.ofNode(W1, "n1")), ["uid-there"]);
    assert.deepEqual([names(index.siblings(here)), names(index.siblings(there))], [[], []]);
    const spec = { nodeName: "n1", clusterRef: W1 } as FencingTarget["spec"];
    const target = { ...node(), spec } as unknown as FencingTarget;
    assert.deepEqual(names(index.ofTarget(target)), ["uid-there"]);
  });

  it("the index of remediations finds those of one Machine, and what has moved", () => {
    const other = remediation("other", { owners: [CLUSTER_API] });
    index.apply({ type: "added", object: other });
    assert.deepEqual(names(index.siblings(unresolved)), ["uid-other"]);
    const moved = { ...there, status: stored(undefined) };
    index.apply({ type: "updated", previous: there, object: moved });
    assert.deepEqual(names(index.siblings(here)), ["uid-there"]);
  });
});

describe("who has signed a node's marks", () => {
  const marked = (fenced: string, quarantined: string): Node => {
    const plain = node({ taints: [QUARANTINE] });
    const annotations = { [QUARANTINED_BY]: quarantined };
    const before: Node = { ...plain, metadata: { ...plain.metadata, annotations } };
    const taints = markPatch(before, { outOfService: "on" }, fenced).find(({ path }) => path === "/spec/taints");
    assert.ok(taints?.op === "add");
    return { ...before, spec: { taints: taints.value as Taint[] } };
  };

  it("the signer of a node's marks is found for the cluster that the marks were signed for, and for no other", () => {
    const both = marked(signature("local", "a1", undefined), signature("remote", "a1", W1));
    assert.deepEqual(signersOf(both, undefined), ["local"]);
    assert.deepEqual(signersOf(both, W1), ["remote"]);
    assert.deepEqual(signersOf(both, { ...W1, name: "w2" }), []);
  });
});

describe("the clusters of nodes", () => {
  /** A world with a workload cluster whose connection state can be set. */
  function two(ownCluster?: ClusterRef): {
    clusters: NodeClusters;
    here: World;
    there: World;
    set: (connection: ClusterConnection) => void;
    held: () => number;
    connected: Extract<ClusterConnection, { state: "connected" }>;
  } {
    const [here, there] = [new World(), new World()];
    let connection: ClusterConnection = { state: "connecting" };
    const holders = new Set<() => void>();
    const clusters = new NodeClusters({
      runtime: here.runtime,
      nodes: here.view<Node>(NODES),
      ownCluster,
      clusters: {
        hold: (ref, onChange) => {
          holders.add(onChange);
          return {
            ref,
            get connection() {
              return connection;
            },
            release: () => void holders.delete(onChange),
          };
        },
      },
    });
    const set = (next: ClusterConnection): void => {
      connection = next;
      for (const tell of holders) tell();
    };
    const connected: Extract<ClusterConnection, { state: "connected" }> = {
      state: "connected",
      runtime: there.runtime,
      nodes: there.view<Node>(NODES),
    };
    return { clusters, here, there, set, held: () => holders.size, connected };
  }

  it("the clusters of nodes keep namesakes apart, even if both API servers show the same object", () => {
    const { clusters, here, there, set, connected } = two();
    here.node("n1", "a");
    there.node("n0", "x");
    there.node("n1", "b");
    clusters.hold(W1);
    set(connected);
    assert.equal(clusters.of(W1).nodes.get({ name: "n1" })?.status.nodeInfo?.systemUUID, "b");
    assert.equal(clusters.isLocal(undefined, "n1", "n1"), true);
    assert.equal(clusters.isLocal(W1, "n1", "n1"), false);
    set({ state: "connected", runtime: here.runtime, nodes: here.view<Node>(NODES) });
    assert.equal(clusters.isLocal(W1, "n1", "n1"), false);
    assert.equal(two(W1).clusters.isLocal(W1, "n1", "n1"), true, "a management cluster that is a Cluster of its own");
  });

  it("the clusters of nodes answer nothing while they are disconnected, and are announced when they come", async () => {
    const { clusters, there, set, connected } = two();
    there.node("n1", "b");
    const observations: string[] = [];
    clusters.subscribe({
      onNode: (cluster, { object }, isNews) =>
        void observations.push(`${cluster?.name ?? "here"} ${object.metadata.name}${isNews ? " is news" : ""}`),
      onConnection: ({ name }) => void observations.push(`${name} changed`),
    });
    clusters.hold(W1);
    for (const connection of [
      undefined,
      { state: "disconnected", reason: "Unreachable", message: "no answer", sinceMs: 0 } as const,
    ]) {
      if (connection !== undefined) set(connection);
      const { runtime, nodes, problem } = clusters.of(W1);
      assert.equal(nodes.get({ name: "n1" }), undefined);
      assert.equal(problem?.reason, "ClusterUnreachable");
      assert.match(problem.message, /^cluster caps\/w1 cannot be reached: /);
      await assert.rejects(runtime.client.get(NODES, { name: "n1" }, SIGNAL), (error: unknown) =>
        isKubeError(error, "Unavailable"),
      );
    }
    set(connected);
    assert.deepEqual(observations, ["w1 changed", "w1 n1", "w1 changed"]);
    assert.equal(clusters.of(W1).problem, undefined);
    there.node("n2", "c");
    assert.equal(observations.at(-1), "w1 n2 is news");
  });

  it("the clusters of nodes are held once, even if a listener holds the cluster for a node that is announced at that very moment", () => {
    const { clusters, there, set, held, connected } = two();
    there.node("n1", "b");
    set(connected);
    const releases: (() => void)[] = [];
    clusters.subscribe({
      onNode: () => void (releases.length < 3 && releases.push(clusters.hold(W1))),
      onConnection: () => undefined,
    });
    const release = clusters.hold(W1);
    assert.equal(held(), 1);
    for (const letGo of releases) letGo();
    assert.equal(clusters.of(W1).problem, undefined, "one still holds it");
    release();
    assert.equal(held(), 0);
    assert.equal(clusters.isHeld(W1), false);
  });

  it("the clusters of nodes are the agent's own if the operator has named it and they are on record as that, and need no way to it", () => {
    const { clusters, here, held } = two(W1);
    here.node("n1", "a");
    const own = { ...W1, own: true };
    const release = clusters.hold(own);
    assert.equal(held(), 0);
    assert.equal(clusters.of(own).problem, undefined);
    assert.notEqual(clusters.of(own).nodes.get({ name: "n1" }), undefined);
    assert.equal(clusters.isLocal(own, "n1", "n1"), true);
    release();
  });

  it("the clusters of nodes are disconnected if they are on record as the agent's own, and the operator names none or another one", () => {
    for (const named of [undefined, { ...W1, name: "w2" }]) {
      const { clusters, here } = two(named);
      here.node("n1", "a");
      const { problem, nodes } = clusters.of({ ...W1, own: true });
      assert.equal(problem?.reason, "ClusterExchanged");
      assert.match(problem.message, /--own-cluster=caps\/w1/);
      assert.equal(nodes.get({ name: "n1" }), undefined);
    }
  });

  it("the clusters of nodes are disconnected if their API server says that it is the agent's own", async () => {
    const { clusters, here, there, set, connected } = two();
    there.node("n1", "b");
    const { uid } = here.put(NAMESPACES, "kube-system", {}).metadata;
    await clusters.identifyOwn(SIGNAL);
    clusters.hold(W1);
    set({ ...connected, uid });
    for (const known of [W1, { ...W1, uid: "uid-of-w1" }, { ...W1, uid }]) {
      const { problem, nodes } = clusters.of(known);
      assert.equal(problem?.reason, "ClusterExchanged");
      assert.match(problem.message, /^the API server of cluster caps\/w1 claims to be .*--own-cluster=caps\/w1/);
      assert.equal(nodes.get({ name: "n1" }), undefined);
    }
  });

  it("the clusters of nodes are disconnected for a caller that means another cluster than the one that answers now", async () => {
    const { clusters, there, set, connected } = two();
    there.node("n1", "b");
    clusters.hold(W1);
    set({ ...connected, uid: "uid-of-w1" });
    for (const known of [W1, { ...W1, uid: "uid-of-w1" }]) {
      assert.equal(clusters.of(known).problem, undefined);
      assert.notEqual(clusters.of(known).nodes.get({ name: "n1" }), undefined);
    }
    const { problem, nodes, runtime } = clusters.of({ ...W1, uid: "uid-of-another" });
    assert.equal(problem?.reason, "ClusterExchanged");
    assert.match(problem.message, /^Secret caps\/w1-kubeconfig leads to another cluster .*uid-of-w1 .*uid-of-another;/);
    assert.equal(nodes.get({ name: "n1" }), undefined);
    await assert.rejects(runtime.client.get(NODES, { name: "n1" }, SIGNAL), (error: unknown) =>
      isKubeError(error, "Unavailable"),
    );
    set({ ...connected, uid: "uid-of-another" });
    assert.equal(
      clusters.of({ ...W1, uid: "uid-of-another" }).problem,
      undefined,
      "the same connection leads there now",
    );
  });

  it("the clusters of nodes are connected for as long as a caller holds them", () => {
    const { clusters, set, held, connected } = two();
    const [first, second] = [clusters.hold(W1), clusters.hold(W1)];
    set(connected);
    assert.equal(held(), 1);
    first();
    first();
    assert.equal(clusters.of(W1).problem, undefined, "letting go twice counts once");
    second();
    assert.equal(held(), 0);
    assert.notEqual(clusters.of(W1).problem, undefined);
  });
});
