import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { chmodSync, copyFileSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { parseTar } from "nanotar";
import { AGENT_ENVIRONMENT, AGENT_NODE_FLAGS } from "../../hack/bench/node-flags.ts";
import { packImage } from "../../hack/image/oci.ts";
import { OWN_CA_FILE } from "../../hack/image/root-files.ts";
import { NAMESPACES } from "../../hack/kube-mock/controllers/cluster-types.ts";
import { startKubeMock } from "../../hack/kube-mock/kube-mock.ts";
import type { KubeMock } from "../../hack/kube-mock/kube-mock.ts";
import { readCrds } from "../../hack/lib/crds.ts";
import { freeLeases } from "../../hack/lib/free-leases.ts";
import { LEASES } from "../../src/api/kubernetes/core-types.ts";
import type { Lease } from "../../src/api/kubernetes/core.ts";
import { systemClock, systemRandom } from "../../src/runtime/system.ts";

// How the image protects passwords in memory, as far as that can be tested without a container runtime.

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const NAMESPACE = "ironfence-system";
const BUILD_TIMEOUT_MS = 60_000;
const LEAD_TIMEOUT_MS = 60_000;
const POLL_MS = 100;
/** The user of the image; only root may change to another user. */
const USER = process.getuid?.() === 0 ? { uid: 65532, gid: 65532 } : {};

interface Config {
  User: string;
  Env: string[];
  Entrypoint: string[];
}

/** The configuration of an image with these files, which a container engine would use. */
function configOf(...paths: string[]): Config {
  const files = paths.map((path) => ({ path, mode: 0o644, content: Buffer.alloc(0) }));
  const { archive } = packImage(files, { name: "ironfence", version: "1.2.3", architecture: "amd64" });
  // nanotar reads a pooled Buffer from the beginning of its pool, so it gets a copy.
  const blobs = parseTar(Uint8Array.from(archive));
  const read = (path: string): unknown => JSON.parse(blobs.find(({ name }) => name === path)?.text ?? "");
  const [manifest] = read("manifest.json") as { Config: string }[];
  return (read(manifest?.Config ?? "") as { config: Config }).config;
}

const config = configOf("app/ironfence.js");
const [program, ...rest] = config.Entrypoint;
const flags = rest.slice(0, -1);

describe("the image", () => {
  let folder: string;
  let node: string;
  let kube: KubeMock;

  before(async () => {
    folder = mkdtempSync(join(tmpdir(), "ironfence-image-"));
    chmodSync(folder, 0o755);
    // The mode of the file in the image. The copy belongs to the user of this test.
    node = join(folder, "node");
    copyFileSync(process.execPath, node);
    chmodSync(node, 0o111);
    const bundle = join(folder, "ironfence.js");
    const built = spawnSync(process.execPath, [join(ROOT, "hack/build/main.ts"), bundle], {
      timeout: BUILD_TIMEOUT_MS,
    });
    assert.equal(built.status, 0, String(built.stderr));
    copyFileSync(join(ROOT, "package.json"), join(folder, "package.json"));
    kube = await startKubeMock({ clock: systemClock, random: systemRandom, tls: true, token: "let-me-in" });
    for (const crd of await readCrds()) kube.server.load(crd);
    kube.server.collection(NAMESPACES).create({ metadata: { name: NAMESPACE } });
    for (const lease of freeLeases(NAMESPACE)) kube.server.collection(LEASES).create(lease);
    writeFileSync(join(folder, "kubeconfig"), kube.kubeconfig, { mode: 0o644 });
  });
  after(async () => {
    await kube?.close();
    rmSync(folder, { recursive: true });
  });

  /**
   * Whether a process of the same user may inspect this one. The kernel makes the same check before it shows or dumps
   * memory.
   */
  const isReadable = (pid: number): boolean => {
    const read = `require("node:fs").readFileSync("/proc/${pid}/environ")`;
    return spawnSync(process.execPath, ["-e", read], { ...USER, cwd: "/" }).status === 0;
  };

  it("the image does not run as root, and starts Node as the benchmarks do", () => {
    assert.equal(config.User, "65532:65532");
    assert.equal(program, "/usr/bin/node");
    assert.deepEqual(flags, [...AGENT_NODE_FLAGS.slice(0, -1), "--use-openssl-ca"]);
    for (const [name, value] of Object.entries(AGENT_ENVIRONMENT))
      assert.ok(config.Env.includes(`${name}=${value}`), name);
  });

  it("the image trusts certificate authorities of its own only if it was built with them", () => {
    const own = `NODE_EXTRA_CA_CERTS=/${OWN_CA_FILE}`;
    assert.equal(config.Env.includes(own), false);
    assert.equal(configOf("app/ironfence.js", OWN_CA_FILE).Env.includes(own), true);
  });

  it("the image opens no debugger, writes no file and starts no program", () => {
    const tries = `
      process.kill(process.pid, "SIGUSR1");
      const tried = (what) => { try { what(); return "done"; } catch (error) { return error.code; } };
      const write = tried(() => require("node:fs").writeFileSync("${join(folder, "x")}", ""));
      const run = tried(() => require("node:child_process").spawnSync("true"));
      setTimeout(() => console.log(write, run, require("node:inspector").url()), 100);`;
    const { stdout } = spawnSync(process.execPath, [...flags, "-e", tries], { encoding: "utf8" });
    assert.equal(stdout.trim(), "ERR_ACCESS_DENIED ERR_ACCESS_DENIED undefined");
  });

  it("the image runs an agent whose memory no other process of its user can read, and that leaves no core dump", async () => {
    const listen = ["--metrics-bind-address=127.0.0.1:0", "--health-probe-bind-address=127.0.0.1:0"];
    const command = [join(folder, "ironfence.js"), "run", `--kubeconfig=${join(folder, "kubeconfig")}`, ...listen];
    const agent = spawn(node, [...flags, ...command], { ...USER, cwd: "/", stdio: ["ignore", "pipe", "pipe"] });
    let log = "";
    for (const stream of [agent.stdout, agent.stderr]) stream.on("data", (chunk) => (log += String(chunk)));
    const ended = once(agent, "exit");
    // A readable copy of the same program as a control, which shows that the test can fail.
    const control = spawn(process.execPath, ["-e", "setInterval(() => {}, 1000)"], { ...USER, cwd: "/" });
    try {
      const leases = kube.server.collection<Lease>(LEASES);
      const startedMs = performance.now();
      while (!leases.get({ namespace: NAMESPACE, name: "ironfence" })?.spec.holderIdentity) {
        assert.ok(performance.now() - startedMs < LEAD_TIMEOUT_MS, log);
        await delay(POLL_MS);
      }
      assert.equal(isReadable(control.pid ?? 0), true);
      assert.equal(isReadable(agent.pid ?? 0), false);
      agent.kill("SIGTERM");
      assert.deepEqual(await ended, [0, null], log);
      assert.doesNotMatch(log, /ERR_ACCESS_DENIED/);
    } finally {
      agent.kill("SIGKILL");
      control.kill("SIGKILL");
    }
  });
});
