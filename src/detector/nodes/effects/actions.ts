import { MANUALLY_CONFIRMED_HEALTHY, OLD_REMEDIATION_CR } from "../../../api/names/annotations.ts";
import { NODES } from "../../../api/kubernetes/core-types.ts";
import type { Node } from "../../../api/kubernetes/core.ts";
import { isKubeError } from "../../../kube/errors.ts";
import { keyOf } from "../../../kube/watched.ts";
import { trimForHealthCheck } from "../../shared/model/remediation.ts";
import { annotationPatch } from "../../shared/shell/annotation-patch.ts";
import type { NodeAction } from "../decide/decision.ts";
import type { NodeActionEvent } from "../decide/observe.ts";
import type { NodeActionContext, NodeActionDeps } from "./action-context.ts";
import { takeLease, typeOf } from "./action-context.ts";
import { createRemediation } from "./create-remediation.ts";
import { deleteRemediation } from "./delete-remediation.ts";
import { leaseHolder } from "./node-lease.ts";

/** An action for one node. Attempts are not among them, because those of many nodes are recorded in one write. */
export type SingleNodeAction = Exclude<NodeAction, { type: "recordAttempts" }>;

/**
 * Runs one action. If a wrong action would do harm, the objects that the decision depends on are read live first. The
 * view of the cluster may be late, and the remediation of a node that is healthy again would power off a healthy host.
 *
 * @returns an event for each result, as soon as it is known.
 * @throws KubeError if the action failed. The reconcile runs the other actions, and the next one retries this action.
 */
export function runNodeAction(
  deps: NodeActionDeps,
  context: NodeActionContext,
  action: SingleNodeAction,
  signal: AbortSignal,
): AsyncIterable<NodeActionEvent> {
  switch (action.type) {
    case "create":
      return createRemediation(deps, context, action, signal);
    case "delete":
      return deleteRemediation(deps, context, action, signal);
    case "annotate":
      return annotate(deps, action, signal);
    case "renewLease":
      return renewLease(deps, context, action, signal);
    case "releaseLease":
      return releaseLease(deps, context, action, signal);
    case "consumeConfirmation":
      return consumeConfirmation(deps, action.node, signal);
    default:
      return action satisfies never;
  }
}

/** Identifies an action, so that a failed one does not run twice in one reconcile. */
export function nodeActionKey(action: NodeAction): string {
  switch (action.type) {
    case "delete":
      return `delete ${action.remediation.uid}`;
    case "annotate":
      return `annotate ${action.remediation.uid} ${action.annotation}`;
    case "releaseLease":
      return `releaseLease ${action.nodeName}`;
    case "recordAttempts":
      return `recordAttempts ${action.key}`;
    default:
      return `${action.type} ${action.node.metadata.name}`;
  }
}

async function* annotate(
  deps: NodeActionDeps,
  action: Extract<NodeAction, { type: "annotate" }>,
  signal: AbortSignal,
): AsyncGenerator<NodeActionEvent, void> {
  const { remediation, annotation, value } = action;
  const { metadata } = remediation.object;
  const type = typeOf(deps, remediation);
  if (type === undefined) return;
  const { uid, resourceVersion } = metadata;
  const operations = annotationPatch(metadata.annotations, annotation, value);
  const key = keyOf(remediation.object);
  const patched = await deps.client.patch(type, key, { uid, resourceVersion }, operations, {}, signal);
  deps.remediations.wrote(trimForHealthCheck(patched), resourceVersion);
  if (annotation === OLD_REMEDIATION_CR) yield { type: "markedOld", nodeName: remediation.nodeName };
}

async function* renewLease(
  deps: NodeActionDeps,
  context: NodeActionContext,
  { node, leaseDurationMs }: Extract<NodeAction, { type: "renewLease" }>,
  signal: AbortSignal,
): AsyncGenerator<NodeActionEvent, void> {
  yield await takeLease(deps, context, node, leaseDurationMs, signal);
}

async function* releaseLease(
  deps: NodeActionDeps,
  { check }: NodeActionContext,
  { nodeName }: Extract<NodeAction, { type: "releaseLease" }>,
  signal: AbortSignal,
): AsyncGenerator<NodeActionEvent, void> {
  // Yielded before the request, because the result does not matter: a lease that is not released expires.
  yield { type: "leaseReleased", nodeName };
  await deps.leases.release(nodeName, leaseHolder(check), signal);
}

async function* consumeConfirmation(
  deps: NodeActionDeps,
  node: Node,
  signal: AbortSignal,
): AsyncGenerator<NodeActionEvent, void> {
  const { name, uid } = node.metadata;
  const operations = annotationPatch(node.metadata.annotations, MANUALLY_CONFIRMED_HEALTHY, undefined);
  try {
    await deps.client.patch(NODES, { name }, { uid }, operations, {}, signal);
    yield { type: "confirmationConsumed", nodeName: name };
  } catch (error) {
    // The annotation was already removed, or the Node was deleted.
    if (!isKubeError(error, "NotFound", "Conflict", "Invalid")) throw error;
  }
}
