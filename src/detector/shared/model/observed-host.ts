import type { OffProof } from "../../../api/fencing-target.ts";
import type { Condition } from "../../../api/meta.ts";
import type { KubeObject } from "../../../kube/resource.ts";

/** What the detector reads of a FencingTarget. */
export interface ObservedTarget extends KubeObject {
  nodeName: string;
  maintenance: boolean;
  /** Whether a remediation may be switching the host. */
  isOwned: boolean;
  /** Whether its status is about its present spec. */
  isObserved: boolean;
  powerState: string | undefined;
  ready: Condition | undefined;
  identityVerified: Condition | undefined;
  offProof: OffProof | undefined;
}

/** A FencingTarget, and how long ago its proof was observed to arrive; undefined if the proof was there before the watch began. */
export interface AgedTarget {
  target: ObservedTarget;
  proofSeenAgoMs: number | undefined;
}

/** What can be seen of a node's host. */
export interface ObservedHost {
  /** Why nothing can be known, in words. */
  problem: string | undefined;
  /** Why no power order may be sent to any host, in words. */
  stopped: string | undefined;
  /** Those that name the node. */
  targets: readonly AgedTarget[];
}
