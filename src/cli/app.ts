import type { Application } from "@stricli/core";
import {
  buildApplication,
  buildCommand,
  buildRouteMap,
  proposeCompletions,
  run,
  text_en,
  UnexpectedPositionalError,
} from "@stricli/core";
import type { CliContext } from "./terminal/context.ts";
import { printLine } from "./terminal/context.ts";
import { bmcCommands } from "./commands/bmc.ts";
import { bundleCommand } from "./commands/bundle.ts";
import { checkCommand } from "./commands/check.ts";
import { dashboardCommand } from "./commands/dashboard.ts";
import { completionCommand } from "./commands/completion.ts";
import type { ErrorReport } from "./errors/error-report.ts";
import { exitCodeOf, reportError, reportUsage } from "./errors/error-report.ts";
import { explainCommands } from "./commands/explain.ts";
import { EXIT_USAGE } from "./errors/failures.ts";
import { drillCommand } from "./commands/drill.ts";
import { enrollCommand } from "./commands/enroll.ts";
import { fenceCommand } from "./commands/fence.ts";
import { driverCommands } from "./commands/driver.ts";
import { completeSwitches } from "./flags/flags.ts";
import { pauseCommand, resumeCommand } from "./commands/pause.ts";
import { powerCommands } from "./commands/power.ts";
import { probeCommand } from "./commands/probe.ts";
import { runCommand } from "./commands/run.ts";
import { statusCommand } from "./commands/status.ts";
import type { Invocation } from "./terminal/invocation.ts";
import { VERSION } from "../runtime/version.ts";
import { replayCommand } from "./commands/replay.ts";

/** How output looks. `asJson`: errors are JSON objects, for scripts; `noColor`: help has no colors. */
interface Style {
  program: Invocation["program"];
  asJson: boolean;
  noColor: boolean;
}

const versionCommand = buildCommand({
  func: function version(this: CliContext) {
    printLine(this, VERSION);
  },
  parameters: {},
  docs: { brief: "Print the version of ironfence" },
});

/** Prints the list of commands. `spellOut` has already rewritten `help COMMAND`. */
function helpCommand(how: Style) {
  return buildCommand<Readonly<object>, string[], CliContext>({
    func: async function help(this: CliContext) {
      await run(buildCli("help", how), ["--help"], this);
    },
    parameters: {
      positional: { kind: "array", parameter: { brief: "Name of a command", placeholder: "command", parse: String } },
    },
    docs: {
      brief: "Print the commands, or the flags and examples of one command",
      customUsage: [{ input: "power off", brief: "flags and examples of one command" }],
    },
  });
}

/**
 * @param command the first word of the command line; messages name it in the next step.
 */
const buildCli = (command: string, how: Style): Application<CliContext> =>
  buildApplication(
    buildRouteMap({
      routes: {
        run: runCommand,
        status: statusCommand,
        check: checkCommand,
        bundle: bundleCommand,
        dashboard: dashboardCommand,
        pause: pauseCommand,
        resume: resumeCommand,
        explain: explainCommands,
        probe: probeCommand,
        power: powerCommands,
        bmc: bmcCommands,
        driver: driverCommands,
        fence: fenceCommand,
        drill: drillCommand,
        enroll: enrollCommand,
        replay: replayCommand,
        completion: completionCommand,
        help: helpCommand(how),
        version: versionCommand,
      },
      docs: {
        brief: "Power fencing and node health remediation for bare-metal Kubernetes",
        fullDescription: [
          "ironfence finds unhealthy nodes, powers their hosts off through their BMCs, proves that they are off, releases",
          "their workloads, powers them on again and returns the nodes to service. It escalates if that does not help.",
          "",
          "Before an installation, run `ironfence check --pre`. Start the agent with `ironfence run`. Then `ironfence check`",
          "shows whether every node could be fenced now, and `ironfence status` and `ironfence explain` show what the agent",
          "does and why. `ironfence pause` stops every new power-off. `ironfence help COMMAND` has examples.",
        ].join("\n"),
      },
    }),
    {
      name: how.program,
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
            toText(how.program, reportUsage(describeUnknown(how.program, args)), how.asJson),
          exceptionWhileParsingArguments: (error) => {
            const asked = `${how.program} ${command}`;
            return toText(asked, reportUsage(describeUsage(asked, error)), how.asJson);
          },
          exceptionWhileRunningCommand: (error) => toText(how.program, reportError(error), how.asJson),
        },
      },
      determineExitCode: exitCodeOf,
    },
  );

/** Runs one command line and sets the exit code of the context's process. */
export async function runCli(
  inputs: readonly string[],
  context: CliContext,
  program: Invocation["program"] = "ironfence",
): Promise<void> {
  if (inputs[0] === "__complete") {
    // The completion scripts and kubectl call this. They expect one proposal a line, with its description after a tab.
    const plain = { program, asJson: false, noColor: true };
    const proposals = await proposeCompletions(buildCli("", plain), inputs.slice(1), context);
    for (const { completion, brief } of proposals) context.process.stdout.write(`${completion}\t${brief}\n`);
    return;
  }
  const { env } = context.process;
  const asJson = wantsJson(inputs, env["IRONFENCE_OUTPUT"]);
  const how = { program, asJson, noColor: asJson || (env["NO_COLOR"] ?? "") !== "" };
  await run(buildCli(inputs[0] ?? "", how), completeSwitches(spellOut(inputs)), context);
  // The library sets negative codes if it cannot parse a command line.
  if (Number(context.process.exitCode) < 0) context.process.exitCode = EXIT_USAGE;
}

/** Rewrites `help COMMAND` as `COMMAND --help`. */
function spellOut(inputs: readonly string[]): readonly string[] {
  const [first, ...rest] = inputs;
  return first === "help" && rest.length > 0 ? [...rest, "--help"] : inputs;
}

/** Whether the output must be JSON, read from a command line that may be invalid. */
function wantsJson(inputs: readonly string[], variable: string | undefined): boolean {
  const isFlag = (input: string | undefined): boolean => input === "-o" || input === "--output";
  const chosen = inputs.findLast((input, index) => isFlag(inputs[index - 1]) || input.startsWith("--output="));
  return (chosen?.replace("--output=", "") ?? variable) === "json";
}

/** @param program the first words of the text: `ironfence`, or the command whose flags are wrong. */
function toText(program: string, report: ErrorReport, asJson: boolean): string {
  const { code: reason, message, page, exitCode } = report;
  if (asJson) return JSON.stringify({ error: { message, reason, page, exitCode } });
  return `${program}: ${message} (${page})`;
}

/** The message about a first word that is not a command. */
function describeUnknown(program: string, args: Parameters<typeof text_en.noCommandRegisteredForInput>[0]): string {
  return args.input.startsWith("-")
    ? `${args.input}: flags come after the command (${program} --help lists the commands)`
    : `${text_en.noCommandRegisteredForInput(args)} (${program} --help lists the commands)`;
}

/** What is wrong with a command line, and where to look. @param asked program and command. */
function describeUsage(asked: string, error: unknown): string {
  const isName = error instanceof UnexpectedPositionalError && asked.endsWith(" fence");
  const hint = isName ? `name the node with --node ${error.input}; ` : "";
  const text = text_en.exceptionWhileParsingArguments(error, false);
  return `${text} (${hint}see ${asked} --help)`;
}
