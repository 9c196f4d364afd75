import { FENCED_BY, QUARANTINED_BY } from "../../../api/names/annotations.ts";
import type { BareMetalRemediation } from "../../../api/ironfence/bare-metal-remediation.ts";
import type { Node } from "../../../api/kubernetes/core.ts";
import type { FencingTarget } from "../../../api/ironfence/fencing-target.ts";
import { readBareMetalHost } from "../../../api/metal3/metal3.ts";
import { isReady } from "../../../nodes/ready.ts";
import { isMarked, outOfServiceOf } from "../../../remediator/machine/node-patches/marks.ts";
import { subjectOf } from "../../../nodes/subject.ts";
import { hostText } from "../../../remediator/hosts/bare-metal-host/store/power-path.ts";
import { storedOwner } from "../../../remediator/hosts/bare-metal-host/store/host-annotations.ts";
import { formatDuration } from "../../../runtime/duration.ts";
import { parseTimeMs } from "../../../runtime/time.ts";
import { itemsOf } from "../../status/objects/object-problems.ts";
import type { Check, Finding } from "../check.ts";
import { orOk, warning } from "../check.ts";
import type { Facts } from "../facts.ts";
import { findingsOf, gapsIn } from "./problem-findings.ts";

/** The longest time that a deletion should take. An undo takes less, unless a cluster or a BMC cannot be reached. */
const DELETION_MS = 900_000;

/** Whether remediations succeed, and undo everything when they end. */
export const REMEDIATION_CHECKS: readonly Check<Facts>[] = [
  {
    id: "remediations",
    category: "Remediations",
    title: "no remediation has failed, and none waits for an administrator",
    run: (facts) => {
      const gaps = gapsIn(facts.overview, ["remediations"]);
      if (gaps.length > 0) return gaps;
      const count = itemsOf(facts.overview.remediations).length;
      return orOk(
        findingsOf("remediations", facts),
        count === 0 ? "there is none" : `${count} are in progress or have ended`,
      );
    },
  },
  {
    id: "leftovers",
    category: "Remediations",
    title: "no remediation has left anything behind",
    run: judgeLeftovers,
  },
];

function judgeLeftovers(facts: Facts): readonly Finding[] {
  const { overview, nowMs } = facts;
  const gaps = gapsIn(overview, ["remediations", "nodes", "targets"]);
  if (gaps.length > 0) return gaps;
  const remediations = itemsOf(overview.remediations);
  const targets = itemsOf(overview.targets);
  const living = new Set(remediations.map(({ metadata }) => metadata.uid));
  const busy = new Set(remediations.flatMap((remediation) => subjectOf(remediation).nodeName ?? []));
  const fenced = new Set(targets.flatMap(({ spec, status }) => (hasOutcome(status) ? [spec.nodeName] : [])));
  const free = itemsOf(overview.nodes).filter(({ metadata }) => !busy.has(metadata.name));
  return orOk(
    [
      ...free.flatMap((node) => leftOnNode(node, fenced)),
      ...targets.flatMap((target) => leftOnTarget(target, living)),
      ...itemsOf(overview.bareMetalHosts).flatMap((raw) => leftOnHost(readBareMetalHost(raw), living)),
      ...remediations.flatMap((remediation) => stuckDeletion(remediation, nowMs)),
    ],
    "no taint, annotation, cordon, owner or finalizer",
  );
}

function hasOutcome(status: FencingTarget["status"]): boolean {
  return (status?.outcomes ?? []).length > 0;
}

/** What remains on a node without a remediation. @param fenced nodes that ironfence has fenced before. */
function leftOnNode(node: Node, fenced: ReadonlySet<string>): Finding[] {
  const { name, annotations = {} } = node.metadata;
  const findings: Finding[] = [];
  const signed = [FENCED_BY, QUARANTINED_BY].filter((key) => annotations[key] !== undefined);
  if (isMarked(node)) {
    const message = `node ${name} has taints of ironfence, and no remediation is for it`;
    findings.push(warning(message, "the leader removes them when the node is Ready; if they stay, read its log"));
  } else if (outOfServiceOf(node) === "Foreign") {
    const ready = isReady(node) ? "is Ready, and" : "";
    const message = `node ${name} ${ready} has an out-of-service taint that is not ironfence's`.replace("  ", " ");
    const hint = `if the node was power-cycled since: kubectl taint node ${name} node.kubernetes.io/out-of-service-`;
    findings.push(warning(message, hint));
  } else if (signed.length > 0) {
    const keys = signed.map((key) => `${key}-`).join(" ");
    const message = `node ${name} has the annotation ${signed.join(" and ")} without the taint, and no remediation is for it`;
    findings.push(warning(message, `kubectl annotate node ${name} ${keys}`));
  }
  if (node.spec.unschedulable === true && fenced.has(name)) {
    const message = `node ${name} is cordoned, ironfence has fenced it before, and no remediation is for it`;
    findings.push(warning(message, `if no operator keeps it cordoned: kubectl uncordon ${name}`));
  }
  return findings;
}

function leftOnTarget({ metadata, status }: FencingTarget, living: ReadonlySet<string>): Finding[] {
  const owner = status?.owner;
  if (owner === undefined || owner.kind !== "BareMetalRemediation" || living.has(owner.uid)) return [];
  const what = `FencingTarget ${metadata.namespace ?? ""}/${metadata.name}`;
  const message = `${what} is owned by BareMetalRemediation ${owner.namespace}/${owner.name}, which is gone`;
  return [warning(message, "the leader releases the host when its node is Ready; if it does not, read its log")];
}

function leftOnHost(host: ReturnType<typeof readBareMetalHost>, living: ReadonlySet<string>): Finding[] {
  const owner = storedOwner(host);
  if (owner === undefined || living.has(owner.uid)) return [];
  const message = `${hostText(host)} is owned by ${owner.kind} ${owner.namespace}/${owner.name}, which is gone`;
  return [warning(message, "the leader releases the host when its node is Ready; if it does not, read its log")];
}

function stuckDeletion({ metadata }: BareMetalRemediation, nowMs: number): Finding[] {
  const sinceMs = parseTimeMs(metadata.deletionTimestamp);
  if (sinceMs === undefined || nowMs - sinceMs < DELETION_MS) return [];
  const name = `${metadata.namespace ?? ""}/${metadata.name}`;
  const finalizers = (metadata.finalizers ?? []).join(", ");
  const message = `BareMetalRemediation ${name} has been deleted for ${formatDuration(nowMs - sinceMs)}, and its finalizers (${finalizers}) are still there`;
  return [warning(message, "its status names what the undo waits for; do not remove a finalizer by hand")];
}
