import { MACHINE } from "../../../api/annotations.ts";
import type { Node } from "../../../api/core.ts";
import { EXCLUDE_FROM_REMEDIATION } from "../../../api/labels.ts";
import type { KubeClient } from "../../../kube/client.ts";
import { isKubeError } from "../../../kube/errors.ts";
import type { KubeObject, OwnerReference, ResourceType } from "../../../kube/resource.ts";
import type { ObservedHost } from "../../shared/model/observed-host.ts";
import { isOwnedBy, trimRemediation } from "../../shared/model/remediation.ts";
import { buildRemediation } from "../../shared/model/template.ts";
import { isControlPlane } from "../../../nodes/control-plane.ts";
import type { Action } from "../decide/decision.ts";
import { skipDuration } from "../decide/skip-duration.ts";
import type { HealthCheckObject } from "../snapshot/health-check.ts";
import type { NodeEvent } from "../snapshot/observe.ts";
import type { ActionContext, ActionDeps } from "./action-context.ts";
import { deferred, readNode, takeLease } from "./action-context.ts";
import { findEtcdObjection } from "./etcd-guard.ts";

/** How soon a node is evaluated again after a live read differed from the watch, which has caught up then. */
const STALE_RETRY_MS = 1_000;
/** How soon a creation is tried again that the API server refused permanently. */
const REFUSED_RETRY_MS = 15_000;
/** How soon a control plane node is evaluated again whose etcd member is needed for quorum. */
export const ETCD_RETRY_MS = 60_000;

const MACHINES: ResourceType = {
  group: "machine.openshift.io",
  version: "v1beta1",
  kind: "Machine",
  plural: "machines",
  namespaced: true,
};

/**
 * Creates the remediation of a node. Everything that the decision rests on is read live first, then the node's lease is taken,
 * and everything is checked again right before the request.
 */
export async function* createRemediation(
  deps: ActionDeps,
  context: ActionContext,
  action: Extract<Action, { type: "create" }>,
  signal: AbortSignal,
): AsyncGenerator<NodeEvent, void> {
  const { client, logger, remediations } = deps;
  const { check, mayStart } = context;
  const { template, leaseDurationMs, skipped } = action;
  const { name } = action.node.metadata;
  const [node, host] = await Promise.all([
    readNode(deps, name, signal),
    skipped === undefined ? undefined : deps.fencingTargets.readHost(name, signal),
  ]);
  const leave = (): NodeEvent => {
    logger.info(
      { nodeHealthCheck: check.metadata.name, node: name },
      "not remediated: a live read differs from the watched state",
    );
    return deferred(
      deps,
      name,
      { reason: "a live read differs from the watched state", cause: "staleView" },
      STALE_RETRY_MS,
    );
  };
  if (node === undefined || !stillNeeds(deps, context, action.node, node, host)) {
    yield leave();
    return;
  }
  if (context.isOkd && isControlPlane(node)) {
    const reason = await etcdObjection(client, name, signal);
    if (reason !== undefined) {
      yield deferred(deps, name, { reason, cause: "etcd" }, ETCD_RETRY_MS);
      return;
    }
  }
  const machine = await readMachine(deps, node, template.namespace, signal);
  const lease = await takeLease(deps, context, node, leaseDurationMs, signal);
  yield lease;
  if (lease.type === "leaseRefused") return;
  await context.confirmNodes(signal);
  // Nothing is awaited between this last check and the request. The live read may be seconds old already.
  if (!mayStart()) return;
  const lastHost = host && context.hostOf(name);
  const isNeeded = context.nodesNamed(name).every((found) => stillNeeds(deps, context, action.node, found, lastHost));
  if (!isNeeded) {
    yield leave();
    return;
  }
  const body = buildRemediation(template, node, { healthCheck: ownerReference(check), machine });
  try {
    const created = await client.create<KubeObject>(template.type, body, {}, signal);
    remediations.wrote(trimRemediation(created), undefined);
    const { kind, metadata } = created;
    const fields = { nodeHealthCheck: check.metadata.name, node: name, kind, remediation: metadata.uid };
    logger.info({ ...fields, ...(skipped && { durationSkipped: skipped.proof }) }, "created a remediation");
    yield { type: "created", node, atMs: deps.clock.nowMs(), skipped };
  } catch (error) {
    if (isKubeError(error, "Forbidden", "NotFound", "Invalid", "BadRequest", "MethodNotAllowed")) {
      // Not this node's fault, and a retry at once does not help: the operator must know.
      yield deferred(deps, name, { reason: error.message, cause: "refused" }, REFUSED_RETRY_MS);
      return;
    }
    if (!isKubeError(error, "AlreadyExists") || template.manyPerNode) throw error;
    const key = template.namespace === undefined ? { name } : { namespace: template.namespace, name };
    const found = await client.get(template.type, key, signal);
    if (isOwnedBy(found, check.metadata.uid)) {
      remediations.wrote(trimRemediation(found), undefined);
      return;
    }
    const reason = `a ${template.type.kind} with that name exists, and this health check does not own it`;
    yield deferred(deps, name, { reason, cause: "refused" }, REFUSED_RETRY_MS);
  }
}

/**
 * Whether the node, as it is now, is the one that the decision was about and still needs a remediation.
 *
 * @param found undefined: it is gone.
 * @param host what is known of its host, if the decision skips the rest of the duration because of that.
 */
function stillNeeds(
  deps: ActionDeps,
  context: ActionContext,
  decided: Node,
  found: Node | undefined,
  host: ObservedHost | undefined,
): boolean {
  if (found === undefined) return false;
  const { policy, tracker } = context;
  const { uid, labels } = found.metadata;
  const nowMs = deps.clock.nowMs();
  // A condition that differs is left out here: the next decision judges it, once its change was observed.
  const seen = found.status.conditions?.filter((condition) =>
    decided.status.conditions?.some(
      ({ type, status, lastTransitionTime }) =>
        type === condition.type && status === condition.status && lastTransitionTime === condition.lastTransitionTime,
    ),
  );
  const known: Node = { ...found, status: { ...found.status, ...(seen !== undefined && { conditions: seen }) } };
  return (
    uid === decided.metadata.uid &&
    policy.selects(labels) &&
    labels?.[EXCLUDE_FROM_REMEDIATION] !== "true" &&
    skipDuration({ node: known, health: tracker.judge(known, nowMs), host }, policy, nowMs).state === "unhealthy"
  );
}

async function etcdObjection(client: KubeClient, nodeName: string, signal: AbortSignal): Promise<string | undefined> {
  try {
    return await findEtcdObjection(client, nodeName, signal);
  } catch (error) {
    if (!isKubeError(error, "Forbidden")) throw error;
    return `cannot check etcd quorum (forbidden): ${error.message}`;
  }
}

/** The node's Machine as an owner, if it lies in the CR's namespace: an owner anywhere else would get the CR collected. */
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
