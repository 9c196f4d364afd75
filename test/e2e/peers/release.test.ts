import assert from "node:assert/strict";
import { once } from "node:events";
import { chmod, mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { Chronicle } from "../../../hack/demo/chronicle.ts";
import { observe } from "../../../hack/demo/observe.ts";
import { isReady } from "../../../hack/demo/ready.ts";
import { play, SCENES } from "../../../hack/demo/scenes.ts";
import { startWorld } from "../../../hack/demo/world.ts";
import type { ChartTools } from "../../../hack/e2e/chart-tools.ts";
import { prepareChartTools } from "../../../hack/e2e/chart-tools.ts";
import { repositoryPath } from "../../../hack/e2e/world.ts";
import { withHelmFolder } from "../../../hack/chart/render.ts";
import { readManifests } from "../../../hack/lib/apply.ts";
import { createCertificateAuthority } from "../../../hack/lib/pki.ts";
import { startChild, tail } from "../../../hack/lib/processes.ts";
import { run } from "../../../hack/lib/run.ts";
import { systemClock } from "../../../src/runtime/system.ts";

// Checks everything that `npm run release -- --dry-run` makes with the tools of users, and runs the image in a
// container engine.

const COMMAND_TIMEOUT_MS = 420_000;
const START_TIMEOUT_MS = 30_000;
/** All files in the image for amd64, by their purpose. */
const FILES = {
  "the agent": ["app/ironfence.js", "app/package.json"],
  "what runs it": ["usr/bin/node"],
  "what Node is linked with": [
    "lib/x86_64-linux-gnu/ld-linux-x86-64.so.2",
    "lib/x86_64-linux-gnu/libc.so.6",
    "lib/x86_64-linux-gnu/libdl.so.2",
    "lib/x86_64-linux-gnu/libgcc_s.so.1",
    "lib/x86_64-linux-gnu/libm.so.6",
    "lib/x86_64-linux-gnu/libpthread.so.0",
    "lib64/ld-linux-x86-64.so.2",
    "usr/lib/x86_64-linux-gnu/libstdc++.so.6",
    "usr/lib/x86_64-linux-gnu/libstdc++.so.6.0.30",
  ],
  "certificate authorities that TLS trusts": ["etc/ssl/certs/ca-certificates.crt"],
  "names of its user, and where glibc looks for hosts": ["etc/group", "etc/nsswitch.conf", "etc/passwd"],
  "what scanners read": ["app/ironfence.js.cdx.json"],
  "licenses, which ask to be passed on": [
    "usr/share/doc/ca-certificates/copyright",
    "usr/share/doc/gcc-12-base/copyright",
    "usr/share/doc/libc6/copyright",
    "usr/share/doc/node/copyright",
  ],
};
/** Paths that differ in the image for arm64. */
const ARM64_PATHS = [
  ["lib64/ld-linux-x86-64.so.2", "lib/ld-linux-aarch64.so.1"],
  ["ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"],
  ["x86_64-linux-gnu", "aarch64-linux-gnu"],
] as const;
/**
 * Programs. The user of the image may run Node but not read it, so that other processes of this user cannot read its
 * memory.
 */
const PROGRAMS = [
  [/^usr\/bin\/node$/, "-rwx--x--x"],
  [/^lib\/[^/]+\/ld-linux-[^/]+$/, "-rwxr-xr-x"],
] as const;
/** All other files: only root may write them, and none has the setuid bit. */
const MODES: Readonly<Record<string, string>> = { "-": "-rw-r--r--", d: "drwxr-xr-x", l: "lrwxrwxrwx" };
/** Numbers of the architectures in an ELF header (e_machine, ELF specification, "ELF Header"). */
const E_MACHINE = { amd64: 62, arm64: 183 } as const;
type Architecture = keyof typeof E_MACHINE;

interface Config {
  architecture: string;
  config: { User: string; Env: string[]; Entrypoint: string[]; Cmd: string[] };
}
interface Root {
  /** The folder with the files of the image. */
  files: string;
  /** The same files as an archive. */
  layer: string;
  config: Config;
}

const command = (program: string, ...args: string[]): Promise<string> =>
  run(program, args, { env: {}, timeoutMs: COMMAND_TIMEOUT_MS, signal: new AbortController().signal });

/** The architecture of a program. */
async function machineOf(file: string): Promise<number> {
  const content = await readFile(file);
  assert.equal(content.toString("latin1", 0, 4), "\u007fELF", file);
  return content.readUInt16LE(18);
}

/** Names of the libraries with which a program is linked. */
async function linkedWith(file: string): Promise<string[]> {
  const printed = await command("readelf", "--dynamic", file);
  return [...printed.matchAll(/\(NEEDED\).*\[(.*)\]/g)].map(([, name = ""]) => name);
}

void describe("a release", () => {
  let folder: string;
  let release: string;
  let version: string;
  let tools: ChartTools;
  const roots = {} as Record<Architecture, Root>;

  const imageOf = (architecture: Architecture): string =>
    join(release, `ironfence-image-${version}-${architecture}.tar`);

  /** Unpacks an image as a container engine does. */
  const unpack = async (archive: string, name: string): Promise<Root> => {
    const layout = join(folder, `layout-${name}`);
    const files = join(folder, `root-${name}`);
    for (const made of [layout, files]) await mkdir(made);
    await command("tar", "-xf", archive, "-C", layout);
    const [manifest] = JSON.parse(await readFile(join(layout, "manifest.json"), "utf8")) as {
      Config: string;
      Layers: string[];
    }[];
    const config = JSON.parse(await readFile(join(layout, manifest?.Config ?? ""), "utf8")) as Config;
    const layer = join(layout, manifest?.Layers[0] ?? "");
    await command("tar", "-xzf", layer, "-C", files);
    return { files, layer, config };
  };

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "ironfence-release-test-"));
    release = join(folder, "release");
    ({ version } = JSON.parse(await readFile(repositoryPath("package.json"), "utf8")) as { version: string });
    const progress = (line: string): void => void process.stderr.write(`e2e: ${line}\n`);
    tools = await prepareChartTools(progress, new AbortController().signal);
    await command(process.execPath, repositoryPath("hack/release/main.ts"), "--dry-run", "--output", release);
    for (const architecture of ["amd64", "arm64"] as const)
      roots[architecture] = await unpack(imageOf(architecture), architecture);
  });
  after(() => rm(folder, { recursive: true, force: true }));

  void test("a release has chart, images, executables, kubectl plugin, bills of materials and notes, each with its checksum", async () => {
    const perArchitecture = (["amd64", "arm64"] as const).flatMap((name) => [
      `ironfence-${version}-linux-${name}.tar.gz`,
      `ironfence-image-${version}-${name}.cdx.json`,
      `ironfence-image-${version}-${name}.tar`,
    ]);
    const others = [
      `ironfence-${version}.tgz`,
      `ironfence-${version}-deploy.tar.gz`,
      `kubectl-ironfence-${version}.tar.gz`,
      "ironfence.yaml",
      "NOTES.md",
    ];
    const wanted = [...perArchitecture, ...others].toSorted();
    const sums = await readFile(join(release, "SHA256SUMS"), "utf8");
    assert.deepEqual(
      sums
        .trim()
        .split("\n")
        .map((line) => line.slice(66)),
      wanted,
    );
    assert.deepEqual((await readdir(release)).toSorted(), [...wanted, "SHA256SUMS"].toSorted());
    await run("sha256sum", ["--check", "--strict", "SHA256SUMS"], {
      cwd: release,
      env: {},
      timeoutMs: COMMAND_TIMEOUT_MS,
      signal: new AbortController().signal,
    });
  });

  void test("a release is refused if its commit has no tag, or without the address for its files", async () => {
    await assert.rejects(
      command(process.execPath, repositoryPath("hack/release/main.ts"), "--output", join(folder, "refused")),
      /--base-url is missing[\s\S]*--registry is missing[\s\S]*--dry-run/,
    );
  });

  void test("a release's chart passes helm lint, and has the version of the release", async () => {
    const chart = join(release, `ironfence-${version}.tgz`);
    const shown = await withHelmFolder(async (options) => {
      await run(tools.helm, ["lint", chart, "--strict"], options);
      return run(tools.helm, ["show", "chart", chart], options);
    });
    assert.match(shown, new RegExp(`^version: ${version.replaceAll(".", "\\.")}$`, "m"));
  });

  void test("a release's chart and manifests install the image of the release from its registry", async () => {
    const image = `registry.example/ironfence:${version}`;
    const chart = join(release, `ironfence-${version}.tgz`);
    const rendered = await withHelmFolder((options) => run(tools.helm, ["template", "ironfence", chart], options));
    const unpacked = join(folder, "deploy");
    await mkdir(unpacked);
    await command("tar", "-xzf", join(release, `ironfence-${version}-deploy.tar.gz`), "-C", unpacked);
    const root = join(unpacked, `ironfence-${version}`);
    const applied = (await readManifests(join(root, "deploy/kustomize"))).map((manifest) => JSON.stringify(manifest));
    for (const text of [rendered.replaceAll(/image: "(.*)"/g, '"image":"$1"'), applied.join("\n")])
      assert.deepEqual(new Set([...text.matchAll(/"image":"([^"]*)"/g)].map(([, name]) => name)), new Set([image]));
    const bundle = "deploy/olm/manifests/ironfence.clusterserviceversion.yaml";
    assert.match(await readFile(join(root, bundle), "utf8"), new RegExp(`containerImage: ${image}$`, "m"));
    await stat(join(root, "examples/fencing-target.yaml"));
  });

  void test("a release's executable runs without Node on the PATH, and the one for arm64 is for that processor", async () => {
    for (const architecture of ["amd64", "arm64"] as const) {
      const unpacked = join(folder, `executable-${architecture}`);
      await mkdir(unpacked);
      await command("tar", "-xzf", join(release, `ironfence-${version}-linux-${architecture}.tar.gz`), "-C", unpacked);
      assert.deepEqual((await readdir(unpacked)).toSorted(), ["LICENSE", "LICENSE.node", "ironfence"]);
      assert.equal(await machineOf(join(unpacked, "ironfence")), E_MACHINE[architecture]);
    }
    const program = join(folder, "executable-amd64/ironfence");
    const alone = (...args: string[]): Promise<string> => command("env", "--ignore-environment", program, ...args);
    assert.equal((await alone("version")).split("\n")[0], version);
    assert.match(await alone("run", "--help"), /--families/);
  });

  void test("the image is the same, byte for byte, if it is built again", async () => {
    const again = join(folder, "again.tar");
    await command(process.execPath, repositoryPath("hack/image/main.ts"), "--output", again);
    assert.ok((await readFile(again)).equals(await readFile(imageOf("amd64"))));
  });

  void test("the image has the agent, Node and what Node is linked with: no shell, no npm and no package manager", async () => {
    const all = Object.values(FILES).flat();
    const allowed = {
      amd64: all,
      arm64: all.map((path) => ARM64_PATHS.reduce((text, [from, to]) => text.replace(from, to), path)),
    };
    for (const [architecture, { layer }] of Object.entries(roots) as [Architecture, Root][]) {
      const listed = await command("tar", "-tvzf", layer, "--numeric-owner");
      const entries = listed
        .trim()
        .split("\n")
        .map((line) => {
          const [mode = "", owner, , , , path = ""] = line.split(/ +/);
          return { mode, owner, path };
        });
      const found = entries.filter(({ mode }) => !mode.startsWith("d")).map(({ path }) => path);
      assert.deepEqual(found.toSorted(), allowed[architecture].toSorted(), architecture);
      for (const { mode, owner, path } of entries) {
        const [, program] = PROGRAMS.find(([pattern]) => pattern.test(path)) ?? [];
        assert.equal(mode, program ?? MODES[mode.charAt(0)], `${architecture}: ${path}`);
        assert.equal(owner, "0/0", `${architecture}: ${path}`);
      }
    }
    const { files } = roots.amd64;
    const manifest = JSON.parse(await readFile(join(files, "app/package.json"), "utf8")) as Record<string, unknown>;
    assert.deepEqual(Object.keys(manifest), ["name", "version", "description", "license", "type"]);
  });

  void test("the image that was built with a certificate authority of its own trusts that one too, and no other image does", async () => {
    const authority = await createCertificateAuthority(systemClock, "own");
    const issued = await authority.issue({ commonName: "localhost", dnsNames: ["localhost"], usage: "server" });
    const file = join(folder, "own.crt");
    await writeFile(file, authority.certPem);
    const archive = join(folder, "own.tar");
    const image = repositoryPath("hack/image/main.ts");
    await assert.rejects(command(process.execPath, image, "--ca", archive, "--output", archive), /not a PEM file/);
    await command(process.execPath, image, "--ca", file, "--output", archive);
    const server = createServer({ key: issued.keyPem, cert: issued.certPem }, (_request, response) =>
      response.end("ok"),
    );
    await once(server.listen(0, "127.0.0.1"), "listening");
    const { port } = server.address() as AddressInfo;
    const ask = `fetch("https://localhost:${port}").then((answer) => console.log(answer.status), ({ cause }) => console.log(cause.code))`;
    /** Sends a request to the server with Node, the flags and the certificates of an image. */
    const answerFor = ({ files, config: { config } }: Root): Promise<string> => {
      const [node = "", ...flags] = config.Entrypoint.slice(0, -1);
      const certificates = config.Env.filter((text) => /_CERT/.test(text)).map((text) =>
        text.replace("=/", `=${files}/`),
      );
      return command("env", ...certificates, join(files, node), ...flags, "--eval", ask);
    };
    try {
      assert.equal((await answerFor(await unpack(archive, "own"))).trim(), "200");
      assert.equal((await answerFor(roots.amd64)).trim(), "UNABLE_TO_VERIFY_LEAF_SIGNATURE");
    } finally {
      server.close();
    }
  });

  void test("the images for both processors have every library that their programs are linked with", async () => {
    for (const [architecture, { files, config }] of Object.entries(roots) as [Architecture, typeof roots.amd64][]) {
      assert.equal(config.architecture, architecture);
      const found = (await command("find", files, "-name", "*.so*", "-printf", "%f\n")).trim().split("\n");
      const programs = (await command("find", files, "-type", "f", "-size", "+10k")).trim().split("\n");
      const elf = programs.filter((path) => /\.so\.|\/node$/.test(path) && !path.includes("/doc/"));
      assert.equal(elf.length, 8, architecture);
      for (const path of elf) {
        assert.equal(await machineOf(path), E_MACHINE[architecture], path);
        for (const name of await linkedWith(path)) assert.ok(found.includes(name), `${path} needs ${name}`);
      }
      const interpreter = /interpreter: (.*)\]/.exec(
        await command("readelf", "--program-headers", join(files, "usr/bin/node")),
      )?.[1];
      await stat(join(files, (await command("readlink", join(files, interpreter ?? ""))).trim()));
    }
  });

  void test("the image's agent fences the hanging host of the demo, run by podman with a read-only root and without capabilities", async () => {
    const { config } = roots.amd64.config;
    assert.equal(config.User, "65532:65532");
    assert.deepEqual(config.Cmd, ["run"]);
    const demo = join(folder, "demo");
    await mkdir(demo);
    // podman stores everything in the folder of this test.
    const engine = ["--root", join(folder, "podman"), "--runroot", join(folder, "podman-run")];
    const podman = [...engine, "--runtime=runc", "--cgroup-manager=cgroupfs"];
    await command("podman", ...podman, "load", "--quiet", "--input", imageOf("amd64"));
    const world = await startWorld(demo);
    const chronicle = new Chronicle(systemClock);
    // The user of the image must be able to read the kubeconfig. A pod would use its ServiceAccount.
    await chmod(world.kubeconfigPath, 0o644);
    await chmod(demo, 0o755);
    const name = `ironfence-test-${process.pid}`;
    const limits = ["--ulimit=nofile=1024:4096", "--ulimit=nproc=1024:1024"];
    const locked = ["--read-only", "--cap-drop=all", "--security-opt=no-new-privileges"];
    const container = ["run", "--rm", `--name=${name}`, "--network=host", ...limits, ...locked];
    const mount = `--volume=${world.kubeconfigPath}:/kubeconfig:ro`;
    const listen = ["--metrics-bind-address=127.0.0.1:0", "--health-probe-bind-address=127.0.0.1:0"];
    const agent = [`localhost/ironfence:${version}`, "run", "--kubeconfig=/kubeconfig", ...listen];
    const logFile = join(folder, "agent.log");
    const child = startChild("podman", "podman", [...podman, ...container, mount, ...agent], { logFile });
    const observed = observe(world, chronicle);
    try {
      assert.ok(await chronicle.until(() => isReady(world), START_TIMEOUT_MS), tail(logFile));
      const [scene] = SCENES;
      assert.ok(scene !== undefined);
      const result = await play(scene, 1, world, chronicle);
      assert.deepEqual(result.problems, [], tail(logFile));
      assert.deepEqual(observed.violations, []);
    } finally {
      observed.stop();
      await child.stop();
      await command("podman", ...podman, "rm", "--force", "--ignore", "--time=5", name);
      await command("podman", ...podman, "rmi", "--all", "--force");
      await world.stop();
    }
  });

  void test("the workflows of the hosted CI pass actionlint", async () => {
    const names = (await readdir(repositoryPath(".github/workflows"))).map((name) =>
      repositoryPath(`.github/workflows/${name}`),
    );
    assert.ok(names.length > 0);
    await command(tools.actionlint, "-shellcheck=", "-pyflakes=", ...names);
  });
});
