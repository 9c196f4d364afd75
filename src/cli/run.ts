import { buildCommand } from "@stricli/core";
import { CLUSTER_OPTIONS, RUN_OPTIONS, resolveRunOptions } from "../config/run-options.ts";
import { createLogger } from "../telemetry/logger.ts";
import { runAgent } from "./agent.ts";
import type { CliContext } from "./context.ts";
import type { FlagTexts } from "./flags.ts";
import { flagsOf } from "./flags.ts";

/** `ironfence run`: the agent itself. */
export const runCommand = buildCommand<FlagTexts, [], CliContext>({
  func: async function run(this: CliContext, flags) {
    const options = resolveRunOptions(flags, this.process.env);
    const logger = createLogger(options.logLevel);
    await runAgent(options, { clock: this.clock, random: this.random, logger }, this.signal);
  },
  parameters: { flags: flagsOf({ ...CLUSTER_OPTIONS, ...RUN_OPTIONS }), aliases: { n: "namespace" } },
  docs: {
    brief: "Run the agent: detector, remediator, or both",
    fullDescription: [
      "Runs until SIGTERM or SIGINT. Kinds whose CRDs are not installed yet are waited for. Exit codes: 0 stopped as asked,",
      "1 could not start or lost its lease (a supervisor starts it again, and it goes on where it was), 2 wrong options.",
      "",
      "Each flag has an environment variable, named in brackets; the flag wins.",
    ].join("\n"),
    customUsage: [
      { input: "--kubeconfig ~/.kube/config", brief: "from a workstation" },
      { input: "--components remediator", brief: "behind another health check controller" },
      { input: "--families machine-health-check,bare-metal-host", brief: "for Cluster API on Metal3" },
      { input: "--metrics-bind-address 127.0.0.1:9090 --log-level debug", brief: "for a closer look" },
    ],
  },
});
