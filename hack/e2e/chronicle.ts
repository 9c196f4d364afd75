import type { BmcRecord } from "./sushy-emulator.ts";
import type { World } from "./world.ts";

/** The fields of a Node that tests read. */
export interface NodeView {
  metadata: {
    name: string;
    uid: string;
    resourceVersion: string;
    labels?: Record<string, string>;
    annotations?: Record<string, string>;
  };
  spec: { taints?: { key: string; value?: string; effect: string }[]; unschedulable?: boolean };
  status: {
    conditions?: { type: string; status: string; lastTransitionTime?: string }[];
    nodeInfo?: { bootID?: string };
  };
}

/** The fields of a BareMetalRemediation that tests read. */
export interface RemediationView {
  metadata: {
    name: string;
    namespace: string;
    uid: string;
    resourceVersion: string;
    annotations?: Record<string, string>;
    finalizers?: string[];
  };
  status?: {
    phase?: string;
    stateVersion?: number;
    target?: { kind: string; name: string };
    attempt?: { action: string; sent: boolean };
    retryCount?: number;
    conditions?: { type: string; status: string; reason: string; message: string }[];
    timeline?: { step: string; time: string; message?: string }[];
  };
}

/** One change that a watch has received. */
export interface Seen<T> {
  /** Milliseconds since the epoch. */
  atMs: number;
  type: "ADDED" | "MODIFIED" | "DELETED";
  object: T;
}

export const OUT_OF_SERVICE = "node.kubernetes.io/out-of-service";
export const QUARANTINE = "ironfence.io/quarantine";

/** Every version of every node, remediation and pod in a world since the chronicle was opened. */
export interface Chronicle {
  nodes(name: string): Seen<NodeView>[];
  remediations(node: string): Seen<RemediationView>[];
  pods(uid: string): Seen<{ metadata: { uid: string } }>[];
  /** What the BMC of a host has recorded since then. */
  bmc(node: string): Promise<BmcRecord[]>;
  close(): void;
}

/** Collects every change of the objects at a path until `signal` aborts. */
export function followChanges<T>(api: World["api"], path: string, signal: AbortSignal): Seen<T>[] {
  const seen: Seen<T>[] = [];
  void api.watch<T>(
    path,
    ({ type, object, atMs }) => {
      if (type !== "BOOKMARK" && type !== "ERROR") seen.push({ type, object, atMs });
    },
    signal,
  );
  return seen;
}

/** Opens a chronicle. Its first `ADDED` events show the objects as they are then. */
export function openChronicle(world: World): Chronicle {
  const closed = new AbortController();
  const openedMs = Date.now();
  const follow = <T>(path: string): Seen<T>[] => followChanges<T>(world.api, path, closed.signal);
  const nodes = follow<NodeView>("/api/v1/nodes");
  const remediations = follow<RemediationView>("/apis/ironfence.io/v1alpha1/baremetalremediations");
  const pods = follow<{ metadata: { uid: string } }>("/api/v1/pods");
  return {
    nodes: (name) => nodes.filter(({ object }) => object.metadata.name === name),
    remediations: (node) =>
      remediations.filter(
        ({ object }) =>
          (object.metadata.annotations?.["remediation.medik8s.io/node-name"] ?? object.metadata.name) === node,
      ),
    pods: (uid) => pods.filter(({ object }) => object.metadata.uid === uid),
    bmc: async (node) =>
      (await world.bmc.records(world.host(node).systemUuid)).filter((record) => record.atMs >= openedMs),
    close: () => closed.abort(),
  };
}

export function hasTaint(node: NodeView, key: string): boolean {
  return node.spec.taints?.some((taint) => taint.key === key) === true;
}

export function readyOf(node: NodeView): string | undefined {
  return readyCondition(node)?.status;
}

export function readyCondition(node: NodeView): NonNullable<NodeView["status"]["conditions"]>[number] | undefined {
  return node.status.conditions?.find((condition) => condition.type === "Ready");
}

export function conditionOf(remediation: RemediationView | undefined, type: string) {
  return remediation?.status?.conditions?.find((condition) => condition.type === type);
}
