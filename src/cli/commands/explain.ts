import { buildCommand, buildRouteMap } from "@stricli/core";
import { RUN_OPTIONS } from "../../config/run-options.ts";
import { CLUSTER_OPTIONS, OUTPUT_OPTION, resolveClusterOptions } from "../../config/cluster-options.ts";
import { requireOption } from "../../config/option.ts";
import type { EvaluatedNodeChecks } from "../../detector/nodes/evaluate-once.ts";
import { toTime } from "../../runtime/time.ts";
import { withRuntime } from "../cluster/connect.ts";
import type { CliContext } from "../terminal/context.ts";
import { printLine } from "../terminal/context.ts";
import { readDecisions } from "../explain/read.ts";
import type { CheckExplanation, NodeExplanation } from "../explain/words.ts";
import { explainMachinesCommand } from "./explain-machines.ts";
import { explainCheck, explainNode, formatTime } from "../explain/words.ts";
import type { FenceExplanation } from "../explain/fence.ts";
import { fenceExplainer } from "../explain/fence.ts";
import { CommandFailure } from "../errors/failures.ts";
import type { FlagTexts } from "../../config/option.ts";
import { flagsOf } from "../flags/flags.ts";
import { proposeHealthChecks, proposeNodes } from "../flags/proposals.ts";
import type { Overview } from "../status/objects/read.ts";
import { readOverview } from "../status/objects/read.ts";
import { renderTable } from "../terminal/table.ts";

/** One explanation, as JSON and as lines of text. */
interface ExplanationOutput {
  json: object;
  lines: string[];
}

const EXIT_CODES =
  "Exit codes: 0 explained, whatever the decision is; 1 there is no such object, or the cluster cannot be read; 2 wrong command line.";

/** Builds one of the commands, which differ only in how they present the decisions. */
function explainCommand(
  placeholder: string,
  report: (live: EvaluatedNodeChecks, name: string, overview: Overview) => ExplanationOutput,
  docs: { brief: string; named: string; more: string; example: string; propose: typeof proposeNodes },
) {
  return buildCommand<FlagTexts, [name: string], CliContext>({
    func: async function explain(this: CliContext, flags, name) {
      const { env } = this.process;
      const cluster = resolveClusterOptions(flags, env);
      const output = requireOption(OUTPUT_OPTION, flags, env);
      const leaseNamespace = requireOption(RUN_OPTIONS.nodeLeaseNamespace, flags, env);
      const { namespace } = cluster;
      const leaseName = requireOption(RUN_OPTIONS.leaseName, flags, env);
      const [live, overview] = await withRuntime(this, cluster, (runtime, of) =>
        Promise.all([
          readDecisions(runtime, { leaseNamespace, namespace }, this.signal),
          readOverview(runtime, { ...cluster, leaseName }, of, this.signal),
        ]),
      );
      const { json, lines } = report(live, name, overview);
      if (output === "json") printLine(this, JSON.stringify(json));
      else for (const line of lines) printLine(this, line);
    },
    parameters: {
      positional: {
        kind: "tuple",
        parameters: [{ brief: docs.named, placeholder, parse: String, proposeCompletions: docs.propose }],
      },
      flags: {
        ...flagsOf({ nodeLeaseNamespace: RUN_OPTIONS.nodeLeaseNamespace }),
        ...flagsOf({ ...CLUSTER_OPTIONS, output: OUTPUT_OPTION }),
      },
      aliases: { o: "output", n: "namespace" },
    },
    docs: {
      brief: docs.brief,
      fullDescription: [docs.more, "", "Reads the cluster once, and writes nothing.", EXIT_CODES].join("\n"),
      customUsage: [
        { input: docs.example, brief: "as text" },
        { input: `${docs.example} -o json`, brief: "for scripts" },
      ],
    },
  });
}

/** `ironfence explain`: what the detector would decide now, and why. */
export const explainCommands = buildRouteMap({
  routes: {
    node: explainCommand("name", reportNode, {
      brief: "What keeps a node from being fenced, in order, and what each health check does about it",
      named: "Name of the node",
      more: "Also names the health checks that do not cover the node, so that you see why nothing remediates it.",
      example: "worker-3",
      propose: proposeNodes,
    }),
    nhc: explainCommand("name", reportCheck, {
      brief: "What a NodeHealthCheck does about its nodes, and why",
      named: "Name of the NodeHealthCheck",
      more: "Healthy nodes without a remediation are counted, not listed.",
      example: "workers",
      propose: proposeHealthChecks,
    }),
    mhc: explainMachinesCommand,
  },
  docs: {
    brief: "Show what the detector decides now for a node or a health check, and why",
    fullDescription: [
      "Makes the decision of the health checks again from live objects, with the code of the agent and your kubeconfig. The",
      "agent need not run. What only the agent knows is missing: how old its view is, and what it is doing at this moment.",
    ].join("\n"),
  },
});

function reportNode(live: EvaluatedNodeChecks, name: string, overview: Overview): ExplanationOutput {
  const explanations = explainNode(live, name);
  if (explanations === undefined) {
    throw new CommandFailure(
      "ObjectNotFound",
      `there is no node ${name}, and no health check has a record of it: kubectl get nodes lists the nodes`,
    );
  }
  const { nowMs } = live;
  const fence = fenceExplainer(overview)(name, explanations);
  const { readiness, steps } = fence;
  const json = { node: name, time: toTime(nowMs), couldFence: readiness, fence: steps, healthChecks: explanations };
  const head = [`node ${name} at ${toTime(nowMs)}`, ...renderFence(fence)];
  if (explanations.length === 0) return { json, lines: [...head, "", "the cluster has no NodeHealthCheck"] };
  const isConcerned = ({ selected, reasons }: NodeExplanation) => selected || reasons.length > 0;
  const concerned = explanations.filter(isConcerned);
  const others = explanations.filter((explanation) => !isConcerned(explanation));
  const lines = concerned.flatMap((explanation) => [...renderNode(explanation, nowMs), ""]);
  for (const { healthCheck, reason } of others) lines.push(`NodeHealthCheck ${healthCheck}: ${reason}`);
  return {
    json,
    lines: [...head, "", ...lines].slice(0, others.length === 0 ? -1 : undefined),
  };
}

/**
 * Renders the answer, and the preconditions of a fence in order. The first one that `blocks` prevents the fence.
 */
function renderFence({ readiness, steps }: FenceExplanation): string[] {
  const { answer = "unknown", reason = "NodeNotFound", message = "the cluster has no such node" } = readiness ?? {};
  const why = reason === "" ? "" : `: ${reason}: ${message}`;
  return [
    `could be fenced now: ${answer}${why}`,
    "",
    "Preconditions of a fence of this node, in order:",
    ...renderTable(
      ["  STEP", "STATE", "FOUND"],
      steps.map(({ step, state, found }) => [`  ${step}`, state === "blocks" ? "BLOCKS" : state, found]),
    ),
  ];
}

function renderNode(
  { healthCheck, outcome, reason, actions, nextCheck, reasons }: NodeExplanation,
  nowMs: number,
): string[] {
  return [
    `NodeHealthCheck ${healthCheck}: ${outcome}: ${reason}`,
    ...renderTable(
      ["  WHAT", "FOUND"],
      [...reasons.map(({ what, found }) => [`  ${what}`, found]), ...nextLines(actions, nextCheck, nowMs)],
    ),
  ];
}

function reportCheck(live: EvaluatedNodeChecks, name: string): ExplanationOutput {
  const { nowMs } = live;
  const found = live.checks.find(({ check }) => check.metadata.name === name);
  if (found === undefined) {
    throw new CommandFailure("ObjectNotFound", `there is no NodeHealthCheck ${name}: ironfence status lists them`);
  }
  const explanation = explainCheck(found);
  return { json: { time: toTime(nowMs), ...explanation }, lines: renderCheck(explanation, nowMs) };
}

function renderCheck(explanation: CheckExplanation, nowMs: number): string[] {
  const { healthCheck, phase, gate, observedNodes, healthyNodes, nextCheck, reasons, nodes } = explanation;
  const decision = gate === undefined ? "remediations may start" : gate.reason;
  return [
    `NodeHealthCheck ${healthCheck} at ${toTime(nowMs)}: ${phase}: ${decision}`,
    ...renderTable(
      ["  WHAT", "FOUND"],
      [
        ["  nodes", `${observedNodes} selected, ${healthyNodes} healthy`],
        ...reasons.map(({ what, found }) => [`  ${what}`, found]),
        ...nextLines([], nextCheck, nowMs),
      ],
    ),
    "",
    ...(nodes.length === 0
      ? ["no node is unhealthy or in remediation"]
      : renderTable(
          ["NODE", "DECISION", "NEXT", "REASON"],
          nodes.map((node) => [node.name, node.outcome, node.nextCheck ?? "-", node.reason]),
        )),
  ];
}

function nextLines(actions: readonly string[], nextCheck: string | undefined, nowMs: number): string[][] {
  const next =
    nextCheck === undefined ? "when something changes" : `${formatTime(nextCheck, nowMs)}, or when something changes`;
  return [...actions.map((action) => ["  now", action]), ["  next", next]];
}
