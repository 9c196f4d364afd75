import { buildCommand } from "@stricli/core";
import { parseBmcAddress } from "../../bmc/interface/address.ts";
import type { BmcAddress } from "../../bmc/interface/address.ts";
import { BmcError } from "../../bmc/interface/errors.ts";
import type { OpenDevice } from "../../bmc/interface/device-config.ts";
import type { CheckFormat } from "../../config/check-options.ts";
import {
  CHECK_OUTPUT_OPTION,
  CHECK_WAIT_OPTION,
  FAIL_ON_OPTION,
  LIVE_TIMEOUT_OPTION,
} from "../../config/check-options.ts";
import { OptionError, requireOption, resolveOption } from "../../config/option.ts";
import { RUN_OPTIONS } from "../../config/run-options.ts";
import { CLUSTER_OPTIONS, resolveClusterOptions } from "../../config/cluster-options.ts";
import { isKubeError } from "../../kube/errors.ts";
import { sleep } from "../../runtime/clock.ts";
import { DeadlineError } from "../../runtime/deadline.ts";
import { withRuntime } from "../cluster/connect.ts";
import type { CliContext } from "../terminal/context.ts";
import { CommandFailure } from "../errors/failures.ts";
import { flagsOf, switchFlag } from "../flags/flags.ts";
import { WaitingLine } from "../terminal/waiting-line.ts";
import { API_SERVER } from "../check/lines/api-checks.ts";
import type { CheckResult, Level } from "../check/check.ts";
import { failed, resultOf, runChecks } from "../check/check.ts";
import { CHECKS } from "../check/lines/checks.ts";
import { createTargetProbes } from "../check/read/live-probes.ts";
import { PRE_CHECKS } from "../check/lines/pre-checks.ts";
import type { ReadDeps } from "../check/read/read-facts.ts";
import { readFacts } from "../check/read/read-facts.ts";
import { readPreFacts } from "../check/read/read-pre-facts.ts";
import type { CheckReport } from "../check/render.ts";
import { renderJson, renderJunit, renderText } from "../check/render.ts";

/** The time between two runs of all checks. */
const WAIT_PERIOD_MS = 3_000;

const OPTIONS = {
  ...CLUSTER_OPTIONS,
  leaseName: RUN_OPTIONS.leaseName,
  nodeLeaseNamespace: RUN_OPTIONS.nodeLeaseNamespace,
  output: CHECK_OUTPUT_OPTION,
  failOn: FAIL_ON_OPTION,
  liveTimeout: LIVE_TIMEOUT_OPTION,
  wait: CHECK_WAIT_OPTION,
} as const;

type CheckFlags = Readonly<
  Partial<Record<keyof typeof OPTIONS, string>> & { pre: boolean; live: boolean; bmc: readonly string[] | undefined }
>;

/** `ironfence check`: whether every node could be fenced now. */
export const checkCommand = buildCommand<CheckFlags, [], CliContext>({
  func: async function check(this: CliContext, { pre, live, bmc = [], ...texts }) {
    const { env } = this.process;
    if (pre && live) throw new OptionError("--live: there is nothing to probe before an installation (--pre)");
    if (!pre && bmc.length > 0) throw new OptionError("--bmc: give --pre as well; --live probes every FencingTarget");
    const named = bmc.map(parseNamed);
    const options = {
      ...resolveClusterOptions(texts, env),
      leaseName: requireOption(RUN_OPTIONS.leaseName, texts, env),
      nodeLeaseNamespace: requireOption(RUN_OPTIONS.nodeLeaseNamespace, texts, env),
    };
    const output = requireOption(CHECK_OUTPUT_OPTION, texts, env);
    const failsOn: ReadonlySet<Level> = new Set<Level>(
      requireOption(FAIL_ON_OPTION, texts, env) === "warning" ? ["warning", "failed"] : ["failed"],
    );
    const liveTimeoutMs = requireOption(LIVE_TIMEOUT_OPTION, texts, env);
    const waitMs = resolveOption(CHECK_WAIT_OPTION, texts, env) ?? 0;
    const results = await withRuntime(this, options, (runtime, cluster, transport) => {
      const deps = { runtime, transport, cluster, options };
      const asked = live ? { openDevice: this.openDevice, timeoutMs: liveTimeoutMs } : undefined;
      const run = pre ? runPre(deps, named, this.signal) : runAll(deps, asked, this.signal);
      return runUntilPassed(this, run, { failsOn, waitMs });
    });
    print(this, output, { nowMs: this.clock.nowMs(), mode: pre ? "pre" : "installation", results }, failsOn);
    const failing = failingOf(results, failsOn);
    if (failing.length > 0) {
      const ids = failing.map(({ id }) => id).join(", ");
      throw new CommandFailure("ChecksFailed", `these checks did not pass: ${ids}: the report says how to fix each`);
    }
  },
  parameters: {
    flags: {
      pre: switchFlag("Check before an installation whether the cluster, your permissions and the network allow it"),
      live: switchFlag("Probe the BMC of every FencingTarget now, with one login each, and read its certificate"),
      bmc: {
        kind: "parsed",
        parse: String,
        optional: true,
        variadic: true,
        placeholder: "address",
        brief: "With --pre: address of a BMC that must answer this machine, as in a FencingTarget; may be repeated",
      },
      ...flagsOf(OPTIONS),
    },
    aliases: { o: "output", n: "namespace" },
  },
  docs: {
    brief: "Check whether every node could be fenced now",
    fullDescription: [
      "Each line is one check: √ passed, ‼ passed with a warning, × failed. A check that fails shows what was found, what to do,",
      "and its section in docs/reference/checks.md. What you have no permission to read is a warning that names the permission.",
      "Nothing is written and no power order is sent.",
      "Exit codes: 0 every check passed, with --fail-on warning also without a warning; 1 a check failed or the API server does",
      "not answer; 2 wrong command line.",
    ].join("\n"),
    customUsage: [
      { input: "", brief: "after an installation, and whenever you want to know" },
      { input: "--pre", brief: "before an installation" },
      { input: "--pre --bmc redfish://10.0.0.5 --bmc ipmi://10.0.1.5", brief: "… and whether these BMCs answer" },
      { input: "--live", brief: "ask every BMC now, instead of believing the last probe" },
      { input: "--wait 5m", brief: "after an upgrade: repeat until everything passes" },
      { input: "-o junit --fail-on warning", brief: "in a pipeline" },
    ],
  },
});

type Run = () => Promise<CheckResult[]>;

/** @throws OptionError */
function parseNamed(text: string): BmcAddress {
  try {
    return parseBmcAddress(text);
  } catch (error) {
    if (!(error instanceof BmcError)) throw error;
    throw new OptionError(`--bmc: ${error.message}`, { cause: error });
  }
}

function runPre(deps: ReadDeps, named: readonly BmcAddress[], signal: AbortSignal): Run {
  return async () => runChecks(PRE_CHECKS, await readPreFacts(deps, named, signal));
}

/** @param live what live probes need; undefined without `--live`. */
function runAll(
  deps: ReadDeps,
  live: { openDevice: OpenDevice; timeoutMs: number } | undefined,
  signal: AbortSignal,
): Run {
  const { runtime, options } = deps;
  const { namespace } = options;
  const probes =
    live === undefined
      ? undefined
      : createTargetProbes({ runtime, openDevice: live.openDevice }, { namespace, timeoutMs: live.timeoutMs });
  return async () => runChecks(CHECKS, await readFacts(deps, probes, signal));
}

/** Runs all checks once, or again and again until they pass or the time is over. */
async function runUntilPassed(
  context: CliContext,
  run: Run,
  { failsOn, waitMs }: { failsOn: ReadonlySet<Level>; waitMs: number },
): Promise<CheckResult[]> {
  const { clock, signal } = context;
  const untilMs = clock.monotonicMs() + waitMs;
  const line = new WaitingLine(context);
  try {
    for (;;) {
      const results = await runOnce(run, signal);
      const failing = failingOf(results, failsOn);
      if (failing.length === 0 || clock.monotonicMs() + WAIT_PERIOD_MS > untilMs) return results;
      line.show(failing.map(({ id }) => id).join(", "));
      await sleep(clock, WAIT_PERIOD_MS, signal);
    }
  } finally {
    line.clear();
  }
}

/** If the API server does not answer, returns a failed check, so that `--wait` waits for it. */
async function runOnce(run: Run, signal: AbortSignal): Promise<CheckResult[]> {
  try {
    return await run();
  } catch (error) {
    signal.throwIfAborted();
    const hint = isKubeError(error) ? error.nextStep : undefined;
    if (!isKubeError(error) && !(error instanceof DeadlineError)) throw error;
    return [resultOf(API_SERVER, [failed(error.message, hint)])];
  }
}

function failingOf(results: readonly CheckResult[], failsOn: ReadonlySet<Level>): CheckResult[] {
  return results.filter(({ level }) => failsOn.has(level));
}

function print(context: CliContext, output: CheckFormat, report: CheckReport, failsOn: ReadonlySet<Level>): void {
  const { stdout } = context.process;
  const lines =
    output === "json"
      ? [renderJson(report)]
      : output === "junit"
        ? [renderJunit(report, failsOn)]
        : renderText(report, hasColors(context));
  for (const line of lines) stdout.write(`${line}\n`);
}

/** Only a terminal has a color depth. */
function hasColors({ process: { stdout, env } }: CliContext): boolean {
  return (env["NO_COLOR"] ?? "") === "" && (stdout.getColorDepth?.(env) ?? 1) >= 4;
}
