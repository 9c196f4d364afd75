import { readdir, readFile } from "node:fs/promises";
import { parse } from "yaml";
import { observingPatch, observingRoles } from "./observe.ts";
import { chartReadme } from "./readme.ts";
import { VALUES, valuesSchema } from "./values.ts";
import { valuesYaml } from "./values-yaml.ts";

// Files that the chart shares with kustomize are copied, because a chart cannot read files outside of its folder. The
// templates insert the namespace of the release and the labels of the chart.

/** Copies in deploy/chart/files, and the files in deploy from which each is made. */
const COPIES: Readonly<Record<string, readonly string[]>> = {
  "service-account.yaml": ["kustomize/service-account.yaml"],
  "rbac.yaml": ["agent", "remediators", "users", "operators"].map((name) => `kustomize/role-${name}.yaml`),
  "admission.yaml": ["", "agent-", "in-use-"].map((name) => `kustomize/${name}admission.yaml`),
  "leases.yaml": ["kustomize/leases.yaml"],
  "secure-metrics.yaml": ["secure-metrics/role-secure-metrics.yaml"],
  "check-service-account.yaml": ["check/service-account.yaml"],
  "check-rbac.yaml": ["check/role-check.yaml"],
  "lease-namespace.yaml": ["node-health-check/namespace.yaml"],
  "prometheus-rule.yaml": ["monitoring/prometheus-rule.yaml"],
};
/** Copied without a header, because their format has no comments. */
const VERBATIM: Readonly<Record<string, string>> = { "dashboard.json": "monitoring/dashboard.json" };

/** @param path function that returns the path of a file in this repository. */
export async function chartFiles(path: (name: string) => string): Promise<Map<string, string>> {
  const read = (name: string): Promise<string> => readFile(path(`deploy/${name}`), "utf8");
  const { version } = JSON.parse(await readFile(path("package.json"), "utf8")) as { version: string };
  const files = new Map([
    ["Chart.yaml", chartYaml(version)],
    ["values.yaml", valuesYaml(VALUES)],
    ["values.schema.json", `${JSON.stringify(valuesSchema(), undefined, 2)}\n`],
    ["README.md", chartReadme(VALUES)],
  ]);
  const copies = { ...COPIES, ...(await familyCopies(path, read)), ...(await crdCopies(path)) };
  for (const [name, sources] of Object.entries(copies)) {
    const texts = await Promise.all(sources.map(read));
    files.set(`files/${name}`, headerOf(sources) + texts.join("---\n"));
  }
  for (const [name, source] of Object.entries(VERBATIM)) files.set(`files/${name}`, await read(source));
  const agentRoles = ["agent", "remediators"].map((name) => `kustomize/role-${name}.yaml`);
  const rolesOf = async (sources: readonly string[]): Promise<string> =>
    (await Promise.all(sources.map(read))).join("---\n");
  const families = Object.entries(copies).filter(([name]) => name.startsWith("families/"));
  for (const [name, sources] of families) {
    files.set(`files/observe/${name}`, headerOf(sources) + observingRoles(await rolesOf(sources)));
  }
  const userRoles = ["users", "operators"].map((name) => `kustomize/role-${name}.yaml`);
  const observing = [observingRoles(await rolesOf(agentRoles)), await rolesOf(userRoles)].join("---\n");
  files.set("files/observe/rbac.yaml", headerOf([...agentRoles, ...userRoles]) + observing);
  const paths = new Map([...files].map(([name, content]) => [`deploy/chart/${name}`, content]));
  const patch = headerOf(agentRoles) + observingPatch(await rolesOf(agentRoles));
  return paths.set("deploy/observe/roles.yaml", patch);
}

function headerOf(sources: readonly string[]): string {
  return `# Generated from ${sources.map((source) => `deploy/${source}`).join(", ")}; do not edit.\n`;
}

/** The roles of each folder of deploy/families, and its policies in separate files. */
async function familyCopies(
  path: (name: string) => string,
  read: (name: string) => Promise<string>,
): Promise<Record<string, string[]>> {
  const copies: Record<string, string[]> = {};
  for (const family of (await readdir(path("deploy/families"))).sort()) {
    const folder = `families/${family}`;
    const { resources } = parse(await read(`${folder}/kustomization.yaml`)) as { resources: string[] };
    const roles = resources.filter((name) => name.startsWith("role-"));
    const policies = resources.filter((name) => !name.startsWith("role-"));
    copies[`families/${family}.yaml`] = roles.map((name) => `${folder}/${name}`);
    if (policies.length > 0) copies[`family-policies/${family}.yaml`] = policies.map((name) => `${folder}/${name}`);
  }
  return copies;
}

async function crdCopies(path: (name: string) => string): Promise<Record<string, string[]>> {
  const copies: Record<string, string[]> = {};
  for (const folder of ["crds", "node-health-check"]) {
    const names = (await readdir(path(`deploy/${folder}`))).filter((name) => name.includes("_"));
    for (const name of names.sort()) copies[`${folder}/${name}`] = [`${folder}/${name}`];
  }
  return copies;
}

function chartYaml(version: string): string {
  return `# Generated from package.json by \`npm run generate\`; do not edit.
apiVersion: v2
name: ironfence
description: Power fencing and node health remediation for bare-metal Kubernetes.
type: application
version: ${version}
appVersion: ${JSON.stringify(version)}
kubeVersion: ">=1.30.0-0"
keywords: [fencing, bare-metal, remediation, redfish, ipmi]
annotations:
  artifacthub.io/license: Apache-2.0
`;
}
