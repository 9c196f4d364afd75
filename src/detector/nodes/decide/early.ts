import {
  BARE_METAL_REMEDIATIONS,
  bareMetalRemediationSpecSchema,
} from "../../../api/ironfence/bare-metal-remediation.ts";
import type { Node } from "../../../api/kubernetes/core.ts";
import { OUT_OF_SERVICE } from "../../../api/kubernetes/taints.ts";
import { isControlPlane } from "../../../nodes/control-plane.ts";
import { earlySilenceMs } from "../../../nodes/leases/silence.ts";
import { isReady } from "../../../nodes/ready.ts";
import { parseTimeMs } from "../../../runtime/time.ts";
import type { EarlyFacts } from "../../shared/model/early-facts.ts";
import type { AgedTarget, ObservedHost } from "../../shared/model/observed-host.ts";
import type { Remediation } from "../../shared/model/remediation.ts";
import { hasEnded } from "../../shared/model/remediation.ts";
import type { Template } from "../../shared/model/template.ts";
import type { NodeHealth } from "./health.ts";
import type { NodePolicy } from "./policy.ts";

// Decides whether a node that still says that it is Ready is remediated because its host is proven off. Pure.
// docs/explanation/early-release.md has the reason for each condition.

/** A probe renews a proof more often than this. An older proof was not renewed. */
const PROOF_AGE_MAX_MS = 5_000;
/** How long Kubernetes waits after the last renewal of a lease until it sets Ready=Unknown, by default. */
const GRACE_PERIOD_MS = 50_000;
/** The longest duration for which a host is kept off. With a longer duration, no remediation begins early. */
const EARLY_MAX_MS = 600_000;

/** The proof as text for the operator, and until when it counts. */
interface ProvenEarly {
  proof: string;
  untilMs: number;
}

/**
 * The health of a node that no condition makes unhealthy, with early off proofs taken into account. The node is
 * unhealthy if its host is proven off now. When it has an early remediation, it is `soonUnhealthy` until the duration
 * is over, so that the remediation stays, unless the node shows another boot.
 */
export function judgeEarly(
  { node, health, host, early, remediations }: EarlyCandidate,
  policy: Pick<NodePolicy, "unhealthyConditions" | "beginsEarly">,
  nowMs: number,
): NodeHealth {
  if (node === undefined || health.state !== "healthy" || !isReady(node)) return health;
  const rule = policy.unhealthyConditions.find(({ type, status }) => type === "Ready" && status === "Unknown");
  if (rule === undefined) return health;
  const begun = remediations.find((remediation) => isWaitedFor(remediation, node, early?.serverNowMs));
  if (begun !== undefined) {
    const leftMs = (begun.powerOnNotBeforeMs ?? 0) - (early?.serverNowMs ?? 0);
    return { state: "soonUnhealthy", unhealthyCondition: rule, untilMs: nowMs + leftMs };
  }
  if (!policy.beginsEarly || host === undefined || early === undefined || remediations.length > 0) return health;
  const durationMs = GRACE_PERIOD_MS + rule.durationMs;
  const proven = durationMs > EARLY_MAX_MS ? undefined : judgeEarlyProof(node, host, early, nowMs);
  if (proven === undefined) return health;
  const skipped = { ...proven, durationUntilMs: nowMs + durationMs, isEarly: true };
  return { state: "unhealthy", unhealthyCondition: rule, sinceMs: nowMs, skipped };
}

/** The input of `judgeEarly`. */
export interface EarlyCandidate {
  node: Node | undefined;
  health: NodeHealth;
  host: ObservedHost | undefined;
  early: EarlyFacts | undefined;
  /** Remediations of the node that the health check owns. */
  remediations: readonly Remediation[];
}

/** Whether the duration of an early remediation is not over yet, and the node has not come back in another boot. */
function isWaitedFor(remediation: Remediation, node: Node, serverNowMs: number | undefined): boolean {
  const { powerOnNotBeforeMs, bootIDAtStart, terminating } = remediation;
  if (powerOnNotBeforeMs === undefined || terminating || hasEnded(remediation)) return false;
  const isSameBoot = bootIDAtStart === undefined || bootIDAtStart === node.status.nodeInfo?.bootID;
  return isSameBoot && serverNowMs !== undefined && serverNowMs < powerOnNotBeforeMs;
}

/** The proof that the host of a Ready node is off; undefined if anything is in doubt. */
function judgeEarlyProof(node: Node, host: ObservedHost, early: EarlyFacts, nowMs: number): ProvenEarly | undefined {
  const { problem, stopped, targets } = host;
  if (problem !== undefined || stopped !== undefined || targets.length !== 1) return undefined;
  if (node.metadata.deletionTimestamp !== undefined || node.spec.unschedulable === true) return undefined;
  if (node.spec.taints?.some(({ key }) => key === OUT_OF_SERVICE.key) === true) return undefined;
  // Another control plane node may have lost power together with this one, and still say that it is Ready. etcd might
  // then lose its quorum.
  if (isControlPlane(node) && early.otherControlPlaneOverdue) return undefined;
  const [known] = targets;
  const leftMs = known === undefined ? -1 : proofLeftMs(node, known, early, nowMs);
  if (known === undefined || leftMs < 0) return undefined;
  const { name, namespace } = known.target.metadata;
  const silentSeconds = Math.floor((early.monotonicMs - (early.lease?.sinceMs ?? 0)) / 1_000);
  const proof = `it still says that it is Ready, but has not renewed its lease for ${silentSeconds} s, and FencingTarget ${namespace}/${name} read its host Off twice in a row`;
  return { proof, untilMs: nowMs + leftMs };
}

/** For how long the proof of a target still counts; negative if it does not count. */
function proofLeftMs(
  node: Node,
  { target, earlyProofArrivedAgoMs }: AgedTarget,
  { lease, monotonicMs }: EarlyFacts,
  nowMs: number,
): number {
  const { earlyOffProof: proof, maintenance, isOwned, isObserved, ready, identityVerified } = target;
  if (proof === undefined || lease === undefined || maintenance || isOwned || !isObserved) return -1;
  if (ready?.status !== "True" || identityVerified?.status !== "True") return -1;
  if (proof.nodeUID !== node.metadata.uid || proof.bootID !== node.status.nodeInfo?.bootID) return -1;
  if (proof.leaseUID !== lease.uid || proof.leaseResourceVersion !== lease.resourceVersion) return -1;
  if (monotonicMs - lease.sinceMs < earlySilenceMs(lease)) return -1;
  // The age is measured twice, because the time of the proof is wrong if a clock is wrong, and the proof arrives late
  // if the watch is late.
  const ageMs = Math.abs(nowMs - (parseTimeMs(proof.time) ?? -Infinity));
  return PROOF_AGE_MAX_MS - Math.max(ageMs, earlyProofArrivedAgoMs ?? Infinity);
}

/**
 * Whether a remediation from this template may begin early. It must be a BareMetalRemediation that uses the
 * out-of-service taint, ends pods at once and does not reprovision.
 */
export function mayBeginEarly({ type, remediationSpec, manyPerNode }: Template): boolean {
  if (type.group !== BARE_METAL_REMEDIATIONS.group || type.kind !== BARE_METAL_REMEDIATIONS.kind) return false;
  const spec = bareMetalRemediationSpecSchema.safeParse(remediationSpec);
  if (!spec.success || manyPerNode) return false;
  const { workloadRelease, podRelease, type: strategy } = spec.data.strategy;
  return workloadRelease === "OutOfServiceTaint" && podRelease === "Eager" && strategy !== "Reprovision";
}
