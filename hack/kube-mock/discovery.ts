import { noSuchResource } from "./api-error.ts";
import type { Catalog } from "./catalog.ts";
import type { ServedResource } from "./resource.ts";
import type { Route } from "./routes.ts";

const VERBS = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];
const SUBRESOURCE_VERBS = ["get", "patch", "update"];

/** Version that `/version` reports. */
export const SERVER_VERSION = {
  major: "1",
  minor: "36",
  gitVersion: "v1.36.3",
  gitCommit: "",
  gitTreeState: "",
  buildDate: "1970-01-01T00:00:00Z",
  goVersion: "",
  compiler: "",
  platform: "in-memory",
};

/**
 * Answers discovery requests.
 *
 * @returns undefined for a group or version that is not served.
 */
export function discover(catalog: Catalog, route: Exclude<Route, { kind: "resource" | "other" }>): object | undefined {
  switch (route.kind) {
    case "versions":
      return { kind: "APIVersions", versions: ["v1"], serverAddressByClientCIDRs: [] };
    case "groups":
      return {
        kind: "APIGroupList",
        apiVersion: "v1",
        groups: catalog.groups().flatMap((group) => groupOf(catalog, group) ?? []),
      };
    case "group": {
      const group = groupOf(catalog, route.group);
      return group === undefined ? undefined : { kind: "APIGroup", apiVersion: "v1", ...group };
    }
    case "resources": {
      const resources = catalog.resources(route.apiVersion);
      if (resources === undefined) return undefined;
      return {
        kind: "APIResourceList",
        apiVersion: "v1",
        groupVersion: route.apiVersion,
        resources: resources.flatMap(describe),
      };
    }
    default:
      throw noSuchResource();
  }
}

function groupOf(catalog: Catalog, group: string): object | undefined {
  const versions = catalog.versions(group).map((version) => ({ groupVersion: `${group}/${version}`, version }));
  const [preferredVersion] = versions;
  return preferredVersion === undefined ? undefined : { name: group, versions, preferredVersion };
}

function describe(resource: ServedResource): object[] {
  const { plural, singular, namespaced, kind, shortNames, categories } = resource;
  const own = {
    name: plural,
    singularName: singular,
    namespaced,
    kind,
    verbs: VERBS,
    ...(shortNames.length > 0 && { shortNames }),
    ...(categories.length > 0 && { categories }),
  };
  const subresources = resource.hasStatus ? [{ name: "status", verbs: SUBRESOURCE_VERBS }] : [];
  return [
    own,
    ...subresources.map(({ name, verbs }) => ({
      name: `${plural}/${name}`,
      singularName: "",
      namespaced,
      kind,
      verbs,
    })),
  ];
}
