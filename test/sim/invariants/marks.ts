import { isDeepStrictEqual } from "node:util";
import { FENCED_BY, QUARANTINED_BY } from "../../../src/api/names/annotations.ts";
import type { BareMetalRemediation } from "../../../src/api/ironfence/bare-metal-remediation.ts";
import type { Node, Taint } from "../../../src/api/kubernetes/core.ts";
import type { FencingTarget } from "../../../src/api/ironfence/fencing-target.ts";
import { FENCED, OUT_OF_SERVICE, QUARANTINE, sameTaint } from "../../../src/api/kubernetes/taints.ts";
import type { Facts, Invariant } from "./facts.ts";
import { agentWrite, conditionOf, isFinal, ownerOf, signerOf, taintKey } from "./facts.ts";

type TaintName = Pick<Taint, "key" | "effect">;
type Backup = NonNullable<NonNullable<BareMetalRemediation["status"]>["backup"]>;

/**
 * S5. On a Node an agent changes only our taints and their signatures. A Node that replaces one that we deleted also
 * gets saved values that are missing. Our out-of-service taint has a second taint as its signature. Without it, the
 * taint is foreign.
 */
export const onlyOwnMarks: Invariant = {
  name: "S5",
  says: "only taints, labels and annotations that we own are changed or removed",
  check: (facts, step) => {
    const write = agentWrite<Node>(step, "Node");
    if (write === undefined || write.type !== "MODIFIED" || write.previous === undefined) return undefined;
    const { object: after, previous: before } = write;
    const backup = backupFor(facts, after);
    const { name } = after.metadata;
    const labels = foreignChange(before.metadata.labels, after.metadata.labels, backup?.labels, []);
    if (labels !== undefined) return `label ${labels} of ${name} was changed`;
    const annotations = foreignChange(before.metadata.annotations, after.metadata.annotations, backup?.annotations, [
      FENCED_BY,
      QUARANTINED_BY,
    ]);
    if (annotations !== undefined) return `annotation ${annotations} of ${name} was changed`;
    if (before.spec.unschedulable !== after.spec.unschedulable && backup?.unschedulable !== true)
      return `the cordon of ${name} was changed`;
    if (!isDeepStrictEqual(before.status, after.status)) return `the status of ${name} was changed`;
    const taint = foreignTaint(facts, before, after, backup);
    return taint === undefined ? undefined : `taint ${taint} of ${name}, which is not ours, was changed`;
  },
};

/** The last stored backup of the Node that this one replaces. */
function backupFor(facts: Facts, node: Node): Backup | undefined {
  const saved = [...facts.remediations.values()].findLast(
    ({ status }) =>
      status?.backup !== undefined &&
      status.node?.name === node.metadata.name &&
      status.backup.nodeUID !== node.metadata.uid,
  );
  return saved?.status?.backup;
}

/** A changed key, except for `ours` and for missing keys that were restored from `saved`. */
function foreignChange(
  before: Readonly<Record<string, string>> = {},
  after: Readonly<Record<string, string>> = {},
  saved: Readonly<Record<string, string>> = {},
  ours: readonly string[],
): string | undefined {
  return Object.keys({ ...before, ...after }).find((key) => {
    const isGivenBack = before[key] === undefined && after[key] === saved[key];
    return before[key] !== after[key] && !ours.includes(key) && !isGivenBack;
  });
}

function foreignTaint(facts: Facts, before: Node, after: Node, backup: Backup | undefined): string | undefined {
  const [old, present] = [before.spec.taints ?? [], after.spec.taints ?? []];
  const saved = backup?.taints ?? [];
  const has = (taints: readonly TaintName[], taint: TaintName): boolean =>
    taints.some((other) => sameTaint(other, taint));
  const own = facts.ownTaints.get(after.metadata.uid);
  const signed = signerOf(before, "outOfService") !== undefined;
  const mayRemove = (taint: TaintName): boolean =>
    own?.has(taintKey(taint)) === true || isOurs(taint) || (sameTaint(taint, OUT_OF_SERVICE) && signed);
  const mayAdd = (taint: TaintName): boolean => isOurs(taint) || sameTaint(taint, OUT_OF_SERVICE) || has(saved, taint);
  const removed = old.find((taint) => !has(present, taint) && !mayRemove(taint));
  const added = present.find((taint) => !has(old, taint) && !mayAdd(taint));
  return (removed ?? added)?.key;
}

function isOurs(taint: TaintName): boolean {
  return sameTaint(taint, QUARANTINE) || sameTaint(taint, FENCED);
}

/** S7. Only a remediation that has stored that the identity of the host is verified adds the taint. */
export const verifiedBeforeTaint: Invariant = {
  name: "S7",
  says: "identity unverified: no taint",
  check: (facts, step) => {
    const write = agentWrite<Node>(step, "Node");
    const uid = signerOf(write?.object, "outOfService");
    if (
      write === undefined ||
      uid === undefined ||
      write.type === "DELETED" ||
      uid === signerOf(write.previous, "outOfService")
    )
      return undefined;
    const remediation = facts.remediations.get(uid);
    if (remediation !== undefined && conditionOf(remediation, "IdentityVerified")?.status === "True") return undefined;
    return `${write.object.metadata.name} was tainted while its host's identity is not verified`;
  },
};

/** S10. After its verdict a remediation has no mark on any node and owns no host. */
export const finalHasNothing: Invariant = {
  name: "S10",
  says: "after its final condition a remediation has no marks, owns no host and sends no power order",
  check: (facts, step) => {
    if (step.type === "ordered") {
      const { remediation: uid, host, order } = step.record;
      const remediation = facts.remediations.get(uid ?? "");
      if (remediation === undefined) return `${host} was ordered ${order} without an owner`;
      return isFinal(remediation) ? `${host} was ordered ${order} by a remediation that has its verdict` : undefined;
    }
    if (step.type !== "wrote") return undefined;
    const { object } = step.change;
    switch (object.kind) {
      case "Node":
        return markedByFinal(facts, object.metadata.name);
      case "FencingTarget":
        return ownedByFinal(facts, object.metadata.name);
      case "BareMetalRemediation": {
        if (!isFinal(object as BareMetalRemediation)) return undefined;
        for (const name of facts.nodes.keys()) {
          const marked = markedByFinal(facts, name);
          if (marked !== undefined) return marked;
        }
        for (const name of facts.targets.keys()) {
          const owned = ownedByFinal(facts, name);
          if (owned !== undefined) return owned;
        }
        return undefined;
      }
      default:
        return undefined;
    }
  },
};

function markedByFinal(facts: Facts, name: string): string | undefined {
  const node = facts.nodes.get(name);
  for (const mark of ["outOfService", "quarantine"] as const) {
    const signer = facts.remediations.get(signerOf(node, mark) ?? "");
    if (signer !== undefined && isFinal(signer))
      return `${name} has the ${mark} mark of a remediation that has its verdict`;
  }
  return undefined;
}

function ownedByFinal(facts: Facts, name: string): string | undefined {
  const target = facts.targets.get(name);
  const owner = target === undefined ? undefined : ownerOf(facts, target);
  return owner !== undefined && isFinal(owner)
    ? `target ${name} is owned by a remediation that has its verdict`
    : undefined;
}

/** Reasons of failures in which the host is or may be the wrong one. */
const WRONG_HOST_REASONS: readonly string[] = ["WrongHost", "IdentityMismatch", "IdentityUnknown"];

/**
 * S7. A remediation that fails because of a wrong host reports this where users look: at once in its condition, and in
 * a warning before the agent continues, unless something hampers that agent.
 */
export const wrongHostIsSaid: Invariant = {
  name: "S7",
  says: "a host that is not the one that is meant is reported as such: IdentityVerified=False, and a warning",
  check: (facts, step) => {
    const write = agentWrite<BareMetalRemediation>(step, "BareMetalRemediation");
    if (write === undefined || write.type === "DELETED") return undefined;
    const { uid, name } = write.object.metadata;
    const reason = write.object.status?.outcome?.reason ?? "";
    if (!WRONG_HOST_REASONS.includes(reason)) return undefined;
    const verified = conditionOf(write.object, "IdentityVerified");
    if (verified?.status !== "False") return `${name} fails by ${reason}, and IdentityVerified is ${verified?.status}`;
    const failed = facts.failedBy.get(uid);
    const goesOn = write.previous?.status?.outcome !== undefined && failed?.agent === write.by;
    if (!goesOn || facts.calmSinceMs >= failed.atMs || facts.warnedAtMs.get(uid)?.has(reason) === true)
      return undefined;
    return `${name} fails by ${reason}, and no warning was recorded`;
  },
};

/** S10. A host is taken only from an owner that has its verdict or is deleted, and a verdict never changes. */
export const oneOwner: Invariant = {
  name: "S10",
  says: "one remediation owns a host at a time, and a verdict never changes",
  check: (facts, step) => {
    const target = agentWrite<FencingTarget>(step, "FencingTarget");
    const [before, after] = [target?.previous?.status?.owner?.uid, target?.object.status?.owner?.uid];
    const owner = facts.present.has(before ?? "") ? facts.remediations.get(before ?? "") : undefined;
    if (owner !== undefined && !isFinal(owner) && after !== undefined && before !== after) {
      return `${target?.object.metadata.name} was taken from ${owner.metadata.name}, which goes on`;
    }
    const write = agentWrite<BareMetalRemediation>(step, "BareMetalRemediation");
    if (write?.previous === undefined || write.type === "DELETED" || !isFinal(write.previous)) return undefined;
    const [was, is] = [conditionOf(write.previous, "Succeeded"), conditionOf(write.object, "Succeeded")];
    return was?.status === is?.status
      ? undefined
      : `the verdict of ${write.object.metadata.name} changed from ${was?.status} to ${is?.status}`;
  },
};

/** S9. An agent that does not hold the lease changes only the lease and its own Kubernetes Events. */
export const onlyTheLeader: Invariant = {
  name: "S9",
  says: "without the lease no effect at all",
  check: (facts, step) => {
    if (facts.leader === undefined) return undefined;
    const { holder } = facts.leader;
    if (step.type === "ordered" && step.record.agent !== holder)
      return `${step.record.agent} ordered ${step.record.host} ${step.record.order} while ${holder || "nobody"} holds the lease`;
    if (step.type === "bootSet" && step.by !== holder)
      return `${step.by} set how ${step.host} boots while ${holder || "nobody"} holds the lease`;
    if (step.type !== "wrote" || step.by === undefined || step.by === holder) return undefined;
    const { kind, metadata } = step.change.object;
    return kind === "Lease" || kind === "Event"
      ? undefined
      : `${step.by} wrote ${kind} ${metadata.name} while ${holder || "nobody"} holds the lease`;
  },
};
