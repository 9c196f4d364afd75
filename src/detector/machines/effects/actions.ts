import type { Cluster, Machine } from "../../../api/cluster-api/cluster-api.ts";
import { changeConditions } from "../../../api/cluster-api/machine-conditions.ts";
import type { MachineHealthCheck } from "../../../api/cluster-api/machine-health-check.ts";
import { NODE_READY_IN_BOOT } from "../../../api/names/annotations.ts";
import { requestValue } from "../../../api/okd/okd-machine.ts";
import { isKubeError } from "../../../kube/errors.ts";
import { findObject } from "../../../kube/objects/find-object.ts";
import type { JsonPatchOperation, KubeClient } from "../../../kube/client.ts";
import type { KubeObject, ResourceType } from "../../../kube/resource.ts";
import { setField } from "../../../kube/objects/set-field.ts";
import { keyOf, nameOf } from "../../../kube/watched.ts";
import { readinessRecord } from "../../../nodes/ready.ts";
import type { Logger } from "../../../telemetry/logger.ts";
import { annotationPatch } from "../../shared/shell/annotation-patch.ts";
import type { DeferralCause } from "../../shared/model/deferral.ts";
import { REFUSED_RETRY_MS, STALE_RETRY_MS } from "../../shared/model/deferral.ts";
import { describeRemedy } from "../../shared/model/started-remediation.ts";
import { createRemediationObject, deleteRemediationObject } from "../../shared/shell/remediation-writes.ts";
import type { RemediationStore } from "../../shared/views/remediation-store.ts";
import type { MachineAction } from "../decide/decision.ts";
import type { MachineHealthCheckKind, Remedy } from "../decide/kind.ts";
import { buildRequest, machineUidOf } from "../decide/request.ts";
import type { MachineHealth, ObservedNode } from "../decide/observed-machine.ts";
import type { MachineActionEvent } from "../decide/observe.ts";

/** How soon Machines are counted again after a live list of their nodes showed too many unhealthy ones. */
const RECOUNT_MS = 5_000;

export interface MachineActionDeps {
  client: KubeClient;
  /** Now, on the clock by which Machines are judged. */
  nowMs: () => number;
  logger: Logger;
  kind: MachineHealthCheckKind;
  machineType: ResourceType;
  clusterType: ResourceType | undefined;
  remediations: RemediationStore;
  /** Label of a node that names its failure zone. */
  zoneLabel: string;
}

/** An action for one Machine. Attempts are not among them, because those of many Machines are recorded in one write. */
export type SingleMachineAction = Exclude<MachineAction, { type: "recordAttempts" }>;

/** What an action needs from its reconcile. */
export interface MachineActionContext {
  check: MachineHealthCheck;
  covers: (machine: Machine) => boolean;
  /** Judges a Machine by objects that were read live. */
  judge: (machine: Machine, cluster: Cluster | undefined, node: ObservedNode) => MachineHealth;
  /** Reads the node of a Machine live, for `judge`. */
  readNode: (machine: Machine, cluster: Cluster | undefined, signal: AbortSignal) => Promise<ObservedNode>;
  /**
   * Why the threshold allows no remediation, as text for the operator. It is judged by a live list of the nodes,
   * because the watch may be late.
   */
  findObjection: (signal: AbortSignal) => Promise<string | undefined>;
  /** Whether a remediation of the Machine may still start. Live reads have taken time since the decision. */
  mayStart: (machine: Machine) => boolean;
}

/**
 * Runs one action. First the Machine, its Cluster and its node are read live, because the view may be late, and the
 * remediation of a Machine that is healthy again would power off a healthy host.
 *
 * @returns an event for each result, as soon as it is known.
 * @throws KubeError if the action failed. The reconcile runs the other actions, and the next one retries this action.
 */
export async function* runMachineAction(
  deps: MachineActionDeps,
  context: MachineActionContext,
  action: SingleMachineAction,
  signal: AbortSignal,
): AsyncGenerator<MachineActionEvent, void> {
  const objection = starts(action) ? await context.findObjection(signal) : undefined;
  if (objection !== undefined) {
    deps.logger.warn(
      { machine: nameOf(action.machine), reason: objection },
      "no remediation starts, because a live list of the nodes shows too many unhealthy Machines",
    );
    yield deferred(deps, action.machine, { reason: objection, cause: "threshold" }, RECOUNT_MS);
    return;
  }
  // Everything that takes time must come before the start guard.
  const live = await readLive(deps, context, action.machine, signal);
  if (live === undefined) return;
  const needed = action.type === "conditions" ? action.health : action.type === "withdraw" ? "healthy" : "unhealthy";
  if (live.health.state !== needed) {
    const reason = "a live read differs from the watched state";
    deps.logger.info({ machine: nameOf(action.machine), action: action.type }, `action skipped: ${reason}`);
    yield deferred(deps, action.machine, { reason, cause: "staleView" }, STALE_RETRY_MS);
    return;
  }
  if (needed === "healthy") yield { type: "recovered", machine: live.machine };
  if (action.type === "renew" || action.type === "withdraw") await withdraw(deps, action, signal);
  else yield* act(deps, context, action, live, signal);
}

function started({ machine, health }: Live, remedy: string): MachineActionEvent {
  const because = health.state === "unhealthy" ? health.fault.message : health.state;
  return { type: "started", machine, remedy, because };
}

function act(
  deps: MachineActionDeps,
  context: MachineActionContext,
  action: Exclude<SingleMachineAction, { type: "renew" | "withdraw" }>,
  live: Live,
  signal: AbortSignal,
): AsyncGenerator<MachineActionEvent, void> {
  switch (action.type) {
    case "request":
      return request(deps, context, action, live, signal);
    case "conditions":
      return writeConditions(deps, context, action, live, signal);
    case "annotate":
      return annotate(deps, context, action.annotation, live, signal);
    case "delete":
      return deleteMachine(deps, context, live, signal);
    default:
      return action satisfies never;
  }
}

/** Whether the action leads to a remediation. An owner that is asked to replace a Machine deletes it. */
function starts(action: SingleMachineAction): boolean {
  if (action.type === "conditions") return action.wanted.some(({ type }) => type === "OwnerRemediated");
  return action.type !== "withdraw";
}

/** Identifies an action, so that a failed one does not run twice in one reconcile. */
export function machineActionKey(action: MachineAction): string {
  switch (action.type) {
    case "recordAttempts":
      return `recordAttempts ${action.key}`;
    case "renew":
    case "withdraw":
      return `${action.type} ${action.request.uid}`;
    case "conditions":
      return `conditions ${action.machine.metadata.uid} ${JSON.stringify([action.wanted, action.unwanted])}`;
    default:
      return `${action.type} ${action.machine.metadata.uid}`;
  }
}

/** A Machine that was read live. */
interface Live {
  raw: KubeObject;
  machine: Machine;
  node: ObservedNode;
  health: MachineHealth;
}

/** @returns undefined if the Machine was deleted or replaced, or if the health check does not cover it any more. */
async function readLive(
  deps: MachineActionDeps,
  context: MachineActionContext,
  { metadata, clusterName }: Machine,
  signal: AbortSignal,
): Promise<Live | undefined> {
  const { client, kind, machineType, clusterType } = deps;
  const { namespace, name, uid } = metadata;
  const [raw, rawCluster] = await Promise.all([
    findObject(client, machineType, { namespace, name }, signal),
    clusterType && findObject(client, clusterType, { namespace, name: clusterName }, signal),
  ]);
  if (raw?.metadata.uid !== uid || (clusterType !== undefined && rawCluster === undefined)) return undefined;
  const machine = kind.readMachine(raw);
  const cluster = rawCluster && kind.readCluster(rawCluster);
  if (!context.covers(machine) || cluster?.paused === true) return undefined;
  const node = await context.readNode(machine, cluster, signal);
  return { raw, machine, node, health: context.judge(machine, cluster, node) };
}

async function* request(
  deps: MachineActionDeps,
  context: MachineActionContext,
  { template }: Extract<MachineAction, { type: "request" }>,
  live: Live,
  signal: AbortSignal,
): AsyncGenerator<MachineActionEvent, void> {
  const { machine, node } = live;
  // Nothing is awaited between the start guard and the request.
  if (!context.mayStart(machine)) return;
  const isOwn = (found: KubeObject): boolean => machineUidOf(found) === machine.metadata.uid;
  const body = buildRequest(template, machine, node, deps.zoneLabel);
  const creation = await createRemediationObject(deps, template.type, body, isOwn, {}, signal);
  if (creation.result === "refused") {
    yield deferred(deps, machine, { reason: creation.reason, cause: "refused" }, REFUSED_RETRY_MS);
  } else if (creation.result === "created") {
    const { kind, metadata } = creation.object;
    const fields = { machineHealthCheck: nameOf(context.check), machine: nameOf(machine), kind };
    deps.logger.info({ ...fields, remediation: metadata.uid }, "created a remediation request");
    yield started(live, describeRemedy(creation.object));
  }
}

async function withdraw(
  deps: MachineActionDeps,
  { request: { object, uid } }: Extract<MachineAction, { type: "withdraw" | "renew" }>,
  signal: AbortSignal,
): Promise<void> {
  const state = deps.remediations.state(object.apiVersion, object.kind);
  if (state.state !== "watched" || !(await deleteRemediationObject(deps, state.type, object, signal))) return;
  deps.logger.info({ machine: nameOf(object), kind: object.kind, remediation: uid }, "deleted a remediation request");
}

async function* writeConditions(
  deps: MachineActionDeps,
  context: MachineActionContext,
  action: Extract<MachineAction, { type: "conditions" }>,
  live: Live,
  signal: AbortSignal,
): AsyncGenerator<MachineActionEvent, void> {
  const { wanted, unwanted, marks } = action;
  // Asking the owner starts a remediation, so it needs the start guard as well.
  if (starts(action) && !context.mayStart(live.machine)) return;
  const changes = changeConditions(live.raw, wanted, unwanted, deps.nowMs());
  const operations = changes.flatMap(({ path, conditions }) => setField(live.raw, path, conditions));
  yield await patchMachine(deps, live, operations, { subresource: "status" }, signal);
  if (starts(action)) yield started(live, "its owner (condition OwnerRemediated)");
  if (marks && operations.length > 0) yield { type: "markedUnhealthy", machine: live.machine };
}

async function* annotate(
  deps: MachineActionDeps,
  context: MachineActionContext,
  annotation: string,
  live: Live,
  signal: AbortSignal,
): AsyncGenerator<MachineActionEvent, void> {
  if (!isStillRemedy(deps, context, live, "annotate") || !context.mayStart(live.machine)) return;
  const { machine, node } = live;
  try {
    const record = readinessRecord(node.state === "there" ? node.node : undefined);
    const value = requestValue(record[NODE_READY_IN_BOOT]);
    const operations = annotationPatch(live.raw.metadata.annotations, annotation, value);
    yield await patchMachine(deps, live, operations, {}, signal);
    yield { type: "annotated", machine };
    yield started(live, `annotation ${annotation}`);
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    if (!isKubeError(error, "Aborted")) yield { type: "annotationFailed", machine, message };
    throw error;
  }
}

async function* deleteMachine(
  deps: MachineActionDeps,
  context: MachineActionContext,
  live: Live,
  signal: AbortSignal,
): AsyncGenerator<MachineActionEvent, void> {
  const { client, logger, machineType } = deps;
  const { machine } = live;
  const { uid, resourceVersion } = machine.metadata;
  if (!isStillRemedy(deps, context, live, "delete") || !context.mayStart(machine)) return;
  try {
    await client.delete(machineType, keyOf(machine), { guard: { uid, resourceVersion } }, signal);
  } catch (error) {
    // The Machine has changed or was deleted since it was read. The next evaluation decides again.
    if (isKubeError(error, "Aborted", "Conflict", "NotFound") || !(error instanceof Error)) throw error;
    const { message } = error;
    yield { type: "deletionFailed", machine, message };
    // Deferred, so that another Machine can be deleted in the meantime.
    yield deferred(deps, machine, { reason: message, cause: "deletionRefused" }, REFUSED_RETRY_MS);
    return;
  }
  logger.info({ machineHealthCheck: nameOf(context.check), machine: nameOf(machine) }, "deleted an unhealthy Machine");
  yield { type: "deleted", machine };
  yield started(live, "deletion of the Machine");
}

/** Whether this remedy still applies. Since the decision, the Machine may have begun to terminate or lost its owner. */
function isStillRemedy(
  { kind }: MachineActionDeps,
  { check }: MachineActionContext,
  { machine }: Live,
  type: Remedy["type"],
): boolean {
  return kind.remedy(check, machine).type === type;
}

async function patchMachine(
  { client, kind, machineType }: MachineActionDeps,
  { raw, machine }: Live,
  operations: readonly JsonPatchOperation[],
  options: { subresource?: string },
  signal: AbortSignal,
): Promise<MachineActionEvent> {
  if (operations.length === 0) return { type: "written", machine };
  const { uid, resourceVersion } = raw.metadata;
  const patched = await client.patch<KubeObject>(
    machineType,
    keyOf(raw),
    { uid, resourceVersion },
    operations,
    options,
    signal,
  );
  return { type: "written", machine: kind.readMachine(patched) };
}

/** Defers the remediation of a Machine. */
function deferred(
  { nowMs }: MachineActionDeps,
  machine: Machine,
  deferral: { reason: string; cause: DeferralCause },
  forMs: number,
): MachineActionEvent {
  return { type: "deferred", machine, deferral: { ...deferral, untilMs: nowMs() + forMs } };
}
