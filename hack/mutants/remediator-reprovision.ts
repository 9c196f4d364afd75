import { DECIDE } from "./killers.ts";
import { mutantsOf } from "./mutant.ts";
import type { Mutant } from "./mutant.ts";

const mutant = mutantsOf("src/remediator/reprovision");

export const REMEDIATOR_REPROVISION_MUTANTS: readonly Mutant[] = [
  // Machines that are replaced, and hosts that Metal3 installs anew.
  mutant(
    "plane-machine-deleted",
    "refuse",
    "a Machine of the control plane is never deleted",
    "if (hasControlPlaneRole || look.isControlPlane) {",
    "if (hasControlPlaneRole) {",
    DECIDE,
  ),
  mutant(
    "external-machine-deleted",
    "refuse",
    "a Machine whose host is externally provisioned is never deleted",
    "if (look.externallyProvisioned) return kept(",
    "if (look.externallyProvisioned && look.owner === undefined) return kept(",
    DECIDE,
  ),
  mutant(
    "machine-without-heir-deleted",
    "refuse",
    "a Machine is deleted only where its owner makes another one",
    "if (!look.isReplaced) return kept(",
    "if (look.owner === undefined) return kept(",
    DECIDE,
  ),
  mutant(
    "machines-deleted-at-once",
    "refuse",
    "one Machine at a time is replaced",
    "if (!replaceTurn.granted) {",
    "if (!replaceTurn.granted && walk.remainingMs > 0) {",
    DECIDE,
  ),
  mutant(
    "replace-turn-forgotten",
    "replace-turns",
    "who was told that its Machine may be replaced keeps others waiting before that is stored",
    " || this.#told.get(namespace) === uid",
    "",
    "test/unit/remediator/replace-turns.test.ts",
  ),
  mutant(
    "machine-deleted-unproven",
    "machine-deletion",
    "a Machine is deleted only while its host is proven off",
    "deviceGate(walk, now) ?? keepProof(walk, now);",
    "deviceGate(walk, now);",
    DECIDE,
  ),
  mutant(
    "machine-deleted-unannounced",
    "machine-deletion",
    "a Machine is deleted only after that was announced",
    "if (announced && status.replacement?.owner.uid === look.owner.uid)",
    "if (look.isReplaced)",
    DECIDE,
  ),
  mutant(
    "given-up-host-powered",
    "machine-deletion",
    "a host whose Machine was deleted is powered by nobody here any more",
    'attempt: { ...attempt, action: "None", deadlineMs',
    "attempt: { ...attempt, deadlineMs",
    "test/unit/remediator/reprovision.test.ts",
  ),
  mutant(
    "used-host-installed",
    "refuse",
    "a BareMetalHost that somebody uses is never installed anew",
    "if (look.consumer !== undefined) {",
    "if (look.consumer === undefined && look.externallyProvisioned) {",
    DECIDE,
  ),
  mutant(
    "operators-host-network-booted",
    "refuse",
    "a host that its operator powers is refused for a network boot before it is powered off for one",
    "if (!walk.host.found || !walk.host.facts.isPoweredByMark) return undefined;",
    "if (!walk.host.found || walk.remainingMs > 0) return undefined;",
    DECIDE,
  ),
  mutant(
    "image-taken-unproven",
    "host-installation",
    "what is installed is taken off only while the host is proven off",
    "const unproven = deviceGate(walk, now) ?? keepProof(walk, now);",
    "const unproven = deviceGate(walk, now);",
    DECIDE,
  ),
  mutant(
    "image-lost-that-was-changed",
    "host-installation",
    "what is taken off a host is what was saved of it",
    "if (look.image !== installation.image) {",
    "if (look.isGone) {",
    DECIDE,
  ),
  mutant(
    "image-left-off",
    "host-installation",
    "an undo puts back what was taken off a host",
    'if (look.image === undefined && look.consumer === undefined && !look.isGone) return run({ do: "putImageBack" });',
    "",
    DECIDE,
  ),

  // What is never done.
  mutant(
    "plane-reprovisioned",
    "refuse",
    "a control plane node is never reprovisioned",
    "return CONTROL_PLANE_ROLES.some((role) => role in labels);",
    "return CONTROL_PLANE_ROLES.every((role) => role in labels);",
    DECIDE,
  ),
  mutant(
    "reprovision-without-reboot",
    "refuse",
    "a host is reprovisioned only after a proven reboot of this outage",
    "if (rebootOfThisOutage(lastReboot, node, walk.siblings)) return undefined;",
    "if (lastReboot === undefined || rebootOfThisOutage(lastReboot, node, walk.siblings)) return undefined;",
    DECIDE,
  ),

  // A node of the same name in another cluster is another node; a Machine is known by its UID.
  mutant(
    "other-nodes-machine-deleted",
    "refuse",
    "no Machine is deleted that is another node than the one that was fenced",
    "look.nodeName !== undefined && nodeName !== undefined && look.nodeName !== nodeName",
    'look.nodeName !== undefined && nodeName === ""',
    DECIDE,
  ),
];
