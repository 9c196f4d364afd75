import { buildCommand } from "@stricli/core";
import { resolveRunOptions } from "../../config/resolve-run-options.ts";
import { RUN_OPTIONS } from "../../config/run-options.ts";
import { CLUSTER_OPTIONS } from "../../config/cluster-options.ts";
import { systemMemory } from "../../runtime/memory.ts";
import { createLogger } from "../../telemetry/logger.ts";
import { runAgent } from "../agent/agent.ts";
import type { CliContext } from "../terminal/context.ts";
import type { FlagTexts } from "../../config/option.ts";
import { flagsOf } from "../flags/flags.ts";

/** `ironfence run`: the agent itself. */
export const runCommand = buildCommand<FlagTexts, [], CliContext>({
  func: async function run(this: CliContext, flags) {
    const options = resolveRunOptions(flags, this.process.env);
    const logger = createLogger(options.logLevel);
    const { clock, random, openDevice, signal } = this;
    await runAgent(options, { clock, random, logger, openDevice, memory: systemMemory() }, signal);
  },
  parameters: { flags: flagsOf({ ...CLUSTER_OPTIONS, ...RUN_OPTIONS }), aliases: { n: "namespace" } },
  docs: {
    brief: "Run the agent: detector, remediator, or both",
    fullDescription: [
      "Runs until SIGTERM or SIGINT, and waits for CRDs that are not installed yet. Exit codes: 0 stopped by a signal, 1 could",
      "not start, or lost its lease (a supervisor starts it again, and it continues), 2 wrong options.",
      "",
      "Each flag has an environment variable, named in brackets. The flag overrides it.",
    ].join("\n"),
    customUsage: [
      { input: "--kubeconfig ~/.kube/config", brief: "from a workstation" },
      { input: "--components remediator", brief: "with another health check controller" },
      { input: "--observe", brief: "decide and report, and fence nothing" },
      { input: "--families machine-health-check,bare-metal-host", brief: "for Cluster API on Metal3" },
      { input: "--metrics-bind-address 127.0.0.1:9090 --log-level debug", brief: "to investigate a problem" },
    ],
  },
});
