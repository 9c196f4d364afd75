import { wrapItem } from "../crdgen/metrics-page.ts";
import { leavesOf } from "./schema.ts";
import type { Leaf, ValueSchema } from "./schema.ts";

/** Longer defaults, in characters, are shown only in values.yaml. */
const DEFAULT_MAX = 60;

const HEAD = `<!-- Generated from hack/chart/values.ts by \`npm run generate\`; do not edit. -->

# Chart of ironfence

Installs the agent with its kinds, RBAC permissions, admission policies and NetworkPolicies.
[Install with Helm](../../docs/how-to/install-with-helm.md) has every step, the upgrade and the uninstall.

\`\`\`
helm install ironfence deploy/chart -n ironfence-system --create-namespace --set image.repository=REGISTRY/ironfence
\`\`\`

One installation works in a cluster, so the names of the objects do not depend on the name of the release. The
permissions and policies are the same files that \`deploy/kustomize\` and \`deploy/families\` have.
`;

/** README.md of the chart. */
export function chartReadme(schema: ValueSchema): string {
  const entries = Object.entries(schema.properties ?? {});
  const single = entries.filter(([, child]) => child.properties === undefined);
  const groups = entries.filter(([, child]) => child.properties !== undefined);
  const general = single.map(([path, child]) => itemOf({ path, schema: child }));
  return [
    HEAD,
    "## Values\n",
    "### General\n",
    ...general,
    ...groups.flatMap(([name, child]) => [
      `\n### ${name}\n`,
      `${child.description}\n`,
      ...leavesOf(child, name).map(itemOf),
    ]),
    "",
  ].join("\n");
}

function itemOf({ path, schema }: Leaf): string {
  return wrapItem(`\`${path}\` (${typeOf(schema)}; ${defaultOf(schema)}): ${schema.description}`, "");
}

function typeOf({ type, ...keywords }: ValueSchema): string {
  const choices = (keywords["enum"] ?? (keywords["items"] as { enum?: unknown } | undefined)?.enum) as
    | string[]
    | undefined;
  const name = typeof type === "string" ? type : (type[0] ?? "");
  return choices === undefined ? name : `${name} of ${choices.map((choice) => `\`${choice}\``).join(", ")}`;
}

function defaultOf({ default: value }: ValueSchema): string {
  const text = JSON.stringify(value);
  if (value === null || text === '""') return "not set";
  return text.length > DEFAULT_MAX ? "default in `values.yaml`" : `default \`${text.replaceAll(",", ", ")}\``;
}
