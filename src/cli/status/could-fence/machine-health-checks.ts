import type { Node } from "../../../api/kubernetes/core.ts";
import type { Machine } from "../../../api/cluster-api/cluster-api.ts";
import { CLUSTER_API_GROUP } from "../../../api/cluster-api/cluster-api.ts";
import { conditionOf } from "../../../api/schema/read-fields.ts";
import type { MachineHealthCheck } from "../../../api/cluster-api/machine-health-check.ts";
import type { MachineHealthCheckKind } from "../../../detector/machines/decide/kind.ts";
import type { MachinePolicy } from "../../../detector/machines/decide/policy.ts";
import { compileMachinePolicy } from "../../../detector/machines/decide/policy.ts";
import { CLUSTER_API_CHECKS } from "../../../detector/machines/vendors/cluster-api.ts";
import { OKD_CHECKS } from "../../../detector/machines/vendors/okd.ts";
import type { KubeObject } from "../../../kube/resource.ts";
import { keyOf, keyText } from "../../../kube/watched.ts";
import { machineNamed } from "../../../remediator/effects/objects/find-machine.ts";
import { itemsOf } from "../objects/object-problems.ts";
import type { Overview } from "../objects/read.ts";
import { budgetJudge } from "./attempt-budget.ts";
import type { Watcher } from "./watcher.ts";

/** Why a MachineHealthCheck remediates nothing now; undefined if it may. */
export function machineCheckHold(
  raw: KubeObject,
  withoutCluster: readonly string[],
): { reason: string; message: string } | undefined {
  const kind = kindOf(raw);
  const check = kind.readCheck(raw);
  const { namespace, name } = check.metadata;
  if (kind.clusters !== undefined && withoutCluster.includes(`${namespace}/${name}`)) {
    return { reason: "ClusterNotFound", message: "its Cluster is not there: correct spec.clusterName" };
  }
  const { conditions, v1beta1Conditions } = check.status;
  const allowed = conditionOf([...conditions, ...v1beta1Conditions], "RemediationAllowed");
  if (allowed?.status === "False") {
    const reason = allowed.reason || "RemediationNotAllowed";
    return { reason, message: allowed.message || reason };
  }
  const policy = compileMachinePolicy(kind, check);
  return typeof policy === "string" ? { reason: "SpecInvalid", message: policy } : undefined;
}

/**
 * The MachineHealthChecks that cover the Machine of a node of the agent's own cluster; `unread` if that cannot be
 * known.
 */
export function machineChecksOf(
  overview: Overview,
): (node: Node) => { watchers: Watcher[]; unread: string | undefined } {
  const { machineHealthChecks, machines, withoutCluster, nowMs } = overview;
  const raws = itemsOf(machineHealthChecks);
  const unread =
    machineHealthChecks !== undefined && "problem" in machineHealthChecks
      ? machineHealthChecks.problem
      : machines !== undefined && "problem" in machines
        ? machines.problem
        : undefined;
  const checks = raws.map((raw) => {
    const kind = kindOf(raw);
    const check = kind.readCheck(raw);
    const hold = machineCheckHold(raw, withoutCluster);
    return { kind, check, policy: compileMachinePolicy(kind, check), hold };
  });
  const budgetOf = budgetJudge(raws, nowMs);
  const known = new Map(itemsOf(machines).map((raw) => [`${groupOf(raw)} ${keyText(keyOf(raw))}`, raw]));
  return (node) => {
    const named = machineNamed(node.metadata.annotations ?? {});
    if (named === undefined) return { watchers: [], unread: undefined };
    const raw = known.get(`${named.kind.group} ${keyText(named)}`);
    if (raw === undefined) return { watchers: [], unread };
    const watchers = checks.flatMap(({ kind, check, policy, hold }): Watcher[] => {
      if (kind.machines.group !== named.kind.group) return [];
      const machine = kind.readMachine(raw);
      if (machine.nodeName !== node.metadata.name || !mayCover(policy, check, machine)) return [];
      const { namespace, name } = check.metadata;
      const budget = typeof policy === "string" ? undefined : budgetOf(machine.metadata.name, policy.attemptBudget);
      const stop = hold ?? budget;
      return [{ text: `MachineHealthCheck ${namespace}/${name}`, hold: stop && { ...stop, isIntended: false } }];
    });
    return { watchers, unread };
  };
}

/** A health check whose spec cannot be used may be meant for any Machine of its namespace. */
function mayCover(policy: MachinePolicy | string, check: MachineHealthCheck, machine: Machine): boolean {
  if (typeof policy !== "string") return policy.covers(machine);
  return check.metadata.namespace === machine.metadata.namespace;
}

function kindOf(raw: KubeObject): MachineHealthCheckKind {
  return groupOf(raw) === CLUSTER_API_GROUP ? CLUSTER_API_CHECKS : OKD_CHECKS;
}

function groupOf({ apiVersion }: KubeObject): string {
  return apiVersion.split("/")[0] ?? "";
}
