import { join } from "node:path";
import type { ApiAddress } from "../control-plane/kubeconfig.ts";
import { startChild, tail } from "../lib/processes.ts";
import type { Child } from "../lib/processes.ts";
import { NAMESPACE, SERVICE_ACCOUNT, repositoryPath } from "./world.ts";
import type { World } from "./world.ts";

/** An agent in a process of its own. */
export interface Agent {
  readonly instance: string;
  readonly running: boolean;
  readonly pid: number;
  /** SIGKILL: no clean-up, no release of the lease. */
  kill(): Promise<void>;
  /** SIGSTOP: it stands still, and does not know. */
  freeze(): void;
  /** SIGCONT: it continues. */
  thaw(): void;
  /** Resolves once it has ended, by itself too. */
  readonly ended: Promise<string>;
  /** SIGTERM, as Kubernetes ends a pod. */
  stop(): Promise<void>;
  /** The end of its log. */
  log(): string;
}

export interface AgentStart {
  /** Where the agent finds the API server, if not at its own address. */
  via?: ApiAddress | undefined;
  /** The `main.ts` of another version. */
  program?: string | undefined;
  /** The agent runs as the cluster's administrator, from a workstation, with its objects in this namespace. */
  asAdminIn?: string | undefined;
}

/** Starts the agent as a user does, with a token of the shipped ServiceAccount. */
export async function startAgent(
  world: Pick<World, "controlPlane">,
  instance: string,
  flags: readonly string[] = [],
  { via, program, asAdminIn }: AgentStart = {},
): Promise<Agent> {
  const { controlPlane } = world;
  const kubeconfig =
    asAdminIn === undefined
      ? await controlPlane.serviceAccountKubeconfig(NAMESPACE, SERVICE_ACCOUNT, via)
      : controlPlane.kubeconfig;
  const child: Child = startChild(
    instance,
    process.execPath,
    [
      program ?? repositoryPath("src/main.ts"),
      "run",
      `--kubeconfig=${kubeconfig}`,
      `--namespace=${asAdminIn ?? NAMESPACE}`,
      ...(flags.some((flag) => flag.startsWith("--metrics-bind-address="))
        ? []
        : ["--metrics-bind-address=127.0.0.1:0"]),
      "--health-probe-bind-address=127.0.0.1:0",
      // 0.1.0 does not know it.
      ...(program === undefined ? ["--allow-local-workload-clusters=true"] : []),
      ...flags,
    ],
    // The world's folder goes with it; a folder of the user's choice keeps the whole log.
    {
      logFile: join(process.env["IRONFENCE_E2E_LOGS"] ?? controlPlane.folder, `${instance}.log`),
      env: { POD_NAME: instance },
    },
  );
  return {
    instance,
    pid: child.pid,
    get running() {
      return child.running;
    },
    kill: async () => {
      child.kill("SIGKILL");
      await child.ended;
    },
    freeze: () => child.kill("SIGSTOP"),
    thaw: () => child.kill("SIGCONT"),
    ended: child.ended,
    stop: () => child.stop(),
    log: () => tail(child.logFile),
  };
}
