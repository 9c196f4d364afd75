import { join } from "node:path";
import { startAgent } from "../lib/agent-process.ts";
import type { Child } from "../lib/processes.ts";
import { bundle } from "./bundle.ts";
import { AGENT_ENVIRONMENT, AGENT_NODE_FLAGS } from "./node-flags.ts";

/** Starts the bundle of the agent as the Deployment does. Its log is `agent.log` in the folder. */
export async function startBenchAgent(
  folder: string,
  kubeconfig: string,
  flags: readonly string[] = [],
): Promise<Child> {
  return startAgent({
    kubeconfig,
    logFile: join(folder, "agent.log"),
    program: await bundle(folder),
    flags,
    nodeFlags: AGENT_NODE_FLAGS,
    env: AGENT_ENVIRONMENT,
  });
}
