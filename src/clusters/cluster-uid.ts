import { NAMESPACES } from "../api/kubernetes/core-types.ts";
import type { KubeClient } from "../kube/client.ts";
import { isKubeError, KubeError } from "../kube/errors.ts";

/** A UID is a UUID of 36 characters. It is stored in a status, so its length must be bounded. */
const UID_LENGTH_MAX = 64;

/** Every cluster has this namespace, and it cannot be deleted. */
const NAMESPACE = "kube-system";

/**
 * Reads the UID of the namespace `kube-system`, which identifies a cluster independently of its address, certificates
 * and kubeconfig.
 *
 * @throws KubeError: Forbidden, with the missing permission in its message, if the read is forbidden; BadResponse if
 *   the answer has no valid UID.
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

/** Checks the UID, because the API server of a workload cluster is not trusted. */
function checkedUid(uid: unknown): string {
  if (typeof uid === "string" && uid !== "" && uid.length <= UID_LENGTH_MAX) return uid;
  throw new KubeError(
    "BadResponse",
    `get Namespace ${NAMESPACE}: its UID is not a string of 1 to ${UID_LENGTH_MAX} characters`,
  );
}
