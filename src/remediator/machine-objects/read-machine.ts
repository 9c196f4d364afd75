import type { Machine } from "../../api/cluster-api/cluster-api.ts";
import { CLUSTER_API_GROUP, CLUSTER_API_VERSIONS, readMachine } from "../../api/cluster-api/cluster-api.ts";
import { OKD_MACHINE_GROUP, OKD_MACHINE_VERSIONS, readOkdMachine } from "../../api/okd/okd-machine.ts";
import { isKubeError } from "../../kube/errors.ts";
import type { KubeObject, ObjectMeta } from "../../kube/resource.ts";
import { apiVersionOf } from "../../kube/resource.ts";
import type { KubeRuntime } from "../../kube/runtime.ts";
import { findServed } from "../../kube/objects/served-kind.ts";
import type { MachineRef } from "../../nodes/subject.ts";
import { groupOf, machineOwners, machineResource } from "../../nodes/subject.ts";
import type { MachineReading } from "../machine/model/facts/observations.ts";

/**
 * Reads the one live Machine that owns an object, in any version that is served. Its UID must match the ownerReference.
 */
export async function readOwnerMachine(
  runtime: Pick<KubeRuntime, "client">,
  { namespace = "", ownerReferences }: ObjectMeta,
  signal: AbortSignal,
): Promise<MachineReading> {
  const [owner, second] = machineOwners(ownerReferences);
  if (owner === undefined || second !== undefined) {
    const message = "the remediation needs exactly one Machine as its owner: correct its ownerReferences";
    return { found: false, reason: "SubjectMismatch", message };
  }
  const group = groupOf(owner.apiVersion);
  const versions = group === OKD_MACHINE_GROUP ? OKD_MACHINE_VERSIONS : CLUSTER_API_VERSIONS;
  const type = await findServed(runtime, { group, kind: owner.kind, versions }, signal);
  if (type === undefined) {
    const message = `the API server serves no ${owner.kind} of ${group} in version ${versions.join(" or ")}`;
    return { found: false, reason: "MachineUnreadable", message };
  }
  const { kind, name, uid } = owner;
  return readLiveMachine(runtime, { apiVersion: apiVersionOf(type), kind, namespace, name, uid }, signal);
}

/** Reads a Machine live. A Machine that was created again under the same name counts as gone. */
export async function readLiveMachine(
  { client }: Pick<KubeRuntime, "client">,
  ref: MachineRef,
  signal: AbortSignal,
): Promise<MachineReading> {
  const { namespace, name, uid } = ref;
  const what = `Machine ${namespace}/${name}`;
  try {
    const current = await client.get<KubeObject>(machineResource(ref), { namespace, name }, signal);
    if (current.metadata.uid !== uid) {
      return { found: false, reason: "MachineNotFound", message: `${what} is gone, and another one has its name` };
    }
    if (current.metadata.deletionTimestamp !== undefined) {
      return { found: false, reason: "MachineNotFound", message: `${what} is being deleted` };
    }
    return { found: true, machine: readAnyMachine(current) };
  } catch (error) {
    if (isKubeError(error, "NotFound")) {
      return { found: false, reason: "MachineNotFound", message: `${what} is gone` };
    }
    if (isKubeError(error, "Forbidden")) {
      const message = `${error.message}: give ironfence's service account the permissions of that family`;
      return { found: false, reason: "MachineUnreadable", message };
    }
    throw error;
  }
}

/** Reads a Machine of Cluster API or of OKD. */
export function readAnyMachine(raw: KubeObject): Machine {
  return groupOf(raw.apiVersion) === CLUSTER_API_GROUP ? readMachine(raw) : readOkdMachine(raw);
}
