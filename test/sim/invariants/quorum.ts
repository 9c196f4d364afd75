import { ETCD_ROLE } from "../../../src/api/names/labels.ts";
import type { Facts, HostTruth, Invariant } from "./facts.ts";

/** How old the reads may be that a power-off rests on: a member that has just failed counts as up for so long. */
const READ_GRACE_MS = 10_000;
const ROLES = [ETCD_ROLE, "node-role.kubernetes.io/control-plane"];

/**
 * S15. Etcd keeps its quorum without a host that is powered off: more than half of its members are up on other hosts. A
 * member whose Node was deleted is still a member, as long as a target names its host and no user has removed the
 * record of it there. What is off already may be ordered off again.
 */
export const quorumKept: Invariant = {
  name: "S15",
  says: "etcd keeps its quorum without a host that is powered off, and a member whose Node was deleted counts as down",
  check: (facts, step) => {
    if (step.type !== "ordered" || step.record.order !== "ForceOff" || step.record.outcome !== "Started")
      return undefined;
    if (facts.isEtcdExternal) return undefined;
    const { host, remediation } = step.record;
    // A host that was proven off in this power cycle has taken its member with it already.
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
 * The hosts of etcd if it has lost its quorum. None of them is powered off then, and the health check begins with one
 * of them at a time: an operator has to act. A real API server does not answer either.
 */
export function hostsWithoutQuorum(facts: Facts): string[] {
  if (facts.isEtcdExternal) return [];
  const members = membersOf(facts);
  return members.filter((name) => facts.readySince.has(name)).length > members.length / 2 ? [] : members;
}

/** Hosts with a member of etcd: what their Nodes, or no Nodes, say of them makes no difference. */
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
