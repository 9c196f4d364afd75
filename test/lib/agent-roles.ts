import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseAllDocuments } from "yaml";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));

export interface Rule {
  apiGroups: string[];
  resources: string[];
  resourceNames?: string[];
  verbs: string[];
}

export interface Manifest {
  kind: string;
  metadata: { name: string; namespace?: string };
  rules?: Rule[];
  roleRef?: { kind: string; name: string };
}

/** The objects in the files that match `pattern`. */
export function manifestsOf(pattern: string): Manifest[] {
  return globSync(pattern, { cwd: ROOT }).flatMap((path) =>
    parseAllDocuments(readFileSync(join(ROOT, path), "utf8")).map((document) => document.toJS() as Manifest),
  );
}

/** Roles for users, or roles that are aggregated into those of other controllers. */
const OTHERS: ReadonlySet<string> = new Set([
  "ironfence-enroller",
  "ironfence-operator",
  "ironfence-view",
  "ironfence-bare-metal-remediation",
  "ironfence-check",
  "ironfence-bundle",
  "ironfence-metrics-reader",
  "ironfence-status-reader",
]);

/** The roles of the agent's own ServiceAccount. */
export function agentRoles(): Manifest[] {
  return manifestsOf("deploy/**/role-*.yaml").filter(
    ({ kind, metadata: { name } }) => kind.endsWith("Role") && !OTHERS.has(name),
  );
}
