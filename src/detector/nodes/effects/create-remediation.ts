import { MACHINE } from "../../../api/names/annotations.ts";
import type { Node } from "../../../api/kubernetes/core.ts";
import { EXCLUDE_FROM_REMEDIATION } from "../../../api/names/labels.ts";
import type { KubeClient } from "../../../kube/client.ts";
import { isKubeError } from "../../../kube/errors.ts";
import type { KubeObject, OwnerReference, ResourceType } from "../../../kube/resource.ts";
import type { ObservedHost } from "../../shared/model/observed-host.ts";
import { isOwnedBy } from "../../shared/model/remediation.ts";
import type { EarlySpec } from "../../shared/model/template.ts";
import { buildRemediation } from "../../shared/model/template.ts";
import { REFUSED_RETRY_MS, STALE_RETRY_MS } from "../../shared/model/deferral.ts";
import { createRemediationObject } from "../../shared/shell/remediation-writes.ts";
import { keepKnownConditions } from "../../shared/views/watched-nodes/compare-nodes.ts";
import { toTime } from "../../../runtime/time.ts";
import { isControlPlane } from "../../../nodes/control-plane.ts";
import type { NodeAction } from "../decide/decision.ts";
import { judgeEarly } from "../decide/early.ts";
import type { SkippedDuration } from "../decide/health.ts";
import { skipDuration } from "../decide/skip-duration.ts";
import type { HealthCheckObject } from "../snapshot/health-check.ts";
import type { NodeActionEvent } from "../decide/observe.ts";
import type { NodeActionContext, NodeActionDeps } from "./action-context.ts";
import { deferred, takeLease } from "./action-context.ts";
import { findEtcdObjection } from "./etcd-guard.ts";

/** How soon a control plane node is evaluated again if etcd needs its member for quorum. */
export const ETCD_RETRY_MS = 60_000;

const MACHINES: ResourceType = {
  group: "machine.openshift.io",
  version: "v1beta1",
  kind: "Machine",
  plural: "machines",
  namespaced: true,
};

/**
 * Creates the remediation of a node. It reads everything that the decision depends on live, takes the remediation
 * lease, and checks everything again immediately before the request.
 */
export async function* createRemediation(
  deps: NodeActionDeps,
  context: NodeActionContext,
  action: Extract<NodeAction, { type: "create" }>,
  signal: AbortSignal,
): AsyncGenerator<NodeActionEvent, void> {
  const { client, logger } = deps;
  const { check, mayStart } = context;
  const { template, leaseDurationMs, because, skipped } = action;
  const { name } = action.node.metadata;
  const [node, host] = await Promise.all([
    context.readNode(name, signal),
    skipped === undefined ? undefined : deps.fencingTargets.readHost(name, signal),
  ]);
  const leave = (): NodeActionEvent => {
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
  if (skipped?.isEarly === true) await deps.overdue?.confirm(name, signal);
  const needs = (found: Node | undefined, known: ObservedHost | undefined): boolean =>
    stillNeeds(deps, context, action, found, known);
  if (node === undefined || !needs(node, host)) {
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
  // Nothing is awaited between the start guard and the request, because the live read may already be seconds old.
  if (!mayStart() || (skipped?.isEarly === true && !context.mayStartEarly())) return;
  const lastHost = host && context.hostOf(name);
  const isNeeded = context.nodesNamed(name).every((found) => needs(found, lastHost));
  if (!isNeeded) {
    yield leave();
    return;
  }
  const owners = { healthCheck: ownerReference(check), machine };
  const body = buildRemediation(template, node, owners, deps.zoneLabel, earlySpec(deps, name, skipped));
  const isOwn = (found: KubeObject): boolean => isOwnedBy(found, check.metadata.uid);
  // An older CRD would drop the fields that make the remediation an early one, and then nothing would hold it back.
  const options = { strict: skipped?.isEarly === true };
  const creation = await createRemediationObject(deps, template.type, body, isOwn, options, signal);
  if (creation.result === "refused") {
    yield deferred(deps, name, { reason: creation.reason, cause: "refused" }, REFUSED_RETRY_MS);
  } else if (creation.result === "created") {
    const { kind, metadata } = creation.object;
    const fields = { nodeHealthCheck: check.metadata.name, node: name, kind, remediation: metadata.uid };
    logger.info({ ...fields, ...(skipped && { durationSkipped: skipped.proof }) }, "created a remediation");
    yield { type: "created", node, remediation: creation.object, because, atMs: deps.clock.nowMs(), skipped };
  }
}

/**
 * Whether the node is still the same node, and still needs a remediation.
 *
 * @param found the node as it is now; undefined if it was deleted.
 * @param host what is known about its host; needed only if the decision skips the rest of the duration.
 */
function stillNeeds(
  deps: NodeActionDeps,
  context: NodeActionContext,
  { node: decided, skipped }: Extract<NodeAction, { type: "create" }>,
  found: Node | undefined,
  host: ObservedHost | undefined,
): boolean {
  if (found === undefined) return false;
  const { policy, tracker } = context;
  const { uid, labels } = found.metadata;
  const nowMs = deps.clock.nowMs();
  const known = keepKnownConditions(found, decided);
  const health = skipDuration({ node: known, health: tracker.judge(known, nowMs), host }, policy, nowMs);
  const early = skipped?.isEarly === true ? deps.overdue?.factsOf(found.metadata.name) : undefined;
  return (
    uid === decided.metadata.uid &&
    policy.selects(labels) &&
    labels?.[EXCLUDE_FROM_REMEDIATION] !== "true" &&
    judgeEarly({ node: known, health, host, early, remediations: [] }, policy, nowMs).state === "unhealthy"
  );
}

/**
 * The additional fields of an early remediation. `powerOnNotBefore` is when the duration is over, on the clock of the
 * API server, rounded up to whole seconds. `earlyProof` is the version of the silent lease, which the off proof also
 * names.
 */
function earlySpec(
  { clock, overdue }: NodeActionDeps,
  nodeName: string,
  skipped: SkippedDuration | undefined,
): EarlySpec | undefined {
  const facts = skipped?.isEarly === true ? overdue?.factsOf(nodeName) : undefined;
  if (skipped === undefined || facts?.lease === undefined) return undefined;
  const { uid: leaseUID, resourceVersion: leaseResourceVersion } = facts.lease;
  return {
    powerOnNotBefore: toTime(facts.serverNowMs + skipped.durationUntilMs - clock.nowMs() + 999),
    earlyProof: { leaseUID, leaseResourceVersion },
  };
}

async function etcdObjection(client: KubeClient, nodeName: string, signal: AbortSignal): Promise<string | undefined> {
  try {
    return await findEtcdObjection(client, nodeName, signal);
  } catch (error) {
    if (!isKubeError(error, "Forbidden")) throw error;
    return `cannot check etcd quorum (forbidden): ${error.message}`;
  }
}

/**
 * The owner reference to the node's Machine, if the Machine is in the namespace of the CR. Kubernetes would delete a CR
 * with an owner in another namespace.
 */
async function readMachine(
  deps: NodeActionDeps,
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
