import { readdir } from "node:fs/promises";
import type { Manifest } from "../lib/apply.ts";
import { readManifests } from "../lib/apply.ts";

// Generates what `ironfence check` must know about the manifests in deploy. An installed agent does not have the
// manifests, so it gets this data instead.

interface Rule {
  apiGroups: readonly string[];
  resources: readonly string[];
  verbs: readonly string[];
  resourceNames?: readonly string[];
}

/** The base, without which no family works. */
const BASE = ["deploy/node-health-check", "deploy/kustomize"];
/** ClusterRoles with this label are aggregated into the role of the detector, which is bound to the agent. */
const AGGREGATED = "rbac.ext-remediation/aggregate-to-ext-remediation";
/** The agent patches objects. Health check controllers of other projects use `update`. */
const NOT_OF_AGENT = new Set(["update"]);

/** @param path function that returns the path of a manifest in this repository. */
export async function readDeployed(path: (name: string) => string): Promise<object> {
  const families = (await readdir(path("deploy/families"))).sort().map((family) => `deploy/families/${family}`);
  const permissions = await Promise.all(
    ["deploy/kustomize", ...families].map(async (folder) => permissionsOf(folder, await readManifests(path(folder)))),
  );
  const base = (await Promise.all(BASE.map((folder) => readManifests(path(folder))))).flat();
  const policies = base.filter(({ kind }) => kind === "ValidatingAdmissionPolicy");
  return {
    agentPermissions: permissions.flat(),
    installedResources: resourcesOf(base),
    admissionPolicies: policies.map(({ metadata: { name } }) => ({ name })),
  };
}

/** What a folder grants the agent, one row per resource. */
function permissionsOf(folder: string, manifests: readonly Manifest[]): object[] {
  const bound = new Set(manifests.filter(({ kind }) => kind.endsWith("RoleBinding")).map(roleOf));
  return manifests.filter(isRole).flatMap(({ kind, metadata, ...manifest }) => {
    const { name, namespace } = metadata;
    const isAggregated = AGGREGATED in Object(metadata["labels"]);
    if (!bound.has(keyOf(kind, name, namespace)) && !isAggregated) return [];
    return ((manifest["rules"] ?? []) as Rule[]).flatMap((rule) => rowsOf(folder, namespace, rule));
  });
}

function rowsOf(folder: string, namespace: string | undefined, rule: Rule): object[] {
  const verbs = rule.verbs.filter((verb) => !NOT_OF_AGENT.has(verb)).join(" ");
  return rule.apiGroups.flatMap((group) =>
    rule.resources.flatMap((resource) =>
      (rule.resourceNames ?? [undefined]).map((name) => ({
        folder,
        ...(namespace !== undefined && { namespace }),
        group,
        resource,
        ...(name !== undefined && { name }),
        verbs,
      })),
    ),
  );
}

function isRole({ kind }: Manifest): boolean {
  return kind === "Role" || kind === "ClusterRole";
}

/** The role that a binding grants to the agent; empty if it grants the role to other users. */
function roleOf({ metadata, ...binding }: Manifest): string {
  const { kind, name } = binding["roleRef"] as { kind: string; name: string };
  const [subject] = binding["subjects"] as { kind: string; name: string }[];
  if (subject?.kind !== "ServiceAccount" || subject.name !== "ironfence") return "";
  return keyOf(kind, name, kind === "Role" ? metadata.namespace : undefined);
}

function keyOf(kind: string, name: string, namespace: string | undefined): string {
  return `${kind} ${namespace ?? ""}/${name}`;
}

/** Which resources an installation writes, and where. */
function resourcesOf(manifests: readonly Manifest[]): object[] {
  const rows = manifests.map(({ apiVersion, kind, metadata: { namespace } }) => ({
    group: apiVersion.includes("/") ? apiVersion.slice(0, apiVersion.indexOf("/")) : "",
    resource: pluralOf(kind),
    ...(namespace !== undefined && { namespace }),
  }));
  return [...new Map(rows.map((row) => [JSON.stringify(row), row])).values()];
}

function pluralOf(kind: string): string {
  const name = kind.toLowerCase();
  return name.endsWith("y") ? `${name.slice(0, -1)}ies` : `${name}s`;
}
