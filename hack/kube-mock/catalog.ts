import { apiVersionOf } from "../../src/kube/resource.ts";
import type { ResourceType } from "../../src/kube/resource.ts";
import { noSuchResource } from "./api-error.ts";
import type { ServedResource } from "./resource.ts";

/** The kinds that the server serves now. */
export class Catalog {
  /** By `group/version`, then by plural. */
  readonly #served = new Map<string, Map<string, ServedResource>>();

  add(resource: ServedResource): void {
    const known = this.#served.get(resource.apiVersion) ?? new Map<string, ServedResource>();
    this.#served.set(resource.apiVersion, known.set(resource.plural, resource));
  }

  remove(group: string, plural: string): void {
    for (const [apiVersion, resources] of this.#served) {
      if (resources.get(plural)?.group === group) resources.delete(plural);
      if (resources.size === 0) this.#served.delete(apiVersion);
    }
  }

  find(apiVersion: string, plural: string): ServedResource | undefined {
    return this.#served.get(apiVersion)?.get(plural);
  }

  /** @throws ApiError 404 if the kind is not served. */
  get(type: ResourceType): ServedResource {
    const resource = this.find(apiVersionOf(type), type.plural);
    if (resource === undefined) throw noSuchResource();
    return resource;
  }

  /** The kinds of one group and version; undefined if that is not served. */
  resources(apiVersion: string): readonly ServedResource[] | undefined {
    const resources = this.#served.get(apiVersion);
    return resources === undefined ? undefined : [...resources.values()];
  }

  all(): readonly ServedResource[] {
    return [...this.#served.values()].flatMap((resources) => [...resources.values()]);
  }

  /** The versions of a group, the preferred one first; core/v1 is the group "". */
  versions(group: string): readonly string[] {
    const versions = new Set(this.all().flatMap((resource) => (resource.group === group ? [resource.version] : [])));
    return [...versions].sort(compareVersions);
  }

  /** All groups but the core one. */
  groups(): readonly string[] {
    return [...new Set(this.all().map(({ group }) => group))].filter((group) => group !== "");
  }
}

/** Kubernetes' order of versions: v2 before v1 before v1beta2 before v1alpha1, and any other name last. */
export function compareVersions(a: string, b: string): number {
  const rankA = rank(a);
  const rankB = rank(b);
  for (const [index, part] of rankA.entries()) {
    const difference = (rankB[index] ?? 0) - part;
    if (difference !== 0) return difference;
  }
  return a < b ? -1 : 1;
}

function rank(version: string): readonly number[] {
  const match = /^v(\d+)(?:(alpha|beta)(\d+))?$/.exec(version);
  if (match === null) return [0, 0, 0];
  const stability = match[2] === undefined ? 3 : match[2] === "beta" ? 2 : 1;
  return [stability, Number(match[1]), Number(match[3] ?? 0)];
}
