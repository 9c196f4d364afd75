import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { parseAllDocuments } from "yaml";

const ROOT = fileURLToPath(new URL("../../..", import.meta.url));

// kubectl apply -f reads YAML 1.1, where On is a boolean; kubectl apply -k and our own harness read 1.2, where it is a
// string.
const families = readdirSync(join(ROOT, "deploy/families")).map((family) => `deploy/families/${family}`);
for (const folder of [
  "deploy/crds",
  "deploy/node-health-check",
  "deploy/kustomize",
  "deploy/secure-metrics",
  "deploy/check",
  "deploy/bundle",
  ...families,
  "examples",
]) {
  for (const name of readdirSync(join(ROOT, folder)).filter((file) => file.endsWith(".yaml"))) {
    test(`the manifest ${folder}/${name} means the same to every parser of YAML`, () => {
      const text = readFileSync(join(ROOT, folder, name), "utf8");
      const read = (version: "1.1" | "1.2"): unknown[] =>
        parseAllDocuments(text, { version }).map((document): unknown => document.toJS());
      assert.deepEqual(read("1.1"), read("1.2"));
    });
  }
}
