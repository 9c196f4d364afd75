import type { BareMetalRemediation } from "../../../api/ironfence/bare-metal-remediation.ts";
import type { Node } from "../../../api/kubernetes/core.ts";
import { RUN_OPTIONS } from "../../../config/run-options.ts";
import { isControlPlane } from "../../../nodes/control-plane.ts";
import { zoneOf } from "../../../nodes/creation-record.ts";
import { isReady } from "../../../nodes/ready.ts";
import { clusterKey, subjectOf } from "../../../nodes/subject.ts";
import { DeletedMembers, isDeletedMember } from "../../../remediator/controller/admission/deleted-members.ts";
import type { EtcdMember } from "../../../remediator/machine/model/facts/observations.ts";
import { isBegun, isFinal, isUnderWay, slotOf } from "../../../remediator/machine/model/decision/state.ts";
import type { AdmissionLimits, Contender } from "../../../remediator/machine/rules/admission/admission.ts";
import { admissionRefusal } from "../../../remediator/machine/rules/admission/admission.ts";
import { etcdNodes, keepsQuorum, mayRunEtcd } from "../../../remediator/machine/rules/admission/quorum.ts";
import { itemsOf } from "../objects/object-problems.ts";
import type { Overview } from "../objects/read.ts";
import type { Precondition } from "./precondition.ts";
import { blocks, ok } from "./precondition.ts";

/**
 * The default label for zones. The agent lease does not show which label the agent uses, so zones by another label are
 * not known here.
 */
const ZONE_LABEL = RUN_OPTIONS.zoneLabel.defaultText;

/**
 * Judges whether a remediation of a node would be admitted now. It applies the rule of the remediator (etcd keeps its
 * quorum, and the limits on concurrent hosts are not reached) and the rule of health checks (one control plane node at
 * a time).
 */
export function admissionJudge(overview: Overview): (node: Node) => Precondition {
  const { nowMs, agent } = overview;
  const nodes = itemsOf(overview.nodes);
  const byName = new Map(nodes.map((node) => [node.metadata.name, node]));
  const remediations = itemsOf(overview.remediations);
  const deleted = new DeletedMembers(() => false);
  for (const object of itemsOf(overview.targets)) deleted.observeTarget({ type: "added", object });
  const members = etcdNodes(deleted.among(undefined, nodes)).map((node): EtcdMember => {
    const isDeleted = isDeletedMember(node);
    return { node: node.metadata.name, up: isReady(node), ...(isDeleted && { deleted: true }) };
  });
  const unfinished = remediations.filter(({ status }) => !isFinal(status?.phase));
  const contenders = unfinished
    .filter(({ status }) => isUnderWay(status, nowMs) || slotOf(status, nowMs) !== "None")
    .map((remediation) => contenderOf(remediation, byName, nowMs));
  const controlPlaneBusy = unfinished.flatMap((remediation) => {
    const { nodeName = "", cluster } = subjectOf(remediation);
    const node = clusterKey(cluster) === "" ? byName.get(nodeName) : undefined;
    return node !== undefined && isControlPlane(node) ? [nodeName] : [];
  });
  const { hosts = Infinity, perZone = Infinity } = "limits" in agent ? agent.limits : {};
  const limits: AdmissionLimits = { hosts, perZone, perCluster: Infinity };
  return (node) => {
    const { name, uid } = node.metadata;
    const others = contenders.filter((contender) => contender.cluster !== "" || contender.node !== name);
    // Its own remediation was already admitted.
    if (others.length < contenders.length) return ok("admission", "its remediation is under way");
    const next: Contender = {
      uid,
      name,
      cluster: "",
      node: name,
      zone: zoneOf(node, ZONE_LABEL),
      createdAtMs: nowMs,
      inherits: false,
      attempts: 0,
      holdsSlot: false,
    };
    const own = mayRunEtcd(node) ? members : [];
    const refusal = admissionRefusal(next, others, limits, own);
    if (refusal !== undefined) {
      const { reason, message } = refusal;
      const isNever = !keepsQuorum(
        own.map((member) => ({ ...member, up: true })),
        name,
      );
      return blocks("admission", reason, message, {
        found: `${reason}: ${message}`,
        isIntended: reason === "WaitingForTurn" || isNever,
      });
    }
    const busy = isControlPlane(node) ? controlPlaneBusy.find((other) => other !== name) : undefined;
    if (busy === undefined) return ok("admission", "nothing to wait for");
    const message = `health checks start no remediation of a control plane node while another one has a remediation: ${busy}`;
    return blocks("admission", "WaitingForTurn", message, { found: `WaitingForTurn: ${message}`, isIntended: true });
  };
}

function contenderOf(remediation: BareMetalRemediation, nodes: ReadonlyMap<string, Node>, nowMs: number): Contender {
  const { metadata, status } = remediation;
  const { cluster, nodeName } = subjectOf(remediation);
  const node = clusterKey(cluster) === "" && nodeName !== undefined ? nodes.get(nodeName) : undefined;
  return {
    uid: metadata.uid,
    name: `${metadata.namespace ?? ""}/${metadata.name}`,
    cluster: clusterKey(cluster),
    node: nodeName,
    zone: status?.node?.zone ?? zoneOf(node, ZONE_LABEL),
    createdAtMs: nowMs,
    inherits: status?.attempt?.action === "Inherited",
    attempts: isBegun(status) ? 1 : 0,
    // A slot that is about to lapse still counts.
    holdsSlot: slotOf(status, nowMs) !== "None",
  };
}
