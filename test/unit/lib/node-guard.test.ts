import assert from "node:assert/strict";
import { test } from "node:test";
import { runInNewContext } from "node:vm";
import { NODE_GUARD } from "../../../hack/build/node-guard.ts";

function startOn(version: string): { said: string; exitCode: number | undefined } {
  const seen: { said: string; exitCode: number | undefined } = { said: "", exitCode: undefined };
  const process = {
    version: `v${version}`,
    versions: { node: version },
    stderr: { write: (text: string) => (seen.said += text) },
    exit: (code: number) => (seen.exitCode = code),
  };
  runInNewContext(NODE_GUARD, { process });
  return seen;
}

test("the bundle says in one line that an older Node cannot run it", () => {
  assert.deepEqual(startOn("20.20.2"), {
    said: "ironfence: needs Node 24 or newer, and this is v20.20.2\n",
    exitCode: 1,
  });
});

test("the bundle starts on Node 24 and newer", () => {
  for (const version of ["24.0.0", "26.1.3"]) assert.deepEqual(startOn(version), { said: "", exitCode: undefined });
});
