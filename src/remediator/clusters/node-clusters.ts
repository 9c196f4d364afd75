import type { Node } from "../../api/kubernetes/core.ts";
import { readClusterUid } from "../../clusters/cluster-uid.ts";
import { isSameCluster } from "../../clusters/own-cluster.ts";
import type { ClusterRef, HeldCluster, WorkloadClusters } from "../../clusters/workload-clusters.ts";
import { kubeconfigSecret } from "../../clusters/workload-clusters.ts";
import type { KubeClient } from "../../kube/client.ts";
import { KubeError } from "../../kube/errors.ts";
import type { KubeRuntime } from "../../kube/runtime.ts";
import type { Change, Watched } from "../../kube/watched.ts";
import type { KnownCluster } from "../../nodes/subject.ts";
import { clusterKey } from "../../nodes/subject.ts";
import type { ClusterProblem } from "../machine/model/facts/cluster-problem.ts";

/** The present connection to a cluster whose nodes are fenced. Get it again for each use. */
export interface NodeCluster {
  /** Undefined for the cluster that the agent runs in. */
  readonly ref: ClusterRef | undefined;
  /** The same object for as long as the connection lasts; every call fails while the cluster cannot be reached. */
  readonly runtime: KubeRuntime;
  /** Empty while the cluster cannot be reached, although the nodes may exist. */
  readonly nodes: Pick<Watched<Node>, "get" | "values">;
  /**
   * Which cluster answers (`readClusterUid`); undefined for the agent's own cluster, and if the cluster cannot be
   * reached.
   */
  readonly uid?: string | undefined;
  /** Why the agent cannot work with the cluster; undefined if it can. */
  readonly problem: ClusterProblem | undefined;
  /**
   * The time, by the wall clock, since which the cluster has no kubeconfig, for example because it was deleted;
   * undefined if it has one.
   */
  readonly missingSinceMs?: number;
}

export interface NodeListener {
  /**
   * A node of a held cluster has changed. When the cluster is connected, each of its nodes is reported as `added`.
   *
   * @param isNews false for a node that a workload cluster already had when it was connected or the listener
   * subscribed.
   */
  onNode(cluster: ClusterRef | undefined, change: Change<Node>, isNews: boolean): void;
  /** The connection to a workload cluster has changed. */
  onConnection(cluster: ClusterRef): void;
}

/** The clusters whose nodes are fenced: the agent's own, and the workload clusters that are held here. */
export class NodeClusters {
  readonly #runtime: KubeRuntime;
  readonly #workload: WorkloadClusters;
  readonly #local: NodeCluster;
  readonly #localNodes: Watched<Node>;
  readonly #ownCluster: ClusterRef | undefined;
  #ownUid: string | undefined;
  readonly #held = new Map<string, ConnectedCluster>();
  readonly #listeners = new Set<NodeListener>();

  /** @param deps `ownCluster` is the Cluster that the operator has named as the one that the agent runs in. */
  constructor(deps: {
    runtime: KubeRuntime;
    nodes: Watched<Node>;
    clusters: WorkloadClusters;
    ownCluster?: ClusterRef | undefined;
  }) {
    this.#runtime = deps.runtime;
    this.#ownCluster = deps.ownCluster;
    this.#workload = deps.clusters;
    this.#localNodes = deps.nodes;
    this.#local = { ref: undefined, runtime: deps.runtime, nodes: deps.nodes, problem: undefined };
  }

  /**
   * The present connection to the cluster of a node. It has a problem if the cluster is not held, or if another cluster
   * now answers, whose nodes only have the same names. A cluster that claims to be the agent's own is not trusted,
   * because any API server could claim that and would get the agent's own permissions.
   */
  of(ref: KnownCluster | undefined): NodeCluster {
    if (ref === undefined) return this.#local;
    if (ref.own === true) return this.isOwn(ref) ? this.#local : clusterWithProblem(this.#runtime, ref, notNamed(ref));
    const present =
      this.#held.get(clusterKey(ref))?.present() ?? unreachable(this.#runtime, ref, "it is not connected");
    const { uid } = present;
    if (uid !== undefined && uid === this.#ownUid) return clusterWithProblem(this.#runtime, ref, posing(ref));
    if (uid === undefined || ref.uid === undefined || uid === ref.uid) return present;
    const secret = kubeconfigSecret(ref);
    const message = `Secret ${secret.namespace}/${secret.name} leads to another cluster than when the remediation began: namespace kube-system has UID ${uid} there, and had ${ref.uid}; restore the kubeconfig of that cluster`;
    return clusterWithProblem(this.#runtime, ref, { reason: "ClusterExchanged", message });
  }

  /**
   * Whether the operator has named that Cluster as the one that the agent runs in. No answer of an API server counts.
   */
  isOwn(ref: ClusterRef): boolean {
    return isSameCluster(ref, this.#ownCluster);
  }

  /**
   * Reads, once, the UID of the cluster that the agent runs in. Another cluster that claims to be the same is then
   * detected.
   *
   * @throws KubeError
   */
  async identifyOwn(signal: AbortSignal): Promise<void> {
    this.#ownUid ??= await readClusterUid(this.#runtime.client, signal);
  }

  /** Keeps a cluster connected until the returned function is called. */
  hold(ref: KnownCluster | undefined): () => void {
    if (ref === undefined || ref.own === true) return () => undefined;
    const key = clusterKey(ref);
    const known = this.#held.get(key);
    const { namespace, name } = ref;
    const held = known ?? new ConnectedCluster(this.#runtime, this.#workload, { namespace, name }, this.#listeners);
    held.users += 1;
    if (known === undefined) {
      // Stored before the cluster reports its nodes, because a listener may hold the same cluster again while it
      // handles one of them.
      this.#held.set(key, held);
      held.start();
    }
    let isHeld = true;
    return () => {
      if (!isHeld) return;
      isHeld = false;
      held.users -= 1;
      if (held.users > 0) return;
      this.#held.delete(key);
      held.close();
    };
  }

  /** Whether the cluster is kept connected. */
  isHeld(ref: ClusterRef | undefined): boolean {
    return ref === undefined || this.#held.has(clusterKey(ref));
  }

  /** Reports every node that is already known, and every change from now on. */
  subscribe(listener: NodeListener): () => void {
    this.#listeners.add(listener);
    const stop = this.#localNodes.subscribe((change) => listener.onNode(undefined, change, true));
    for (const held of this.#held.values()) held.announceNodes(listener);
    return () => {
      stop();
      this.#listeners.delete(listener);
    };
  }

  /** Whether a node of any cluster is the node `localName` of the agent's own cluster. */
  isLocal(cluster: KnownCluster | undefined, name: string | undefined, localName: string | undefined): boolean {
    if (name === undefined || name !== localName) return false;
    return cluster === undefined || this.isOwn(cluster);
  }
}

/** One workload cluster for as long as it is held. */
class ConnectedCluster {
  users = 0;
  readonly #runtime: KubeRuntime;
  readonly #held: HeldCluster;
  readonly #listeners: ReadonlySet<NodeListener>;
  #present: NodeCluster;
  #stopNodes: (() => void) | undefined;

  constructor(runtime: KubeRuntime, clusters: WorkloadClusters, ref: ClusterRef, listeners: ReadonlySet<NodeListener>) {
    this.#runtime = runtime;
    this.#listeners = listeners;
    this.#present = unreachable(runtime, ref, "it is being connected");
    this.#held = clusters.hold(ref, () => this.#update());
  }

  /** Takes the present connection and reports its nodes. */
  start(): void {
    this.#take();
  }

  present(): NodeCluster {
    return this.#present;
  }

  announceNodes(listener: NodeListener): void {
    const { ref, nodes } = this.#present;
    for (const object of nodes.values()) listener.onNode(ref, { type: "added", object }, false);
  }

  close(): void {
    this.#stopNodes?.();
    this.#held.release();
  }

  #update(): void {
    this.#take();
    for (const listener of this.#listeners) listener.onConnection(this.#held.ref);
  }

  /** Takes the present connection. */
  #take(): void {
    const { ref, connection } = this.#held;
    if (connection.state !== "connected") {
      this.#stopNodes?.();
      this.#stopNodes = undefined;
      const why =
        connection.state === "disconnected" ? `${connection.reason}: ${connection.message}` : "it is being connected";
      const isMissing = connection.state === "disconnected" && connection.reason === "KubeconfigMissing";
      const missing = isMissing ? { missingSinceMs: connection.sinceMs } : {};
      this.#present = { ...unreachable(this.#runtime, ref, why), ...missing };
      return;
    }
    const { runtime, nodes, uid } = connection;
    const isKnown = this.#present.problem === undefined && this.#present.runtime === runtime;
    this.#present = { ref, runtime, nodes, uid, problem: undefined };
    if (isKnown) return;
    this.#stopNodes?.();
    let isNews = false;
    this.#stopNodes = nodes.subscribe((change) => {
      for (const listener of this.#listeners) listener.onNode(ref, change, isNews);
    });
    isNews = true;
  }
}

function posing({ namespace, name }: ClusterRef): ClusterProblem {
  const message = `the API server of cluster ${namespace}/${name} claims to be the cluster that ironfence runs in, and ironfence does not trust this claim. If it is true, start ironfence with --own-cluster=${namespace}/${name}. If it is false, do not trust its kubeconfig or its API server`;
  return { reason: "ClusterExchanged", message };
}

function notNamed({ namespace, name }: ClusterRef): ClusterProblem {
  const message = `the remediation began while cluster ${namespace}/${name} counted as the one that ironfence runs in: start ironfence with --own-cluster=${namespace}/${name} to continue it`;
  return { reason: "ClusterExchanged", message };
}

function unreachable(runtime: KubeRuntime, ref: ClusterRef, why: string): NodeCluster {
  const message = `cluster ${ref.namespace}/${ref.name} cannot be reached: ${why}`;
  return clusterWithProblem(runtime, ref, { reason: "ClusterUnreachable", message });
}

/** A cluster with a problem: every read and write fails. */
function clusterWithProblem(runtime: KubeRuntime, ref: ClusterRef, problem: ClusterProblem): NodeCluster {
  const fail = (): Promise<never> => Promise.reject(new KubeError("Unavailable", problem.message));
  const client: KubeClient = {
    get: fail,
    list: fail,
    create: fail,
    patch: fail,
    mergePatch: fail,
    delete: fail,
    discover: fail,
  };
  const nodes: NodeCluster["nodes"] = { get: () => undefined, values: () => [].values() };
  const watch: KubeRuntime["watch"] = () => {
    throw new KubeError("Unavailable", problem.message);
  };
  return { ref, runtime: { ...runtime, client, watch }, nodes, problem };
}
