import { fileURLToPath } from "node:url";
import type { Child } from "./processes.ts";
import { startChild } from "./processes.ts";

const MAIN = fileURLToPath(new URL("../../src/main.ts", import.meta.url));

/** Starts the real agent as a user would, `ironfence run`, in a process of its own that serves on free ports. */
export function startAgent(options: { kubeconfig: string; logFile: string; flags?: readonly string[] }): Child {
  const { kubeconfig, logFile, flags = [] } = options;
  const servers = ["--metrics-bind-address", "127.0.0.1:0", "--health-probe-bind-address", "127.0.0.1:0"];
  return startChild("ironfence", process.execPath, [MAIN, "run", "--kubeconfig", kubeconfig, ...servers, ...flags], {
    logFile,
  });
}
