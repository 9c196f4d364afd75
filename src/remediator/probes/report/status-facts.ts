import type { FencingTarget } from "../../../api/ironfence/fencing-target.ts";
import type { Condition } from "../../../api/schema/meta.ts";
import type { Outage } from "../../../api/kubernetes/outage.ts";
import type { Conflict } from "../../hosts/fencing-target/target-index.ts";
import type { TargetReason } from "../../hosts/fencing-target/target-reasons.ts";
import type { ProbeResult } from "../schedule/probe-result.ts";

/** Everything from which the status is computed. */
export interface TargetStatusFacts {
  target: FencingTarget;
  /** Why the target is ambiguous; undefined if it is not. */
  conflict: Conflict | undefined;
  /**
   * Why the target names no node; undefined if the node exists, or if its cluster cannot be read.
   */
  nodeMissing: string | undefined;
  /** The system UUID that the node reports. */
  nodeSystemUUID: string | undefined;
  /**
   * The last probe of the present spec; undefined if there was none yet. `readyBoot`: the boot of the node before it,
   * if it was Ready.
   */
  probe: { result: ProbeResult; atMs: number; readyBoot?: string | undefined } | undefined;
  /** The outage of its node for which a health check requests a proof of Off; undefined if there is none. */
  outage: Outage | undefined;
}

/** A condition of a FencingTarget without its times. */
export type TargetCondition = Pick<Condition, "status" | "message"> & { reason: TargetReason };
