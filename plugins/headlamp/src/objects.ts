// What the views show of each object. Pure, and without Headlamp: ironfence's own tests run it as well.

/** How Headlamp colors something; empty for what is neither good nor bad. */
export type Health = "success" | "warning" | "error" | "";

export interface Condition {
  type: string;
  status: string;
  reason?: string | undefined;
  message?: string | undefined;
  lastTransitionTime?: string | undefined;
  observedGeneration?: number | undefined;
}

interface Metadata {
  uid?: string | undefined;
  name: string;
  namespace?: string | undefined;
  generation?: number | undefined;
  creationTimestamp?: string | undefined;
  annotations?: Record<string, string> | undefined;
  ownerReferences?: { uid: string }[] | undefined;
}

/** As much of a BareMetalRemediation as the views show. */
export interface Remediation {
  metadata: Metadata;
  spec?: { strategy?: { type?: string | undefined } | undefined } | undefined;
  status?: {
    phase?: string | undefined;
    node?: { name?: string | undefined; cluster?: ClusterRef | undefined; zone?: string | undefined } | undefined;
    retryCount?: number | undefined;
    conditions?: Condition[] | undefined;
    timeline?: { step: string; time: string; message?: string | undefined }[] | undefined;
  };
}

/** As much of a FencingTarget as the views show. */
export interface Target {
  metadata: Metadata;
  spec: {
    nodeName: string;
    clusterRef?: ClusterRef | undefined;
    maintenance?: boolean | undefined;
    devices?: { address: string; level?: number | undefined }[] | undefined;
  };
  status?: {
    powerState?: string | undefined;
    lastProbeTime?: string | undefined;
    conditions?: Condition[] | undefined;
    outcomes?: { time: string; result: string; reason: string; message: string }[] | undefined;
  };
}

/** As much of a NodeHealthCheck as the views show. */
export interface HealthCheck {
  metadata: Metadata;
  status?: {
    observedNodes?: number | undefined;
    healthyNodes?: number | undefined;
    unhealthyNodes?: { name: string }[] | undefined;
    phase?: string | undefined;
    reason?: string | undefined;
    conditions?: Condition[] | undefined;
  };
}

interface ClusterRef {
  namespace: string;
  name: string;
}

/** One object in one line. */
export interface Summary {
  health: Health;
  /** What the object is doing, or what state it is in. */
  state: string;
  reason: string;
  message: string;
}

const NODE_NAME = "remediation.medik8s.io/node-name";

/** The node of the cluster itself that an object is about; undefined for a node of a workload cluster. */
export function nodeOf(object: Remediation | Target): string | undefined {
  if ("spec" in object && object.spec !== undefined && "nodeName" in object.spec) {
    return object.spec.clusterRef === undefined ? object.spec.nodeName : undefined;
  }
  const { metadata, status } = object as Remediation;
  if (status?.node?.cluster !== undefined) return undefined;
  return status?.node?.name ?? metadata.annotations?.[NODE_NAME] ?? metadata.name;
}

/** The node with its cluster before it, if that is another one. */
export function nodeText(object: Remediation | Target): string {
  const local = nodeOf(object);
  if (local !== undefined) return local;
  const { cluster, name } =
    "nodeName" in (object.spec ?? {})
      ? { cluster: (object as Target).spec.clusterRef, name: (object as Target).spec.nodeName }
      : {
          cluster: (object as Remediation).status?.node?.cluster,
          name: (object as Remediation).status?.node?.name ?? "-",
        };
  return `${cluster?.namespace ?? ""}/${cluster?.name ?? ""}/${name}`;
}

/** What a remediation does, waits for, or has come to. */
export function remediationSummary({ status }: Remediation): Summary {
  const succeeded = conditionOf(status?.conditions, "Succeeded");
  const processing = conditionOf(status?.conditions, "Processing");
  const isOver = succeeded !== undefined && succeeded.status !== "Unknown";
  const said = isOver ? succeeded : (processing ?? succeeded);
  const health = !isOver ? "warning" : succeeded.status === "True" ? "success" : "error";
  return { health, state: status?.phase ?? "Resolving", ...textOf(said, "no agent has begun it yet") };
}

/**
 * Whether the host of a target could be powered off, by its last probe. It agrees with `judgeTarget` of ironfence, but
 * for the age of the probe.
 */
export function targetSummary({ metadata, spec, status }: Target): Summary {
  const ready = conditionOf(status?.conditions, "Ready");
  if (spec.maintenance === true) {
    return { health: "warning", state: "no", reason: "Maintenance", message: "spec.maintenance is true" };
  }
  if (ready === undefined)
    return { health: "warning", state: "unknown", ...textOf(ready, "it has not been probed yet") };
  if (ready.status !== "True") return { health: "error", state: "no", ...textOf(ready, "") };
  if (ready.observedGeneration !== metadata.generation) {
    const message = "it has not been probed since its spec was changed";
    return { health: "warning", state: "unknown", reason: "NotProbed", message };
  }
  return { health: ready.reason === "Degraded" ? "warning" : "success", state: "yes", ...textOf(ready, "") };
}

/** Whether a health check works, and whether it holds something. */
export function healthCheckSummary({ status }: HealthCheck): Summary {
  const disabled = conditionOf(status?.conditions, "Disabled");
  const state = status?.phase ?? "-";
  if (disabled?.status === "True") return { health: "error", state: "Disabled", ...textOf(disabled, "") };
  if (status === undefined) return { health: "warning", state, reason: "", message: "no agent has read it yet" };
  const isQuiet = state === "Enabled" && (status.unhealthyNodes ?? []).length === 0;
  return { health: isQuiet ? "success" : "warning", state, reason: "", message: status.reason ?? "" };
}

/** How many nodes have a target that could be used. A node counts once, and by the worst of its targets. */
export function countNodes(
  nodes: readonly NodeObject[],
  targets: readonly Target[],
): { usable: number; unusable: number; missing: number; unknown: number } {
  const statesOf = new Map<string, string[]>();
  for (const target of targets) {
    const node = nodeOf(target);
    if (node === undefined) continue;
    statesOf.set(node, [...(statesOf.get(node) ?? []), targetSummary(target).state]);
  }
  const counts = { usable: 0, unusable: 0, missing: 0, unknown: 0 };
  for (const { metadata } of nodes) {
    const states = statesOf.get(metadata.name) ?? [];
    if (states.length === 0) counts.missing += 1;
    else if (states.includes("no")) counts.unusable += 1;
    else if (states.includes("unknown")) counts.unknown += 1;
    else counts.usable += 1;
  }
  return counts;
}

/** An edge of the map, by the UIDs of its ends. */
export interface Edge {
  id: string;
  source: string;
  target: string;
  label: string;
}

interface NodeObject {
  metadata: { uid?: string; name: string };
}

/** How the objects hang together: check → remediation → node, and target → node. */
export function edgesOf(objects: {
  nodes: readonly NodeObject[];
  targets: readonly Target[];
  remediations: readonly Remediation[];
  checks: readonly HealthCheck[];
}): Edge[] {
  const { nodes, targets, remediations, checks } = objects;
  const uidOfNode = new Map(nodes.map(({ metadata }) => [metadata.name, metadata.uid]));
  const checkUids = new Set(checks.map(({ metadata }) => metadata.uid));
  const toNode = (object: Remediation | Target, label: string): Edge[] =>
    edge(object.metadata.uid, uidOfNode.get(nodeOf(object) ?? ""), label);
  const fromCheck = ({ metadata }: Remediation): Edge[] =>
    (metadata.ownerReferences ?? []).flatMap(({ uid }) =>
      checkUids.has(uid) ? edge(uid, metadata.uid, "has started") : [],
    );
  return [
    ...targets.flatMap((target) => toNode(target, "powers")),
    ...remediations.flatMap((remediation) => [...toNode(remediation, "remediates"), ...fromCheck(remediation)]),
    ...checks.flatMap(({ metadata, status }) =>
      (status?.unhealthyNodes ?? []).flatMap(({ name }) => edge(metadata.uid, uidOfNode.get(name), "finds unhealthy")),
    ),
  ];
}

function edge(source: string | undefined, target: string | undefined, label: string): Edge[] {
  return source === undefined || target === undefined ? [] : [{ id: `${source}-${target}`, source, target, label }];
}

function conditionOf(conditions: readonly Condition[] | undefined, type: string): Condition | undefined {
  return conditions?.find((condition) => condition.type === type);
}

function textOf(said: Condition | undefined, otherwise: string): { reason: string; message: string } {
  return { reason: said?.reason ?? "", message: said?.message ?? otherwise };
}
