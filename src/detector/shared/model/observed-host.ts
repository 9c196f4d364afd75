import type { EarlyOffProof, OffProof } from "../../../api/ironfence/fencing-target.ts";
import type { Condition } from "../../../api/schema/meta.ts";
import type { KubeObject } from "../../../kube/resource.ts";

/** The fields of a FencingTarget that the detector uses. */
export interface ObservedTarget extends KubeObject {
  nodeName: string;
  maintenance: boolean;
  /** Whether a remediation owns the host, and may send power orders to it. */
  isOwned: boolean;
  /** Whether its status describes its current spec. */
  isObserved: boolean;
  powerState: string | undefined;
  ready: Condition | undefined;
  identityVerified: Condition | undefined;
  offProof: OffProof | undefined;
  /** The off proof that was made while the node was still Ready. */
  earlyOffProof?: EarlyOffProof | undefined;
}

/**
 * A FencingTarget, and how long ago its proof was observed to arrive; undefined if the proof existed before the watch
 * began.
 */
export interface AgedTarget {
  target: ObservedTarget;
  proofArrivedAgoMs: number | undefined;
  /** The same for the early proof. */
  earlyProofArrivedAgoMs?: number | undefined;
}

/** What is known about the host of a node. */
export interface ObservedHost {
  /** Why nothing is known. Text for the operator. */
  problem: string | undefined;
  /** Why no power order may be sent to any host. Text for the operator. */
  stopped: string | undefined;
  /** The FencingTargets that name the node. */
  targets: readonly AgedTarget[];
}
