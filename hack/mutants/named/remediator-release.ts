import { DECIDE, STORED_INTENTS, DECIDE_RECORD, EFFECTS, PROPERTIES, STATE, VERSIONS_SIM } from "./killers.ts";
import { mutantsOf } from "./mutant.ts";
import type { Mutant } from "./mutant.ts";

const mutant = mutantsOf("src/remediator");

export const REMEDIATOR_RELEASE_MUTANTS: readonly Mutant[] = [
  // Off is off only when it is proven.
  mutant(
    "release-without-proof",
    "machine/states/releasing",
    "while workloads are released the host is proven off",
    "  const unproven = keepProof(snapshot, now);\n  if (unproven !== undefined) return unproven;\n  const returned",
    "  const returned",
    DECIDE,
    PROPERTIES,
  ),
  mutant(
    "provision-without-proof",
    "machine/states/releasing",
    "a Node is deleted, and the next boot set, only while the host is proven off",
    "  const unproven = keepProof(snapshot, now);\n  if (unproven !== undefined) return unproven;\n  if (observations.override",
    "  if (observations.override",
    DECIDE,
    PROPERTIES,
  ),
  mutant(
    "taint-outlives-proof",
    "machine/states/releasing",
    "the out-of-service taint is removed as soon as the host is not proven off",
    'if (snapshot.state.name === "Releasing" && !observations.taintCleared) return run({ do: "untaint" });',
    "",
    DECIDE,
  ),

  // What version 0.1.0 has left.
  mutant(
    "annotation-signs-for-ever",
    "machine/node-patches/marks",
    "for an id that a later version chose, an annotation, which a kubelet can write, does not make a taint ours",
    "if (attempt === undefined || attempt.secondTaint === true) return false;",
    "if (attempt === undefined) return false;",
    EFFECTS,
  ),

  mutant(
    "first-version-taint-forgotten",
    "machine/model/decision/state",
    "a taint of version 0.1.0 stays ours when a later version stores the status",
    "secondTaint: stored.secondTaint ?? false,",
    "secondTaint: stored.secondTaint ?? true,",
    STATE,
    VERSIONS_SIM,
  ),
  mutant(
    "chosen-id-annotated-only",
    "machine/rules/attempts",
    "an id of this version shows that its taint has an ownership taint",
    "secondTaint: true,",
    "secondTaint: previous?.secondTaint ?? false,",
    DECIDE_RECORD,
  ),
  mutant(
    "further-id-annotated-only",
    "machine/states/verifying",
    "the id of a further order in the same power cycle also shows that its taint has an ownership taint",
    "secondTaint: attempt.secondTaint || id !== attempt.id,",
    "secondTaint: attempt.secondTaint,",
    DECIDE_RECORD,
  ),

  // Workloads.
  mutant(
    "volumes-forgotten",
    "machine/states/releasing",
    "a node is drained only once no volume is attached to it",
    "const drained = drain?.pods === 0 && drain.attachments === 0;",
    "const drained = drain?.pods === 0;",
    DECIDE,
    PROPERTIES,
  ),
  mutant(
    "pods-forgotten",
    "machine/states/releasing",
    "a node is drained only once its pods are gone",
    "const drained = drain?.pods === 0 && drain.attachments === 0;",
    "const drained = drain?.attachments === 0;",
    DECIDE,
    PROPERTIES,
  ),
  mutant(
    "taint-not-swapped",
    "machine/states/releasing",
    "the quarantine replaces the taint before anything is powered on",
    'if (!observations.swapped && !isUnmarked) return run({ do: "swapMarks", attemptId: attempt.id });',
    "",
    DECIDE,
    PROPERTIES,
  ),
  mutant(
    "quarantine-lifted-early",
    "machine/states/rejoining",
    "the quarantine stays until the node is in a new boot",
    "const rejoined = node !== undefined && isNewBoot(snapshot, node) && renewed;",
    "const rejoined = node !== undefined && renewed;",
    DECIDE,
  ),
  // test/e2e/upgrade-kills.test.ts also kills it, but needs a control plane.
  mutant(
    "boot-not-waited-for",
    "machine/states/rejoining",
    "a host that boots is not powered off again before its time to rejoin is over",
    "if (snapshot.remainingMs <= 0 && !(rejoined && observations.kube !== undefined)) {",
    "if (!rejoined) {",
    DECIDE,
  ),
  mutant(
    "old-lease-rejoins",
    "machine/states/rejoining",
    "a node has rejoined only once its lease is renewed after the power-on",
    "const rejoined = node !== undefined && isNewBoot(snapshot, node) && renewed;",
    "const rejoined = node !== undefined && isNewBoot(snapshot, node);",
    DECIDE,
  ),
  mutant(
    "success-unready",
    "machine/states/restoring",
    "a success needs a node that is Ready",
    "const isBack = node !== undefined && isReady(node) &&",
    "const isBack = node !== undefined &&",
    DECIDE,
  ),

  // Nodes that are deleted.
  mutant(
    "deletion-unannounced",
    "machine/states/releasing",
    "the deletion of a Node is announced first, so that the health check does not delete the remediation meanwhile",
    "if (announced && isDeepStrictEqual",
    "if (isDeepStrictEqual",
    DECIDE,
  ),

  // Undoing.
  mutant(
    "twin-left-off-by-cycle",
    "machine/states/powering-on",
    "a power-on looks at all devices of a host: one may be off while another reads On",
    'return inMs <= 0 ? run({ do: "readWhole" })',
    'return inMs <= 0 ? run({ do: "readPower" })',
    DECIDE,
  ),
  mutant(
    "override-left",
    "machine/states/restoring",
    "no boot override is left behind",
    "  if (attempt.bootOverride) {\n    const waiting",
    "  if (attempt.bootOverride && observations.override === 'NetworkOnce') {\n    const waiting",
    DECIDE,
  ),

  mutant(
    "drain-never-out-of-time",
    "machine/states/releasing",
    "a release that is out of time goes on to the power-on",
    "if (drained || snapshot.remainingMs <= 0) return endRelease",
    "if (drained) return endRelease",
    DECIDE,
  ),
  mutant(
    "lost-proof-stays-confirmed",
    "machine/states/releasing",
    "a lost proof is not shown as valid",
    '      { type: "PowerOffConfirmed", status: "False", reason: "PowerOffLost", message },\n',
    "",
    DECIDE_RECORD,
  ),
  mutant(
    "on-intent-done",
    "machine/states/releasing",
    "a host that must be powered on is ordered on until it reads On",
    "      sent: false,\n      done: false,\n",
    "      sent: false,\n      done: true,\n",
    STORED_INTENTS,
  ),
  mutant(
    "override-unverified",
    "machine/states/releasing",
    "a boot override is set only on a host that was verified just now",
    "    const unverified = ensureIdentity(snapshot, now);\n    if (unverified !== undefined) return unverified;\n",
    "",
    DECIDE,
  ),
  mutant(
    "node-deleted-unsaved",
    "machine/states/releasing",
    "a Node is deleted only after exactly its present state is stored",
    "if (announced && isDeepStrictEqual(status.backup, observations.backup.status)) return",
    "if (announced) return",
    DECIDE,
  ),
  mutant(
    "on-though-stopped",
    "machine/states/powering-on",
    "maintenance stops the power-on, too",
    'ensureNotHeld(snapshot, now, "On", attempt, strategy.powerOnTimeoutMs) ??\n      ensureIdentity',
    "ensureIdentity",
    DECIDE,
  ),
  mutant(
    "on-unverified",
    "machine/states/powering-on",
    "no On without a verified identity",
    'ensureIdentity(snapshot, now, "On") ??\n      orderOn(snapshot, order, now)',
    "orderOn(snapshot, order, now)",
    DECIDE,
  ),
  mutant(
    "labels-not-given-back-at-once",
    "machine/states/rejoining",
    "a node that joins again gets its labels back before it is Ready",
    "  const restoring = restoreLabels(snapshot);\n  if (restoring !== undefined) return restoring;\n  if (!rejoined)",
    "  if (!rejoined)",
    DECIDE,
  ),
];
