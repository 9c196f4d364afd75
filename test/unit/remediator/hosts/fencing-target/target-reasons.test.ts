import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { test } from "node:test";
import { DEVICE_REASONS, TARGET_REASONS } from "../../../../../src/remediator/hosts/fencing-target/target-reasons.ts";

const ROOT = new URL("../../../../../", import.meta.url);
const read = (path: string): string => readFileSync(new URL(path, ROOT), "utf8");

test("the page of a FencingTarget's reasons explains each reason that its conditions can have, and no other one", () => {
  const explained = [...read("docs/reference/target-reasons.md").matchAll(/^### (\w+)$/gm)].map(([, reason]) => reason);
  assert.deepEqual(new Set(explained), new Set<string | undefined>([...TARGET_REASONS, ...DEVICE_REASONS]));
});

test("each reason that the conditions of a FencingTarget can have is in the code of probes, hosts or BMCs", () => {
  const pattern = "src/{remediator/probes,remediator/hosts/model,bmc}/**/*.ts";
  const files = globSync(pattern, { cwd: fileURLToPath(ROOT) });
  const source = files.map(read).join("\n");
  const unused = [...TARGET_REASONS, ...DEVICE_REASONS].filter((reason) => !source.includes(`"${reason}"`));
  assert.deepEqual(unused, []);
});
