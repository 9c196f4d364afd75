import { buildCommand } from "@stricli/core";
import { DRAIN_TIMEOUT_OPTION, FENCE_TIMEOUT_OPTION } from "../../config/bmc-options.ts";
import { requireOption } from "../../config/option.ts";
import { CLUSTER_OPTIONS, OUTPUT_OPTION, resolveClusterOptions } from "../../config/cluster-options.ts";
import type { ClusterOptions } from "../../config/cluster-options.ts";
import { RUN_OPTIONS } from "../../config/run-options.ts";
import type { KubeRuntime } from "../../kube/runtime.ts";
import { formatDuration } from "../../runtime/duration.ts";
import { withRuntime } from "../cluster/connect.ts";
import type { ClusterAddress } from "../cluster/connect.ts";
import { CommandRefusal } from "../errors/failures.ts";
import { podsToEvict } from "../fence/drain.ts";
import { lackingPermissions } from "../fence/drill-permissions.ts";
import { planDrill } from "../fence/plan-drill.ts";
import type { DrillStep, PreparedDrill } from "../fence/drill.ts";
import { Drill } from "../fence/drill.ts";
import { isUnfinished, previewFence, readClusterFacts } from "../fence/preview.ts";
import { flagsOf, switchFlag, YES_FLAG } from "../flags/flags.ts";
import { nodeFlag, requireNode } from "../flags/node-flag.ts";
import { judgeNodes } from "../status/could-fence/could-fence.ts";
import { readOverview } from "../status/objects/read.ts";
import { confirm } from "../terminal/confirm.ts";
import type { CliContext } from "../terminal/context.ts";
import { printLine } from "../terminal/context.ts";
import type { Plan } from "../terminal/plan.ts";
import { printPlan } from "../terminal/plan.ts";
import { renderTable } from "../terminal/table.ts";

const OPTIONS = {
  ...CLUSTER_OPTIONS,
  output: OUTPUT_OPTION,
  timeout: FENCE_TIMEOUT_OPTION,
  drainTimeout: DRAIN_TIMEOUT_OPTION,
  nodeLeaseNamespace: RUN_OPTIONS.nodeLeaseNamespace,
  leaseName: RUN_OPTIONS.leaseName,
};

type DrillFlags = Readonly<Partial<Record<keyof typeof OPTIONS | "node", string>> & { dryRun: boolean; yes: boolean }>;

interface DrillOptions extends ClusterOptions {
  nodeName: string;
  output: "table" | "json";
  timeoutMs: number;
  drainTimeoutMs: number;
  nodeLeaseNamespace: string;
  leaseName: string;
}

/** `ironfence drill`: drains, fences and restores one node that works, to see that it goes well. */
export const drillCommand = buildCommand<DrillFlags, [], CliContext>({
  func: async function drill(this: CliContext, { dryRun, yes, ...texts }) {
    const { env } = this.process;
    const options: DrillOptions = {
      ...resolveClusterOptions(texts, env),
      nodeName: requireNode(texts.node, "for the drill"),
      output: requireOption(OUTPUT_OPTION, texts, env),
      timeoutMs: requireOption(FENCE_TIMEOUT_OPTION, texts, env),
      drainTimeoutMs: requireOption(DRAIN_TIMEOUT_OPTION, texts, env),
      nodeLeaseNamespace: requireOption(RUN_OPTIONS.nodeLeaseNamespace, texts, env),
      leaseName: requireOption(RUN_OPTIONS.leaseName, texts, env),
    };
    await withRuntime(this, options, async (runtime, cluster) => {
      const prepareNow = (mark?: string): Promise<PreparedDrill> => prepare(this, runtime, cluster, options, mark);
      const { preview, plan } = await prepareNow();
      const { nodeName } = options;
      printPlan(this, `a drill on node ${nodeName}`, plan);
      ensureAllowed(nodeName, plan.obstacles);
      if (dryRun) return;
      await confirm(this, `begin the drill on node ${nodeName}`, preview.concerns, yes);
      // The user may have taken long to answer.
      const agreed = yes ? preview : ensureUnchanged(await prepareNow(), nodeName, plan).preview;
      report(this, options, await new Drill(this, runtime, options, agreed, prepareNow).run());
    });
  },
  parameters: {
    flags: {
      node: nodeFlag("The node for the drill"),
      dryRun: switchFlag("Show each step, and what prevents the drill; change nothing"),
      yes: YES_FLAG,
      ...flagsOf(OPTIONS),
    },
    aliases: { n: "namespace", o: "output", y: "yes" },
  },
  docs: {
    brief: "Drain, fence and restore one node that works, and show how long each step takes",
    fullDescription: [
      "Cordons the node, evicts its pods as PodDisruptionBudgets allow, has the running agent fence it with all its safeguards,",
      "waits until it is back, and uncordons it. Nothing begins on a node of the control plane or of etcd, while a remediation is under way,",
      "if a health check would not remediate the node now, or if a pod has no controller. No option overrides this.",
      "Before the power-off, Ctrl-C or the end of the session uncordons the node. After it, they only end the waiting, and the",
      "last line says what is left to do.",
      "Exit codes: 0 the node is back, 1 failed, 2 wrong command line, 3 refused (nothing was powered off).",
    ].join("\n"),
    customUsage: [
      { input: "--node worker-3 --dry-run", brief: "each step, and what prevents the drill" },
      { input: "--node worker-3", brief: "asks before it begins" },
      { input: "--node worker-3 --drain-timeout 30m --yes -o json", brief: "for scripts" },
    ],
  },
});

async function prepare(
  context: CliContext,
  runtime: KubeRuntime,
  cluster: ClusterAddress,
  options: DrillOptions,
  mark: string | undefined,
): Promise<PreparedDrill> {
  const { signal } = context;
  const { nodeName, namespace, drainTimeoutMs } = options;
  const facts = await readClusterFacts({ runtime, openDevice: context.openDevice }, options, signal);
  const preview = previewFence(facts, "Reboot");
  const overview = await readOverview(runtime, options, cluster, signal);
  const { nodes, unread } = judgeNodes(overview);
  const verdict = nodes.find(({ node }) => node === nodeName);
  const could = verdict?.answer === "yes";
  const objection = could ? undefined : (verdict?.message ?? unread ?? "it is not known whether it could be fenced");
  const pods = await podsToEvict(runtime, nodeName, signal);
  const underWay = facts.remediations.filter(isUnfinished).length;
  const drainTimeout = formatDuration(drainTimeoutMs);
  const lacking = await lackingPermissions(runtime.client, { namespace, nodeName, pods }, signal);
  return { preview, plan: planDrill(preview, { pods, objection, lacking, underWay, drainTimeout }, mark) };
}

function ensureAllowed(nodeName: string, obstacles: readonly string[]): void {
  if (obstacles.length === 0) return;
  throw new CommandRefusal(
    "Refused",
    `no drill on node ${nodeName}, since ${obstacles.join("; and ")}. Nothing was changed`,
  );
}

/** @throws CommandRefusal if the drill would do something that the user has not agreed to. */
function ensureUnchanged(now: PreparedDrill, nodeName: string, agreed: Plan): PreparedDrill {
  const changes = now.plan.steps.filter((step, i) => step !== agreed.steps[i]);
  const obstacles = changes.map((step) => `what it would do has changed since it was shown: ${step}`);
  ensureAllowed(nodeName, [...now.plan.obstacles, ...obstacles.slice(0, 1)]);
  return now;
}

function report(context: CliContext, { nodeName, output }: DrillOptions, steps: readonly DrillStep[]): void {
  if (output === "json") return printLine(context, JSON.stringify({ node: nodeName, restored: true, steps }));
  const rows = steps.map(({ step, seconds }) => [step, `${seconds} s`]);
  for (const line of renderTable(["STEP", "TOOK"], rows)) printLine(context, line);
  printLine(context, `node ${nodeName} is back`);
}
