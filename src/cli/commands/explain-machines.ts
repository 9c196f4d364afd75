import { buildCommand } from "@stricli/core";
import { Registry } from "prom-client";
import { NODES } from "../../api/kubernetes/core-types.ts";
import { trimNode } from "../../api/kubernetes/trim.ts";
import { ownCluster } from "../../clusters/own-cluster.ts";
import type { WorkloadClusters } from "../../clusters/workload-clusters.ts";
import { createWorkloadClusters } from "../../clusters/workload-clusters.ts";
import { CLUSTER_OPTIONS, OUTPUT_OPTION, resolveClusterOptions } from "../../config/cluster-options.ts";
import { requireOption } from "../../config/option.ts";
import { CLUSTER_API_CHECKS } from "../../detector/machines/vendors/cluster-api.ts";
import type { EvaluatedMachineCheck } from "../../detector/machines/evaluate-once.ts";
import { evaluateMachineHealthCheck } from "../../detector/machines/evaluate-once.ts";
import { OKD_CHECKS } from "../../detector/machines/vendors/okd.ts";
import type { ObjectKey } from "../../kube/client.ts";
import { createHttpTransport, WORKLOAD_BODY_BYTES_MAX } from "../../kube/connection/transport/http-transport.ts";
import type { KubeRuntime } from "../../kube/runtime.ts";
import { findServed } from "../../kube/objects/served-kind.ts";
import { parseKey } from "../../kube/watched.ts";
import { toTime } from "../../runtime/time.ts";
import { withRuntime } from "../cluster/connect.ts";
import type { CliContext } from "../terminal/context.ts";
import { printLine } from "../terminal/context.ts";
import { readOnce } from "../explain/read.ts";
import { formatTime } from "../explain/words.ts";
import { CommandFailure } from "../errors/failures.ts";
import type { FlagTexts } from "../../config/option.ts";
import { flagsOf } from "../flags/flags.ts";
import { renderTable } from "../terminal/table.ts";

/**
 * `ironfence explain mhc`: what the detector would decide now for a MachineHealthCheck of Cluster API or OKD, and why.
 */
export const explainMachinesCommand = buildCommand<FlagTexts, [name: string], CliContext>({
  func: async function explainMachines(this: CliContext, flags, name) {
    const { env } = this.process;
    const cluster = resolveClusterOptions(flags, env);
    const output = requireOption(OUTPUT_OPTION, flags, env);
    const live = await withRuntime(this, cluster, (runtime) => readOne(runtime, name, this.signal));
    if (live === undefined) {
      throw new CommandFailure(
        "ObjectNotFound",
        `there is no MachineHealthCheck ${name} of Cluster API or OKD: give NAMESPACE/NAME of one`,
      );
    }
    const explanation = explain(live, name);
    if (output === "json") printLine(this, JSON.stringify(explanation));
    else for (const line of render(explanation, live.nowMs)) printLine(this, line);
  },
  parameters: {
    positional: {
      kind: "tuple",
      parameters: [{ brief: "NAMESPACE/NAME of the MachineHealthCheck", placeholder: "name", parse: String }],
    },
    flags: flagsOf({ ...CLUSTER_OPTIONS, output: OUTPUT_OPTION }),
    aliases: { n: "namespace", o: "output" },
  },
  docs: {
    brief: "Show what a MachineHealthCheck of Cluster API or OKD does about its Machines, and why",
    fullDescription: [
      "Machines that are healthy and have nothing to report are counted, not listed.",
      "",
      "Reads the cluster once, connects to a workload cluster of Cluster API by its kubeconfig Secret, and writes nothing.",
      "Exit codes: 0 explained, whatever the decision is; 1 there is no such object, or a cluster cannot be read; 2 wrong command line.",
    ].join("\n"),
    customUsage: [
      { input: "tenant/workers", brief: "as text" },
      { input: "tenant/workers -o json", brief: "for scripts" },
    ],
  },
});

interface Explanation {
  machineHealthCheck: string;
  time: string;
  decision: string;
  expectedMachines: number | undefined;
  currentHealthy: number | undefined;
  nextCheck: string | undefined;
  machines: readonly { name: string; outcome: string; reason: string }[];
}

/** Evaluates the health check of Cluster API with that name, or else the one of OKD. */
function readOne(runtime: KubeRuntime, name: string, signal: AbortSignal): Promise<EvaluatedMachineCheck | undefined> {
  const key = parseKey(name);
  return readOnce(
    runtime,
    async (once, within) =>
      (await withWorkloadClusters(once, within, (clusters) =>
        evaluateMachineHealthCheck({ runtime: once, clusters, kind: CLUSTER_API_CHECKS }, key, within),
      )) ?? (await decideOkd(once, key, within)),
    signal,
  );
}

async function decideOkd(
  runtime: KubeRuntime,
  key: ObjectKey,
  signal: AbortSignal,
): Promise<EvaluatedMachineCheck | undefined> {
  if ((await findServed(runtime, OKD_CHECKS.checks, signal)) === undefined) return undefined;
  const nodes = runtime.watch({ type: NODES, trim: trimNode }, signal);
  await nodes.whenSynced(signal);
  return evaluateMachineHealthCheck(
    { runtime, clusters: ownCluster(runtime, nodes, signal), kind: OKD_CHECKS },
    key,
    signal,
  );
}

async function withWorkloadClusters<T>(
  runtime: KubeRuntime,
  signal: AbortSignal,
  work: (clusters: WorkloadClusters) => Promise<T>,
): Promise<T> {
  const scope = new AbortController();
  const clusters = createWorkloadClusters(
    {
      runtime,
      registry: new Registry(),
      openTransport: (cluster, work) =>
        createHttpTransport(cluster, runtime, { bodyBytesMax: WORKLOAD_BODY_BYTES_MAX, allowLocal: true, work }),
      mayWrite: () => false,
      controllerName: "ironfence.io/cli",
      instance: "cli",
    },
    AbortSignal.any([signal, scope.signal]),
  );
  try {
    return await work(clusters);
  } finally {
    scope.abort(new Error("everything is read"));
    await clusters.settled();
  }
}

function explain(
  { nowMs, paused, decision, snapshot }: EvaluatedMachineCheck,
  machineHealthCheck: string,
): Explanation {
  const nextCheckMs = decision?.nextCheckMs;
  return {
    machineHealthCheck,
    time: toTime(nowMs),
    decision: paused === undefined ? (decision?.gate?.reason ?? "remediations may start") : `does nothing: ${paused}`,
    expectedMachines: snapshot?.machineNames.length,
    currentHealthy: snapshot?.healthy,
    nextCheck: nextCheckMs === undefined ? undefined : toTime(nextCheckMs),
    machines: (decision?.machines ?? []).filter(({ outcome }) => outcome !== "healthy"),
  };
}

function render(explanation: Explanation, nowMs: number): string[] {
  const { machineHealthCheck, time, decision, expectedMachines, currentHealthy, nextCheck, machines } = explanation;
  const next =
    nextCheck === undefined ? "when something changes" : `${formatTime(nextCheck, nowMs)}, or when something changes`;
  const head = `MachineHealthCheck ${machineHealthCheck} at ${time}: ${decision}`;
  if (expectedMachines === undefined) return [head];
  return [
    head,
    ...renderTable(
      ["  WHAT", "FOUND"],
      [
        ["  machines", `${expectedMachines} covered, ${currentHealthy ?? 0} healthy`],
        ["  next", next],
      ],
    ),
    "",
    ...(machines.length === 0
      ? ["no machine is unhealthy or in remediation"]
      : renderTable(
          ["MACHINE", "DECISION", "REASON"],
          machines.map(({ name, outcome, reason }) => [name, outcome, reason]),
        )),
  ];
}
