import { LEASES, NODES } from "../../../src/api/kubernetes/core-types.ts";
import type { Lease, Node, NodeCondition, Taint } from "../../../src/api/kubernetes/core.ts";
import type { Clock } from "../../../src/runtime/clock.ts";
import { toTime } from "../../../src/runtime/time.ts";
import type { ApiServer } from "../api-server.ts";
import { jsonEqual } from "../json.ts";
import { conditionStatus } from "./cluster-types.ts";
import { every, KeyQueue } from "./key-queue.ts";

const LEASE_NAMESPACE = "kube-node-lease";
const KUBELET_CONDITIONS = ["Ready", "MemoryPressure", "DiskPressure", "PIDPressure"];
const PREFIX = "node.kubernetes.io/";
/** Condition, the status that calls for a taint, and the taint's key. */
const NO_SCHEDULE: readonly (readonly [condition: string, status: string, key: string])[] = [
  ["Ready", "False", `${PREFIX}not-ready`],
  ["Ready", "Unknown", `${PREFIX}unreachable`],
  ["MemoryPressure", "True", `${PREFIX}memory-pressure`],
  ["DiskPressure", "True", `${PREFIX}disk-pressure`],
  ["PIDPressure", "True", `${PREFIX}pid-pressure`],
  ["NetworkUnavailable", "True", `${PREFIX}network-unavailable`],
];
const NO_EXECUTE = NO_SCHEDULE.slice(0, 2);
const UNSCHEDULABLE = `${PREFIX}unschedulable`;

/** What was last received from one kubelet. */
interface Health {
  uid: string;
  renewTime: string | undefined;
  heartbeat: string | undefined;
  receivedMs: number;
}

/**
 * node-lifecycle-controller: sets a node to Unknown if its kubelet updates neither lease nor status, and keeps
 * condition taints in line with conditions. Rate limits and the handling of failed zones are left out.
 */
export function startNodeLifecycle(
  { server, clock }: { server: ApiServer; clock: Clock },
  options: { monitorPeriodMs: number; monitorGracePeriodMs: number },
): () => void {
  const nodes = server.collection<Node>(NODES);
  const leases = server.collection<Lease>(LEASES);
  const healthOf = new Map<string, Health>();

  const monitor = (node: Node): void => {
    const { name, uid } = node.metadata;
    const renewTime = leases.get({ namespace: LEASE_NAMESPACE, name })?.spec.renewTime;
    const heartbeat = node.status.conditions?.find(({ type }) => type === "Ready")?.lastHeartbeatTime;
    const known = healthOf.get(name);
    const isNews = known?.uid !== uid || known.renewTime !== renewTime || known.heartbeat !== heartbeat;
    const receivedMs = isNews ? clock.monotonicMs() : known.receivedMs;
    healthOf.set(name, { uid, renewTime, heartbeat, receivedMs });
    if (clock.monotonicMs() - receivedMs <= options.monitorGracePeriodMs) return;
    const conditions = unknownConditions(node.status.conditions ?? [], toTime(clock.nowMs()));
    if (jsonEqual(conditions, node.status.conditions)) return;
    nodes.mergePatch({ name }, { metadata: { uid }, status: { conditions } }, "status");
  };

  const taint = (name: string): undefined => {
    const node = nodes.get({ name });
    if (node === undefined) return;
    const current = node.spec.taints ?? [];
    const wanted = wantedTaints(node, toTime(clock.nowMs()));
    if (!jsonEqual(wanted, current)) {
      nodes.mergePatch({ name }, { metadata: { uid: node.metadata.uid }, spec: { taints: wanted } });
    }
  };

  const queue = new KeyQueue(clock, taint);
  const unsubscribe = nodes.subscribe(({ type, object }) => {
    if (type === "DELETED") healthOf.delete(object.metadata.name);
    else queue.enqueue(object.metadata.name, 0);
  });
  const stopSweep = every(clock, options.monitorPeriodMs, () => {
    for (const node of nodes.values()) monitor(node);
  });
  return () => {
    unsubscribe();
    stopSweep();
    queue.stop();
  };
}

function unknownConditions(conditions: readonly NodeCondition[], now: string): NodeCondition[] {
  const changed = conditions.map((condition): NodeCondition => {
    if (!KUBELET_CONDITIONS.includes(condition.type) || condition.status === "Unknown") return condition;
    const message = "Kubelet stopped posting node status.";
    return { ...condition, status: "Unknown", reason: "NodeStatusUnknown", message, lastTransitionTime: now };
  });
  const missing = KUBELET_CONDITIONS.filter((type) => !conditions.some((condition) => condition.type === type));
  const added = missing.map((type): NodeCondition => {
    const message = "Kubelet never posted node status.";
    return { type, status: "Unknown", reason: "NodeStatusNeverUpdated", message, lastTransitionTime: now };
  });
  return [...changed, ...added];
}

/** The taints that a node should have: condition taints for its conditions, and all other taints unchanged. */
function wantedTaints(node: Node, now: string): Taint[] {
  const current = node.spec.taints ?? [];
  const calledFor = (rules: typeof NO_SCHEDULE): string[] =>
    rules.filter(([type, status]) => conditionStatus(node, type) === status).map(([, , key]) => key);
  const noSchedule = [...calledFor(NO_SCHEDULE), ...(node.spec.unschedulable === true ? [UNSCHEDULABLE] : [])];
  const noExecute = calledFor(NO_EXECUTE);
  const managed = [...NO_SCHEDULE.map(([, , key]) => key), UNSCHEDULABLE];
  const isStale = ({ key, effect }: Taint): boolean =>
    managed.includes(key) &&
    ((effect === "NoSchedule" && !noSchedule.includes(key)) || (effect === "NoExecute" && !noExecute.includes(key)));
  const wanted: Taint[] = [
    ...noSchedule.map((key) => ({ key, effect: "NoSchedule", timeAdded: now })),
    ...noExecute.map((key) => ({ key, effect: "NoExecute", timeAdded: now })),
  ];
  const isThere = ({ key, effect }: Taint): boolean =>
    current.some((taint) => taint.key === key && taint.effect === effect);
  return [...current.filter((taint) => !isStale(taint)), ...wanted.filter((taint) => !isThere(taint))];
}
