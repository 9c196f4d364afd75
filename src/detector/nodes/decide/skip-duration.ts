import type { Node } from "../../../api/kubernetes/core.ts";
import { isSameOutage, outageOf } from "../../../api/kubernetes/outage.ts";
import type { KubeObject } from "../../../kube/resource.ts";
import { parseTimeMs } from "../../../runtime/time.ts";
import type { NodeFacts } from "./decision.ts";
import type { ObservedHost, ObservedTarget } from "../../shared/model/observed-host.ts";
import type { NodeHealth } from "./health.ts";
import type { UnhealthyCondition } from "../../../api/schema/unhealthy-condition.ts";
import type { NodePolicy } from "./policy.ts";
import { SKEW_NOTABLE_MS } from "../../shared/model/clock-skew.ts";

// Decides whether the rest of a duration may be skipped because the node's host is proven off. Pure.
// docs/explanation/detector.md has the reason for each condition.

/** The longest age of a proof. After this time, the host may have been powered on again. */
const PROOF_AGE_MAX_MS = 30_000;

/** A host is proven off until `untilMs`. */
export interface ProvenOff {
  proven: true;
  /** Text for the operator. */
  proof: string;
  untilMs: number;
}
export type OffJudgment = ProvenOff | { proven: false; why: string };

/**
 * Whether a fresh proof shows that the node's host is off, and nothing else is being done with the host.
 *
 * The age of a proof is measured twice: by its time, which is wrong if a clock is wrong, and by its arrival, which is
 * late if the watch is late.
 */
export function judgeProvenOff(node: Node, host: ObservedHost, nowMs: number): OffJudgment {
  const { problem, stopped, targets } = host;
  const outage = outageOf(node);
  if (outage === undefined) return unproven("the node's condition Ready is neither False nor Unknown");
  if (node.spec.unschedulable === true) return unproven("the node is cordoned");
  if (problem !== undefined) return unproven(problem);
  if (stopped !== undefined) return unproven(stopped);
  const [first] = targets;
  if (first === undefined) return unproven("no FencingTarget names the node");
  if (targets.length > 1) {
    return unproven(`several FencingTargets name the node: ${targets.map(({ target }) => nameOf(target)).join(", ")}`);
  }
  const { target, proofArrivedAgoMs } = first;
  const doubt = doubtOf(target);
  if (doubt !== undefined) return unproven(`${nameOf(target)} ${doubt}`);
  const { offProof } = target;
  if (offProof === undefined) return unproven(`${nameOf(target)} has no proof that the host is off`);
  if (!isSameOutage(offProof, outage)) return unproven(`the off proof of ${nameOf(target)} is from another outage`);
  const ageMs = nowMs - (parseTimeMs(offProof.time) ?? -Infinity);
  // A proof that existed before the watch began, or whose time is in the future, has no reliable age.
  const arrivedAgoMs = ageMs < -SKEW_NOTABLE_MS ? undefined : proofArrivedAgoMs;
  const leftMs = PROOF_AGE_MAX_MS - Math.max(ageMs, arrivedAgoMs ?? Infinity);
  if (leftMs < 0) return unproven(`the off proof of ${nameOf(target)}, from ${offProof.time}, is not fresh`);
  const proof = `${nameOf(target)} read its host Off twice in a row, at ${offProof.time}`;
  return { proven: true, proof, untilMs: nowMs + leftMs };
}

/**
 * The health of a node with off proofs taken into account. If the rest of its duration is skipped, the node is
 * unhealthy.
 */
export function skipDuration(
  { node, health, host }: Pick<NodeFacts, "node" | "health" | "host">,
  { unhealthyConditions, skipsDurationIfOff }: Pick<NodePolicy, "unhealthyConditions" | "skipsDurationIfOff">,
  nowMs: number,
): NodeHealth {
  if (!skipsDurationIfOff || node === undefined || host === undefined || health.state !== "soonUnhealthy")
    return health;
  const unhealthyCondition = readyCondition(unhealthyConditions, node);
  if (unhealthyCondition === undefined) return health;
  const judgment = judgeProvenOff(node, host, nowMs);
  if (!judgment.proven) return { ...health, notSkipped: judgment.why };
  return {
    state: "unhealthy",
    unhealthyCondition,
    sinceMs: nowMs,
    skipped: { ...judgment, durationUntilMs: health.untilMs },
  };
}

/** The unhealthy condition that the condition Ready of the node matches. Only its duration may be skipped. */
function readyCondition(
  unhealthyConditions: readonly UnhealthyCondition[],
  { status }: Node,
): UnhealthyCondition | undefined {
  const ready = status.conditions?.find(({ type }) => type === "Ready");
  return unhealthyConditions.find((rule) => rule.type === "Ready" && rule.status === ready?.status);
}

/** Why a FencingTarget cannot be relied on now. */
function doubtOf(target: ObservedTarget): string | undefined {
  const { maintenance, isOwned, isObserved, ready, identityVerified, powerState } = target;
  if (maintenance) return "is in maintenance";
  if (isOwned) return "is claimed by a remediation";
  if (!isObserved) return "was edited after its last probe";
  if (ready?.status !== "True") return `is not Ready: ${ready?.message ?? "not probed yet"}`;
  if (identityVerified?.status !== "True") {
    return `has not verified the identity of its host: ${identityVerified?.message ?? "not probed yet"}`;
  }
  return powerState === "Off" ? undefined : `reports power state ${powerState ?? "Unknown"}`;
}

function nameOf({ metadata }: KubeObject): string {
  return `FencingTarget ${metadata.namespace}/${metadata.name}`;
}

function unproven(why: string): OffJudgment {
  return { proven: false, why };
}
