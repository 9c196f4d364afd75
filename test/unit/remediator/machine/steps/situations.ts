import type { Observations } from "../../../../../src/remediator/machine/model/facts/observations.ts";
import type { StateName } from "../../../../../src/remediator/machine/model/decision/state.ts";
import type { SnapshotChanges } from "../snapshots.ts";
import {
  DEVICE_AWAY,
  NO_SUCCESSOR,
  node,
  PROVEN,
  READ_OFF,
  READ_ON,
  REFUSED_FOR_GOOD,
  STALE_LEASE,
  VERIFIED,
} from "../snapshots.ts";

/** What a remediation does next in a situation. */
export interface Step {
  /** A sentence that is understood alone. */
  name: string;
  given: SnapshotChanges;
  /** The decision in the form of `told`: the stored state with its reason, then the effect. */
  expected: string;
}

/**
 * The facts of a remediation in the middle of a state. Common facts have short forms; all others are given as stored.
 */
export interface Facts extends Omit<SnapshotChanges, "state"> {
  /** How the host's power was read since the order. */
  read?: "Off×1" | "Off×2" | "On";
  identity?: "verified";
  /** How the node was when it was examined. */
  examined?: "Ready" | "NotReady";
  /** What the watch shows of the node now. */
  nodeNow?: "Ready" | "gone";
  /** The node's lease has not been renewed for longer than a live kubelet takes. */
  lease?: "silent";
  /** Whether our taint is known to be removed, or to be on the node for this attempt. */
  taint?: "cleared" | "ours";
  device?: "away" | "refused permanently";
  successor?: "none";
  stopped?: "Paused" | "Maintenance";
  isDeleted?: true;
  isOutOfTime?: true;
}

type Situation = (facts?: Facts) => SnapshotChanges;

export const resolving = situationIn("Resolving");
export const verifying = situationIn("Verifying");
export const poweringOff = situationIn("PoweringOff");
export const releasing = situationIn("Releasing");
export const provisioning = situationIn("Provisioning");
export const poweringOn = situationIn("PoweringOn");
export const rejoining = situationIn("Rejoining");
export const restoring = situationIn("Restoring");
export const undoing = situationIn("Undoing");
export const succeeded = situationIn("Succeeded");
export const failed = situationIn("Failed");

const READINGS = { "Off×1": READ_OFF, "Off×2": PROVEN, On: READ_ON } as const;

function situationIn(state: StateName): Situation {
  return ({ read, identity, examined, nodeNow, lease, taint, device, successor, stopped, ...facts } = {}) => {
    const { isDeleted, isOutOfTime, ...changes } = facts;
    const observations: Partial<Observations> = {
      ...changes.observations,
      ...(read !== undefined && { power: READINGS[read] }),
      ...(identity !== undefined && { identity: VERIFIED }),
      ...(examined !== undefined && { examined: { node: examined === "Ready" ? node({ ready: "True" }) : node() } }),
      ...(lease !== undefined && { lease: STALE_LEASE }),
      ...(taint === "cleared" && { taintCleared: true }),
      ...(taint === "ours" && { taint: { attemptId: "a1", found: "Ours" } }),
      ...(device !== undefined && { device: device === "away" ? DEVICE_AWAY : REFUSED_FOR_GOOD }),
      ...(successor !== undefined && { successor: NO_SUCCESSOR }),
    };
    const other: SnapshotChanges["other"] = {
      ...changes.other,
      ...(nodeNow !== undefined && { node: nodeNow === "Ready" ? node({ ready: "True" }) : undefined }),
      ...(stopped !== undefined && { hold: { reason: stopped, message: "by a test" } }),
      ...(isOutOfTime === true && { remainingMs: 0 }),
    };
    const remediation = { ...changes.remediation, ...(isDeleted === true && { deleting: true }) };
    return { ...changes, state, observations, other, remediation };
  };
}
