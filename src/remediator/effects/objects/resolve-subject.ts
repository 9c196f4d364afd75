import { CLUSTER_API_GROUP, CLUSTER_API_VERSIONS } from "../../../api/cluster-api/cluster-api.ts";
import { isKubeError } from "../../../kube/errors.ts";
import { findObject } from "../../../kube/objects/find-object.ts";
import { findServed } from "../../../kube/objects/served-kind.ts";
import type { KubeObject } from "../../../kube/resource.ts";
import { parseTimeMs } from "../../../runtime/time.ts";
import type { EffectContext, EffectSession } from "../context/effect-context.ts";
import { readOwnerMachine } from "../../machine-objects/read-machine.ts";
import type { MachineReading } from "../../machine/model/facts/observations.ts";
import { clusterOf } from "../../../nodes/subject.ts";

/** Finds out which node of which cluster the remediation is about, by a live read of the Machine that owns it. */
export async function resolveSubject(context: EffectContext, signal: AbortSignal): Promise<void> {
  const { runtime, session } = context;
  const { metadata } = session.remediation;
  const read = await readOwnerMachine(runtime, metadata, signal);
  const machine = read.found && clusterOf(read.machine) !== undefined ? await identified(context, read, signal) : read;
  session.observe({ type: "MachineRead", machine, atMs: session.now().monotonicMs });
}

/** Returns the Machine once the agent's own cluster is known, because the cluster of the Machine may be the same. */
async function identified(context: EffectContext, read: MachineReading, signal: AbortSignal): Promise<MachineReading> {
  try {
    await context.identifyOwnCluster(signal);
    return read;
  } catch (error) {
    if (!isKubeError(error, "Forbidden")) throw error;
    return {
      found: false,
      reason: "MachineUnreadable",
      message: `${error.message}: apply deploy/families/cluster-api`,
    };
  }
}

/** Reads whether the Cluster still exists. If the agent has no permission to read it, it counts as existing. */
export async function findCluster({ runtime, session }: EffectContext, signal: AbortSignal): Promise<void> {
  const { cluster } = session.subject;
  const kind = { group: CLUSTER_API_GROUP, kind: "Cluster", versions: CLUSTER_API_VERSIONS };
  let gone = false;
  try {
    const type = cluster === undefined ? undefined : await findServed(runtime, kind, signal);
    if (cluster !== undefined && type !== undefined) {
      const { namespace, name } = cluster;
      const found = await findObject(runtime.client, type, { namespace, name }, signal);
      gone = found === undefined || isAnotherCluster(session, found);
    }
  } catch (error) {
    if (!isKubeError(error, "Forbidden")) throw error;
  }
  session.observe({ type: "ClusterChecked", isGone: gone, atMs: session.now().monotonicMs });
}

/**
 * Whether a Cluster was created again under its name since: it is younger than the remediation, and another cluster
 * answers.
 */
function isAnotherCluster({ remediation, cluster }: EffectSession, { metadata }: KubeObject): boolean {
  const madeAtMs = parseTimeMs(metadata.creationTimestamp) ?? -Infinity;
  const begunAtMs = parseTimeMs(remediation.metadata.creationTimestamp) ?? Infinity;
  return cluster.problem?.reason === "ClusterExchanged" && madeAtMs > begunAtMs;
}
