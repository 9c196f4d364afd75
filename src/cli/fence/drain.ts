import { PODS } from "../../api/kubernetes/core-types.ts";
import type { Pod } from "../../api/kubernetes/core.ts";
import { isKubeError } from "../../kube/errors.ts";
import type { KubeRuntime } from "../../kube/runtime.ts";
import { keyOf, nameOf } from "../../kube/watched.ts";
import { isFinished } from "../../remediator/machine/node-patches/pods.ts";
import { sleep } from "../../runtime/clock.ts";
import { CommandFailure } from "../errors/failures.ts";

const MIRROR = "kubernetes.io/config.mirror";
const POLL_MS = 1_000;
/** How many names a message has. */
const NAMES_MAX = 5;

/** Pods that a drain evicts: neither those of a DaemonSet, nor static ones, nor those that have finished. */
export function isEvicted(pod: Pod): boolean {
  const { annotations, ownerReferences = [] } = pod.metadata;
  const isOfDaemonSet = ownerReferences.some(({ kind, controller }) => kind === "DaemonSet" && controller === true);
  return !isOfDaemonSet && annotations?.[MIRROR] === undefined && !isFinished(pod);
}

/** Pods that no controller creates again once they are evicted. */
export function isBare({ metadata: { ownerReferences = [] } }: Pod): boolean {
  return !ownerReferences.some(({ controller }) => controller === true);
}

/** Pods that lose data, because they have a volume that exists only on the node. */
export function losesData({ spec: { volumes = [] } }: Pod): boolean {
  return volumes.some((volume) => "emptyDir" in volume);
}

/** The pods of a node that a drain evicts. */
export async function podsToEvict(runtime: KubeRuntime, nodeName: string, signal: AbortSignal): Promise<Pod[]> {
  const options = { fieldSelector: `spec.nodeName=${nodeName}` };
  return (await runtime.client.list<Pod>(PODS, options, signal)).items.filter(isEvicted);
}

/**
 * Evicts the pods of a node, and waits until they are gone. The API server refuses an eviction that a
 * PodDisruptionBudget does not allow. The eviction is then tried again until `timeoutMs` have passed. If a pod without
 * a controller comes to the node meanwhile, the drain fails.
 *
 * @param options.check runs before each round of evictions. If it throws, the drain ends.
 * @returns how many pods were evicted.
 * @throws CommandFailure that names the pods that are left.
 */
export async function drainNode(
  runtime: KubeRuntime,
  nodeName: string,
  options: { timeoutMs: number; onWait: (what: string) => void; check: () => Promise<void> },
  signal: AbortSignal,
): Promise<number> {
  const { clock } = runtime;
  const endMs = clock.monotonicMs() + options.timeoutMs;
  const evicted = new Set<string>();
  for (;;) {
    await options.check();
    const left = await podsToEvict(runtime, nodeName, signal);
    if (left.length === 0) return evicted.size;
    const staying = left.filter(({ metadata }) => metadata.deletionTimestamp === undefined);
    const bare = staying.filter(isBare);
    if (bare.length > 0) {
      throw new CommandFailure(
        "DrainUnfinished",
        `nothing creates these pods again, and they came to node ${nodeName} during the drain: ${namesOf(bare)}; move them, then run the command again`,
      );
    }
    const refusals: string[] = [];
    for (const pod of staying) {
      const refusal = await evict(runtime, pod, signal);
      if (refusal === undefined) evicted.add(pod.metadata.uid);
      else refusals.push(refusal);
    }
    const what = `${left.length} pods to leave: ${namesOf(left)}${refusals.length === 0 ? "" : `; ${refusals[0]}`}`;
    if (clock.monotonicMs() >= endMs) {
      throw new CommandFailure("DrainUnfinished", `node ${nodeName} was not drained in time, with ${what}`);
    }
    options.onWait(what);
    await sleep(clock, POLL_MS, signal);
  }
}

/** @returns why the API server refuses the eviction for now; undefined if the pod leaves. */
async function evict({ client }: KubeRuntime, pod: Pod, signal: AbortSignal): Promise<string | undefined> {
  const { name, namespace, uid } = pod.metadata;
  const eviction = {
    apiVersion: "policy/v1",
    kind: "Eviction",
    metadata: { name, namespace },
    deleteOptions: { preconditions: { uid } },
  };
  try {
    await client.create<typeof eviction & Pod>(PODS, eviction as never, { subresource: "eviction" }, signal);
    return undefined;
  } catch (error) {
    // The pod is gone, or another pod has its name.
    if (isKubeError(error, "NotFound", "Conflict")) return undefined;
    if (isKubeError(error, "TooManyRequests")) return `pod ${nameOf(pod)}: ${error.message}`;
    throw error;
  }
}

/** The first names, and how many more there are. */
export function namesOf(pods: readonly Pod[]): string {
  const names = pods.slice(0, NAMES_MAX).map((pod) => `${keyOf(pod).namespace}/${pod.metadata.name}`);
  return [...names, ...(pods.length > NAMES_MAX ? [`${pods.length - NAMES_MAX} more`] : [])].join(", ");
}
