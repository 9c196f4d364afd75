import type { ResourceType } from "./resource.ts";
import type { KubeRuntime } from "./runtime.ts";

/** A kind of which any of several versions will do. */
export interface KindVersions {
  group: string;
  kind: string;
  /** In the order of preference. */
  versions: readonly string[];
}

/**
 * How the API server serves a kind, in the first of the versions that it serves; undefined where it serves none of them.
 *
 * @throws KubeError where it cannot be asked.
 */
export async function findServed(
  runtime: Pick<KubeRuntime, "client">,
  { group, kind, versions }: KindVersions,
  signal: AbortSignal,
): Promise<ResourceType | undefined> {
  for (const version of versions) {
    const type = await runtime.client.discover(`${group}/${version}`, kind, signal);
    if (type !== undefined) return type;
  }
  return undefined;
}
