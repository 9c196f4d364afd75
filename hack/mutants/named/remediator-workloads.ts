import { RELEASE, WORKLOADS } from "./killers.ts";
import { mutantsOf } from "./mutant.ts";
import type { Mutant } from "./mutant.ts";

const mutant = mutantsOf("src/remediator");

export const REMEDIATOR_WORKLOADS_MUTANTS: readonly Mutant[] = [
  mutant(
    "terminating-alone-counts",
    "effects/objects/release-pods",
    "a pod counts whether or not it is terminating",
    "const leaving = pods.filter(mustLeave).length;",
    "const leaving = pods.filter((pod) => mustLeave(pod) && pod.metadata.deletionTimestamp !== undefined).length;",
    RELEASE,
  ),
  mutant(
    "pod-by-name",
    "effects/objects/release-pods",
    "a pod is deleted by its UID, because another one may have its name now",
    "{ guard: { uid }, gracePeriodSeconds: 0 }",
    "{ gracePeriodSeconds: 0 }",
    RELEASE,
  ),
  mutant(
    "finished-pod-made-failed",
    "effects/objects/release-pods",
    "a pod that has changed since it was listed is not marked as failed",
    "await client.mergePatch(PODS, key, { uid, resourceVersion }, { status }",
    "await client.mergePatch(PODS, key, { uid, resourceVersion: undefined as unknown as string }, { status }",
    RELEASE,
  ),
  mutant(
    "release-outlives-its-time",
    "effects/objects/release-pods",
    "no pod is ended after the proof of Off has expired",
    "await releasePod(deps, pod, bounded).catch(",
    "await releasePod(deps, pod, signal).catch(",
    RELEASE,
  ),
  mutant(
    "release-goes-on-after-failure",
    "effects/objects/release-pods",
    "after a failed call, a release ends no further pod, because its time is no longer bounded",
    "if (bounded.aborted || failures.length > 0) return;",
    "if (bounded.aborted) return;",
    RELEASE,
  ),
  mutant(
    "pod-half-deleted",
    "effects/objects/release-pods",
    "a pod that was marked as failed is deleted before the release is over, even if the host comes back",
    "client.delete(PODS, key, { guard: { uid }, gracePeriodSeconds: 0 }, bounded),",
    "client.delete(PODS, key, { guard: { uid }, gracePeriodSeconds: 0 }, signal),",
    RELEASE,
    "test/sim/early-interference.test.ts",
  ),
  mutant(
    "pods-wait-between-writes",
    "effects/objects/release-pods",
    "if the hosts of many nodes fail at once, no pod that was marked as failed waits for the pods of other nodes",
    "  limits.set(client, limit);\n",
    "",
    RELEASE,
  ),
  mutant(
    "release-over-before-deletions",
    "effects/objects/release-pods",
    "a release is over only when all its calls have ended",
    "await Promise.all(workers);\n  const failure",
    "const failure",
    RELEASE,
    "test/sim/early-interference.test.ts",
  ),
  mutant(
    "mirror-pods-deleted",
    "machine/node-patches/pods",
    "pods that mirror static ones stay",
    "if (pod.metadata.annotations?.[MIRROR] !== undefined) return false;",
    "",
    WORKLOADS,
  ),
  mutant(
    "tolerating-pods-deleted",
    "machine/node-patches/pods",
    "pods that tolerate the taint stay",
    "return !(pod.spec.tolerations ?? []).some(toleratesOutOfService);",
    "return true;",
    WORKLOADS,
  ),
];
