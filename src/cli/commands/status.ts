import { buildCommand } from "@stricli/core";
import { requireOption } from "../../config/option.ts";
import { RUN_OPTIONS } from "../../config/run-options.ts";
import { CLUSTER_OPTIONS, OUTPUT_OPTION, resolveClusterOptions } from "../../config/cluster-options.ts";
import { sleep } from "../../runtime/clock.ts";
import { toTime } from "../../runtime/time.ts";
import { withRuntime } from "../cluster/connect.ts";
import type { CliContext } from "../terminal/context.ts";
import { printLine } from "../terminal/context.ts";
import { CommandFailure } from "../errors/failures.ts";
import { flagsOf, switchFlag } from "../flags/flags.ts";
import type { Problem } from "../status/objects/object-problems.ts";
import { problemsOf } from "../status/problems.ts";
import { uncoveredOf } from "../status/could-fence/could-fence.ts";
import type { Overview } from "../status/objects/read.ts";
import { readOverview } from "../status/objects/read.ts";
import { renderOverview, renderProblems } from "../status/render.ts";
import { overviewPage } from "../dashboard/view/overview-page.ts";

const WATCH_PERIOD_MS = 2_000;
const AGES = /\d+ s ago|"(?:time|leaseAgeSeconds|renewTime|readyForSeconds|stepForSeconds)":[^,}]*|for \d+ s/g;

type StatusFlags = Readonly<
  Partial<Record<keyof typeof CLUSTER_OPTIONS | "output" | "leaseName", string>> & {
    problems: boolean;
    watch: boolean;
    exitCode: boolean;
  }
>;

/** `ironfence status`: who leads, what is wrong, and the objects that ironfence works on. */
export const statusCommand = buildCommand<StatusFlags, [], CliContext>({
  func: async function status(this: CliContext, { problems: onlyProblems, watch, exitCode, ...texts }) {
    const { env } = this.process;
    const options = {
      ...resolveClusterOptions(texts, env),
      leaseName: requireOption(RUN_OPTIONS.leaseName, texts, env),
    };
    const output = requireOption(OUTPUT_OPTION, texts, env);
    let shown = "";
    const show = (overview: Overview, problems: readonly Problem[]): void => {
      const lines =
        output === "json" ? [toJson(overview, problems, onlyProblems)] : toLines(overview, problems, onlyProblems);
      // If only ages have changed, nothing is printed.
      const text = lines.join("\n").replaceAll(AGES, "");
      if (text === shown) return;
      if (shown !== "" && output === "table") printLine(this, `--- ${toTime(overview.nowMs)}`);
      for (const line of lines) printLine(this, line);
      shown = text;
    };
    const found = await withRuntime(this, options, async (runtime, cluster) => {
      let problems: Problem[] = [];
      try {
        for (;;) {
          const overview = await readOverview(runtime, options, cluster, this.signal);
          problems = problemsOf(overview);
          show(overview, problems);
          if (!watch) return problems;
          await sleep(this.clock, WATCH_PERIOD_MS, this.signal);
        }
      } catch (error) {
        // Ctrl-C ends the command without an error.
        if (watch && this.signal.aborted) return problems;
        throw error;
      }
    });
    const errors = found.filter(({ severity }) => severity === "error").length;
    if (exitCode && errors > 0) {
      const what = errors === 1 ? "1 problem keeps" : `${errors} problems keep`;
      throw new CommandFailure("ProblemsFound", `${what} nodes from being fenced: the lines marked ! say what to do`);
    }
  },
  parameters: {
    flags: {
      problems: switchFlag("Only what is wrong, and what to do about it"),
      watch: switchFlag("Print again whenever something changes, until Ctrl-C"),
      exitCode: switchFlag("Exit with 1 if a problem keeps nodes from being fenced (those marked !)"),
      ...flagsOf({ ...CLUSTER_OPTIONS, leaseName: RUN_OPTIONS.leaseName, output: OUTPUT_OPTION }),
    },
    aliases: { o: "output", n: "namespace", w: "watch" },
  },
  docs: {
    brief: "Show who leads, what is wrong, health checks, remediations and fencing targets",
    fullDescription: [
      "Problems come first: those marked ! keep a node from being fenced, those marked - are worth a check. Sections that you",
      "are not allowed to read are named; the rest is shown.",
      "Exit codes: 0 shown, 1 the cluster cannot be read, or --exit-code and there is a problem; 2 wrong command line.",
    ].join("\n"),
    customUsage: [
      { input: "", brief: "tables" },
      { input: "--problems --exit-code", brief: "for a cron job" },
      { input: "-o json", brief: "one JSON object, with its problems, for scripts" },
    ],
  },
});

function toLines(overview: Overview, problems: readonly Problem[], onlyProblems: boolean): string[] {
  return onlyProblems ? renderProblems(problems) : renderOverview(overview, problems);
}

function toJson(overview: Overview, problems: readonly Problem[], onlyProblems: boolean): string {
  if (onlyProblems) return JSON.stringify({ problems });
  const { nodes, nowMs, machines: _machines, ...sections } = overview;
  const coverage = Array.isArray(nodes) ? { count: nodes.length, ...uncoveredOf(overview) } : nodes;
  const { leader, underWay, paused, could, now, held, ended } = overviewPage(overview).page;
  const page = { leader, underWay, paused, could, now, held, ended };
  return JSON.stringify({ time: toTime(nowMs), problems, page, nodes: coverage, ...sections });
}
