import assert from "node:assert/strict";
import { execFile, spawnSync } from "node:child_process";
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, before, describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { parse } from "yaml";
import { releaseForKrew } from "../../hack/krew/release.ts";
import { startKubeMock } from "../../hack/kube-mock/kube-mock.ts";
import type { KubeMock } from "../../hack/kube-mock/kube-mock.ts";
import { systemClock, systemRandom } from "../../src/runtime/system.ts";
import { installHealthy } from "./check-fixture.ts";

// The plugin as krew installs it: the unpacked archive in a folder, and a link to its program on the PATH. A script
// replaces kubectl and runs plugins in the same way. test/nightly/peers/kubectl.test.ts uses the real kubectl.

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const COMMAND_TIMEOUT_MS = 60_000;
const KUBECTL = '#!/bin/sh\nplugin=$1; shift; exec "kubectl-$plugin" "$@"\n';

describe("kubectl ironfence", () => {
  let folder: string;
  let kube: KubeMock;
  let env: Readonly<Record<string, string>>;

  before(async () => {
    folder = mkdtempSync(join(tmpdir(), "ironfence-kubectl-"));
    const bin = join(folder, "bin");
    const store = join(folder, "store");
    for (const path of [bin, store]) mkdirSync(path);
    const built = join(folder, "ironfence.js");
    const { status, stderr } = spawnSync(process.execPath, [join(ROOT, "hack/build/main.ts"), built], {
      encoding: "utf8",
      timeout: COMMAND_TIMEOUT_MS,
    });
    assert.equal(status, 0, stderr);
    const { archive, manifest } = await releaseForKrew(built, "https://downloads.example/plugin.tar.gz", folder);
    const { spec } = parse(readFileSync(manifest, "utf8")) as { spec: { platforms: { bin: string }[] } };
    assert.equal(spawnSync("tar", ["-xzf", archive, "-C", store]).status, 0);
    symlinkSync(join(store, spec.platforms[0]?.bin ?? ""), join(bin, "kubectl-ironfence"));
    symlinkSync("kubectl-ironfence", join(bin, "kubectl_complete-ironfence"));
    for (const [name, text] of [
      ["kubectl", KUBECTL],
      // A pager that does not wait for a key.
      ["less", "#!/bin/sh\nexec cat\n"],
    ] as const) {
      writeFileSync(join(bin, name), text);
      chmodSync(join(bin, name), 0o755);
    }
    kube = await startKubeMock({ clock: systemClock, random: systemRandom, tls: true });
    await installHealthy(kube.server);
    const kubeconfig = join(folder, "kubeconfig");
    writeFileSync(kubeconfig, kube.kubeconfig);
    env = {
      PATH: `${bin}:${dirname(process.execPath)}:${process.env["PATH"] ?? ""}`,
      HOME: folder,
      KUBECONFIG: kubeconfig,
    };
  });
  after(async () => {
    await kube?.close();
    rmSync(folder, { recursive: true });
  });

  /** Runs a program in a separate process, since the simulated API server is in this one. */
  const run = async (program: string, ...args: string[]): Promise<{ code: number; out: string }> => {
    const command = promisify(execFile)(program, args, { env, timeout: COMMAND_TIMEOUT_MS });
    return command.then(
      ({ stdout, stderr }) => ({ code: 0, out: stdout + stderr }),
      (error: { code: number; stdout: string; stderr: string }) => ({
        code: error.code,
        out: error.stdout + error.stderr,
      }),
    );
  };

  it("kubectl ironfence runs the commands, and calls itself so in its help, its examples and its errors", async () => {
    const { code, out } = await run("kubectl", "ironfence", "status");
    assert.equal(code, 0, out);
    assert.match(out, /^agent: agent-1 leads/m);
    const help = await run("kubectl", "ironfence", "check", "--help");
    assert.match(help.out, /^ {2}kubectl ironfence check --pre$/m);
    assert.doesNotMatch(help.out, /^ {2}ironfence/m);
    const wrong = await run("kubectl", "ironfence", "check", "--nope");
    assert.equal(wrong.code, 2);
    assert.match(wrong.out, /^kubectl ironfence check: .*see kubectl ironfence check --help/m);
  });

  it("kubectl ironfence proposes commands, flags and names of the cluster to kubectl, each on a line with its meaning behind a tab", async () => {
    const commands = await run("kubectl_complete-ironfence", "che");
    assert.match(commands.out, /^check\tCheck whether every node could be fenced now\n$/);
    const names = await run("kubectl_complete-ironfence", "explain", "node", "worker-");
    assert.deepEqual(
      names.out.split("\n").map((line) => line.split("\t")[0]),
      ["worker-1", "worker-2", "worker-3", ""],
    );
  });

  it("kubectl ironfence is what the plugins for k9s run", async () => {
    const { plugins } = parse(readFileSync(join(ROOT, "deploy/k9s/plugins.yaml"), "utf8")) as {
      plugins: Record<string, { command: string; args: string[] }>;
    };
    const context = (parse(kube.kubeconfig) as { "current-context": string })["current-context"];
    // Replaces variables, as k9s does before it starts the command.
    const values = { NAME: "worker-2", CONTEXT: context, KUBECONFIG: env["KUBECONFIG"] ?? "" };
    const outputs = await Promise.all(
      Object.values(plugins).map(async ({ command, args }) => {
        const replaced = args.map((text) =>
          text.replaceAll(/\$(\w+)/g, (_all, name: string) => values[name as keyof typeof values]),
        );
        return (await run(command, ...replaced)).out;
      }),
    );
    assert.equal(outputs.length, 2);
    assert.ok(
      outputs.some((out) => /^node worker-2 at /m.test(out)),
      outputs.join("\n"),
    );
    assert.ok(
      outputs.some((out) => /^agent: agent-1 leads/m.test(out)),
      outputs.join("\n"),
    );
  });
});
