import { isRecord } from "../../runtime/record.ts";
import type { KubeClient } from "../client.ts";
import { isKubeError, KubeError } from "../errors.ts";
import type { ResourceType } from "../resource.ts";
import type { TransportResponse } from "../transport.ts";

/** How many kinds are cached. No cluster has templates of more kinds. */
const CACHED_KINDS_MAX = 256;
/** How many versions of one group are searched. */
const VERSIONS_MAX = 16;

const CORE_VERSION = /^v\d+((alpha|beta)\d+)?$/;

/**
 * API discovery. A kind that was found is cached until the process ends: how it is served changes only with its CRD,
 * and if the CRD is deleted, calls fail with NotFound.
 */
export function createDiscovery(
  read: (path: string, signal: AbortSignal) => Promise<TransportResponse>,
): KubeClient["discover"] {
  const found = new Map<string, ResourceType>();
  return async (apiVersion, kind, signal) => {
    const cacheKey = `${apiVersion} ${kind}`;
    const known = found.get(cacheKey);
    if (known !== undefined) return known;
    for (const { group, version } of await versionsOf(read, apiVersion, signal)) {
      const type = await findKind(read, group, version, kind, signal);
      if (type === undefined) continue;
      if (found.size >= CACHED_KINDS_MAX) found.clear();
      found.set(cacheKey, type);
      return type;
    }
    return undefined;
  };
}

type Read = (path: string, signal: AbortSignal) => Promise<TransportResponse>;

/** The versions to search, the preferred one first. */
async function versionsOf(
  read: Read,
  apiVersion: string,
  signal: AbortSignal,
): Promise<{ group: string; version: string }[]> {
  const [group = "", version] = apiVersion.split("/");
  if (version !== undefined) return [{ group, version }];
  if (CORE_VERSION.test(group)) return [{ group: "", version: group }];
  const answer = await readOrUndefined(read, `/apis/${encodeURIComponent(group)}`, signal);
  if (answer === undefined) return [];
  const preferred = isRecord(answer["preferredVersion"]) ? answer["preferredVersion"]["version"] : undefined;
  const served = asArray(answer["versions"]).map((entry) => (isRecord(entry) ? entry["version"] : undefined));
  const names = [preferred, ...served].filter((name) => typeof name === "string");
  return [...new Set(names)].slice(0, VERSIONS_MAX).map((version) => ({ group, version }));
}

async function findKind(
  read: Read,
  group: string,
  version: string,
  kind: string,
  signal: AbortSignal,
): Promise<ResourceType | undefined> {
  const root = group === "" ? "/api" : `/apis/${encodeURIComponent(group)}`;
  const answer = await readOrUndefined(read, `${root}/${encodeURIComponent(version)}`, signal);
  for (const resource of asArray(answer?.["resources"])) {
    if (!isRecord(resource) || resource["kind"] !== kind) continue;
    const { name, namespaced } = resource;
    // Subresources such as `nodes/status` are listed together with the kinds, and may have the same kind.
    if (typeof name !== "string" || name.includes("/") || typeof namespaced !== "boolean") continue;
    return { group, version, kind, plural: name, namespaced };
  }
  return undefined;
}

/** A discovery document; undefined if the server does not know the group or version. */
async function readOrUndefined(
  read: Read,
  path: string,
  signal: AbortSignal,
): Promise<Record<string, unknown> | undefined> {
  let body: string;
  try {
    body = (await read(path, signal)).body;
  } catch (error) {
    if (isKubeError(error, "NotFound")) return undefined;
    throw error;
  }
  try {
    const document: unknown = JSON.parse(body);
    if (isRecord(document)) return document;
  } catch (error) {
    throw new KubeError("BadResponse", `GET ${path}: the answer is not JSON`, { cause: error });
  }
  throw new KubeError("BadResponse", `GET ${path}: the answer is not a discovery document`);
}

function asArray(value: unknown): unknown[] {
  return Array.isArray(value) ? value : [];
}
