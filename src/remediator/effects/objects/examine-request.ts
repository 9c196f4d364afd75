import { conditionOf } from "../../../api/schema/read-fields.ts";
import { NODE_HEALTH_CHECKS } from "../../../api/ironfence/node-health-check.ts";
import type { NodeHealthCheck } from "../../../api/ironfence/node-health-check.ts";
import { isKubeError } from "../../../kube/errors.ts";
import { findObject } from "../../../kube/objects/find-object.ts";
import type { EffectContext, EffectSession } from "../context/effect-context.ts";
import { fieldsOf } from "../context/effect-context.ts";
import { isReady } from "../../../nodes/ready.ts";
import { getNode } from "../../clusters/node-writes.ts";
import { readLiveMachine } from "../../machine-objects/read-machine.ts";

/**
 * Reads live whether the node is Ready, and whether the health check that owns the remediation finds it unhealthy now.
 */
export async function examineRequest(context: EffectContext, signal: AbortSignal): Promise<void> {
  const { session, nodeRuntime } = context;
  const [node, isFoundUnhealthy] = await Promise.all([
    getNode(nodeRuntime.client, session.nodeName, signal),
    isUnhealthyForOwner(context, signal),
  ]);
  const isReadyNow = node !== undefined && isReady(node);
  session.observe({ type: "RequestExamined", isReady: isReadyNow, isFoundUnhealthy, atMs: session.now().monotonicMs });
}

async function isUnhealthyForOwner(context: EffectContext, signal: AbortSignal): Promise<boolean> {
  const { session, runtime } = context;
  try {
    return (
      (await isUnhealthyForNodeCheck(context, signal)) || (await isUnhealthyForMachineCheck(session, runtime, signal))
    );
  } catch (error) {
    if (!isKubeError(error, "Forbidden")) throw error;
    runtime.logger.warn(
      { ...fieldsOf(session), err: error },
      "cannot read the owner of the remediation (forbidden): no health check confirms the remediation",
    );
    return false;
  }
}

async function isUnhealthyForNodeCheck({ session, runtime }: EffectContext, signal: AbortSignal): Promise<boolean> {
  const { kind, group } = NODE_HEALTH_CHECKS;
  const owners = session.remediation.metadata.ownerReferences ?? [];
  const owner = owners.find((other) => other.kind === kind && other.apiVersion.startsWith(`${group}/`));
  if (owner === undefined) return false;
  const check = await findObject<NodeHealthCheck>(runtime.client, NODE_HEALTH_CHECKS, { name: owner.name }, signal);
  if (check?.metadata.uid !== owner.uid) return false;
  return check.status?.unhealthyNodes?.some(({ name }) => name === session.nodeName) === true;
}

/** Whether a health check of Cluster API finds the Machine unhealthy, according to a condition of the Machine. */
async function isUnhealthyForMachineCheck(
  { subject }: EffectSession,
  runtime: EffectContext["runtime"],
  signal: AbortSignal,
): Promise<boolean> {
  if (subject.machine === undefined) return false;
  const read = await readLiveMachine(runtime, subject.machine, signal);
  return (
    read.found &&
    [read.machine.conditions, read.machine.v1beta1Conditions].some(
      (conditions) => conditionOf(conditions, "HealthCheckSucceeded")?.status === "False",
    )
  );
}
