import type { Node } from "../../../api/core.ts";
import { isKubeError } from "../../../kube/errors.ts";
import type { ResourceType } from "../../../kube/resource.ts";
import { keyOf } from "../../../kube/watched.ts";
import type { Remediation } from "../../shared/model/remediation.ts";
import { readRemediation, trimRemediation } from "../../shared/model/remediation.ts";
import type { Action, DeletionReason } from "../decide/decision.ts";
import { judgeHealth } from "../decide/health.ts";
import type { NodeEvent } from "../snapshot/observe.ts";
import type { ActionContext, ActionDeps } from "./action-context.ts";
import { readNode, typeOf } from "./action-context.ts";

/** Deletes a remediation, once a live read confirms the reason for it. */
export async function* deleteRemediation(
  deps: ActionDeps,
  context: ActionContext,
  action: Extract<Action, { type: "delete" }>,
  signal: AbortSignal,
): AsyncGenerator<NodeEvent, void> {
  const { remediation, because } = action;
  const type = typeOf(deps, remediation);
  if (type === undefined) return;
  const key = keyOf(remediation.object);
  const node = await readNode(deps, remediation.nodeName, signal);
  if (!(await mayDelete(deps, context, { remediation, because, node, type }, signal))) {
    // The watch will show the difference; if not, the action is decided again.
    throw new Error(
      `${remediation.object.kind} ${key.name} is not deleted: a live read of its node differs from the watched state`,
    );
  }
  try {
    await deps.client.delete(type, key, { guard: { uid: remediation.uid } }, signal);
  } catch (error) {
    // Gone, or replaced by another one with the same name: either way ours does not exist any more.
    if (!isKubeError(error, "NotFound", "Conflict")) throw error;
  }
  deps.remediations.deletionOrdered(remediation.object);
  yield { type: "deleted", remediation: remediation.object };
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
  if (because === "restarted") {
    const live = readRemediation(trimRemediation(await deps.client.get(type, keyOf(remediation.object), signal)));
    return live.uid === remediation.uid && (live.timedOut !== undefined || isFinished(live));
  }
  if (node !== undefined) return false;
  try {
    // The CR announces that its Node will be deleted, but the watch may report that after the deletion.
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
