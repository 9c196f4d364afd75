import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { longCommentLines } from "./line-length.ts";
import type { Finding } from "./lint.ts";
import { lintProse } from "./lint.ts";
import { lintTestNames } from "./test-names.ts";

// Checks all texts for readers against the vocabulary: pages, comments and messages. It also checks the length of
// comment lines and the names of tests. Files can be named.

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const FILES = ["*.md", "docs/**/*.md", "examples/*.yaml", "deploy/**/*.{yaml,md}", "{src,hack,test}/**/*.ts"];
/** They hold the expressions that others must not have, and the messages of the Redfish standard. */
const QUOTING = ["hack/prose/vocabulary.ts", "test/unit/docs/prose.test.ts", "hack/redfish-mock/service.ts"];
/**
 * Rooms whose texts have not been edited since these rules came: they keep the others. A room that is edited leaves the
 * list, and no other one joins it.
 */
const UNEDITED =
  /^(?:src\/(?:bmc|api|runtime)|src\/remediator\/(?:hosts|probes))\/|^hack\/mutants\/named\/bmc-redfish\.ts$/;
const NEW_RULES =
  /^A line of|“(?:anybody|everybody|nobody|whoever|heard|said|twins?|clusters?(?: that)? (?:is|are) away|e\.g\.?|is no [a-z ]+)(?:'s)?”/i;

const named = process.argv.slice(2);
const files = named.length > 0 ? named : globSync(FILES, { cwd: ROOT, exclude: QUOTING }).sort();
let count = 0;
for (const file of files) {
  for (const { line, message } of await findingsIn(file)) {
    console.log(`${file}:${line}: ${message}`);
    count += 1;
  }
}
if (count > 0) {
  console.error(`${count} findings; docs/contributing/writing.md has the rules`);
  process.exit(1);
}

async function findingsIn(file: string): Promise<Finding[]> {
  const source = readFileSync(join(ROOT, file), "utf8");
  const findings = await lintProse(file, source);
  if (file.endsWith(".ts")) findings.push(...longCommentLines(file, source));
  if (file.endsWith(".test.ts")) findings.push(...lintTestNames(file, source));
  return UNEDITED.test(file) ? findings.filter(({ message }) => !NEW_RULES.test(message)) : findings;
}
