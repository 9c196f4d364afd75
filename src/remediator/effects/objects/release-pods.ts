import { PERSISTENT_VOLUMES, PODS } from "../../../api/kubernetes/core-types.ts";
import type { PersistentVolume, Pod, VolumeAttachment } from "../../../api/kubernetes/core.ts";
import type { KubeClient } from "../../../kube/client.ts";
import { isKubeError } from "../../../kube/errors.ts";
import { keyOf } from "../../../kube/watched.ts";
import type { Clock } from "../../../runtime/clock.ts";
import type { RatePermits } from "../../early/rate-permits.ts";
import { sleep } from "../../../runtime/clock.ts";
import { DeadlineError, withDeadline } from "../../../runtime/deadline.ts";
import { Semaphore } from "../../../runtime/semaphore.ts";
import { toTime } from "../../../runtime/time.ts";
import { listAttachments } from "./volume-attachments.ts";
import { attachmentsOf, volumeClaimsOf, failedStatus, isFinished, mustLeave } from "../../machine/node-patches/pods.ts";

/**
 * How many pods of one cluster are ended or listed at the same time, by all releases together. More would wait for a
 * connection between the two writes of each pod.
 */
const PARALLEL_MAX = 16;

/** By the client of a cluster. */
const limits = new WeakMap<KubeClient, Semaphore>();

function limitOf(client: KubeClient): Semaphore {
  const limit = limits.get(client) ?? new Semaphore(PARALLEL_MAX);
  limits.set(client, limit);
  return limit;
}

/**
 * How long the deletion of a pod may take after its status was set to Failed. The release waits for it even if it is
 * aborted: a pod between the two writes stays on the node and does not run.
 */
const DELETION_MAX_MS = 2_000;

/** How long a write without a permit waits before it asks again. */
const PERMIT_WAIT_MS = 20;

interface ReleaseDeps {
  client: KubeClient;
  clock: Clock;
  /** Bounds the writes of all releases that share it; without it they are not bounded. */
  writes?: RatePermits | undefined;
}

/** The pods bound to a node, live. */
async function listPods(client: KubeClient, nodeName: string, signal: AbortSignal): Promise<Pod[]> {
  const options = { fieldSelector: `spec.nodeName=${nodeName}`, bulk: true };
  return (await limitOf(client).run(signal, () => client.list<Pod>(PODS, options, signal))).items;
}

/**
 * Ends the pods of a host that is proven off, as the pod garbage collector of Kubernetes would within 20 s: status
 * Failed with DisruptionTarget (a Job that only replaces failed pods would otherwise create none), then deletion
 * without a grace period. Pods that are left after `withinMs` are ended by the next try, for which the host must be
 * proven off again. When this function ends, all its calls have ended too.
 *
 * @returns how many pods had to leave; 0 if that was not read in time.
 */
export async function releasePods(
  deps: ReleaseDeps,
  nodeName: string,
  withinMs: number,
  signal: AbortSignal,
): Promise<number> {
  let found = 0;
  let workers: Promise<void>[] = [];
  const failures: unknown[] = [];
  try {
    await withDeadline(deps.clock, `releasing the pods of ${nodeName}`, withinMs, signal, async (bounded) => {
      const pods = await listPods(deps.client, nodeName, bounded);
      const bound = pods.filter(mustLeave);
      found = bound.length;
      const leaving = bound.filter((pod) => !isBeingKilled(pod)).values();
      const isOver = (): boolean => bounded.aborted || failures.length > 0;
      const worker = async (): Promise<void> => {
        for (const pod of leaving) {
          if (isOver()) return;
          await whenAllowed(deps, bounded, async () => {
            if (isOver()) return;
            await releasePod(deps, pod, bounded).catch((error: unknown) => {
              // After an abort, `withDeadline` throws its reason.
              if (!bounded.aborted) failures.push(error);
            });
          });
        }
      };
      workers = Array.from({ length: PARALLEL_MAX }, worker);
      await Promise.all(workers);
    });
  } catch (error) {
    failures.unshift(error);
  }
  await Promise.all(workers);
  const failure = failures.find((error) => !(error instanceof DeadlineError));
  if (failure !== undefined) throw failure;
  return found;
}

/** Whether a pod was already deleted without a grace period, and only a finalizer of another party keeps it. */
function isBeingKilled(pod: Pod): boolean {
  return pod.metadata.deletionTimestamp !== undefined && pod.metadata.deletionGracePeriodSeconds === 0;
}

/** Runs `work` as soon as one more pod may be ended. Does not run it if `signal` aborts before that. */
async function whenAllowed(
  { client, clock, writes }: ReleaseDeps,
  signal: AbortSignal,
  work: () => Promise<void>,
): Promise<void> {
  try {
    // A pod takes two writes. It waits for both permits first, so that no pod is left between them.
    while (writes?.take(2) === false) await sleep(clock, PERMIT_WAIT_MS, signal);
    await limitOf(client).run(signal, work);
  } catch (error) {
    if (!signal.aborted) throw error;
  }
}

async function releasePod({ client, clock }: ReleaseDeps, pod: Pod, signal: AbortSignal): Promise<void> {
  const { uid, resourceVersion } = pod.metadata;
  const key = keyOf(pod);
  try {
    if (!isFinished(pod)) {
      const status = failedStatus(pod, toTime(clock.nowMs()));
      const options = { subresource: "status", bulk: true };
      await client.mergePatch(PODS, key, { uid, resourceVersion }, { status }, options, signal);
    }
    const { signal: unaborted } = new AbortController();
    await withDeadline(clock, `deleting pod ${pod.metadata.name}`, DELETION_MAX_MS, unaborted, (bounded) =>
      client.delete(PODS, key, { guard: { uid }, gracePeriodSeconds: 0, bulk: true }, bounded),
    );
  } catch (error) {
    // Gone, or changed: the count that follows shows whether to try again.
    if (!isKubeError(error, "NotFound", "Conflict")) throw error;
  }
}

/**
 * Counts by live lists what is still bound to the node. Volume attachments are counted only if no pod is left, because
 * they end after the pods.
 */
export async function countBound(
  client: KubeClient,
  nodeName: string,
  signal: AbortSignal,
): Promise<{ pods: number; attachments: number }> {
  const pods = await listPods(client, nodeName, signal);
  const leaving = pods.filter(mustLeave).length;
  if (leaving > 0) return { pods: leaving, attachments: 0 };
  const attachments = attachmentsOf(nodeName, await listAttachments(client, signal));
  const staying = volumeClaimsOf(pods);
  if (staying.size === 0) return { pods: 0, attachments: attachments.length };
  let bound = 0;
  for (const attachment of attachments) {
    if (!staying.has((await claimOf(client, attachment, signal)) ?? "")) bound += 1;
  }
  return { pods: 0, attachments: bound };
}

/** `namespace/name` of the claim whose volume is attached; undefined if there is none. */
async function claimOf(
  client: KubeClient,
  attachment: VolumeAttachment,
  signal: AbortSignal,
): Promise<string | undefined> {
  const name = attachment.spec.source.persistentVolumeName;
  if (name === undefined) return undefined;
  try {
    const { spec } = await client.get<PersistentVolume>(PERSISTENT_VOLUMES, { name }, signal);
    return spec.claimRef === undefined ? undefined : `${spec.claimRef.namespace ?? ""}/${spec.claimRef.name ?? ""}`;
  } catch (error) {
    if (isKubeError(error, "NotFound")) return undefined;
    throw error;
  }
}
