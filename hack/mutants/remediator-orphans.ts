import { CORPUS, ORPHANS, ORPHANS_SIM, UNVOUCHED_SIM, VERSIONS_SIM } from "./killers.ts";
import { mutantsOf } from "./mutant.ts";
import type { Mutant } from "./mutant.ts";

const mutant = mutantsOf("src/remediator");

export const REMEDIATOR_ORPHANS_MUTANTS: readonly Mutant[] = [
  mutant(
    "orphans-of-living",
    "orphans",
    "no remediation that storage holds is taken for lost",
    "  for (const { metadata } of items) gone.delete(metadata.uid);\n",
    "  for (const { metadata } of items.slice(1)) gone.delete(metadata.uid);\n",
    ORPHANS_SIM,
  ),
  mutant(
    "orphan-quarantine-off-at-once",
    "orphans",
    "the quarantine of a lost remediation stays until its node is Ready",
    '...(isReady(node) && { quarantine: "off" })',
    '...(node !== undefined && { quarantine: "off" })',
    ORPHANS_SIM,
  ),
  mutant(
    "others-owner-orphaned",
    "orphans",
    "a host that another kind owns is not given free",
    "if (owner?.kind === BARE_METAL_REMEDIATIONS.kind) owned.push",
    "if (owner !== undefined) owned.push",
    ORPHANS,
  ),
  mutant(
    "unvouched-taint-kept",
    "unvouched-taints",
    "a taint that may stand by a stored status comes off though Nodes cannot be listed",
    "const mayBear = isOurs(watched, id.cluster) || suspects.has(key);",
    "const mayBear = isOurs(watched, id.cluster);",
    UNVOUCHED_SIM,
  ),
  mutant(
    "lapsed-proof-vouches",
    "unvouched-taints",
    "a new leader gets no more time to prove a host off than a proof lasts",
    "grace.get(key) ?? nowMs + POWER_PROOF_AGE_MAX_MS",
    "nowMs + POWER_PROOF_AGE_MAX_MS",
    UNVOUCHED_SIM,
  ),
  mutant(
    "unread-target-gone",
    "remediator",
    "a target that has not been read is not taken for one that is gone",
    'if (!targets.synced) return whyUnread("FencingTargets", targets);',
    'if (targets.size < 0) return whyUnread("FencingTargets", targets);',
    UNVOUCHED_SIM,
  ),
  mutant(
    "finalizer-lost",
    "keep-finalizers",
    "a remediation that is under way gets its finalizer back",
    "if (metadata.deletionTimestamp !== undefined || !isBegun(status) || isFinal(status?.phase)) return false;",
    "if (metadata.deletionTimestamp !== undefined || !isBegun(status) || !isFinal(status?.phase)) return false;",
    UNVOUCHED_SIM,
  ),
  mutant(
    "deleted-without-undo",
    "decide",
    "a remediation that is being deleted is undone though its finalizer was taken off",
    "if (deleting && !hasFinalizer && snapshot.status.target === undefined)",
    "if (deleting && !hasFinalizer)",
    UNVOUCHED_SIM,
  ),
  mutant(
    "later-state-acted-on",
    "state",
    "a status of a later state version is not acted on",
    "if (stateVersion > STATE_VERSION) {",
    "if (stateVersion < STATE_VERSION) {",
    VERSIONS_SIM,
  ),
  mutant(
    "unknown-state-keeps-taint",
    "decide-unknown",
    "the taint of a remediation whose state is not known comes off at once",
    'if (!seen.taintCleared && mayWrite) return run({ do: "untaint" });',
    'if (seen.taintCleared && mayWrite) return run({ do: "untaint" });',
    VERSIONS_SIM,
  ),
  mutant(
    "unknown-order-forgotten",
    "decide-unknown",
    "an order that cannot be read counts as one that may have turned the host off",
    'action: "Inherited"',
    'action: "None"',
    VERSIONS_SIM,
  ),
  mutant(
    "released-status-unknown",
    "state",
    "what 0.1.0 has stored is known",
    "const { stateVersion = 1 } = status ?? {};",
    "const { stateVersion = 2 } = status ?? {};",
    CORPUS,
  ),
];
