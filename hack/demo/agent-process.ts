import { spawn } from "node:child_process";
import { createWriteStream } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { NAMESPACE } from "./objects.ts";

/** The real agent, as a process of its own. */
export interface AgentProcess {
  /** Resolves when the process has ended, to a sentence that says how. */
  ended: Promise<string>;
  stop(): Promise<void>;
}

const STOP_TIMEOUT_MS = 5_000;

/** Starts `ironfence run` as a user would; its log goes to a file. */
export function startAgent(kubeconfigPath: string, logPath: string): AgentProcess {
  const main = join(fileURLToPath(new URL("../../", import.meta.url)), "src", "main.ts");
  const flags = ["--kubeconfig", kubeconfigPath, "--namespace", NAMESPACE];
  const servers = ["--metrics-bind-address", "127.0.0.1:0", "--health-probe-bind-address", "127.0.0.1:0"];
  const child = spawn(process.execPath, [main, "run", ...flags, ...servers], { stdio: ["ignore", "ignore", "pipe"] });
  const log = createWriteStream(logPath);
  child.stderr.pipe(log);
  const ended = new Promise<string>((resolve) => {
    child.once("error", (error) => resolve(`could not be started: ${error.message}`));
    child.once("exit", (code, signal) => resolve(signal === null ? `ended with code ${code}` : `ended by ${signal}`));
  });
  return {
    ended,
    stop: async () => {
      child.kill("SIGTERM");
      const kill = setTimeout(() => child.kill("SIGKILL"), STOP_TIMEOUT_MS);
      await ended;
      clearTimeout(kill);
    },
  };
}
