import { mkdir, readFile, writeFile } from "node:fs/promises";
import { dirname } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { stringify } from "yaml";
import { CUSTOM_KINDS, folderOf } from "../../src/api/ironfence/kinds.ts";
import { toCrd } from "./crd.ts";
import { dashboard } from "../monitoring/dashboard.ts";
import { plainRules, prometheusRule, ruleTests } from "../monitoring/rules.ts";
import { chartFiles } from "../chart/generate.ts";
import { olmFiles } from "../olm/generate.ts";
import { readManifests } from "../lib/apply.ts";
import { bundleRoles } from "./bundle-role.ts";
import { readDeployed } from "./deployed.ts";
import { healthCheckFieldsPage, remediationFieldsPage } from "./fields-page.ts";
import { metricsPage } from "./metrics-page.ts";

// Generates the CRDs in deploy from the schemas in src/api, what `ironfence check` knows about deploy, the roles of
// `ironfence bundle`, the pages of metrics and fields, deploy/monitoring, the chart without its templates, and the OLM
// bundle. With --check it writes nothing, and fails if a file is out of date.

const root = fileURLToPath(new URL("../../", import.meta.url));
// kubectl reads YAML 1.1, in which On, Off and similar words are booleans. With this version, they are quoted.
const STYLE = { version: "1.1", lineWidth: 0, aliasDuplicateObjects: false } as const;
const HEADER = "# Generated from src/api by `npm run generate`; do not edit.\n";

const { values } = parseArgs({ options: { check: { type: "boolean", default: false } } });
const stale: string[] = [];
const generated = new Map(
  CUSTOM_KINDS.map((kind) => [
    `${folderOf(kind)}/${kind.group}_${kind.plural}.yaml`,
    HEADER + stringify(toCrd(kind), STYLE),
  ]),
);
const deployed = await readDeployed((name) => root + name);
generated.set("src/cli/check/read/deployed.json", `${JSON.stringify(deployed, undefined, 2)}\n`);
const ROLES_HEADER = `# Everything that \`ironfence bundle\` reads, without --live. It writes nothing, and it reads no Secret.
# Generated from deploy/check and hack/crdgen/bundle-role.ts by \`npm run generate\`; do not edit.
`;
const roles = bundleRoles(await readManifests(`${root}deploy/check`));
generated.set(
  "deploy/bundle/role-bundle.yaml",
  ROLES_HEADER + roles.map((role) => stringify(role, STYLE)).join("---\n"),
);
generated.set("docs/reference/metrics.md", metricsPage());
generated.set("docs/reference/remediation-fields.md", remediationFieldsPage());
generated.set("docs/reference/node-health-check-fields.md", healthCheckFieldsPage());
const MONITORING_HEADER = "# Generated from hack/monitoring by `npm run generate`; do not edit.\n";
for (const [name, content] of Object.entries({
  "rules.yaml": plainRules(),
  "rules-test.yaml": ruleTests(),
  "prometheus-rule.yaml": prometheusRule(),
})) {
  generated.set(`deploy/monitoring/${name}`, MONITORING_HEADER + stringify(content, STYLE));
}
generated.set("deploy/monitoring/dashboard.json", `${JSON.stringify(dashboard(), undefined, 2)}\n`);
await settle(generated);
// The chart and the OLM bundle contain copies of generated files, so they come last.
await settle(await chartFiles((name) => root + name));
await settle(await olmFiles((name) => root + name));
if (stale.length > 0) {
  console.error(`out of date: ${stale.join(", ")}; run \`npm run generate\` and commit the result`);
  process.exit(1);
}

/** Writes the files, or compares them with those that are there. */
async function settle(files: ReadonlyMap<string, string>): Promise<void> {
  for (const [file, wanted] of files) {
    if (values.check) {
      const present = await readFile(root + file, "utf8").catch(() => undefined);
      if (present !== wanted) stale.push(file);
    } else {
      await mkdir(dirname(root + file), { recursive: true });
      await writeFile(root + file, wanted);
      console.log(file);
    }
  }
}
