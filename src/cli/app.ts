import type { Application } from "@stricli/core";
import { buildApplication, buildRouteMap, proposeCompletions, run, text_en } from "@stricli/core";
import { OptionError } from "../config/option.ts";
import { ClusterConfigError, KubeError } from "../kube/errors.ts";
import type { CliContext } from "./context.ts";
import { completionCommand } from "./completion.ts";
import { pauseCommand, resumeCommand } from "./pause.ts";
import { runCommand } from "./run.ts";
import { statusCommand } from "./status.ts";
import { VERSION } from "./version.ts";

const app: Application<CliContext> = buildApplication(
  buildRouteMap({
    routes: {
      run: runCommand,
      status: statusCommand,
      pause: pauseCommand,
      resume: resumeCommand,
      completion: completionCommand,
    },
    docs: {
      brief: "Power fencing and node health remediation for bare-metal Kubernetes",
      fullDescription: [
        "ironfence finds nodes that are unhealthy, powers their hosts off through their BMCs, proves that they are off, frees",
        "their workloads, powers them on again and gives the nodes back their place; and escalates where that does not help.",
        "",
        "Start the agent with `ironfence run`; look at what it does with `ironfence status`; stop every new power order with",
        "`ironfence pause`. Each command has `--help` with examples.",
      ].join("\n"),
    },
  }),
  {
    name: "ironfence",
    versionInfo: { currentVersion: VERSION },
    scanner: { caseStyle: "allow-kebab-for-camel" },
    documentation: { caseStyle: "convert-camel-to-kebab", onlyRequiredInUsageLine: true },
    localization: { text: { ...text_en, exceptionWhileRunningCommand: describeFailure } },
    determineExitCode: (error) => (error instanceof OptionError ? EXIT_USAGE : EXIT_FAILURE),
  },
);

/** Runs one command line; its exit code is left in the context's process. */
export async function runCli(inputs: readonly string[], context: CliContext): Promise<void> {
  if (inputs[0] === "__complete") {
    // Asked by the completion scripts: one proposal a line, its meaning behind a tab.
    const proposals = await proposeCompletions(app, inputs.slice(1), context);
    for (const { completion, brief } of proposals) context.process.stdout.write(`${completion}\t${brief}\n`);
    return;
  }
  await run(app, inputs, context);
  // The library has negative codes for a command line that it cannot read.
  if (Number(context.process.exitCode) < 0) context.process.exitCode = EXIT_USAGE;
}

/** Something went wrong while the command ran. */
export const EXIT_FAILURE = 1;
/** The command line itself is wrong: nothing was done. */
export const EXIT_USAGE = 2;

/** What a user can mend is told in one line; anything else is a defect of ours and comes with its stack. */
function describeFailure(error: unknown): string {
  for (const known of [OptionError, ClusterConfigError, KubeError]) {
    if (error instanceof known) return `ironfence: ${error.message}`;
  }
  return `ironfence: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`;
}
