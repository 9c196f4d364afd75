import type { Node } from "../../../api/kubernetes/core.ts";
import { findObject } from "../../../kube/objects/find-object.ts";
import type { ResourceType } from "../../../kube/resource.ts";
import { keyOf } from "../../../kube/watched.ts";
import type { Remediation } from "../../shared/model/remediation.ts";
import { readRemediation, trimForHealthCheck } from "../../shared/model/remediation.ts";
import { deleteRemediationObject } from "../../shared/shell/remediation-writes.ts";
import type { NodeAction, DeletionReason } from "../decide/decision.ts";
import { judgeHealth } from "../decide/health.ts";
import type { NodeActionEvent } from "../decide/observe.ts";
import type { NodeActionContext, NodeActionDeps } from "./action-context.ts";
import { typeOf } from "./action-context.ts";

/** Deletes a remediation if a live read confirms the reason for the deletion. */
export async function* deleteRemediation(
  deps: NodeActionDeps,
  context: NodeActionContext,
  action: Extract<NodeAction, { type: "delete" }>,
  signal: AbortSignal,
): AsyncGenerator<NodeActionEvent, void> {
  const { remediation, because } = action;
  const type = typeOf(deps, remediation);
  if (type === undefined) return;
  const key = keyOf(remediation.object);
  const node = await context.readNode(remediation.nodeName, signal);
  if (!(await mayDelete(deps, context, { remediation, because, node, type }, signal))) {
    // The watch will report the difference. If it does not, the retry decides again.
    throw new Error(
      `${remediation.object.kind} ${key.name} is not deleted: a live read of its node differs from the watched state`,
    );
  }
  await deleteRemediationObject(deps, type, remediation.object, signal);
  yield { type: "deleted", remediation: remediation.object };
}

async function mayDelete(
  deps: NodeActionDeps,
  context: NodeActionContext,
  found: { remediation: Remediation; because: DeletionReason; node: Node | undefined; type: ResourceType },
  signal: AbortSignal,
): Promise<boolean> {
  const { remediation, because, node, type } = found;
  const { policy } = context;
  if (because === "nodeNotSelected") return node !== undefined && !policy.selects(node.metadata.labels);
  if (because === "nodeHealthy") {
    return (
      node !== undefined &&
      judgeHealth(policy.unhealthyConditions, node.status.conditions, deps.clock.nowMs()).state === "healthy"
    );
  }
  if (because === "restarted") {
    const live = readRemediation(trimForHealthCheck(await deps.client.get(type, keyOf(remediation.object), signal)));
    return live.uid === remediation.uid && (live.timedOut !== undefined || isFinished(live));
  }
  if (node !== undefined) return false;
  // A CR announces the deletion of its Node, but the watch may report that only after the deletion.
  const live = await findObject(deps.client, type, keyOf(remediation.object), signal);
  if (live === undefined) return true;
  const { nodeDeletionExpected, succeeded } = readRemediation(trimForHealthCheck(live));
  return !nodeDeletionExpected || succeeded === "True";
}

function isFinished({ succeeded }: Remediation): boolean {
  return succeeded === "True" || succeeded === "False";
}
