import { MACHINE, MANUALLY_CONFIRMED_HEALTHY, OLD_REMEDIATION_CR } from "../../../api/annotations.ts";
import { NODES } from "../../../api/core-types.ts";
import type { Node } from "../../../api/core.ts";
import { EXCLUDE_FROM_REMEDIATION } from "../../../api/labels.ts";
import { trimNode } from "../../../api/trim.ts";
import type { KubeClient } from "../../../kube/client.ts";
import { isKubeError } from "../../../kube/errors.ts";
import type { KubeObject, OwnerReference, ResourceType } from "../../../kube/resource.ts";
import { keyOf } from "../../../kube/watched.ts";
import type { Clock } from "../../../runtime/clock.ts";
import type { Logger } from "../../../telemetry/logger.ts";
import type { CheckState } from "../snapshot/check-state.ts";
import type { Action, DeletionReason, EventReason } from "../decide/decision.ts";
import type { HealthCheckObject } from "../snapshot/health-check.ts";
import { findEtcdObjection } from "./etcd-guard.ts";
import { judgeHealth } from "../decide/health.ts";
import type { HostPower } from "../../shared/views/fencing-target-watch.ts";
import type { DetectorMetrics } from "./metrics.ts";
import type { NodeTracker } from "../snapshot/node-tracker.ts";
import type { NodeLeases } from "./node-lease.ts";
import { renewLeaseAfterMs } from "../decide/decide-node.ts";
import type { Policy } from "../decide/policy.ts";
import type { RemediationStore } from "../../shared/views/remediation-store.ts";
import type { Remediation } from "../../shared/model/remediation.ts";
import { isOwnedBy, readRemediation, trimRemediation } from "../../shared/model/remediation.ts";
import type { HostSight } from "../../shared/model/host-sight.ts";
import { skipDuration } from "../decide/skip-duration.ts";
import { annotationPatch } from "../../shared/shell/annotation-patch.ts";
import { buildRemediation, isControlPlane } from "../../shared/model/template.ts";

/** How soon a node is looked at again whose lease somebody else holds. */
const LEASE_RETRY_MS = 15_000;
/** How soon one is whose view was seen to be behind: by then the watch has caught up. */
const STALE_RETRY_MS = 1_000;

/** How soon a creation is tried again that the API server refused for good reason. */
const REFUSED_RETRY_MS = 15_000;
/** How soon a control plane node is looked at again that etcd cannot do without. */
export const ETCD_RETRY_MS = 60_000;

const MACHINES: ResourceType = {
  group: "machine.openshift.io",
  version: "v1beta1",
  kind: "Machine",
  plural: "machines",
  namespaced: true,
};

export interface ActionDeps {
  client: KubeClient;
  clock: Clock;
  logger: Logger;
  remediations: RemediationStore;
  leases: NodeLeases;
  metrics: DetectorMetrics;
  hostPower: Pick<HostPower, "readSight">;
}

/** What is taken one by one; attempts of many nodes are recorded together, in one place. */
export type SingleAction = Exclude<Action, { type: "recordAttempts" }>;

/** The pass that an action belongs to. */
export interface ActionContext {
  check: HealthCheckObject;
  policy: Policy;
  tracker: NodeTracker;
  state: CheckState;
  /** Whether this is OKD, which guards etcd's quorum. */
  isOkd: boolean;
  /** Sees to it that it is known how the nodes are, by a list where the view may be behind. */
  confirmNodes: (signal: AbortSignal) => Promise<void>;
  /** Whether a remediation may still start now: the decision is some requests old when its last action is taken. */
  mayStart: () => boolean;
  /** How a node looks now, without a request: in the view, and in a list where there is a recent one; undefined: it is gone. */
  looksOf: (nodeName: string) => readonly (Node | undefined)[];
  /** What is known of a node's host now, without a request. */
  sightOf: (nodeName: string) => HostSight;
  tell: (type: "Normal" | "Warning", reason: EventReason, note: string, related: KubeObject | undefined) => void;
}

/**
 * Takes one action. What it was decided on is read live first wherever taking it wrongly would do harm: the view of the
 * cluster may be behind, and a remediation of a node that is well again powers off a healthy host.
 *
 * @throws KubeError where it failed; the pass goes on with the others and comes back to this one.
 */
export async function takeAction(
  deps: ActionDeps,
  context: ActionContext,
  action: SingleAction,
  signal: AbortSignal,
): Promise<void> {
  switch (action.type) {
    case "create":
      return create(deps, context, action, signal);
    case "delete":
      return remove(deps, context, action, signal);
    case "annotate":
      return annotate(deps, action, signal);
    case "renewLease":
      await takeLease(deps, context, action.node, action.leaseDurationMs, signal);
      return undefined;
    case "releaseLease":
      context.state.leaseRenewals.delete(action.nodeName);
      return deps.leases.release(action.nodeName, holderOf(context.check), signal);
    case "consumeConfirmation":
      return consumeConfirmation(deps, action.node, signal);
    default:
      return action satisfies never;
  }
}

/** Names an action, so that one that failed is not taken twice in one pass. */
export function actionKey(action: Action): string {
  switch (action.type) {
    case "delete":
      return `delete ${action.remediation.uid}`;
    case "annotate":
      return `annotate ${action.remediation.uid} ${action.annotation}`;
    case "releaseLease":
    case "recordAttempts":
      return `${action.type} ${action.nodeName}`;
    default:
      return `${action.type} ${action.node.metadata.name}`;
  }
}

async function create(
  deps: ActionDeps,
  context: ActionContext,
  action: Extract<Action, { type: "create" }>,
  signal: AbortSignal,
): Promise<void> {
  const { client, logger, remediations } = deps;
  const { check, state, mayStart } = context;
  const { template, leaseDurationMs, skipped } = action;
  const { name } = action.node.metadata;
  const [node, sight] = await Promise.all([
    readNode(deps, name, signal),
    skipped === undefined ? undefined : deps.hostPower.readSight(name, signal),
  ]);
  const leave = (): void => {
    logger.info({ nodeHealthCheck: check.metadata.name, node: name }, "not remediated: a live read shows it otherwise");
    hold(deps, state, name, { reason: "a live read shows it otherwise", forMs: STALE_RETRY_MS, announce: false });
  };
  if (node === undefined || !stillNeeds(deps, context, action.node, node, sight)) return leave();
  if (context.isOkd && isControlPlane(node)) {
    const reason = await etcdObjection(client, name, signal);
    if (reason !== undefined) return hold(deps, state, name, { reason, forMs: ETCD_RETRY_MS, announce: true });
  }
  const machine = await readMachine(deps, node, template.namespace, signal);
  if (!(await takeLease(deps, context, node, leaseDurationMs, signal))) return;
  await context.confirmNodes(signal);
  // Nothing is awaited between this last look and the request. The live read may be seconds old by now.
  if (!mayStart()) return;
  const lastSight = sight && context.sightOf(name);
  if (!context.looksOf(name).every((look) => stillNeeds(deps, context, action.node, look, lastSight))) return leave();
  const body = buildRemediation(template, node, { healthCheck: ownerReference(check), machine });
  try {
    const created = await client.create<KubeObject>(template.type, body, {}, signal);
    remediations.wrote(trimRemediation(created), undefined);
    context.tell("Normal", "RemediationCreated", `Created remediation object for node ${name}`, node);
    if (skipped !== undefined) {
      const seconds = Math.max(0, Math.round((skipped.durationUntilMs - deps.clock.nowMs()) / 1_000));
      const note = `Node ${name} is remediated ${seconds} s before its duration is over: ${skipped.proof}`;
      context.tell("Normal", "DurationSkipped", note, node);
    }
    const { kind, metadata } = created;
    const fields = { nodeHealthCheck: check.metadata.name, node: name, kind, remediation: metadata.uid };
    logger.info({ ...fields, ...(skipped && { durationSkipped: skipped.proof }) }, "created a remediation");
  } catch (error) {
    if (isKubeError(error, "Forbidden", "NotFound", "Invalid", "BadRequest", "MethodNotAllowed")) {
      // Not this node's fault, and not to be mended by trying again at once: people must read of it.
      hold(deps, state, name, { reason: error.message, forMs: REFUSED_RETRY_MS, announce: true });
      return;
    }
    if (!isKubeError(error, "AlreadyExists") || template.manyPerNode) throw error;
    const key = template.namespace === undefined ? { name } : { namespace: template.namespace, name };
    const found = await client.get(template.type, key, signal);
    if (isOwnedBy(found, check.metadata.uid)) return remediations.wrote(trimRemediation(found), undefined);
    const reason = `a ${template.type.kind} of that name exists, and this health check does not own it`;
    hold(deps, state, name, { reason, forMs: REFUSED_RETRY_MS, announce: true });
  }
}

/**
 * Whether the node, as it looks now, is the one that the decision was about and still wants a remediation.
 *
 * @param look undefined: it is gone.
 * @param sight what is known of its host, where the decision rests on that before the duration is over.
 */
function stillNeeds(
  deps: ActionDeps,
  context: ActionContext,
  decided: Node,
  look: Node | undefined,
  sight: HostSight | undefined,
): boolean {
  if (look === undefined) return false;
  const { policy, tracker } = context;
  const { uid, labels } = look.metadata;
  const nowMs = deps.clock.nowMs();
  // What differs from what was decided on is judged by the next decision, once it was seen to change.
  const seen = look.status.conditions?.filter((condition) =>
    decided.status.conditions?.some(
      ({ type, status, lastTransitionTime }) =>
        type === condition.type && status === condition.status && lastTransitionTime === condition.lastTransitionTime,
    ),
  );
  const known: Node = { ...look, status: { ...look.status, ...(seen !== undefined && { conditions: seen }) } };
  return (
    uid === decided.metadata.uid &&
    policy.selects(labels) &&
    labels?.[EXCLUDE_FROM_REMEDIATION] !== "true" &&
    skipDuration({ node: known, health: tracker.judge(known, nowMs), sight }, policy, nowMs).state === "unhealthy"
  );
}

async function remove(
  deps: ActionDeps,
  context: ActionContext,
  action: Extract<Action, { type: "delete" }>,
  signal: AbortSignal,
): Promise<void> {
  const { remediation, because } = action;
  const type = typeOf(deps, remediation);
  if (type === undefined) return;
  const key = keyOf(remediation.object);
  const node = await readNode(deps, remediation.nodeName, signal);
  if (!(await mayDelete(deps, context, { remediation, because, node, type }, signal))) {
    // Whatever differs is on its way; the action comes back if it does not.
    throw new Error(`${remediation.object.kind} ${key.name} is not deleted: a live read shows its node otherwise`);
  }
  try {
    await deps.client.delete(type, key, { guard: { uid: remediation.uid } }, signal);
  } catch (error) {
    // Gone, or another of the same name by now: either way ours is no more.
    if (!isKubeError(error, "NotFound", "Conflict")) throw error;
  }
  deps.remediations.deletionOrdered(remediation.object);
  const note = `Deleted remediation CR of kind ${remediation.object.kind} with name ${key.name}`;
  context.tell("Normal", "RemediationRemoved", note, remediation.object);
}

async function mayDelete(
  deps: ActionDeps,
  context: ActionContext,
  found: { remediation: Remediation; because: DeletionReason; node: Node | undefined; type: ResourceType },
  signal: AbortSignal,
): Promise<boolean> {
  const { remediation, because, node, type } = found;
  const { policy } = context;
  if (because === "nodeNotSelected") return node !== undefined && !policy.selects(node.metadata.labels);
  if (because === "nodeHealthy") {
    return (
      node !== undefined && judgeHealth(policy.rules, node.status.conditions, deps.clock.nowMs()).state === "healthy"
    );
  }
  if (because === "startedAnew") {
    const live = readRemediation(trimRemediation(await deps.client.get(type, keyOf(remediation.object), signal)));
    return live.uid === remediation.uid && (live.timedOut !== undefined || isFinished(live));
  }
  if (node !== undefined) return false;
  try {
    // The CR says beforehand that its node will go, but the word may arrive after the node has.
    const live = await deps.client.get(type, keyOf(remediation.object), signal);
    const { nodeDeletionExpected, succeeded } = readRemediation(trimRemediation(live));
    return !nodeDeletionExpected || succeeded === "True";
  } catch (error) {
    if (isKubeError(error, "NotFound")) return true;
    throw error;
  }
}

function isFinished({ succeeded }: Remediation): boolean {
  return succeeded === "True" || succeeded === "False";
}

async function annotate(
  deps: ActionDeps,
  action: Extract<Action, { type: "annotate" }>,
  signal: AbortSignal,
): Promise<void> {
  const { remediation, annotation, value } = action;
  const { metadata } = remediation.object;
  const type = typeOf(deps, remediation);
  if (type === undefined) return;
  const { uid, resourceVersion } = metadata;
  const operations = annotationPatch(metadata.annotations, annotation, value);
  const key = keyOf(remediation.object);
  const patched = await deps.client.patch(type, key, { uid, resourceVersion }, operations, {}, signal);
  deps.remediations.wrote(trimRemediation(patched), resourceVersion);
  if (annotation === OLD_REMEDIATION_CR) deps.metrics.countOld(remediation.nodeName);
}

async function consumeConfirmation(deps: ActionDeps, node: Node, signal: AbortSignal): Promise<void> {
  const { name, uid } = node.metadata;
  const operations = annotationPatch(node.metadata.annotations, MANUALLY_CONFIRMED_HEALTHY, undefined);
  try {
    await deps.client.patch(NODES, { name }, { uid }, operations, {}, signal);
  } catch (error) {
    // Somebody else has taken it off, or the node is gone.
    if (!isKubeError(error, "NotFound", "Conflict", "Invalid")) throw error;
  }
}

async function takeLease(
  deps: ActionDeps,
  context: ActionContext,
  node: Node,
  durationMs: number,
  signal: AbortSignal,
): Promise<boolean> {
  const { check, state } = context;
  const { name } = node.metadata;
  const answer = await deps.leases.take(node, holderOf(check), durationMs, signal);
  if (answer.held) {
    state.leaseRenewals.set(name, deps.clock.nowMs() + renewLeaseAfterMs(durationMs));
    return true;
  }
  // With a remediation under way there is nothing to hold back; the lease is asked for again all the same.
  state.leaseRenewals.set(name, deps.clock.nowMs() + LEASE_RETRY_MS);
  hold(deps, state, name, { reason: answer.reason, forMs: LEASE_RETRY_MS, announce: true });
  return false;
}

function hold(
  deps: ActionDeps,
  state: CheckState,
  nodeName: string,
  options: { reason: string; forMs: number; announce: boolean },
): void {
  const { reason, forMs, announce } = options;
  state.holds.set(nodeName, { reason, announce, untilMs: deps.clock.nowMs() + forMs });
}

async function etcdObjection(client: KubeClient, nodeName: string, signal: AbortSignal): Promise<string | undefined> {
  try {
    return await findEtcdObjection(client, nodeName, signal);
  } catch (error) {
    if (!isKubeError(error, "Forbidden")) throw error;
    return `whether etcd keeps its quorum may not be read: ${error.message}`;
  }
}

async function readNode(deps: ActionDeps, name: string, signal: AbortSignal): Promise<Node | undefined> {
  try {
    return trimNode(await deps.client.get(NODES, { name }, signal));
  } catch (error) {
    if (isKubeError(error, "NotFound")) return undefined;
    throw error;
  }
}

/** The node's Machine as an owner, where it lies in the CR's namespace: an owner anywhere else would get the CR collected. */
async function readMachine(
  deps: ActionDeps,
  node: Node,
  namespace: string | undefined,
  signal: AbortSignal,
): Promise<OwnerReference | undefined> {
  const [machineNamespace, name] = (node.metadata.annotations?.[MACHINE] ?? "").split("/");
  if (name === undefined || name === "" || machineNamespace !== namespace || namespace === undefined) return undefined;
  try {
    const machine = await deps.client.get(MACHINES, { namespace, name }, signal);
    return {
      apiVersion: "machine.openshift.io/v1beta1",
      kind: "Machine",
      name,
      uid: machine.metadata.uid,
      controller: false,
    };
  } catch (error) {
    if (!isKubeError(error, "NotFound", "Forbidden")) throw error;
    deps.logger.warn(
      { node: node.metadata.name, machine: name, reason: error.message },
      "cannot read the node's Machine",
    );
    return undefined;
  }
}

function ownerReference(check: HealthCheckObject): OwnerReference {
  const { apiVersion, kind, metadata } = check;
  return { apiVersion, kind, name: metadata.name, uid: metadata.uid, controller: false };
}

function typeOf(deps: ActionDeps, { object }: Remediation): ResourceType | undefined {
  const state = deps.remediations.state(object.apiVersion, object.kind);
  return state.state === "watched" ? state.type : undefined;
}

/** Who the leases of a health check's nodes are held by. */
export function holderOf(check: HealthCheckObject): string {
  return `NodeHealthCheck-${check.metadata.name}`;
}
