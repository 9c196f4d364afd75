import type { KubeClient } from "../../kube/client.ts";
import { isKubeError } from "../../kube/errors.ts";
import type { KubeObject, ResourceType } from "../../kube/resource.ts";

const SELF_SUBJECT_REVIEWS: ResourceType = {
  group: "authentication.k8s.io",
  version: "v1",
  kind: "SelfSubjectReview",
  plural: "selfsubjectreviews",
  namespaced: false,
};

/**
 * The name by which the API server knows the user. Undefined if it does not answer: no command may fail because of
 * that.
 */
export async function readUserName(client: KubeClient, signal: AbortSignal): Promise<string | undefined> {
  const review = { apiVersion: "authentication.k8s.io/v1", kind: "SelfSubjectReview", metadata: {} };
  try {
    const { status } = await client.create<KubeObject & { status?: { userInfo?: { username?: string } } }>(
      SELF_SUBJECT_REVIEWS,
      review,
      {},
      signal,
    );
    return status?.userInfo?.username;
  } catch (error) {
    if (!isKubeError(error) || signal.aborted) throw error;
    return undefined;
  }
}
