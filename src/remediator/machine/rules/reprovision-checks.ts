import { CLUSTER_API_GROUP } from "../../../api/cluster-api.ts";
import { CONTROL_PLANE_ROLES } from "../../../api/labels.ts";
import type { Node } from "../../../api/core.ts";
import { conditionOf, processing } from "../model/status.ts";
import { fail, move, run, waitBecause } from "./transitions.ts";
import { rebootOfThisOutage } from "./reboot-proof.ts";
import type { Reason } from "../model/reasons.ts";
import type { Now, Walk } from "../model/snapshot.ts";
import { groupOf } from "../../../nodes/subject.ts";
import { CLAIM_RECHECK_MS } from "../model/timings.ts";
import type { InstalledHost, MachineLook } from "../model/reprovision.ts";
import type { Decision } from "../model/decision.ts";

/**
 * Refuses to reprovision a host, or has looked at what decides about it; undefined where it may be. Asked before the host is
 * powered off for it.
 *
 * @param node as it is now; undefined where there is none.
 */
export function refuseReprovision(walk: Walk, node: Node | undefined, now: Now): Decision | undefined {
  if (walk.plan.via === "MachineDeletion") return refuseReplacement(walk, node, now);
  // A reboot may have deleted the Node, and a kubelet does not bring its roles back: what was saved counts as well.
  if (hasControlPlaneRole(walk, node)) {
    return fail(walk, now, "ControlPlaneNode", `${controlPlaneText(walk)}: it is never reprovisioned`);
  }
  if (node === undefined && walk.status.backup === undefined && walk.seen.subjectMachine?.found !== true) {
    const message = `node ${walk.nodeName} is gone, so nobody can tell whether it runs the control plane: it is not reprovisioned`;
    return fail(walk, now, "ControlPlaneNode", message);
  }
  const installation = walk.plan.via === "BareMetalHost" ? refuseInstallation(walk, now) : refuseNetworkBoot(walk, now);
  return installation ?? refuseUnproven(walk, node, now);
}

function hasControlPlaneRole({ status, seen }: Walk, node: Node | undefined): boolean {
  const machine = seen.subjectMachine;
  if (machine?.found === true && machine.machine.isControlPlane) return true;
  const labels = { ...status.backup?.labels, ...node?.metadata.labels };
  return CONTROL_PLANE_ROLES.some((role) => role in labels);
}

function controlPlaneText({ nodeName }: Walk): string {
  return `node ${nodeName} runs the control plane`;
}

function refuseUnproven(walk: Walk, node: Node | undefined, now: Now): Decision | undefined {
  // Escalate has proven its own reboots; a second cycle of a reprovision follows a first that was allowed.
  if (walk.plan.type === "Escalate" || !walk.plan.requireReboot || (walk.status.retryCount ?? 0) > 0) return undefined;
  const lastReboot = walk.host.found ? walk.host.facts.lastReboot : undefined;
  if (rebootOfThisOutage(lastReboot, node, walk.siblings)) return undefined;
  const message =
    "no reboot that proved the host off is on record for this outage: put a Reboot before this step, or set requireReboot: false";
  return fail(walk, now, "RebootRequired", message);
}

function refuseReplacement(walk: Walk, node: Node | undefined, now: Now): Decision | undefined {
  const { status, seen } = walk;
  if (status.machine === undefined) return findMachine(walk, now);
  const unproven = refuseUnproven(walk, node, now);
  if (unproven !== undefined) return unproven;
  if (seen.machine === undefined) return run({ do: "examineMachine" });
  return leaveToOwner(walk, seen.machine, hasControlPlaneRole(walk, node), now);
}

/** A remediation that was asked for by a node's name: the node says whose it is, and the Machine has to say the same. */
function findMachine(walk: Walk, now: Now): Decision {
  const { nodeMachine } = walk.seen;
  if (nodeMachine === undefined) return run({ do: "findMachine" });
  if (!nodeMachine.found) return fail(walk, now, "NoMachine", nodeMachine.message);
  const { ref } = nodeMachine;
  return move(walk, now, {
    to: walk.state.name,
    step: "MachineFound",
    message: `node ${walk.nodeName} is Machine ${ref.namespace}/${ref.name}`,
    attempt: walk.attempt,
    fields: { machine: ref },
  });
}

/**
 * Leaves a Machine alone that must not be deleted, and tells its owner that the decision is its own: the control plane's own
 * controller knows what its members can spare. Undefined where it may be deleted.
 */
export function leaveToOwner(
  walk: Walk,
  look: MachineLook,
  hasControlPlaneRole: boolean,
  now: Now,
): Decision | undefined {
  const { nodeName } = walk.subject;
  // Nor is its owner told anything of it: it would delete a Machine that is well.
  if (look.nodeName !== undefined && nodeName !== undefined && look.nodeName !== nodeName) {
    const message = `Machine ${walk.status.machine?.name ?? ""} is node ${look.nodeName}, not ${nodeName}, so it is not deleted: correct the remediation's ownerReferences or annotation`;
    return fail(walk, now, "SubjectMismatch", message);
  }
  const why = whyKept(walk, look, hasControlPlaneRole);
  if (why === undefined) return undefined;
  const { owner, state } = look;
  const told = owner === undefined ? "" : `; whether to replace it is up to ${owner.kind} ${owner.name}`;
  const message = `${why.message}: Machine ${walk.status.machine?.name ?? ""} is not deleted${told}`;
  // OKD's owners know no such condition.
  const heeds = owner !== undefined && groupOf(walk.status.machine?.apiVersion ?? "") === CLUSTER_API_GROUP;
  const tells = heeds && state === "Present" && !walk.seen.handedToOwner;
  return tells ? run({ do: "handToOwner", message }) : fail(walk, now, why.reason, message);
}

function whyKept(
  walk: Walk,
  look: MachineLook,
  hasControlPlaneRole: boolean,
): { reason: Reason; message: string } | undefined {
  const kept = (message: string): { reason: Reason; message: string } => ({ reason: "MachineNotReplaced", message });
  if (look.state !== "Present") return kept("it has already been deleted");
  if (hasControlPlaneRole || look.isControlPlane) {
    return { reason: "ControlPlaneNode", message: controlPlaneText(walk) };
  }
  if (look.externallyProvisioned) return kept("its host is externally provisioned, so nothing would install it again");
  if (look.owner === undefined) return kept("it has no controller, so nobody would make another one");
  if (!look.isReplaced) return kept("its controller would not make another one now");
  return undefined;
}

/**
 * Waits for the turn to have the Machine replaced, before the host is powered off for it: one at a time, so that a health check
 * that is wrong costs one. Time stands still meanwhile. Undefined where there is nothing to wait for.
 */
export function replaceTurnGate(walk: Walk, now: Now): Decision | undefined {
  const { attempt, plan, seen, status } = walk;
  if (attempt.kind !== "Reprovision" || plan.via !== "MachineDeletion" || status.machine === undefined)
    return undefined;
  const { replaceTurn } = seen;
  if (replaceTurn === undefined) return run({ do: "askToReplace" });
  if (!replaceTurn.granted) {
    const inMs = replaceTurn.atMs + CLAIM_RECHECK_MS - now.monotonicMs;
    const message = `remediation ${replaceTurn.by} has its Machine replaced: one at a time`;
    return inMs <= 0 ? run({ do: "askToReplace" }) : waitBecause(walk, now, "ReplacementTurn", message, inMs);
  }
  if (conditionOf(status, "Processing")?.reason !== "ReplacementTurn") return undefined;
  const message = "it is this Machine's turn to be replaced";
  return move(walk, now, {
    to: walk.state.name,
    step: "Resumed",
    message,
    attempt: { ...attempt, deadlineMs: now.epochMs + plan.powerOffTimeoutMs },
    conditions: processing("Resumed", message),
  });
}

/** The operator of a BareMetalHost chooses what its hosts boot from, so nobody else can have one installed by a network boot. */
function refuseNetworkBoot(walk: Walk, now: Now): Decision | undefined {
  if (!walk.host.found || !walk.host.facts.isPoweredByMark) return undefined;
  const { kind, namespace, name } = walk.host.facts.ref;
  const message = `${kind} ${namespace}/${name} is installed by its operator, not by a network boot: use via: BareMetalHost, via: MachineDeletion where a Machine uses it, or detach it`;
  return fail(walk, now, "HostNotInstallable", message);
}

function refuseInstallation(walk: Walk, now: Now): Decision | undefined {
  const { host, seen } = walk;
  if (host.found && host.facts.ref.kind !== "BareMetalHost") {
    const { kind, namespace, name } = host.facts.ref;
    const message = `the host is found by ${kind} ${namespace}/${name}, not by a BareMetalHost: use via: NetworkBoot`;
    return fail(walk, now, "HostNotInstallable", message);
  }
  if (seen.installed === undefined) return run({ do: "examineHost" });
  const why = whyNotInstallable(walk, seen.installed);
  return why === undefined ? undefined : fail(walk, now, "HostNotInstallable", why);
}

/** Why a BareMetalHost is not to be deprovisioned and provisioned anew by us. */
export function whyNotInstallable({ status }: Walk, look: InstalledHost): string | undefined {
  const name = `BareMetalHost ${status.target?.namespace ?? ""}/${status.target?.name ?? ""}`;
  if (look.isGone) return `${name} is gone`;
  if (look.consumer !== undefined) {
    return `${name} is used by ${look.consumer}, which decides what is installed on it: use via: MachineDeletion`;
  }
  if (look.externallyProvisioned) return `${name} is externally provisioned: Metal3 installs nothing on it`;
  return look.image === undefined ? `${name} names no image in its spec, so there is nothing to install` : undefined;
}
