import { ETCD_ROLE } from "../../../src/api/names/labels.ts";
import type { Facts, HostTruth, Invariant } from "./facts.ts";

/** How old the reads may be on which a power-off depends. A member that has just failed counts as up for this time. */
const READ_GRACE_MS = 10_000;
const ROLES = [ETCD_ROLE, "node-role.kubernetes.io/control-plane"];

/**
 * S15. etcd keeps its quorum without a host that is powered off: more than half of its members are up on other hosts. A
 * member whose Node was deleted still counts, as long as a target names its host and no user has removed its record
 * there. A host that is already off may be ordered off again.
 */
export const quorumKept: Invariant = {
  name: "S15",
  says: "etcd keeps its quorum without a host that is powered off, and a member whose Node was deleted counts as down",
  check: (facts, step) => {
    if (step.type !== "ordered" || step.record.order !== "ForceOff" || step.record.outcome !== "Started")
      return undefined;
    if (facts.isEtcdExternal) return undefined;
    const { host, remediation } = step.record;
    // The member of a host that was proven off in this power cycle is already down.
    if (facts.remediations.get(remediation ?? "")?.status?.attempt?.offConfirmedAt !== undefined) return undefined;
    const members = membersOf(facts);
    if (!members.includes(host)) return undefined;
    const up = members.filter((name) => name !== host && isUp(facts, name));
    return up.length > members.length / 2
      ? undefined
      : `${host} was powered off although etcd has only ${up.length} other members up of ${members.length}`;
  },
};

/**
 * The hosts of etcd if it has lost its quorum; otherwise none. Then none of them is powered off, and the health check
 * starts one remediation at a time, so an operator must act. A real API server would not answer either.
 */
export function hostsWithoutQuorum(facts: Facts): string[] {
  if (facts.isEtcdExternal) return [];
  const members = membersOf(facts);
  return members.filter((name) => facts.readySince.has(name)).length > members.length / 2 ? [] : members;
}

/** Hosts with an etcd member, whatever their Nodes report and whether they exist. */
function membersOf(facts: Facts): string[] {
  const hosts = [...facts.hosts.values()].filter(({ name }) => facts.nodes.has(name) || isInUse(facts, name));
  for (const role of ROLES) {
    const members = hosts.filter(({ spec }: HostTruth) => role in spec.labels);
    if (members.length > 0) return members.map(({ name }) => name);
  }
  return [];
}

function isInUse(facts: Facts, host: string): boolean {
  return !facts.clearedMembers.has(host) && [...facts.targets.values()].some(({ spec }) => spec.nodeName === host);
}

function isUp(facts: Facts, name: string): boolean {
  return facts.readySince.has(name) || facts.atMs - (facts.notReadySinceMs.get(name) ?? -Infinity) <= READ_GRACE_MS;
}
