import { readFile, writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { stringify } from "yaml";
import { CUSTOM_KINDS, folderOf } from "../../src/api/kinds.ts";
import { toCrd } from "./crd.ts";
import { readDeployed } from "./deployed.ts";

// Writes the CRDs under deploy from the schemas in src/api, and what `ironfence check` knows about deploy. With --check it only
// compares, and fails if a file is out of date.

const root = fileURLToPath(new URL("../../", import.meta.url));
// YAML 1.1 quotes On, Off and the like: to `kubectl apply -f`, which reads that, they would be booleans.
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
for (const [file, wanted] of generated) {
  if (values.check) {
    const present = await readFile(root + file, "utf8").catch(() => undefined);
    if (present !== wanted) stale.push(file);
  } else {
    await writeFile(root + file, wanted);
    console.log(file);
  }
}
if (stale.length > 0) {
  console.error(`out of date: ${stale.join(", ")}; run \`npm run generate\` and commit the result`);
  process.exit(1);
}
