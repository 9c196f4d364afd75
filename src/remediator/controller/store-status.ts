import { isDeepStrictEqual } from "node:util";
import type { BareMetalRemediation, BareMetalRemediationStatus } from "../../api/ironfence/bare-metal-remediation.ts";
import { BARE_METAL_REMEDIATIONS } from "../../api/ironfence/bare-metal-remediation.ts";
import { keyOf } from "../../kube/watched.ts";
import { fieldsOf } from "../effects/context/effect-context.ts";
import { CAUSE_OF_DEATH } from "../machine/rules/diagnosis/evidence.ts";
import type { RemediatorMetrics } from "../telemetry/metrics.ts";
import type { RemediationSession } from "./session/session.ts";
import type { State } from "../machine/model/decision/state.ts";
import { isFinal } from "../machine/model/decision/state.ts";
import { statusCondition } from "../machine/model/status.ts";
import { stepLevel } from "../machine/model/decision/step-level.ts";
import { clusterKey } from "../../nodes/subject.ts";
import type { Note } from "../machine/model/decision/decision.ts";
import type { KubeletLeases } from "../../nodes/leases/kubelet-leases.ts";
import type { KubeRuntime } from "../../kube/runtime.ts";
import type { FenceTracer } from "../telemetry/fence-tracer.ts";

/** How many tries without an answer are kept: the first ones and the last one, which are the likeliest to be stored. */
const UNANSWERED_MAX = 8;

export interface StoreStatusDeps {
  runtime: KubeRuntime;
  metrics: RemediatorMetrics;
  tracer: FenceTracer | undefined;
  /** The node leases, from which the downtime before an early release is measured. */
  leases?: Pick<KubeletLeases, "of"> | undefined;
}

/**
 * Stores a status with a guard, and only then reports the step to the operator. If the answer is lost,
 * `reportUnanswered` reports the step when the status turns out to be stored.
 */
export async function storeStatus(
  deps: StoreStatusDeps,
  session: RemediationSession,
  from: State,
  status: BareMetalRemediationStatus,
  notes: readonly Note[],
  signal: AbortSignal,
): Promise<void> {
  const { runtime } = deps;
  const { metadata } = session.remediation;
  const isNewCause = session.status.evidence === undefined && status.evidence !== undefined;
  const guard = { uid: metadata.uid, resourceVersion: metadata.resourceVersion };
  const report = (): void => reportStep(deps, session, { from, status, notes, isNewCause });
  try {
    const stored = await runtime.client.patch<BareMetalRemediation>(
      BARE_METAL_REMEDIATIONS,
      keyOf(session.remediation),
      guard,
      [{ op: "add", path: "/status", value: status }],
      { subresource: "status" },
      signal,
    );
    session.learn(stored);
  } catch (error) {
    // Each try has a decision of its own. If the API server does not answer, any of them may have been stored.
    session.unanswered = [...session.unanswered.slice(0, UNANSWERED_MAX - 1), { status, report }];
    throw error;
  }
  session.unanswered = [];
  report();
}

/** Reports the step whose answer was lost, if its status is the stored one. */
export function reportUnanswered(session: RemediationSession): void {
  const stored = session.unanswered.find(({ status }) => isDeepStrictEqual(session.status, asStored(status)));
  if (stored === undefined) return;
  session.unanswered = [];
  stored.report();
}

/** The status as the API server returns it: without fields that are undefined. */
function asStored(status: BareMetalRemediationStatus): unknown {
  return JSON.parse(JSON.stringify(status));
}

interface StoredStep {
  from: State;
  status: BareMetalRemediationStatus;
  notes: readonly Note[];
  isNewCause: boolean;
}

function reportStep(
  deps: StoreStatusDeps,
  session: RemediationSession,
  { from, status, notes, isNewCause }: StoredStep,
): void {
  const { runtime, metrics } = deps;
  if (isNewCause) metrics.cause(status.evidence?.class ?? "None");
  const to = session.state.name;
  countDowntime(deps, session, from.name, to);
  for (const { type, reason, message } of notes) {
    const fields = { ...fieldsOf(session), state: to, step: reason, message };
    runtime.logger[stepLevel(to, { type, reason })](fields, "remediation step");
    const { nodeName, cluster } = session.subject;
    // Events are recorded in the cluster of the remediation. The Node is only there if it belongs to the same cluster.
    const isThere = clusterKey(cluster) === "" && nodeName !== undefined;
    const node = isThere ? session.cluster.nodes.get({ name: nodeName }) : undefined;
    const regarding = session.remediation;
    const related = node === undefined ? {} : { related: node };
    runtime.events.record({ regarding, ...related, type, reason, action: to, note: message });
    if (node === undefined || to === from.name || reason === CAUSE_OF_DEATH) continue;
    // `kubectl describe node` shows only Events about the Node itself. One for each state keeps them few.
    const { namespace, name } = regarding.metadata;
    const note = `${regarding.kind} ${namespace}/${name}, ${to}: ${message}`;
    runtime.events.record({ regarding: node, related: regarding, type, reason, action: to, note });
  }
  if (to === from.name) return;
  const nowMs = session.now().monotonicMs;
  const seconds = (nowMs - session.enteredAtMs) / 1_000;
  const verdict = isFinal(to) ? (statusCondition(status, "Succeeded")?.reason ?? to) : undefined;
  metrics.left(from.name, seconds);
  deps.tracer?.left(session.traced, { state: from.name, to, seconds, verdict });
  session.enteredAtMs = nowMs;
  if (to === "Succeeded" || to === "Failed") metrics.finished(to, verdict ?? to);
}

const AFTER_RELEASE: readonly State["name"][] = ["Provisioning", "PoweringOn"];

/** Counts how long after a node's failure its workloads were released and it was restored, each of them once. */
function countDowntime(
  { metrics, leases }: StoreStatusDeps,
  session: RemediationSession,
  from: State["name"],
  to: State["name"],
): void {
  const downtime = session.downtime(leases);
  if (downtime === undefined || from === to) return;
  if (from === "Releasing" && AFTER_RELEASE.includes(to) && !session.isReleaseCounted) {
    session.isReleaseCounted = true;
    metrics.released(downtime);
  }
  if (to === "Succeeded") metrics.restored(downtime);
}
