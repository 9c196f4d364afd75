import type { KubeClient, ObjectKey } from "../client.ts";
import { isKubeError } from "../errors.ts";
import type { KubeObject, ResourceType } from "../resource.ts";

/** The live object; undefined if there is none. */
export async function findObject<T extends KubeObject>(
  client: Pick<KubeClient, "get">,
  type: ResourceType,
  key: ObjectKey,
  signal: AbortSignal,
): Promise<T | undefined> {
  try {
    return await client.get<T>(type, key, signal);
  } catch (error) {
    if (isKubeError(error, "NotFound")) return undefined;
    throw error;
  }
}
