import type { Application } from "@stricli/core";
import {
  buildApplication,
  buildRouteMap,
  proposeCompletions,
  run,
  text_en,
  UnexpectedPositionalError,
} from "@stricli/core";
import { BmcError } from "../bmc/errors.ts";
import { OptionError } from "../config/option.ts";
import { ClusterConfigError, KubeError } from "../kube/errors.ts";
import { TargetError } from "../remediator/hosts/host.ts";
import type { Reason } from "../remediator/machine/model/reasons.ts";
import { pageOf } from "../remediator/machine/model/reasons.ts";
import type { CliContext } from "./context.ts";
import { withoutControls } from "./context.ts";
import { bmcCommands } from "./bmc.ts";
import { checkCommand } from "./check/command.ts";
import { completionCommand } from "./completion.ts";
import { explainCommands } from "./explain.ts";
import { CommandFailure, EXIT_FAILURE, EXIT_REFUSED, EXIT_USAGE, Refusal } from "./failures.ts";
import { fenceCommand } from "./fence.ts";
import { completeSwitches } from "./flags.ts";
import { pauseCommand, resumeCommand } from "./pause.ts";
import { powerCommands } from "./power.ts";
import { probeCommand } from "./probe.ts";
import { runCommand } from "./run.ts";
import { statusCommand } from "./status.ts";
import { VERSION } from "../runtime/version.ts";
import { deviceProblem } from "../remediator/hosts/device-problem.ts";
import { replayCommand } from "./replay.ts";

/**
 * @param command the first word of the command line, by which messages name the next step.
 * @param how `asJson`: errors are JSON objects, for scripts; `noColor`: help is printed without colors.
 */
const buildCli = (command: string, how: { asJson: boolean; noColor: boolean }): Application<CliContext> =>
  buildApplication(
    buildRouteMap({
      routes: {
        run: runCommand,
        status: statusCommand,
        check: checkCommand,
        pause: pauseCommand,
        resume: resumeCommand,
        explain: explainCommands,
        probe: probeCommand,
        power: powerCommands,
        bmc: bmcCommands,
        fence: fenceCommand,
        replay: replayCommand,
        completion: completionCommand,
      },
      docs: {
        brief: "Power fencing and node health remediation for bare-metal Kubernetes",
        fullDescription: [
          "ironfence finds unhealthy nodes, powers their hosts off through their BMCs, proves that they are off, releases",
          "their workloads, powers them on again and returns the nodes to service. It escalates if that does not help.",
          "",
          "`ironfence check` shows whether every node could be fenced now, and `ironfence check --pre` whether you can install it.",
          "Start the agent with `ironfence run`. `ironfence status` shows what it does, and `ironfence explain` shows why. Stop",
          "every new power-off with `ironfence pause`. By hand: `ironfence probe` checks whether a host could be fenced, `ironfence fence` has the agent do",
          "it, `ironfence power` reads or changes one host's power. `ironfence help COMMAND` has examples; `ironfence version` prints",
          "the version.",
        ].join("\n"),
      },
    }),
    {
      name: "ironfence",
      versionInfo: { currentVersion: VERSION },
      scanner: { caseStyle: "allow-kebab-for-camel" },
      documentation: {
        caseStyle: "convert-camel-to-kebab",
        onlyRequiredInUsageLine: true,
        disableAnsiColor: how.noColor,
      },
      localization: {
        text: {
          ...text_en,
          noCommandRegisteredForInput: (args) =>
            args.input.startsWith("-")
              ? `ironfence: ${args.input}: flags come after the command (ironfence --help lists the commands)`
              : text_en.noCommandRegisteredForInput(args),
          exceptionWhileParsingArguments: (error) => toText(describeUsage(command, error), EXIT_USAGE, how.asJson),
          exceptionWhileRunningCommand: (error) =>
            toText(describeFailure(error), exitCodeOf(error), how.asJson, deviceProblem(error)?.reason),
        },
      },
      determineExitCode: exitCodeOf,
    },
  );

/** Runs one command line; its exit code is left in the context's process. */
export async function runCli(inputs: readonly string[], context: CliContext): Promise<void> {
  if (inputs[0] === "__complete") {
    // Asked by the completion scripts: one proposal a line, its meaning behind a tab.
    const plain = { asJson: false, noColor: true };
    const proposals = await proposeCompletions(buildCli("", plain), inputs.slice(1), context);
    for (const { completion, brief } of proposals) context.process.stdout.write(`${completion}\t${brief}\n`);
    return;
  }
  const { env } = context.process;
  const asJson = wantsJson(inputs, env["IRONFENCE_OUTPUT"]);
  const how = { asJson, noColor: asJson || (env["NO_COLOR"] ?? "") !== "" };
  await run(buildCli(inputs[0] ?? "", how), completeSwitches(spellOut(inputs)), context);
  // The library has negative codes for a command line that it cannot read.
  if (Number(context.process.exitCode) < 0) context.process.exitCode = EXIT_USAGE;
}

/** `help [COMMAND…]` and `version` are what users type first; the library supports them as flags. */
function spellOut(inputs: readonly string[]): readonly string[] {
  const [first, ...rest] = inputs;
  if (first === "help") return [...rest, "--help"];
  return first === "version" && rest.length === 0 ? ["--version"] : inputs;
}

/** Whether results are to be JSON, as far as a command line shows it that may be wrong. */
function wantsJson(inputs: readonly string[], variable: string | undefined): boolean {
  const isFlag = (input: string | undefined): boolean => input === "-o" || input === "--output";
  const chosen = inputs.findLast((input, index) => isFlag(inputs[index - 1]) || input.startsWith("--output="));
  return (chosen?.replace("--output=", "") ?? variable) === "json";
}

function toText(message: string, exitCode: number, asJson: boolean, reason?: Reason): string {
  const page = reason === undefined ? undefined : pageOf(reason);
  if (!asJson) return page === undefined ? message : `${message} (${page})`;
  // What is undefined is left out.
  return JSON.stringify({ error: { message: message.replace(/^ironfence: /, ""), reason, page, exitCode } });
}

/** What is wrong with a command line, and where to look. */
function describeUsage(command: string, error: unknown): string {
  const isName = error instanceof UnexpectedPositionalError && command === "fence";
  const hint = isName ? `name the node with --node ${error.input}; ` : "";
  const text = text_en.exceptionWhileParsingArguments(error, false);
  return withoutControls(`ironfence ${command}: ${text} (${hint}see ironfence ${command} --help)`);
}

function exitCodeOf(error: unknown): number {
  if (error instanceof OptionError) return EXIT_USAGE;
  return error instanceof Refusal ? EXIT_REFUSED : EXIT_FAILURE;
}

/** What a user can fix is one line; anything else is a defect and comes with its stack. */
function describeFailure(error: unknown): string {
  const problem = deviceProblem(error);
  if (problem !== undefined) return withoutControls(`ironfence: ${problem.message}`);
  for (const known of [OptionError, ClusterConfigError, KubeError, BmcError, TargetError, CommandFailure, Refusal]) {
    if (!(error instanceof known)) continue;
    const nextStep = error instanceof KubeError ? error.nextStep : undefined;
    return withoutControls(`ironfence: ${error.message}${nextStep === undefined ? "" : `: ${nextStep}`}`);
  }
  return `ironfence: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`;
}
