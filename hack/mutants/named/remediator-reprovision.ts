import { DECIDE } from "./killers.ts";
import { mutantsOf } from "./mutant.ts";
import type { Mutant } from "./mutant.ts";

const mutant = mutantsOf("src/remediator");

export const REMEDIATOR_REPROVISION_MUTANTS: readonly Mutant[] = [
  // Machines that are replaced, and hosts that Metal3 reinstalls.
  mutant(
    "machine-deleted-unproven",
    "machine/states/provisioning-machine",
    "a Machine is deleted only while its host is proven off",
    "ensureDeviceUsable(snapshot, now) ?? keepProof(snapshot, now);",
    "ensureDeviceUsable(snapshot, now);",
    DECIDE,
  ),
  mutant(
    "given-up-host-powered",
    "machine/states/provisioning-machine",
    "the agent no longer powers a host whose Machine was deleted",
    'attempt: { ...attempt, action: "None", deadlineMs',
    "attempt: { ...attempt, deadlineMs",
    "test/unit/remediator/machine/states/reprovision.test.ts",
  ),
  mutant(
    "used-host-installed",
    "machine/rules/admission/reprovision-checks",
    "a BareMetalHost that a user uses is never reinstalled",
    "if (report.consumer !== undefined) {",
    "if (report.consumer === undefined && report.externallyProvisioned) {",
    DECIDE,
  ),
  mutant(
    "image-taken-unproven",
    "machine/states/provisioning-host",
    "an image is removed only while the host is proven off",
    "const unproven = ensureDeviceUsable(snapshot, now) ?? keepProof(snapshot, now);",
    "const unproven = ensureDeviceUsable(snapshot, now);",
    DECIDE,
  ),

  // What is never done.
  mutant(
    "plane-reprovisioned",
    "machine/rules/admission/reprovision-checks",
    "a control plane node is never reprovisioned",
    "return CONTROL_PLANE_ROLES.some((role) => role in labels);",
    "return CONTROL_PLANE_ROLES.every((role) => role in labels);",
    DECIDE,
  ),
  mutant(
    "reprovision-without-reboot",
    "machine/rules/admission/reprovision-checks",
    "a host is reprovisioned only after a proven reboot of this outage",
    "if (rebootOfThisOutage(lastReboot, node, snapshot.siblings)) return undefined;",
    "if (lastReboot === undefined || rebootOfThisOutage(lastReboot, node, snapshot.siblings)) return undefined;",
    DECIDE,
  ),

  // A node of the same name in another cluster is another node; a Machine is known by its UID.
  mutant(
    "saved-role-forgotten",
    "machine/rules/admission/reprovision-checks",
    "a node that was saved with a role of the control plane is never reprovisioned",
    "const labels = { ...status.backup?.labels, ...node?.metadata.labels };",
    "const labels = { ...node?.metadata.labels };",
    DECIDE,
  ),
];
