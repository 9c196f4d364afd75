import type { ConditionWrite } from "../../api/cluster-api/machine-conditions.ts";
import { changeConditions } from "../../api/cluster-api/machine-conditions.ts";
import { CLUSTER_API_GROUP, CLUSTER_API_VERSIONS } from "../../api/cluster-api/cluster-api.ts";
import { isKubeError } from "../../kube/errors.ts";
import type { KubeObject, ResourceType } from "../../kube/resource.ts";
import type { KubeRuntime } from "../../kube/runtime.ts";
import { setField } from "../../kube/objects/set-field.ts";
import type { MachineRef } from "../../nodes/subject.ts";

/** Tries of one guarded patch: the controllers of Cluster API write at the same time. */
const TRIES_MAX = 5;

/**
 * Sets OwnerRemediated=False on a Machine of Cluster API: from now on its owner, a MachineSet or the controller of the
 * control plane, decides whether to replace it. The condition is set in both forms, because controllers of different
 * versions read different ones. Does nothing if the Machine is gone, or is one of OKD, whose owners do not know this
 * condition.
 */
export async function handToOwner(
  runtime: Pick<KubeRuntime, "client" | "clock">,
  machine: MachineRef,
  message: string,
  signal: AbortSignal,
): Promise<void> {
  if (!machine.apiVersion.startsWith(`${CLUSTER_API_GROUP}/`)) return;
  const type = await machineType(runtime, machine, signal);
  const key = { namespace: machine.namespace, name: machine.name };
  for (let tried = 1; ; tried += 1) {
    try {
      const raw = await runtime.client.get<KubeObject>(type, key, signal);
      if (raw.metadata.uid !== machine.uid) return;
      const changes = changeConditions(raw, [ownerRemediated(message)], [], runtime.clock.nowMs());
      if (changes.length === 0) return;
      const { uid, resourceVersion } = raw.metadata;
      const operations = changes.flatMap(({ path, conditions }) => setField(raw, path, conditions));
      await runtime.client.patch(type, key, { uid, resourceVersion }, operations, { subresource: "status" }, signal);
      return;
    } catch (error) {
      if (isKubeError(error, "NotFound")) return;
      if (tried >= TRIES_MAX || !isKubeError(error, "Conflict")) throw error;
    }
  }
}

/**
 * The type by which to read the Machine: the newest version of Cluster API that is served, because its conditions are
 * the ones that controllers read, otherwise the version of the reference.
 */
export async function machineType(
  { client }: Pick<KubeRuntime, "client">,
  { apiVersion, kind }: Pick<MachineRef, "apiVersion" | "kind">,
  signal: AbortSignal,
): Promise<ResourceType> {
  const isClusterApi = apiVersion.startsWith(`${CLUSTER_API_GROUP}/`);
  const newest = isClusterApi ? CLUSTER_API_VERSIONS.map((version) => `${CLUSTER_API_GROUP}/${version}`) : [];
  for (const candidate of [...newest, apiVersion]) {
    const type = await client.discover(candidate, kind, signal);
    if (type !== undefined) return type;
  }
  throw new Error(`the API server does not serve ${kind} of ${apiVersion}`);
}

function ownerRemediated(message: string): ConditionWrite {
  const reason = "WaitingForRemediation";
  return {
    type: "OwnerRemediated",
    status: "False",
    reason,
    message,
    v1beta1: { reason, message, severity: "Warning" },
  };
}
