import { BARE_METAL_REMEDIATIONS } from "../../../api/ironfence/bare-metal-remediation.ts";
import type { Condition } from "../../../api/schema/meta.ts";
import { isKubeError } from "../../../kube/errors.ts";
import type { KubeObject, ResourceType } from "../../../kube/resource.ts";
import type { KubeRuntime } from "../../../kube/runtime.ts";
import type { HostOwner } from "../../machine/model/facts/host-facts.ts";

/** The kinds that own hosts. */
const OWNER_TYPES: readonly ResourceType[] = [BARE_METAL_REMEDIATIONS];

/** Whether an owner may still send a power order. @throws KubeError if that cannot be read. */
export async function isActiveOwner(runtime: KubeRuntime, owner: HostOwner, signal: AbortSignal): Promise<boolean> {
  const type = OWNER_TYPES.find((type) => type.kind === owner.kind);
  if (type === undefined) return true;
  const key = { namespace: owner.namespace, name: owner.name };
  try {
    const found = await runtime.client.get<KubeObject & { status?: { conditions?: Condition[] } }>(type, key, signal);
    if (found.metadata.uid !== owner.uid) return false;
    const succeeded = found.status?.conditions?.find((condition) => condition.type === "Succeeded");
    return succeeded === undefined || succeeded.status === "Unknown";
  } catch (error) {
    if (isKubeError(error, "NotFound")) return false;
    throw error;
  }
}
