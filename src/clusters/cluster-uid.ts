import { NAMESPACES } from "../api/kubernetes/core-types.ts";
import type { KubeClient } from "../kube/client.ts";
import { isKubeError, KubeError } from "../kube/errors.ts";

/** A UID is a UUID of 36 characters; it is stored in status, so one of any length could not be. */
const UID_LENGTH_MAX = 64;

/** Every cluster has it for its whole life: it cannot be deleted. */
const NAMESPACE = "kube-system";

/**
 * Distinguishes a cluster from every other one, whatever its address, certificates and kubeconfig: the UID of its
 * namespace `kube-system`.
 *
 * @throws KubeError; if the read is forbidden, it names the missing permission; BadResponse if the answer has no UID.
 */
export async function readClusterUid(client: KubeClient, signal: AbortSignal): Promise<string> {
  try {
    const { metadata } = await client.get(NAMESPACES, { name: NAMESPACE }, signal);
    return checkedUid(metadata.uid);
  } catch (error) {
    if (!isKubeError(error, "Forbidden")) throw error;
    const message = `cannot identify the cluster: grant permission to get namespace ${NAMESPACE} (${error.message})`;
    throw new KubeError("Forbidden", message, { cause: error });
  }
}

/** The API server of a workload cluster is not trusted. */
function checkedUid(uid: unknown): string {
  if (typeof uid === "string" && uid !== "" && uid.length <= UID_LENGTH_MAX) return uid;
  throw new KubeError(
    "BadResponse",
    `get Namespace ${NAMESPACE}: its UID is not a text of 1 to ${UID_LENGTH_MAX} characters`,
  );
}
