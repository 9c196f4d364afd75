import type { KubeClient } from "../kube/client.ts";
import { isKubeError } from "../kube/errors.ts";
import type { KubeObject } from "../kube/resource.ts";
import type { KindVersions } from "../kube/served-kind.ts";
import { findServed } from "../kube/served-kind.ts";

/** Objects of another project's kind; why they are not shown, where the person may not list them; undefined where there is no such kind. */
export type Listed = KubeObject[] | { problem: string } | undefined;

/** Lists a family's kind: that it may not be listed keeps nobody from seeing the rest. */
export async function listForeign(client: KubeClient, kind: KindVersions, signal: AbortSignal): Promise<Listed> {
  try {
    const type = await findServed({ client }, kind, signal);
    return type === undefined ? undefined : (await client.list<KubeObject>(type, {}, signal)).items;
  } catch (error) {
    if (isKubeError(error, "Forbidden")) return { problem: error.message };
    throw error;
  }
}
