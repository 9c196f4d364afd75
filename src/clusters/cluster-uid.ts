import { NAMESPACES } from "../api/core-types.ts";
import type { KubeClient } from "../kube/client.ts";
import { isKubeError, KubeError } from "../kube/errors.ts";

/** Every cluster has it from its beginning to its end: nobody can delete it. */
const NAMESPACE = "kube-system";

/**
 * Distinguishes a cluster from every other one, whatever its address, certificates and kubeconfig: the UID of its namespace `kube-system`.
 *
 * @throws KubeError; where the reading is forbidden, with what right is missing.
 */
export async function readClusterUid(client: KubeClient, signal: AbortSignal): Promise<string> {
  try {
    const { metadata } = await client.get(NAMESPACES, { name: NAMESPACE }, signal);
    return metadata.uid;
  } catch (error) {
    if (!isKubeError(error, "Forbidden")) throw error;
    const message = `nobody can tell which cluster it is: give the right to get namespace ${NAMESPACE} (${error.message})`;
    throw new KubeError("Forbidden", message, { cause: error });
  }
}
