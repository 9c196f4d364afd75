import type { MachineHealthCheck } from "../../api/cluster-api/machine-health-check.ts";
import type { ObjectKey } from "../../kube/client.ts";
import type { KubeObject, ResourceType } from "../../kube/resource.ts";
import { findServed } from "../../kube/objects/served-kind.ts";
import type { Watched } from "../../kube/watched.ts";
import type { Clock } from "../../runtime/clock.ts";
import { sleep } from "../../runtime/clock.ts";
import { RemediationStore } from "../shared/views/remediation-store.ts";
import { MonotonicTimes } from "../shared/views/watched-nodes/condition-times.ts";
import { TemplateResolver } from "../shared/views/template-resolver.ts";
import { MachineChecks } from "./snapshot/machine-checks.ts";
import type { ClusterNodes } from "./snapshot/cluster-nodes.ts";
import { decideMachineCheck, decideUnusable, pausedCondition } from "./decide/decide.ts";
import type { MachineCheckDecision, MachineCheckSnapshot } from "./decide/decision.ts";
import type { MachineHealthChecksDeps } from "./run.ts";

/** How often pending lookups are polled. */
const POLL_MS = 20;

/**
 * How long a cluster must be unreachable to count as unreachable. A first connection may fail by chance, and the next
 * try follows within a second.
 */
const UNREACHABLE_SETTLE_MS = 1_500;

/** One MachineHealthCheck, and the decision that the detector would make for it now. */
export interface EvaluatedMachineCheck {
  check: MachineHealthCheck;
  nowMs: number;
  /** Why the health check does nothing, as text for the operator; undefined if it is served. */
  paused: string | undefined;
  /** The input of the decision; undefined if the health check is paused or its spec is invalid. */
  snapshot: MachineCheckSnapshot | undefined;
  decision: MachineCheckDecision | undefined;
}

/**
 * Decides for one MachineHealthCheck as the controller does, by objects that it reads now, and runs no action.
 *
 * @param signal should have a deadline: pending lookups are repeated until it aborts.
 * @returns undefined if there is no such health check of this kind.
 * @throws KubeError if something that the decision depends on cannot be read.
 */
export async function evaluateMachineHealthCheck(
  { runtime, clusters, kind }: Pick<MachineHealthChecksDeps, "runtime" | "clusters" | "kind">,
  key: ObjectKey,
  signal: AbortSignal,
): Promise<EvaluatedMachineCheck | undefined> {
  const types = {
    checks: await findServed(runtime, kind.checks, signal),
    machines: await findServed(runtime, kind.machines, signal),
    clusters: kind.clusters && (await findServed(runtime, kind.clusters, signal)),
  };
  if (types.checks === undefined || types.machines === undefined) return undefined;
  const scope = new AbortController();
  const reading = AbortSignal.any([signal, scope.signal]);
  const view = async <T extends KubeObject>(type: ResourceType, trim: (raw: KubeObject) => T): Promise<Watched<T>> => {
    const watched = runtime.watch({ type, trim }, reading);
    await watched.whenSynced(reading);
    return watched;
  };
  const remediations = new RemediationStore(runtime, () => undefined, reading);
  const templates = new TemplateResolver(runtime, remediations, () => undefined, reading);
  try {
    const checks = await view(types.checks, kind.readCheck);
    const check = checks.get(key);
    if (check === undefined) return undefined;
    const states = new MachineChecks({
      kind,
      clock: runtime.clock,
      times: new MonotonicTimes(runtime.clock, runtime.clockOffset?.()),
      clusters,
      checks,
      machines: await view(types.machines, kind.readMachine),
      clusterObjects: types.clusters && (await view(types.clusters, kind.readCluster)),
      remediations,
      // Used only to end a wait early, and a single evaluation does not wait.
      fenceableSinceMs: () => undefined,
      onChange: () => undefined,
    });
    try {
      return await decideOne(
        states,
        { check, checks, templates, hasClusters: types.clusters !== undefined },
        runtime,
        reading,
      );
    } finally {
      states.close();
    }
  } finally {
    scope.abort(new Error("everything is read"));
    await Promise.all([remediations.settled(), templates.settled()]);
  }
}

/** Resolves when the nodes of the cluster can be read, or have been unreachable for `UNREACHABLE_SETTLE_MS`. */
async function whenSettled(nodes: ClusterNodes, clock: Clock, signal: AbortSignal): Promise<void> {
  let unreachableMs = 0;
  while (nodes.isPending || (nodes.unreachable !== undefined && unreachableMs < UNREACHABLE_SETTLE_MS)) {
    unreachableMs = nodes.isPending ? 0 : unreachableMs + POLL_MS;
    await sleep(clock, POLL_MS, signal);
  }
}

async function decideOne(
  states: MachineChecks,
  found: {
    check: MachineHealthCheck;
    checks: Watched<MachineHealthCheck>;
    templates: TemplateResolver;
    hasClusters: boolean;
  },
  { clock }: MachineHealthChecksDeps["runtime"],
  signal: AbortSignal,
): Promise<EvaluatedMachineCheck> {
  const { check, templates } = found;
  const { kind, nowMs } = states.sources;
  const cluster = states.clusterOf(check);
  const nothing = { check, nowMs: nowMs(), snapshot: undefined, decision: undefined };
  const paused = pausedCondition(check, cluster);
  if (paused.status === "True") return { ...nothing, paused: paused.message };
  if (found.hasClusters && cluster === undefined) {
    return { ...nothing, paused: `there is no Cluster ${check.spec.clusterName} in its namespace` };
  }
  const nodes = states.holdNodes(check, cluster);
  if (nodes !== undefined) await whenSettled(nodes, clock, signal);
  // Creates the state of every other health check, because one of them may still find a Machine unhealthy.
  for (const other of found.checks.values()) states.of(other);
  const { compiled, observations } = states.of(check);
  if ("problem" in compiled) {
    return { ...nothing, paused: undefined, decision: decideUnusable(check, compiled.problem) };
  }
  const { step } = compiled.policy;
  let resolved = step && (await templates.resolve([step], signal));
  while (resolved === "pending") {
    await sleep(clock, POLL_MS, signal);
    resolved = step && (await templates.resolve([step], signal));
  }
  const template = resolved === undefined || "reason" in resolved ? resolved : resolved[0];
  const snapshot = states.snapshot(check, compiled, observations, template, []);
  return { check, nowMs: nowMs(), paused: undefined, snapshot, decision: decideMachineCheck(kind, snapshot, nowMs()) };
}
