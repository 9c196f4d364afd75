import type { KubeClient, WriteOptions } from "../../../kube/client.ts";
import { isKubeError } from "../../../kube/errors.ts";
import type { KubeObject, ResourceType } from "../../../kube/resource.ts";
import { keyOf } from "../../../kube/watched.ts";
import type { RemediationObject } from "../model/remediation.ts";
import { foreignText, trimForHealthCheck } from "../model/remediation.ts";
import type { NewRemediation } from "../model/template.ts";
import type { RemediationStore } from "../views/remediation-store.ts";

export interface RemediationWriteDeps {
  client: KubeClient;
  remediations: RemediationStore;
}

export type Creation =
  | { result: "created"; object: KubeObject }
  /** An earlier request has already created it. */
  | { result: "existed" }
  /** The API server refuses it, and an immediate retry does not help. `reason` is for the operator. */
  | { result: "refused"; reason: string };

/**
 * Creates a remediation, and adds it to `remediations` as soon as the API server has answered.
 *
 * @param isOwn whether an existing remediation with the same name is the one that this request creates.
 * @throws KubeError if a retry may succeed.
 */
export async function createRemediationObject(
  { client, remediations }: RemediationWriteDeps,
  type: ResourceType,
  body: NewRemediation,
  isOwn: (found: KubeObject) => boolean,
  options: Pick<WriteOptions, "strict">,
  signal: AbortSignal,
): Promise<Creation> {
  try {
    const object = await client.create<KubeObject>(type, body, options, signal);
    remediations.wrote(trimForHealthCheck(object), undefined);
    return { result: "created", object };
  } catch (error) {
    if (isKubeError(error, "Forbidden", "NotFound", "Invalid", "BadRequest", "MethodNotAllowed")) {
      return { result: "refused", reason: error.message };
    }
    const { name, namespace } = body.metadata;
    if (!isKubeError(error, "AlreadyExists") || name === undefined) throw error;
    const found = await client.get(type, namespace === undefined ? { name } : { namespace, name }, signal);
    if (!isOwn(found)) {
      return { result: "refused", reason: foreignText(type.kind, name) };
    }
    remediations.wrote(trimForHealthCheck(found), undefined);
    return { result: "existed" };
  }
}

/** Deletes a remediation. It then counts as terminating. @returns whether it still existed. */
export async function deleteRemediationObject(
  { client, remediations }: RemediationWriteDeps,
  type: ResourceType,
  object: RemediationObject,
  signal: AbortSignal,
): Promise<boolean> {
  let isDeleted = true;
  try {
    await client.delete(type, keyOf(object), { guard: { uid: object.metadata.uid } }, signal);
  } catch (error) {
    // It was deleted, or another one with the same name has replaced it: this one does not exist any more.
    if (!isKubeError(error, "NotFound", "Conflict")) throw error;
    isDeleted = false;
  }
  remediations.deletionOrdered(object);
  return isDeleted;
}
