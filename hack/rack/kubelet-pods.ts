import type { Node, NodeCondition, Pod, Taint, Toleration } from "../../src/api/kubernetes/core.ts";
import { NODES, PODS } from "../../src/api/kubernetes/core-types.ts";
import type { ObjectKey } from "../../src/kube/client.ts";
import { isKubeError } from "../../src/kube/errors.ts";
import type { Clock } from "../../src/runtime/clock.ts";
import { toTime } from "../../src/runtime/time.ts";
import type { Host } from "./host.ts";
import type { KubeletClient } from "./kubelet.ts";

// What a kubelet does for the pods bound to its node. `Host.workloads` has the pods that really run.

const MIRROR_POD = "kubernetes.io/config.mirror";

export interface PodDeps {
  client: KubeletClient;
  clock: Clock;
  /** Whether the volumes of claims (`namespace/name`) are attached to the host. */
  areAttached: (host: string, claims: readonly string[]) => boolean;
}

/** Reads the pods once: starts new ones, stops terminating ones, and kills those that the API no longer has. */
export async function syncPods(deps: PodDeps, host: Host, signal: AbortSignal): Promise<void> {
  const { client, clock } = deps;
  const { items } = await client.list<Pod>(PODS, { fieldSelector: `spec.nodeName=${host.name}` }, signal);
  // The host may have frozen before the answer came. A frozen kubelet starts and stops nothing.
  signal.throwIfAborted();
  const known = new Set(items.map((pod) => pod.metadata.uid));
  for (const uid of host.workloads.keys()) {
    if (!known.has(uid)) host.workloads.delete(uid);
  }

  let taints: readonly Taint[] | undefined;
  for (const pod of items) {
    try {
      if (pod.metadata.deletionTimestamp !== undefined) await finishPod(client, host, pod, signal);
      else if (!isTerminal(pod) && host.workloads.has(pod.metadata.uid))
        await reportRunning(client, clock, pod, signal);
      else if (!isTerminal(pod)) {
        taints ??= (await client.get<Node>(NODES, { name: host.name }, signal)).spec.taints ?? [];
        await admitPod(deps, host, pod, taints, signal);
      }
    } catch (error) {
      // The pod was changed or deleted after the list. The next list shows its state.
      if (!isKubeError(error, "Conflict", "NotFound", "Invalid")) throw error;
    }
  }
}

/** Stops a terminating pod, and deletes its object without a grace period. */
async function finishPod(client: KubeletClient, host: Host, pod: Pod, signal: AbortSignal): Promise<void> {
  host.workloads.delete(pod.metadata.uid);
  await client.delete(PODS, keyOf(pod), { guard: { uid: pod.metadata.uid }, gracePeriodSeconds: 0 }, signal);
}

/**
 * Starts a pod that is new in this boot. Like a real kubelet, it rejects the pod if it does not tolerate a NoExecute
 * taint.
 */
async function admitPod(
  { client, clock, areAttached }: PodDeps,
  host: Host,
  pod: Pod,
  taints: readonly Taint[],
  signal: AbortSignal,
): Promise<void> {
  signal.throwIfAborted();
  const { uid, namespace, name } = pod.metadata;
  if (!isMirror(pod) && taints.some((taint) => repels(taint, pod))) {
    await postPodStatus(client, pod, signal, {
      phase: "Failed",
      reason: "TaintToleration",
      message: "Predicate TaintToleration failed: node(s) had taints that the pod didn't tolerate",
    });
    return;
  }
  const claims = (pod.spec.volumes ?? []).flatMap(({ persistentVolumeClaim }) =>
    persistentVolumeClaim === undefined ? [] : [`${namespace}/${persistentVolumeClaim.claimName}`],
  );
  if (!areAttached(host.name, claims)) return;
  host.workloads.set(uid, { pod: `${namespace}/${name}`, claims });
  await reportRunning(client, clock, pod, signal);
}

async function reportRunning(client: KubeletClient, clock: Clock, pod: Pod, signal: AbortSignal): Promise<void> {
  const posted = pod.status?.conditions ?? [];
  const ready = posted.some(({ type, status }) => type === "Ready" && status === "True");
  if (pod.status?.phase === "Running" && ready) return;
  const now = toTime(clock.nowMs());
  const types = ["PodReadyToStartContainers", "Initialized", "ContainersReady", "Ready"];
  const own = types.map((type): NodeCondition => ({ type, status: "True", lastTransitionTime: now }));
  const conditions = [...posted.filter(({ type }) => !types.includes(type)), ...own];
  await postPodStatus(client, pod, signal, { phase: "Running", startTime: now, conditions });
}

async function postPodStatus(
  client: KubeletClient,
  pod: Pod,
  signal: AbortSignal,
  status: Record<string, unknown>,
): Promise<void> {
  const { uid, resourceVersion } = pod.metadata;
  const guard = { uid, resourceVersion };
  await client.mergePatch(PODS, keyOf(pod), guard, { status }, { subresource: "status" }, signal);
}

function keyOf(pod: Pod): ObjectKey {
  return { namespace: pod.metadata.namespace, name: pod.metadata.name };
}

function isTerminal(pod: Pod): boolean {
  return pod.status?.phase === "Succeeded" || pod.status?.phase === "Failed";
}

function isMirror(pod: Pod): boolean {
  return pod.metadata.annotations?.[MIRROR_POD] !== undefined;
}

function repels(taint: Taint, pod: Pod): boolean {
  return (
    taint.effect === "NoExecute" && !(pod.spec.tolerations ?? []).some((toleration) => tolerates(toleration, taint))
  );
}

function tolerates(toleration: Toleration, taint: Taint): boolean {
  if (toleration.effect !== undefined && toleration.effect !== "" && toleration.effect !== taint.effect) return false;
  const key = toleration.key ?? "";
  if (toleration.operator === "Exists") return key === "" || key === taint.key;
  return key === taint.key && (toleration.value ?? "") === (taint.value ?? "");
}
