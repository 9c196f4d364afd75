import assert from "node:assert/strict";
import { mkdir, mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { repositoryPath } from "../../../hack/e2e/world.ts";
import { run } from "../../../hack/lib/run.ts";

// The image of hack/image, built from Debian's packages, unpacked as a container runtime does, and run with no other
// file.

const BUILD_TIMEOUT_MS = 240_000;
/** Everything that is in the image. */
const FILES = [
  "app/ironfence.js",
  "app/ironfence.js.cdx.json",
  "app/package.json",
  "etc/group",
  "etc/nsswitch.conf",
  "etc/passwd",
  "etc/ssl/certs/ca-certificates.crt",
  "lib/x86_64-linux-gnu/ld-linux-x86-64.so.2",
  "lib/x86_64-linux-gnu/libc.so.6",
  "lib/x86_64-linux-gnu/libdl.so.2",
  "lib/x86_64-linux-gnu/libgcc_s.so.1",
  "lib/x86_64-linux-gnu/libm.so.6",
  "lib/x86_64-linux-gnu/libpthread.so.0",
  "lib64/ld-linux-x86-64.so.2",
  "usr/bin/node",
  "usr/lib/x86_64-linux-gnu/libstdc++.so.6",
  "usr/lib/x86_64-linux-gnu/libstdc++.so.6.0.30",
  "usr/share/doc/libc6/copyright",
];

interface Config {
  config: { User: string; Entrypoint: string[]; Cmd: string[] };
}

void describe("the image", () => {
  let folder: string;
  let root: string;
  let config: Config;

  const command = (program: string, ...args: string[]): Promise<string> =>
    run(program, args, { env: {}, timeoutMs: BUILD_TIMEOUT_MS, signal: new AbortController().signal });
  const build = async (name: string): Promise<string> => {
    const archive = join(folder, name);
    await command(process.execPath, repositoryPath("hack/image/main.ts"), "--output", archive);
    return archive;
  };

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "ironfence-image-test-"));
    root = join(folder, "root");
    const layout = join(folder, "layout");
    await mkdir(root);
    await mkdir(layout);
    await command("tar", "-xf", await build("first.tar"), "-C", layout);
    const [manifest] = JSON.parse(await readFile(join(layout, "manifest.json"), "utf8")) as {
      Config: string;
      Layers: string[];
    }[];
    config = JSON.parse(await readFile(join(layout, manifest?.Config ?? ""), "utf8")) as Config;
    await command("tar", "-xzf", join(layout, manifest?.Layers[0] ?? ""), "-C", root);
  });
  after(() => rm(folder, { recursive: true, force: true }));

  void test("the image is the same, byte for byte, if it is built twice", async () => {
    const second = await readFile(await build("second.tar"));
    assert.ok(second.equals(await readFile(join(folder, "first.tar"))));
  });

  void test("the image has the agent, Node and what Node is linked with: no shell, no npm and no package manager", async () => {
    const found = await command("find", root, "(", "-type", "f", "-o", "-type", "l", ")", "-printf", "%P\n");
    assert.deepEqual(found.trim().split("\n").toSorted(), FILES);
  });

  void test("the image runs the agent with its own files only", async () => {
    assert.equal(config.config.User, "65532:65532");
    assert.deepEqual(config.config.Cmd, ["run"]);
    const inside = (...args: string[]): Promise<string> =>
      command("unshare", "--map-root-user", "chroot", root, ...config.config.Entrypoint, ...args);
    const { version } = JSON.parse(await readFile(repositoryPath("package.json"), "utf8")) as { version: string };
    assert.equal((await inside("version")).split("\n")[0], version);
    assert.match(await inside("run", "--help"), /--families/);
  });
});
