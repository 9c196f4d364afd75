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
import type { RemediationStore } from "../../shared/views/remediation-store.ts";
import { trimRemediation } from "../../shared/model/remediation.ts";
import type { MachineAction, MachineHold } from "../decide/decision.ts";

import type { MachineHealthCheckKind, Remedy } from "../decide/kind.ts";
import type { MachineMetrics } from "./metrics.ts";
import { buildRequest } from "../decide/request.ts";
import { machineUidOf } from "../decide/request.ts";
import type { MachineHealth, NodeSight } from "../decide/target.ts";

/** How soon a machine is looked at again whose view was seen to be behind: by then the watch has caught up. */
const STALE_RETRY_MS = 1_000;
/** How soon machines are counted anew of which a live list of their nodes showed too many unhealthy. */
const RECOUNT_MS = 5_000;
/** How soon a request is tried again that the API server refused for good reason. */
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
  metrics?: MachineMetrics;
}

/** What is taken one by one; attempts of many machines are recorded together, in one place. */
export type SingleMachineAction = Exclude<MachineAction, { type: "recordAttempts" }>;

/** The pass that an action belongs to. */
export interface MachineActionContext {
  check: MachineHealthCheck;
  covers: (machine: Machine) => boolean;
  holds: Map<string, MachineHold>;
  /** How a machine is, by what was read of it now. */
  judge: (machine: Machine, cluster: Cluster | undefined, node: NodeSight) => MachineHealth;
  /** Reads a machine's node now, as `judge` wants it. */
  readNode: (machine: Machine, cluster: Cluster | undefined, signal: AbortSignal) => Promise<NodeSight>;
  /** Why the threshold lets nothing start by the nodes as they are now, in words: the view of them may be behind. */
  findObjection: (signal: AbortSignal) => Promise<string | undefined>;
  /** Whether a remediation of the machine may still start: the decision is some requests old by then. */
  mayStart: (machine: Machine) => boolean;
  /** Takes in how a machine is after a write. */
  wrote: (machine: Machine) => void;
  tell: (type: "Normal" | "Warning", reason: MachineActionReason, note: string, machine: Machine) => void;
}

/** Reasons of events about what was done, all of them upstream's. */
export type MachineActionReason =
  | "MachineMarkedUnhealthy"
  | "MachineDeleted"
  | "MachineDeletionFailed"
  | "ExternalAnnotationAdded"
  | "ExternalAnnotationFailed";

/**
 * Takes one action. The machine, its cluster and its node are read live first wherever taking it wrongly would do harm: the
 * view may be behind, and a remediation of a machine that is well again powers off a healthy host.
 *
 * @throws KubeError where it failed; the pass goes on with the others and comes back to this one.
 */
export async function takeMachineAction(
  deps: MachineActionDeps,
  context: MachineActionContext,
  action: SingleMachineAction,
  signal: AbortSignal,
): Promise<void> {
  const objection = starts(action) ? await context.findObjection(signal) : undefined;
  if (objection !== undefined) {
    deps.logger.warn(
      { machine: nameOf(action.machine), reason: objection },
      "nothing starts: a live list of the nodes",
    );
    const { uid } = action.machine.metadata;
    return hold(deps, context, uid, { reason: objection, forMs: RECOUNT_MS, refused: false });
  }
  // The last look: what takes its time comes before it.
  const live = await readLive(deps, context, action.machine, signal);
  if (live === undefined) return;
  const needed = action.type === "conditions" ? action.health : action.type === "withdraw" ? "healthy" : "unhealthy";
  if (live.health.state !== needed) {
    const { name, uid } = action.machine.metadata;
    deps.logger.info(
      { machine: nameOf(action.machine), name, action: action.type },
      "left alone: a live read shows it otherwise",
    );
    return hold(deps, context, uid, {
      reason: "a live read shows it otherwise",
      forMs: STALE_RETRY_MS,
      refused: false,
    });
  }
  switch (action.type) {
    case "request":
      return request(deps, context, action, live, signal);
    case "renew":
    case "withdraw":
      return withdraw(deps, action, signal);
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

/** Names an action, so that one that failed is not taken twice in one pass. */
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

/** @returns undefined where it is gone, another one, or no target any more. */
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

async function request(
  deps: MachineActionDeps,
  context: MachineActionContext,
  { template }: Extract<MachineAction, { type: "request" }>,
  { machine }: Live,
  signal: AbortSignal,
): Promise<void> {
  const { client, logger, remediations } = deps;
  const { namespace, name, uid } = machine.metadata;
  // Nothing is awaited between this last look and the request.
  if (!context.mayStart(machine)) return;
  try {
    const created = await client.create<KubeObject>(template.type, buildRequest(template, machine), {}, signal);
    remediations.wrote(trimRemediation(created), undefined);
    const fields = { machineHealthCheck: nameOf(context.check), machine: nameOf(machine), kind: created.kind };
    logger.info({ ...fields, remediation: created.metadata.uid }, "created a remediation request");
  } catch (error) {
    if (isKubeError(error, "Forbidden", "NotFound", "Invalid", "BadRequest", "MethodNotAllowed")) {
      // Not this machine's fault, and not to be mended by trying again at once: people must read of it.
      return hold(deps, context, uid, { reason: error.message, forMs: REFUSED_RETRY_MS, refused: true });
    }
    if (!isKubeError(error, "AlreadyExists")) throw error;
    const found = trimRemediation(await client.get(template.type, { namespace, name }, signal));
    if (machineUidOf(found) === uid) return remediations.wrote(found, undefined);
    const reason = `a ${template.type.kind} of its name exists, and is not the machine's own`;
    hold(deps, context, uid, { reason, forMs: REFUSED_RETRY_MS, refused: true });
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
    // Gone, or another of the same name by now: either way ours is no more.
    if (!isKubeError(error, "NotFound", "Conflict")) throw error;
  }
  remediations.deletionOrdered(object);
}

async function writeConditions(
  deps: MachineActionDeps,
  context: MachineActionContext,
  action: Extract<MachineAction, { type: "conditions" }>,
  live: Live,
  signal: AbortSignal,
): Promise<void> {
  const { wanted, unwanted, marks, machine } = action;
  // That starts something, and is as late to be called off.
  if (starts(action) && !context.mayStart(live.machine)) return;
  const changes = changeConditions(live.raw, wanted, unwanted, deps.nowMs());
  const operations = changes.flatMap(({ path, conditions }) => setField(live.raw, path, conditions));
  await patchMachine(deps, context, live, operations, { subresource: "status" }, signal);
  if (!marks || operations.length === 0) return;
  const note = `Machine ${nameOf(machine)} has been marked as unhealthy by ${nameOf(context.check)}`;
  context.tell("Normal", "MachineMarkedUnhealthy", note, live.machine);
}

async function annotate(
  deps: MachineActionDeps,
  context: MachineActionContext,
  annotation: string,
  live: Live,
  signal: AbortSignal,
): Promise<void> {
  if (!isStillRemedy(deps, context, live, "annotate") || !context.mayStart(live.machine)) return;
  const name = nameOf(live.machine);
  try {
    const operations = annotationPatch(live.raw.metadata.annotations, annotation, "");
    await patchMachine(deps, context, live, operations, {}, signal);
    const note = `Requesting external remediation of node associated with machine ${name}`;
    context.tell("Normal", "ExternalAnnotationAdded", note, live.machine);
  } catch (error) {
    const note = `Requesting external remediation of node associated with machine ${name} failed: ${error instanceof Error ? error.message : String(error)}`;
    if (!isKubeError(error, "Aborted")) context.tell("Warning", "ExternalAnnotationFailed", note, live.machine);
    throw error;
  }
}

async function deleteMachine(
  deps: MachineActionDeps,
  context: MachineActionContext,
  live: Live,
  signal: AbortSignal,
): Promise<void> {
  const { client, logger, machineType, metrics } = deps;
  const { machine } = live;
  const { uid, resourceVersion } = machine.metadata;
  if (!isStillRemedy(deps, context, live, "delete") || !context.mayStart(machine)) return;
  try {
    await client.delete(machineType, keyOf(machine), { guard: { uid, resourceVersion } }, signal);
  } catch (error) {
    // Changed or gone since it was read: it is looked at again.
    if (isKubeError(error, "Aborted", "Conflict", "NotFound") || !(error instanceof Error)) throw error;
    const note = `Machine ${nameOf(machine)} remediation failed: unable to delete Machine object: ${error.message}`;
    context.tell("Warning", "MachineDeletionFailed", note, machine);
    // Another one has its turn meanwhile.
    return hold(deps, context, uid, { reason: error.message, forMs: REFUSED_RETRY_MS, refused: false });
  }
  logger.info({ machineHealthCheck: nameOf(context.check), machine: nameOf(machine) }, "deleted an unhealthy machine");
  const note = `Machine ${nameOf(machine)} has been remediated by requesting to delete Machine object`;
  context.tell("Normal", "MachineDeleted", note, machine);
  metrics?.deleted(context.check);
}

/** Whether the machine as it is now is to be treated so: it may be on its way out, or somebody has taken its owner off. */
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
  context: MachineActionContext,
  { raw, machine }: Live,
  operations: readonly JsonPatchOperation[],
  options: { subresource?: string },
  signal: AbortSignal,
): Promise<void> {
  if (operations.length === 0) return context.wrote(machine);
  const { uid, resourceVersion } = raw.metadata;
  const patched = await client.patch<KubeObject>(
    machineType,
    keyOf(raw),
    { uid, resourceVersion },
    operations,
    options,
    signal,
  );
  context.wrote(kind.readMachine(patched));
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

function hold(
  { nowMs }: MachineActionDeps,
  { holds }: MachineActionContext,
  uid: string,
  { reason, forMs, refused }: { reason: string; forMs: number; refused: boolean },
): void {
  holds.set(uid, { reason, refused, untilMs: nowMs() + forMs });
}
