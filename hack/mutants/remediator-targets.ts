import { BARE_METAL_POWER, BARE_METAL_SIM, IDENTITY, TARGETS, TARGET_CLUSTERS } from "./killers.ts";
import { mutantsOf } from "./mutant.ts";
import type { Mutant } from "./mutant.ts";

const mutant = mutantsOf("src/remediator/targets");

export const REMEDIATOR_TARGETS_MUTANTS: readonly Mutant[] = [
  mutant(
    "attached-unseen",
    "composite-directory",
    "right before an order it is looked at live who powers the host",
    'if (live !== undefined && powerPathOf(live) !== "Direct") throw',
    'if (live === undefined && powerPathOf(twin) !== "Direct") throw',
    BARE_METAL_POWER,
  ),
  // The right host, owned by one.
  mutant(
    "no-identity-will-do",
    "identity",
    "a host that nobody can tell apart is not taken for the right one",
    'return { verified: false, reason: "Unknown", message: why };',
    "return { verified: true, message: why };",
    IDENTITY,
  ),
  mutant(
    "one-match-is-enough",
    "identity",
    "one value that differs makes it another host, whatever else matches",
    'if (verdicts.includes(false)) return "mismatch";',
    'if (!verdicts.includes(true) && verdicts.length > 0) return "mismatch";',
    IDENTITY,
  ),
  mutant(
    "two-owners",
    "target-store",
    "a host is taken only from an owner that is at its end",
    "if (present !== undefined && (await isLive(runtime, present, signal))) {",
    "if (present !== undefined && present.uid === uid) {",
    TARGETS,
  ),
  mutant(
    "release-of-another",
    "target-store",
    "a host is given up by its owner alone",
    "({ status }) => (status?.owner?.uid === owner.uid ? { owner: null } : undefined),",
    "() => ({ owner: null }),",
    TARGETS,
  ),
  mutant(
    "claim-unguarded",
    "target-store",
    "a host is taken by compare-and-swap",
    "mergePatch(FENCING_TARGETS, key, { uid, resourceVersion }, { status }, options, signal);",
    "mergePatch(FENCING_TARGETS, key, { uid, resourceVersion: undefined as unknown as string }, { status }, options, signal);",
    TARGETS,
  ),

  // BareMetalHosts: asked of their operator, never gone behind.
  mutant(
    "target-beside-operator",
    "composite-directory",
    "a FencingTarget beside a host with an operator is not used",
    "    return ambiguous(what, located.host);",
    "    return byTarget;",
    BARE_METAL_POWER,
  ),
  mutant(
    "managed-target-ready",
    "composite-directory",
    "a FencingTarget whose host an operator powers is not said to be Ready, across a restart",
    'return said?.reason === "Ambiguous" ? said.message : undefined;',
    "return undefined;",
    BARE_METAL_SIM,
  ),

  // A node of the same name in another cluster is another node; a Machine is known by its UID.
  mutant(
    "target-of-any-cluster",
    "target-index",
    "a target is of its own cluster's node alone",
    "const node = nodeClaim({ cluster: clusterRef, name: nodeName });",
    "const node = nodeClaim({ cluster: undefined, name: nodeName });",
    TARGET_CLUSTERS,
  ),
  mutant(
    "target-strays-to-namesake",
    "fencing-target",
    "a target that names the namesake in another cluster is another host's",
    "const isSame = nodeKey({ name, cluster }) === nodeKey({ name: nodeName, cluster: clusterRef });",
    "const isSame = name === nodeName;",
    TARGET_CLUSTERS,
  ),
  mutant(
    "pin-of-namesake",
    "identity",
    "what was pinned from a node counts for no namesake",
    "const isPin = pin?.nodeName === nodeName && clusterKey(pin.clusterRef) === clusterKey(clusterRef);",
    "const isPin = pin?.nodeName === nodeName;",
    TARGET_CLUSTERS,
  ),
];
