import type { ObjectKey } from "../client.ts";
import { KubeError } from "../errors.ts";
import type { ResourceType } from "../resource.ts";
import { keyText } from "../watched.ts";

/** The path of a collection; in all namespaces if `namespace` is undefined. */
export function collectionPath(type: ResourceType, namespace: string | undefined): string {
  const root = type.group === "" ? `/api/${type.version}` : `/apis/${type.group}/${type.version}`;
  const scope = namespace === undefined ? "" : `/namespaces/${encodeURIComponent(namespace)}`;
  return `${root}${scope}/${type.plural}`;
}

/** The path of one object or of its subresource. */
export function objectPath(type: ResourceType, key: ObjectKey, options: { subresource?: string } = {}): string {
  // A missing name or namespace would turn a call on one object into a call on the whole collection.
  if (key.name === "" || type.namespaced === (key.namespace === undefined || key.namespace === "")) {
    throw new KubeError(
      "BadRequest",
      `${describeObject(type, key)}: the name is empty, or the namespace is missing or not allowed`,
    );
  }
  const subresource = options.subresource === undefined ? "" : `/${options.subresource}`;
  return `${collectionPath(type, key.namespace)}/${encodeURIComponent(key.name)}${subresource}`;
}

export interface ListQuery {
  labelSelector?: string;
  fieldSelector?: string;
  limit: number;
  continueToken: string | undefined;
}

/** The query of one page of a list. */
export function listQuery(query: ListQuery): string {
  return new URLSearchParams({
    limit: String(query.limit),
    ...(query.labelSelector !== undefined && { labelSelector: query.labelSelector }),
    ...(query.fieldSelector !== undefined && { fieldSelector: query.fieldSelector }),
    ...(query.continueToken !== undefined && { continue: query.continueToken }),
  }).toString();
}

export interface WatchQuery {
  labelSelector?: string;
  fieldSelector?: string;
  resourceVersion: string;
  timeoutSeconds: number;
}

/** The query of a watch with bookmarks. */
export function watchQuery(query: WatchQuery): string {
  return new URLSearchParams({
    watch: "true",
    allowWatchBookmarks: "true",
    resourceVersion: query.resourceVersion,
    timeoutSeconds: String(query.timeoutSeconds),
    ...(query.labelSelector !== undefined && { labelSelector: query.labelSelector }),
    ...(query.fieldSelector !== undefined && { fieldSelector: query.fieldSelector }),
  }).toString();
}

/** A collection's name for messages, for example `nodes` or `fencingtargets.ironfence.io in ironfence-system`. */
export function describeCollection(type: ResourceType, namespace: string | undefined): string {
  const name = type.group === "" ? type.plural : `${type.plural}.${type.group}`;
  return namespace === undefined ? name : `${name} in ${namespace}`;
}

/** An object's name for messages, for example `Node worker-3` or `Pod shop/db-0 (status)`. */
export function describeObject(type: ResourceType, key: ObjectKey, options: { subresource?: string } = {}): string {
  const subresource = options.subresource === undefined ? "" : ` (${options.subresource})`;
  return `${type.kind} ${keyText(key)}${subresource}`;
}
