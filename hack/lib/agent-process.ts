import { fileURLToPath } from "node:url";
import type { Child } from "./processes.ts";
import { startChild } from "./processes.ts";

const MAIN = fileURLToPath(new URL("../../src/main.ts", import.meta.url));

export interface AgentOptions {
  kubeconfig: string;
  logFile: string;
  /** More flags of `ironfence run`. */
  flags?: readonly string[];
  /** Flags of Node itself. */
  nodeFlags?: readonly string[];
  /** Variables in addition to the environment of this process. */
  env?: Readonly<Record<string, string>>;
  /** The program, such as a bundle; by default the sources. */
  program?: string;
}

/** Starts the real agent with `ironfence run`, as a separate process that listens on free ports. */
export function startAgent(options: AgentOptions): Child {
  const { kubeconfig, logFile, flags = [], nodeFlags = [], env = {}, program = MAIN } = options;
  const servers = ["--metrics-bind-address", "127.0.0.1:0", "--health-probe-bind-address", "127.0.0.1:0"];
  const local = ["--allow-local-workload-clusters", "true"];
  const args = [...nodeFlags, program, "run", "--kubeconfig", kubeconfig, ...servers, ...local, ...flags];
  return startChild("ironfence", process.execPath, args, { logFile, env });
}
