import { DECIDE } from "./killers.ts";
import { mutantsOf } from "./mutant.ts";
import type { Mutant } from "./mutant.ts";

const mutant = mutantsOf("src/remediator");

export const REMEDIATOR_REPROVISION_MUTANTS: readonly Mutant[] = [
  // Machines that are replaced, and hosts that Metal3 installs anew.
  mutant(
    "plane-machine-deleted",
    "machine/rules/reprovision-checks",
    "a Machine of the control plane is never deleted",
    "if (hasControlPlaneRole || look.isControlPlane) {",
    "if (hasControlPlaneRole) {",
    DECIDE,
  ),
  mutant(
    "external-machine-deleted",
    "machine/rules/reprovision-checks",
    "a Machine whose host is externally provisioned is never deleted",
    "if (look.externallyProvisioned) return kept(",
    "if (look.externallyProvisioned && look.owner === undefined) return kept(",
    DECIDE,
  ),
  mutant(
    "machine-without-heir-deleted",
    "machine/rules/reprovision-checks",
    "a Machine is deleted only where its owner makes another one",
    "if (!look.isReplaced) return kept(",
    "if (look.owner === undefined) return kept(",
    DECIDE,
  ),
  mutant(
    "machines-deleted-at-once",
    "machine/rules/reprovision-checks",
    "one Machine at a time is replaced",
    "if (!replaceTurn.granted) {",
    "if (!replaceTurn.granted && walk.remainingMs > 0) {",
    DECIDE,
  ),
  mutant(
    "machine-deleted-unproven",
    "machine/states/provisioning-machine",
    "a Machine is deleted only while its host is proven off",
    "deviceGate(walk, now) ?? keepProof(walk, now);",
    "deviceGate(walk, now);",
    DECIDE,
  ),
  mutant(
    "machine-deleted-unannounced",
    "machine/states/provisioning-machine",
    "a Machine is deleted only after that was announced",
    "if (announced && status.replacement?.owner.uid === look.owner.uid)",
    "if (look.isReplaced)",
    DECIDE,
  ),
  mutant(
    "given-up-host-powered",
    "machine/states/provisioning-machine",
    "a host whose Machine was deleted is powered by nobody here any more",
    'attempt: { ...attempt, action: "None", deadlineMs',
    "attempt: { ...attempt, deadlineMs",
    "test/unit/remediator/reprovision.test.ts",
  ),
  mutant(
    "used-host-installed",
    "machine/rules/reprovision-checks",
    "a BareMetalHost that somebody uses is never installed anew",
    "if (look.consumer !== undefined) {",
    "if (look.consumer === undefined && look.externallyProvisioned) {",
    DECIDE,
  ),
  mutant(
    "operators-host-network-booted",
    "machine/rules/reprovision-checks",
    "a host that its operator powers is refused for a network boot before it is powered off for one",
    "if (!walk.host.found || !walk.host.facts.isPoweredByMark) return undefined;",
    "if (!walk.host.found || walk.remainingMs > 0) return undefined;",
    DECIDE,
  ),
  mutant(
    "image-taken-unproven",
    "machine/states/provisioning-host",
    "what is installed is taken off only while the host is proven off",
    "const unproven = deviceGate(walk, now) ?? keepProof(walk, now);",
    "const unproven = deviceGate(walk, now);",
    DECIDE,
  ),
  mutant(
    "image-lost-that-was-changed",
    "machine/states/provisioning-host",
    "what is taken off a host is what was saved of it",
    "if (look.image !== installation.image) {",
    "if (look.isGone) {",
    DECIDE,
  ),

  // What is never done.
  mutant(
    "plane-reprovisioned",
    "machine/rules/reprovision-checks",
    "a control plane node is never reprovisioned",
    "return CONTROL_PLANE_ROLES.some((role) => role in labels);",
    "return CONTROL_PLANE_ROLES.every((role) => role in labels);",
    DECIDE,
  ),
  mutant(
    "reprovision-without-reboot",
    "machine/rules/reprovision-checks",
    "a host is reprovisioned only after a proven reboot of this outage",
    "if (rebootOfThisOutage(lastReboot, node, walk.siblings)) return undefined;",
    "if (lastReboot === undefined || rebootOfThisOutage(lastReboot, node, walk.siblings)) return undefined;",
    DECIDE,
  ),

  // A node of the same name in another cluster is another node; a Machine is known by its UID.
  mutant(
    "other-nodes-machine-deleted",
    "machine/rules/reprovision-checks",
    "no Machine is deleted that is another node than the one that was fenced",
    "look.nodeName !== undefined && nodeName !== undefined && look.nodeName !== nodeName",
    'look.nodeName !== undefined && nodeName === ""',
    DECIDE,
  ),
  mutant(
    "saved-role-forgotten",
    "machine/rules/reprovision-checks",
    "a node that was saved with a role of the control plane is never reprovisioned",
    "const labels = { ...status.backup?.labels, ...node?.metadata.labels };",
    "const labels = { ...node?.metadata.labels };",
    DECIDE,
  ),
  mutant(
    "unknown-role-reprovisioned",
    "machine/rules/reprovision-checks",
    "a node of which nobody knows whether it runs the control plane is not reprovisioned",
    "if (node === undefined && walk.status.backup === undefined && walk.seen.subjectMachine?.found !== true) {",
    "if (node === null) {",
    DECIDE,
  ),
  mutant(
    "second-cycle-needs-no-proof",
    "machine/rules/reprovision-checks",
    "a reprovision needs a proven reboot of this outage",
    'if (walk.plan.type === "Escalate" || !walk.plan.requireReboot || (walk.status.retryCount ?? 0) > 0) return undefined;',
    'if (walk.plan.type === "Escalate" || !walk.plan.requireReboot || walk.attempt.id !== "") return undefined;',
    DECIDE,
  ),
];
