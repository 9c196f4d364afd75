import type { Cluster, Machine } from "../../../api/cluster-api.ts";
import { changeConditions } from "../../../api/machine-conditions.ts";
import type { MachineHealthCheck } from "../../../api/machine-health-check.ts";
import { isKubeError } from "../../../kube/errors.ts";
import type { JsonPatchOperation, KubeClient } from "../../../kube/client.ts";
import type { KubeObject, ResourceType } from "../../../kube/resource.ts";
import { setField } from "../../../kube/set-field.ts";
import { keyOf, nameOf } from "../../../kube/watched.ts";
import type { Logger } from "../../../telemetry/logger.ts";
import { annotationPatch } from "../../shared/shell/annotation-patch.ts";
import type { DeferralCause } from "../../shared/model/deferral.ts";
import type { RemediationStore } from "../../shared/views/remediation-store.ts";
import { trimRemediation } from "../../shared/model/remediation.ts";
import type { MachineAction } from "../decide/decision.ts";
import type { MachineHealthCheckKind, Remedy } from "../decide/kind.ts";
import { buildRequest, machineUidOf } from "../decide/request.ts";
import type { MachineHealth, ObservedNode } from "../decide/target.ts";
import type { MachineEvent } from "../snapshot/observe.ts";

/** How soon a machine is evaluated again after a live read differed from the watch, which has caught up then. */
const STALE_RETRY_MS = 1_000;
/** How soon machines are counted again after a live list of their nodes showed too many unhealthy ones. */
const RECOUNT_MS = 5_000;
/** How soon a request is tried again that the API server refused permanently. */
const REFUSED_RETRY_MS = 15_000;

export interface MachineActionDeps {
  client: KubeClient;
  /** Now, on the clock that machines are judged by. */
  nowMs: () => number;
  logger: Logger;
  kind: MachineHealthCheckKind;
  machineType: ResourceType;
  clusterType: ResourceType | undefined;
  remediations: RemediationStore;
}

/** An action that runs alone; attempts of many machines are recorded together, in one write. */
export type SingleMachineAction = Exclude<MachineAction, { type: "recordAttempts" }>;

/** The reconcile that an action belongs to. */
export interface MachineActionContext {
  check: MachineHealthCheck;
  covers: (machine: Machine) => boolean;
  /** Judges a machine by what was just read of it. */
  judge: (machine: Machine, cluster: Cluster | undefined, node: ObservedNode) => MachineHealth;
  /** Reads a machine's node live, in the form that `judge` takes. */
  readNode: (machine: Machine, cluster: Cluster | undefined, signal: AbortSignal) => Promise<ObservedNode>;
  /** Why the threshold allows no remediation by a live list of the nodes, in words; the watch may be behind. */
  findObjection: (signal: AbortSignal) => Promise<string | undefined>;
  /** Whether a remediation of the machine may still start: the decision is some requests old by then. */
  mayStart: (machine: Machine) => boolean;
}

/**
 * Runs one action. The machine, its cluster and its node are read live first wherever a wrong action would do harm: the view
 * may be behind, and a remediation of a machine that is well again powers off a healthy host.
 *
 * @returns an event for each thing that was done, as it is done.
 * @throws KubeError if it failed; the reconcile continues with the others and retries this one.
 */
export async function* runAction(
  deps: MachineActionDeps,
  context: MachineActionContext,
  action: SingleMachineAction,
  signal: AbortSignal,
): AsyncGenerator<MachineEvent, void> {
  const objection = starts(action) ? await context.findObjection(signal) : undefined;
  if (objection !== undefined) {
    deps.logger.warn(
      { machine: nameOf(action.machine), reason: objection },
      "no remediation starts: a live list of the nodes leaves no room",
    );
    yield deferred(deps, action.machine, { reason: objection, cause: "threshold" }, RECOUNT_MS);
    return;
  }
  // The last check: what takes time comes before it.
  const live = await readLive(deps, context, action.machine, signal);
  if (live === undefined) return;
  const needed = action.type === "conditions" ? action.health : action.type === "withdraw" ? "healthy" : "unhealthy";
  if (live.health.state !== needed) {
    const reason = "a live read differs from the watched state";
    deps.logger.info({ machine: nameOf(action.machine), action: action.type }, `nothing is done: ${reason}`);
    yield deferred(deps, action.machine, { reason, cause: "staleView" }, STALE_RETRY_MS);
    return;
  }
  if (action.type === "renew" || action.type === "withdraw") await withdraw(deps, action, signal);
  else yield* act(deps, context, action, live, signal);
}

function act(
  deps: MachineActionDeps,
  context: MachineActionContext,
  action: Exclude<SingleMachineAction, { type: "renew" | "withdraw" }>,
  live: Live,
  signal: AbortSignal,
): AsyncGenerator<MachineEvent, void> {
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

/** Whether the action brings about a remediation. An owner that is asked deletes its machine. */
function starts(action: SingleMachineAction): boolean {
  if (action.type === "conditions") return action.wanted.some(({ type }) => type === "OwnerRemediated");
  return action.type !== "withdraw";
}

/** Names an action, so that one that failed is not run twice in one reconcile. */
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

/** A machine as it is now. */
interface Live {
  raw: KubeObject;
  machine: Machine;
  health: MachineHealth;
}

/** @returns undefined if it is gone, another one, or no target any more. */
async function readLive(
  deps: MachineActionDeps,
  context: MachineActionContext,
  { metadata, clusterName }: Machine,
  signal: AbortSignal,
): Promise<Live | undefined> {
  const { client, kind, machineType, clusterType } = deps;
  const { namespace, name, uid } = metadata;
  const [raw, rawCluster] = await Promise.all([
    readIfThere(client, machineType, { namespace, name }, signal),
    clusterType && readIfThere(client, clusterType, { namespace, name: clusterName }, signal),
  ]);
  if (raw?.metadata.uid !== uid || (clusterType !== undefined && rawCluster === undefined)) return undefined;
  const machine = kind.readMachine(raw);
  const cluster = rawCluster && kind.readCluster(rawCluster);
  if (!context.covers(machine) || cluster?.paused === true) return undefined;
  const node = await context.readNode(machine, cluster, signal);
  return { raw, machine, health: context.judge(machine, cluster, node) };
}

async function* request(
  deps: MachineActionDeps,
  context: MachineActionContext,
  { template }: Extract<MachineAction, { type: "request" }>,
  { machine }: Live,
  signal: AbortSignal,
): AsyncGenerator<MachineEvent, void> {
  const { client, logger, remediations } = deps;
  const { namespace, name, uid } = machine.metadata;
  // Nothing is awaited between this last check and the request.
  if (!context.mayStart(machine)) return;
  try {
    const created = await client.create<KubeObject>(template.type, buildRequest(template, machine), {}, signal);
    remediations.wrote(trimRemediation(created), undefined);
    const fields = { machineHealthCheck: nameOf(context.check), machine: nameOf(machine), kind: created.kind };
    logger.info({ ...fields, remediation: created.metadata.uid }, "created a remediation request");
  } catch (error) {
    if (isKubeError(error, "Forbidden", "NotFound", "Invalid", "BadRequest", "MethodNotAllowed")) {
      // Not this machine's fault, and a retry at once does not help: the operator must know.
      yield deferred(deps, machine, { reason: error.message, cause: "refused" }, REFUSED_RETRY_MS);
      return;
    }
    if (!isKubeError(error, "AlreadyExists")) throw error;
    const found = trimRemediation(await client.get(template.type, { namespace, name }, signal));
    if (machineUidOf(found) === uid) {
      remediations.wrote(found, undefined);
      return;
    }
    const reason = `a ${template.type.kind} with its name exists and does not belong to the Machine`;
    yield deferred(deps, machine, { reason, cause: "refused" }, REFUSED_RETRY_MS);
  }
}

async function withdraw(
  { client, logger, remediations }: MachineActionDeps,
  { request: { object, uid } }: Extract<MachineAction, { type: "withdraw" | "renew" }>,
  signal: AbortSignal,
): Promise<void> {
  const state = remediations.state(object.apiVersion, object.kind);
  if (state.state !== "watched") return;
  try {
    await client.delete(state.type, keyOf(object), { guard: { uid } }, signal);
    logger.info({ machine: nameOf(object), kind: object.kind, remediation: uid }, "deleted a remediation request");
  } catch (error) {
    // Gone, or replaced by another one with the same name: either way ours does not exist any more.
    if (!isKubeError(error, "NotFound", "Conflict")) throw error;
  }
  remediations.deletionOrdered(object);
}

async function* writeConditions(
  deps: MachineActionDeps,
  context: MachineActionContext,
  action: Extract<MachineAction, { type: "conditions" }>,
  live: Live,
  signal: AbortSignal,
): AsyncGenerator<MachineEvent, void> {
  const { wanted, unwanted, marks } = action;
  // This starts a remediation, so it needs the same last check.
  if (starts(action) && !context.mayStart(live.machine)) return;
  const changes = changeConditions(live.raw, wanted, unwanted, deps.nowMs());
  const operations = changes.flatMap(({ path, conditions }) => setField(live.raw, path, conditions));
  yield await patchMachine(deps, live, operations, { subresource: "status" }, signal);
  if (marks && operations.length > 0) yield { type: "markedUnhealthy", machine: live.machine };
}

async function* annotate(
  deps: MachineActionDeps,
  context: MachineActionContext,
  annotation: string,
  live: Live,
  signal: AbortSignal,
): AsyncGenerator<MachineEvent, void> {
  if (!isStillRemedy(deps, context, live, "annotate") || !context.mayStart(live.machine)) return;
  const { machine } = live;
  try {
    const operations = annotationPatch(live.raw.metadata.annotations, annotation, "");
    yield await patchMachine(deps, live, operations, {}, signal);
    yield { type: "annotated", machine };
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
): AsyncGenerator<MachineEvent, void> {
  const { client, logger, machineType } = deps;
  const { machine } = live;
  const { uid, resourceVersion } = machine.metadata;
  if (!isStillRemedy(deps, context, live, "delete") || !context.mayStart(machine)) return;
  try {
    await client.delete(machineType, keyOf(machine), { guard: { uid, resourceVersion } }, signal);
  } catch (error) {
    // Changed or gone since it was read: the next evaluation decides again.
    if (isKubeError(error, "Aborted", "Conflict", "NotFound") || !(error instanceof Error)) throw error;
    const { message } = error;
    yield { type: "deletionFailed", machine, message };
    // Another machine can be deleted meanwhile.
    yield deferred(deps, machine, { reason: message, cause: "deletionRefused" }, REFUSED_RETRY_MS);
    return;
  }
  logger.info({ machineHealthCheck: nameOf(context.check), machine: nameOf(machine) }, "deleted an unhealthy machine");
  yield { type: "deleted", machine };
}

/** Whether this remedy still applies to the machine as it is now: it may be terminating, or have lost its owner. */
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
): Promise<MachineEvent> {
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

async function readIfThere(
  client: KubeClient,
  type: ResourceType,
  key: { namespace: string; name: string },
  signal: AbortSignal,
): Promise<KubeObject | undefined> {
  try {
    return await client.get(type, key, signal);
  } catch (error) {
    if (isKubeError(error, "NotFound")) return undefined;
    throw error;
  }
}

/** Defers the remediation of a machine. */
function deferred(
  { nowMs }: MachineActionDeps,
  machine: Machine,
  deferral: { reason: string; cause: DeferralCause },
  forMs: number,
): MachineEvent {
  return { type: "deferred", machine, deferral: { ...deferral, untilMs: nowMs() + forMs } };
}
