import type { KubeClient } from "../../../kube/client.ts";
import { isKubeError } from "../../../kube/errors.ts";
import type { KubeObject } from "../../../kube/resource.ts";
import type { KindVersions } from "../../../kube/objects/served-kind.ts";
import { findServed } from "../../../kube/objects/served-kind.ts";
import { renderTable } from "../../terminal/table.ts";

/** The objects of a kind. If the user may not list them, why; undefined if the kind is not served. */
export type ListResult<T = KubeObject> = T[] | { problem: string } | undefined;

/** Lists a kind of a family. A missing permission is a result, so that the rest is still shown. */
export async function listForeign(client: KubeClient, kind: KindVersions, signal: AbortSignal): Promise<ListResult> {
  try {
    return await listKind(client, kind, signal);
  } catch (error) {
    if (isKubeError(error, "Forbidden")) return { problem: error.message };
    throw error;
  }
}

/** All objects of a kind, in the first of its versions that is served; undefined if none is. */
export async function listKind(
  client: KubeClient,
  kind: KindVersions,
  signal: AbortSignal,
): Promise<KubeObject[] | undefined> {
  const type = await findServed({ client }, kind, signal);
  return type === undefined ? undefined : (await client.list<KubeObject>(type, {}, signal)).items;
}

/**
 * A section of `ironfence status`, one row per object. Empty if there is none: most clusters do not serve another
 * project's kind.
 */
export function renderForeign(
  title: string,
  result: ListResult,
  header: readonly string[],
  rowOf: (raw: KubeObject) => string[],
): string[] {
  if (result === undefined) return [];
  if ("problem" in result) return [`${title}: cannot be shown: ${result.problem}`, ""];
  if (result.length === 0) return [];
  return [`${title}:`, ...renderTable(header, result.map(rowOf)), ""];
}
