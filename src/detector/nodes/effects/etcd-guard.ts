import type { Pod } from "../../../api/kubernetes/core.ts";
import { PODS } from "../../../api/kubernetes/core-types.ts";
import type { LabelSelector } from "../../../api/schema/meta.ts";
import type { KubeClient } from "../../../kube/client.ts";
import type { KubeObject, ResourceType } from "../../../kube/resource.ts";
import { compileSelector, SelectorError } from "../../../api/schema/label-selector.ts";

/**
 * The namespace in which OKD runs the etcd members, a guard pod for each member, and one PodDisruptionBudget for the
 * guard pods.
 */
const ETCD_NAMESPACE = "openshift-etcd";
const DISRUPTION_BUDGETS: ResourceType = {
  group: "policy",
  version: "v1",
  kind: "PodDisruptionBudget",
  plural: "poddisruptionbudgets",
  namespaced: true,
};

interface DisruptionBudget extends KubeObject {
  spec: { selector?: LabelSelector };
  status?: { disruptionsAllowed?: number };
}

/**
 * Why a control plane node of OKD must not go down now: etcd would lose its quorum, or that cannot be checked. A node
 * may go down if its etcd member is already down or if it has none.
 *
 * @returns text for the operator; undefined if the node may go down.
 * @throws KubeError Forbidden if RBAC does not allow the agent to read the budget or the pods.
 */
export async function findEtcdObjection(
  client: KubeClient,
  nodeName: string,
  signal: AbortSignal,
): Promise<string | undefined> {
  const inEtcd = { namespace: ETCD_NAMESPACE };
  const { items: budgets } = await client.list<DisruptionBudget>(DISRUPTION_BUDGETS, inEtcd, signal);
  const [budget, ...others] = budgets;
  if (budget === undefined || others.length > 0) {
    return `cannot check etcd quorum: found ${budgets.length} PodDisruptionBudgets in ${ETCD_NAMESPACE}, expected one`;
  }
  if ((budget.status?.disruptionsAllowed ?? 0) > 0) return undefined;
  try {
    const isGuard = compileSelector(budget.spec.selector ?? {});
    const onNode = { ...inEtcd, fieldSelector: `spec.nodeName=${nodeName}` };
    const { items: pods } = await client.list<Pod>(PODS, onNode, signal);
    const guard = pods.find(({ metadata }) => isGuard(metadata.labels));
    return guard === undefined || isDown(guard)
      ? undefined
      : `etcd would lose its quorum: ${budget.metadata.name} allows no disruption`;
  } catch (error) {
    if (!(error instanceof SelectorError)) throw error;
    return `cannot check etcd quorum: ${budget.metadata.name}: ${error.message}`;
  }
}

function isDown({ status }: Pod): boolean {
  return status?.conditions?.some((condition) => condition.type === "Ready" && condition.status === "False") === true;
}
