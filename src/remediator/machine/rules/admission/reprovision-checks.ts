import { CLUSTER_API_GROUP } from "../../../../api/cluster-api/cluster-api.ts";
import { CONTROL_PLANE_ROLES } from "../../../../api/names/labels.ts";
import type { Node } from "../../../../api/kubernetes/core.ts";
import { statusCondition, processing } from "../../model/status.ts";
import { fail } from "../attempts.ts";
import { transition, run, waitBecause } from "../transitions.ts";
import { rebootOfThisOutage } from "../proof/reboot-proof.ts";
import type { Reason } from "../../model/decision/reasons.ts";
import type { Now, AttemptSnapshot } from "../../model/facts/snapshot.ts";
import { groupOf } from "../../../../nodes/subject.ts";
import { CLAIM_RECHECK_MS } from "../../model/decision/timings.ts";
import type { InstalledHost, MachineReport } from "../../model/facts/reprovision.ts";
import type { Decision } from "../../model/decision/decision.ts";

/**
 * Refuses to power off a host that must not be reprovisioned. Returns a check that is still needed, or a failure;
 * undefined if the host may be reprovisioned.
 *
 * @param node the Node as it is now; undefined if there is none.
 */
export function refuseReprovision(snapshot: AttemptSnapshot, node: Node | undefined, now: Now): Decision | undefined {
  if (snapshot.strategy.via === "MachineDeletion") return refuseReplacement(snapshot, node, now);
  // A reboot may have deleted the Node, and a kubelet does not restore its roles, so the backup counts as well.
  if (hasControlPlaneRole(snapshot, node)) {
    return fail(snapshot, now, "ControlPlaneNode", `${controlPlaneText(snapshot)}: it is never reprovisioned`);
  }
  if (
    node === undefined &&
    snapshot.status.backup === undefined &&
    snapshot.observations.subjectMachine?.found !== true
  ) {
    const message = `node ${snapshot.nodeName} is gone, so the agent cannot check whether it ran the control plane: it is not reprovisioned`;
    return fail(snapshot, now, "ControlPlaneNode", message);
  }
  const installation =
    snapshot.strategy.via === "BareMetalHost" ? refuseInstallation(snapshot, now) : refuseNetworkBoot(snapshot, now);
  return installation ?? refuseUnproven(snapshot, node, now);
}

function hasControlPlaneRole({ status, observations }: AttemptSnapshot, node: Node | undefined): boolean {
  const machine = observations.subjectMachine;
  if (machine?.found === true && machine.machine.isControlPlane) return true;
  const labels = { ...status.backup?.labels, ...node?.metadata.labels };
  return CONTROL_PLANE_ROLES.some((role) => role in labels);
}

function controlPlaneText({ nodeName }: AttemptSnapshot): string {
  return `node ${nodeName} runs the control plane`;
}

function refuseUnproven(snapshot: AttemptSnapshot, node: Node | undefined, now: Now): Decision | undefined {
  // Escalate has proven its own reboots. A further attempt follows one that was allowed.
  if (
    snapshot.strategy.type === "Escalate" ||
    !snapshot.strategy.requireReboot ||
    (snapshot.status.retryCount ?? 0) > 0
  )
    return undefined;
  const lastReboot = snapshot.host.found ? snapshot.host.facts.lastReboot : undefined;
  if (rebootOfThisOutage(lastReboot, node, snapshot.siblings)) return undefined;
  const message =
    "no reboot that proved the host off is on record for this outage: put a Reboot before this step, or set requireReboot: false";
  return fail(snapshot, now, "RebootRequired", message);
}

function refuseReplacement(snapshot: AttemptSnapshot, node: Node | undefined, now: Now): Decision | undefined {
  const { status, observations } = snapshot;
  if (status.machine === undefined) return findMachine(snapshot, now);
  const unproven = refuseUnproven(snapshot, node, now);
  if (unproven !== undefined) return unproven;
  if (observations.machine === undefined) return run({ do: "examineMachine" });
  return leaveToOwner(snapshot, observations.machine, hasControlPlaneRole(snapshot, node), now);
}

/** Finds the Machine of a remediation that names only a node. The node names its Machine, and must be named by it. */
function findMachine(snapshot: AttemptSnapshot, now: Now): Decision {
  const { nodeMachine } = snapshot.observations;
  if (nodeMachine === undefined) return run({ do: "findMachine" });
  if (!nodeMachine.found) return fail(snapshot, now, "NoMachine", nodeMachine.message);
  const { ref } = nodeMachine;
  return transition(snapshot, now, {
    to: snapshot.state.name,
    step: "MachineFound",
    message: `node ${snapshot.nodeName} is Machine ${ref.namespace}/${ref.name}`,
    attempt: snapshot.attempt,
    fields: { machine: ref },
  });
}

/**
 * If the Machine must not be deleted, informs the owner of the Machine that it decides, and fails: for example, the
 * controller of the control plane knows which member can be replaced. Undefined if the Machine may be deleted.
 */
export function leaveToOwner(
  snapshot: AttemptSnapshot,
  report: MachineReport,
  hasControlPlaneRole: boolean,
  now: Now,
): Decision | undefined {
  const { nodeName } = snapshot.subject;
  // The owner is not informed either, because it might delete a healthy Machine.
  if (report.nodeName !== undefined && nodeName !== undefined && report.nodeName !== nodeName) {
    const message = `Machine ${snapshot.status.machine?.name ?? ""} is node ${report.nodeName}, not ${nodeName}, so it is not deleted: correct the remediation's ownerReferences or annotation`;
    return fail(snapshot, now, "SubjectMismatch", message);
  }
  const why = whyKept(snapshot, report, hasControlPlaneRole);
  if (why === undefined) return undefined;
  const { owner, state } = report;
  const whoDecides = owner === undefined ? "" : `; whether to replace it is up to ${owner.kind} ${owner.name}`;
  const message = `${why.message}: Machine ${snapshot.status.machine?.name ?? ""} is not deleted${whoDecides}`;
  // The owners of OKD do not know the condition.
  const readsCondition =
    owner !== undefined && groupOf(snapshot.status.machine?.apiVersion ?? "") === CLUSTER_API_GROUP;
  const informsOwner = readsCondition && state === "Present" && !snapshot.observations.handedToOwner;
  return informsOwner ? run({ do: "handToOwner", message }) : fail(snapshot, now, why.reason, message);
}

function whyKept(
  snapshot: AttemptSnapshot,
  report: MachineReport,
  hasControlPlaneRole: boolean,
): { reason: Reason; message: string } | undefined {
  const kept = (message: string): { reason: Reason; message: string } => ({ reason: "MachineNotReplaced", message });
  if (report.state !== "Present") return kept("it has already been deleted");
  if (hasControlPlaneRole || report.isControlPlane) {
    return { reason: "ControlPlaneNode", message: controlPlaneText(snapshot) };
  }
  if (report.externallyProvisioned)
    return kept("its host is externally provisioned, so nothing would install it again");
  if (report.owner === undefined) return kept("it has no controller, so no controller would create another one");
  if (!report.isReplaced) return kept("its controller would not create another one now");
  return undefined;
}

/**
 * Waits until the Machine may be replaced, before the host is powered off for that. One Machine is replaced at a time,
 * so that a wrong health check costs only one Machine. The wait does not count towards the deadline of the state.
 * Undefined if there is nothing to wait for.
 */
export function ensureReplacementAdmitted(snapshot: AttemptSnapshot, now: Now): Decision | undefined {
  const { attempt, strategy, observations, status } = snapshot;
  if (attempt.kind !== "Reprovision" || strategy.via !== "MachineDeletion" || status.machine === undefined)
    return undefined;
  const { replacementAdmission } = observations;
  if (replacementAdmission === undefined) return run({ do: "askToReplace" });
  if (!replacementAdmission.granted) {
    const inMs = replacementAdmission.atMs + CLAIM_RECHECK_MS - now.monotonicMs;
    const message = `remediation ${replacementAdmission.by} is replacing its Machine, and only one is replaced at a time`;
    return inMs <= 0 ? run({ do: "askToReplace" }) : waitBecause(snapshot, now, "ReplacementTurn", message, inMs);
  }
  if (statusCondition(status, "Processing")?.reason !== "ReplacementTurn") return undefined;
  const message = "this Machine may be replaced now";
  return transition(snapshot, now, {
    to: snapshot.state.name,
    step: "Resumed",
    message,
    attempt: { ...attempt, deadlineMs: now.epochMs + strategy.powerOffTimeoutMs },
    conditions: processing("Resumed", message),
  });
}

/** The Metal3 operator chooses what its hosts boot from, so a network boot cannot install a BareMetalHost. */
function refuseNetworkBoot(snapshot: AttemptSnapshot, now: Now): Decision | undefined {
  if (!snapshot.host.found || !snapshot.host.facts.isPoweredByMark) return undefined;
  const { kind, namespace, name } = snapshot.host.facts.ref;
  const message = `${kind} ${namespace}/${name} is installed by its operator, not by a network boot: use via: BareMetalHost, via: MachineDeletion if a Machine uses it, or detach it`;
  return fail(snapshot, now, "HostNotInstallable", message);
}

function refuseInstallation(snapshot: AttemptSnapshot, now: Now): Decision | undefined {
  const { host, observations } = snapshot;
  if (host.found && host.facts.ref.kind !== "BareMetalHost") {
    const { kind, namespace, name } = host.facts.ref;
    const message = `the host is found by ${kind} ${namespace}/${name}, not by a BareMetalHost: use via: NetworkBoot`;
    return fail(snapshot, now, "HostNotInstallable", message);
  }
  if (observations.installed === undefined) return run({ do: "examineHost" });
  const why = whyNotInstallable(snapshot, observations.installed);
  return why === undefined ? undefined : fail(snapshot, now, "HostNotInstallable", why);
}

/** Why ironfence must not deprovision a BareMetalHost and provision it again; undefined if it may. */
export function whyNotInstallable({ status }: AttemptSnapshot, report: InstalledHost): string | undefined {
  const name = `BareMetalHost ${status.target?.namespace ?? ""}/${status.target?.name ?? ""}`;
  if (report.isGone) return `${name} is gone`;
  if (report.consumer !== undefined) {
    return `${name} is used by ${report.consumer}, which decides what is installed on it: use via: MachineDeletion`;
  }
  if (report.externallyProvisioned) return `${name} is externally provisioned: Metal3 installs nothing on it`;
  return report.image === undefined ? `${name} names no image in its spec, so there is nothing to install` : undefined;
}
