import { join } from "node:path";
import type { ApiAddress } from "../control-plane/kubeconfig.ts";
import { startChild, tail } from "../lib/processes.ts";
import type { Child } from "../lib/processes.ts";
import { NAMESPACE, SERVICE_ACCOUNT, repositoryPath } from "./world.ts";
import type { World } from "./world.ts";

/** An agent that runs as a separate process. */
export interface Agent {
  readonly instance: string;
  readonly running: boolean;
  readonly pid: number;
  /** SIGKILL: no clean-up, no release of the lease. */
  kill(): Promise<void>;
  /** SIGSTOP: the process stops and does not notice it. */
  freeze(): void;
  /** SIGCONT: it continues. */
  thaw(): void;
  /** Resolves when the agent has ended, for any reason. */
  readonly ended: Promise<string>;
  /** SIGTERM, as Kubernetes ends a pod. */
  stop(): Promise<void>;
  /** The end of its log. */
  log(): string;
}

export interface AgentStart {
  /** Another address at which the agent reaches the API server, such as a proxy. */
  via?: ApiAddress | undefined;
  /** The `main.ts` of another version. */
  program?: string | undefined;
  /** Runs the agent as the cluster administrator, as from a workstation, with its objects in this namespace. */
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
      // Version 0.1.0 does not have this flag.
      ...(program === undefined ? ["--allow-local-workload-clusters=true"] : []),
      ...flags,
    ],
    // The world's folder is deleted at the end. A folder that the user names keeps the whole log.
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
