import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("../..", import.meta.url));
const COMMAND_TIMEOUT_MS = 60_000;

let folder: string;

before(() => {
  // Far from node_modules, so that a dependency left out of the bundle is missed.
  folder = mkdtempSync(join(tmpdir(), "ironfence-bundle-"));
  const built = spawnSync(process.execPath, [join(root, "hack/build/main.ts"), join(folder, "ironfence.js")], {
    encoding: "utf8",
    timeout: COMMAND_TIMEOUT_MS,
  });
  assert.equal(built.status, 0, built.stderr);
  writeFileSync(join(folder, "package.json"), '{"type":"module"}');
});

after(() => rmSync(folder, { recursive: true, force: true }));

function ironfence(...args: string[]) {
  return spawnSync(process.execPath, [join(folder, "ironfence.js"), ...args], {
    cwd: folder,
    encoding: "utf8",
    timeout: COMMAND_TIMEOUT_MS,
    env: { PATH: process.env["PATH"], HOME: folder },
  });
}

void test("a bill of materials lists what is in the bundle, each with its version", () => {
  const { dependencies } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as {
    dependencies: Record<string, string>;
  };
  const { bomFormat, components } = JSON.parse(readFileSync(join(folder, "ironfence.js.cdx.json"), "utf8")) as {
    bomFormat: string;
    components: { name: string; version: string }[];
  };
  assert.equal(bomFormat, "CycloneDX");
  for (const [name, version] of Object.entries(dependencies)) {
    const listed = components.filter((component) => component.name === name).map((component) => component.version);
    assert.ok(listed.includes(version), `${name} ${version}: ${listed.join(", ")}`);
  }
  assert.ok(!components.some(({ name }) => name === "esbuild"), "what is for development alone");
});

void test("the bundle starts without node_modules and knows its version", () => {
  const { version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as { version: string };
  const result = ironfence("--version");
  assert.equal(result.status, 0, result.stderr);
  assert.equal(result.stdout.trim(), version);
});

void test("the bundle is plain ASCII: V8 keeps such a source at a byte a character", () => {
  const bundle = readFileSync(join(folder, "ironfence.js"));
  assert.equal(
    bundle.findIndex((byte) => byte > 127),
    -1,
  );
});

void test("the bundle explains its run command", () => {
  const result = ironfence("run", "--help");
  assert.equal(result.status, 0, result.stderr);
  assert.match(result.stdout, /--kubeconfig/);
});

void test("the bundle's agent starts, and says what is missing if there is no cluster", () => {
  const result = ironfence("run", "--kubeconfig", join(folder, "missing.kubeconfig"));
  assert.equal(result.status, 1, result.stderr);
  assert.match(result.stderr, /missing\.kubeconfig/);
});
