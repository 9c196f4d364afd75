import { copyFile } from "node:fs/promises";
import { parseArgs } from "node:util";
import { applyManifests } from "../lib/apply.ts";
import { prepareBinaries } from "./binaries.ts";
import { startControlPlane } from "./control-plane.ts";
import { fileURLToPath } from "node:url";
import { registerNode } from "./fake-node.ts";

const HELP = `A real Kubernetes control plane on loopback: etcd, kube-apiserver, kube-controller-manager, kube-scheduler and kwok.

  node hack/control-plane/main.ts build            find the programs, or build them with Go (about 7 min, once)
  node hack/control-plane/main.ts up [options]     start it and keep it up until Ctrl-C

    --nodes N                 fake nodes worker-1 … worker-N, played by kwok (default 3)
    --kubeconfig FILE         also write the administrator's kubeconfig there
    --grace-period SECONDS    silence after which a node is Ready=Unknown (default 50, as in Kubernetes; the fake
                              nodes renew their leases every 10 s, so use at least 20)
    --install                 apply deploy/kustomize and write a kubeconfig of the shipped ServiceAccount

$IRONFENCE_E2E_KUBERNETES selects a version of hack/control-plane/kubernetes, such as 1.30; by default the newest.
The programs are searched in $KUBEBUILDER_ASSETS, then in \${XDG_CACHE_HOME:-~/.cache}/ironfence/control-plane.
`;

const stop = new AbortController();
for (const name of ["SIGINT", "SIGTERM"] as const)
  process.once(name, () => stop.abort(new Error(`stopped by ${name}`)));

const progress = (line: string): void => void process.stderr.write(`control-plane: ${line}\n`);

async function up(values: { nodes: string; kubeconfig?: string; "grace-period": string; install: boolean }) {
  const nodes = readNumber("nodes", values.nodes);
  const nodeMonitorGracePeriodMs = readNumber("grace-period", values["grace-period"]) * 1000;
  const controlPlane = await startControlPlane({ progress, nodeMonitorGracePeriodMs }, stop.signal);
  try {
    for (let index = 1; index <= nodes; index += 1) {
      await registerNode(controlPlane.api, { name: `worker-${index}` });
    }
    await controlPlane.startKwok();
    if (values.install) {
      await applyManifests(controlPlane.api, fileURLToPath(new URL("../../deploy/kustomize", import.meta.url)));
      progress(`agent:  ${await controlPlane.serviceAccountKubeconfig("ironfence-system", "ironfence")}`);
    }
    if (values.kubeconfig !== undefined) await copyFile(controlPlane.kubeconfig, values.kubeconfig);
    progress(`admin:  export KUBECONFIG=${values.kubeconfig ?? controlPlane.kubeconfig}`);
    progress(`logs:   ${controlPlane.folder}`);
    progress("Ctrl-C ends it.");
    const stopped = new Promise<void>((resolve) => {
      if (stop.signal.aborted) resolve();
      stop.signal.addEventListener("abort", () => resolve(), { once: true });
    });
    await Promise.race([stopped, controlPlane.failed]);
  } finally {
    await controlPlane.stop();
  }
}

function readNumber(option: string, text: string): number {
  const number = Number(text);
  if (text === "" || !Number.isInteger(number) || number < 0)
    throw new Error(`--${option}: ${text} is not a whole number`);
  return number;
}

async function main(): Promise<number> {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      help: { type: "boolean", short: "h", default: false },
      nodes: { type: "string", default: "3" },
      kubeconfig: { type: "string" },
      "grace-period": { type: "string", default: "50" },
      install: { type: "boolean", default: false },
    },
  });
  const [command] = positionals;
  if (values.help || command === undefined) {
    process.stdout.write(HELP);
    return 0;
  }
  switch (command) {
    case "build":
      await prepareBinaries(progress, stop.signal);
      progress("all programs are there");
      return 0;
    case "up":
      await up(values);
      return 0;
    default:
      process.stderr.write(`control-plane: unknown command ${command}\n\n${HELP}`);
      return 2;
  }
}

try {
  process.exitCode = await main();
} catch (error) {
  progress(error instanceof Error ? error.message : String(error));
  process.exitCode = 1;
}
