import { buildCommand } from "@stricli/core";
import type { BareMetalRemediation } from "../../api/ironfence/bare-metal-remediation.ts";
import { FENCE_TIMEOUT_OPTION } from "../../config/bmc-options.ts";
import { requireOption } from "../../config/option.ts";
import { RUN_OPTIONS } from "../../config/run-options.ts";
import { CLUSTER_OPTIONS, OUTPUT_OPTION, resolveClusterOptions } from "../../config/cluster-options.ts";
import { isKubeError } from "../../kube/errors.ts";
import type { KubeRuntime } from "../../kube/runtime.ts";
import { isReady } from "../../nodes/ready.ts";
import { withRuntime } from "../cluster/connect.ts";
import { confirm } from "../terminal/confirm.ts";
import type { CliContext } from "../terminal/context.ts";
import { printLine, printNote } from "../terminal/context.ts";
import { CommandFailure, CommandRefusal } from "../errors/failures.ts";
import { followRemediation, verdictOf } from "../fence/follow.ts";
import type { FencePreview, StrategyType } from "../fence/preview.ts";
import { countPods, previewFence, readClusterFacts } from "../fence/preview.ts";
import { createRemediationByHand, deleteFinishedRemediation } from "../fence/remediation.ts";
import { flagsOf, switchFlag, YES_FLAG } from "../flags/flags.ts";
import { nodeFlag, requireNode } from "../flags/node-flag.ts";
import { renderTable } from "../terminal/table.ts";
import { deviceProblem } from "../../remediator/hosts/model/device-problem.ts";

const STRATEGIES: Readonly<Record<"reboot" | "reprovision" | "escalate", StrategyType>> = {
  reboot: "Reboot",
  reprovision: "Reprovision",
  escalate: "Escalate",
};

type FenceFlags = Readonly<
  Partial<Record<keyof typeof CLUSTER_OPTIONS | "output" | "timeout" | "nodeLeaseNamespace" | "node", string>> & {
    strategy: keyof typeof STRATEGIES;
    dryRun: boolean;
    yes: boolean;
  }
>;

interface FenceOptions {
  namespace: string;
  nodeName: string;
  strategy: StrategyType;
  output: "table" | "json";
  timeoutMs: number;
  agreed: boolean;
}

/** `ironfence fence`: has the agent fence one node, with a remediation like any other. */
export const fenceCommand = buildCommand<FenceFlags, [], CliContext>({
  func: async function fence(this: CliContext, { strategy, dryRun, yes, ...texts }) {
    const { env } = this.process;
    const cluster = resolveClusterOptions(texts, env);
    const options: FenceOptions = {
      namespace: cluster.namespace,
      nodeName: requireNode(texts.node, "to fence"),
      strategy: STRATEGIES[strategy],
      output: requireOption(OUTPUT_OPTION, texts, env),
      timeoutMs: requireOption(FENCE_TIMEOUT_OPTION, texts, env),
      agreed: yes,
    };
    const nodeLeaseNamespace = requireOption(RUN_OPTIONS.nodeLeaseNamespace, texts, env);
    await withRuntime(this, cluster, async (runtime) => {
      const facts = await readClusterFacts(
        { runtime, openDevice: this.openDevice },
        { ...options, nodeLeaseNamespace },
        this.signal,
      );
      const preview = previewFence(facts, options.strategy);
      await (dryRun ? showPreview(this, runtime, preview, options) : carryOut(this, runtime, preview, options));
    });
  },
  parameters: {
    flags: {
      node: nodeFlag("The node to fence"),
      strategy: {
        kind: "enum",
        values: ["reboot", "reprovision", "escalate"],
        default: "reboot",
        brief: "What is done to bring the node back",
      },
      dryRun: switchFlag("Show what would be done, by reading the cluster and the BMC live; change nothing"),
      yes: YES_FLAG,
      ...flagsOf({ timeout: FENCE_TIMEOUT_OPTION }),
      ...flagsOf({ nodeLeaseNamespace: RUN_OPTIONS.nodeLeaseNamespace }),
      ...flagsOf({ ...CLUSTER_OPTIONS, output: OUTPUT_OPTION }),
    },
    aliases: { n: "namespace", o: "output", y: "yes" },
  },
  docs: {
    brief: "Have the agent fence a node: off, proven off, workloads released, on again",
    fullDescription: [
      "Creates a BareMetalRemediation, so that the running agent fences the node with all its safeguards, and prints each",
      "step until the verdict. Nothing is created while ironfence is paused, while the target is in maintenance, ambiguous or owned,",
      "while a remediation of the node is under way, or if the control plane may lose its quorum. No option overrides this.",
      "When the node is back the remediation is deleted; one that failed is kept. Ctrl-C ends the waiting, not the fence.",
      "Exit codes: 0 the node is back (with --dry-run: it could be fenced), 1 failed or no verdict in time, 2 wrong command",
      "line, 3 refused (nothing was created).",
    ].join("\n"),
    customUsage: [
      { input: "--node worker-3 --dry-run", brief: "what would be done, and what prevents it" },
      { input: "--node worker-3", brief: "asks first if the node is Ready" },
      { input: "--node worker-3 --strategy escalate --yes -o json", brief: "for scripts" },
    ],
  },
});

async function carryOut(
  context: CliContext,
  runtime: KubeRuntime,
  preview: FencePreview,
  options: FenceOptions,
): Promise<void> {
  const { nodeName, namespace } = options;
  if (preview.obstacles.length > 0) {
    throw new CommandRefusal(
      "Refused",
      `node ${nodeName} is not fenced, since ${preview.obstacles.join("; and ")}. Nothing was created`,
    );
  }
  await confirm(context, `fence node ${nodeName}`, preview.concerns, options.agreed);
  const created = await createRemediationByHand(runtime, preview, options, false, context.signal);
  const name = `BareMetalRemediation ${namespace}/${created.metadata.name}`;
  printNote(context, `${name} is created`);
  let ended: BareMetalRemediation;
  try {
    ended = await followRemediation(context, runtime, created, options.timeoutMs);
  } catch (error) {
    if (context.signal.aborted) printNote(context, `${name} continues; delete it to have it undone`);
    throw error;
  }
  const verdict = verdictOf(ended);
  const succeeded = verdict?.status === "True";
  const report = {
    node: nodeName,
    remediation: { namespace, name: ended.metadata.name, uid: ended.metadata.uid },
    succeeded,
    reason: verdict?.reason,
    message: verdict?.message,
    timeline: ended.status?.timeline ?? [],
  };
  if (options.output === "json") printLine(context, JSON.stringify(report));
  const words = `node ${nodeName}: ${report.reason}: ${report.message}`;
  if (!succeeded) {
    throw new CommandFailure("FenceFailed", `${words}; ${name} is kept so that you can read it: delete it afterwards`);
  }
  if (options.output === "table") printLine(context, words);
  // As long as a finished remediation exists, health checks start none for another control plane node.
  await deleteFinishedRemediation(context, runtime, ended, context.signal);
}

async function showPreview(
  context: CliContext,
  runtime: KubeRuntime,
  preview: FencePreview,
  options: FenceOptions,
): Promise<void> {
  const { signal } = context;
  const { nodeName } = options;
  const { target } = preview.facts;
  const pods = await countPods(runtime, nodeName, signal);
  const { identity, power, problem } = await readHost(preview, signal);
  const obstacles = [...preview.obstacles, ...(problem === undefined ? [] : [problem])];
  try {
    await createRemediationByHand(runtime, preview, options, true, signal);
  } catch (error) {
    if (!isKubeError(error, "Forbidden", "Invalid", "NotFound")) throw error;
    obstacles.push(error.message);
  }
  const devices = target.spec.devices.map(({ address, level }) => ({ address, level }));
  const report = {
    wouldFence: obstacles.length === 0,
    node: { name: nodeName, ready: isReady(preview.node), controlPlane: preview.isControlPlane },
    target: { namespace: target.metadata.namespace, name: target.metadata.name, devices },
    identity,
    power,
    pods,
    strategy: options.strategy,
    obstacles,
    concerns: preview.concerns,
  };
  if (options.output === "json") printLine(context, JSON.stringify(report));
  else {
    const rows = [
      [
        "node",
        `${nodeName}, ${report.node.ready ? "Ready" : "not Ready"}${preview.isControlPlane ? ", control plane" : ""}`,
      ],
      ["target", `FencingTarget ${target.metadata.namespace}/${target.metadata.name}`],
      ...devices.map(({ address, level }) => ["device", `${address} (level ${level})`]),
      ["identity", identity],
      ["power", power],
      ["pods", `${pods.bound} are bound to the node, ${pods.ended} would be ended`],
      ["strategy", options.strategy],
      ...preview.concerns.map((concern) => ["asks first", concern]),
      ...obstacles.map((obstacle) => ["in the way", obstacle]),
      ["result", report.wouldFence ? "would be fenced" : "would be refused"],
    ];
    for (const line of renderTable(["WHAT", "FOUND"], rows)) printLine(context, line);
  }
  if (obstacles.length > 0) {
    throw new CommandRefusal("Refused", `node ${nodeName} would not be fenced, since ${obstacles.join("; and ")}`);
  }
}

/** Reads the identity and the power state from the BMC now. */
async function readHost(
  { facts: { target, directory }, node }: FencePreview,
  signal: AbortSignal,
): Promise<{ identity: string; power: string; problem?: string }> {
  const unread = "not read";
  const host = directory.byUid(target.metadata.uid);
  try {
    const power = await host?.open(undefined, signal);
    if (power === undefined) return { identity: unread, power: unread };
    try {
      const check = await power.verifyIdentity(node, signal);
      if (!check.verified) return { identity: check.message, power: unread, problem: check.message };
      const { state, raw } = await power.readPower(signal);
      return { identity: check.message, power: `${state} (the BMC reports: ${raw})` };
    } finally {
      await power.close();
    }
  } catch (error) {
    const problem = deviceProblem(error);
    if (problem === undefined) throw error;
    return { identity: unread, power: unread, problem: problem.message };
  }
}
