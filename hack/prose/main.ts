import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { conflictMarkers } from "./conflict-markers.ts";
import { longCommentLines } from "./line-length.ts";
import type { Finding } from "./lint.ts";
import { lintProse } from "./lint.ts";
import { isCode } from "./parse.ts";
import { lintTestNames } from "./test-names.ts";

// Checks pages, comments and messages against the vocabulary, the length of comment lines, and the names of tests. Also
// finds conflict markers.
// Arguments are files; by default it checks all.

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const FILES = [
  "*.md",
  "docs/**/*.md",
  "deploy/**/*.{yaml,md}",
  "examples/**/*.{yaml,mjs}",
  "{src,hack,test}/**/*.ts",
  "plugins/headlamp/{src,test}/**/*.{ts,tsx}",
];
/** These files contain the forbidden expressions, or messages of the Redfish standard. */
const QUOTING = ["hack/prose/vocabulary.ts", "test/unit/docs/prose.test.ts", "hack/redfish-mock/service.ts"];
const named = process.argv.slice(2);
const files = named.length > 0 ? named : globSync(FILES, { cwd: ROOT, exclude: QUOTING }).sort();
const testNames = new Map<string, string>();
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
  const findings = [...conflictMarkers(file, source), ...(await lintProse(file, source))];
  if (isCode(file)) findings.push(...longCommentLines(file, source));
  if (/\.test\.tsx?$/.test(file)) findings.push(...lintTestNames(file, source, testNames));
  return findings;
}
