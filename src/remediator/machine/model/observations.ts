import type { BareMetalRemediationStatus } from "../../../api/bare-metal-remediation.ts";
import type { Node } from "../../../api/core.ts";
import type { BootOverride, PowerState } from "../../../bmc/driver.ts";
import type { DeviceProblem } from "./reasons.ts";
import type { InstalledHost, MachineLook, NodeMachine, ReplacementLook } from "./reprovision.ts";
import type { Stop } from "./hold.ts";
import type { ApiFailure } from "./api-failure.ts";
import type { HostOwner } from "./host-facts.ts";
import type { IdentityVerdict } from "../../../bmc/topology.ts";
import type { Machine } from "../../../api/cluster-api.ts";

/**
 * What this process has found out by itself about one remediation. All times are monotonic. It starts empty, so after a
 * restart or a change of leader everything that matters is looked at anew.
 */
export interface Seen {
  claim:
    | { owned: true; targetUid: string }
    | { owned: false; by: HostOwner; undoing: boolean; atMs: number }
    | undefined;
  /**
   * The live node at the start of this attempt, `undefined` inside where there is none; and why it is not to be believed to run on
   * the host.
   */
  examined: { node: Node | undefined; dispute?: string | undefined } | undefined;
  /** The subject's Machine as last seen, live or by a watch of its UID. */
  subjectMachine: (MachineReading & { atMs: number }) | undefined;
  /** What a live look says of a remediation that may be about an outage that is over. */
  request: { isReady: boolean; isListed: boolean; atMs: number } | undefined;
  /** Whether the subject's Cluster is gone, by a live look while nothing can be done in it. */
  cluster: { gone: boolean; atMs: number } | undefined;
  /** The members of etcd, looked at live with a node that may run one. */
  members: readonly EtcdMember[];
  /** Used up by the next power order. */
  identity: { verdict: IdentityVerdict; atMs: number } | undefined;
  /** What holds power orders by a live look; one that `failed`, in part or wholly, holds power-offs. */
  stop: { found: Stop | undefined; failed: boolean; atMs: number } | undefined;
  lease: ObservedLease | undefined;
  /** The last order that this process sent. */
  order: SentOrder | undefined;
  power: ObservedPower;
  /** The last failure of the devices, until a call succeeds. */
  device: (DeviceProblem & { failures: number; retryAtMs: number }) | undefined;
  /** The kind of call to the API that has failed for longest, until one of its kind succeeds or the state changes. */
  kube: ApiFailure | undefined;
  /** Whose out-of-service taint the node bore after our patch, and for which attempt. */
  taint: { attemptId: string; found: "Ours" | "Foreign" | "NoNode" } | undefined;
  /** When a patch was sent that puts our taint on and has had no answer: it may still be on its way. */
  taintUnansweredAtMs: number | undefined;
  /** Why our taint could not be put on, when that was last tried. */
  taintFailure: string | undefined;
  quarantined: boolean;
  /** Whether this process knows that our out-of-service taint is off: it took it off, or saw none, and put none on since. */
  taintCleared: boolean;
  /** Whether all our marks were, since one was last put on. */
  marksCleared: boolean;
  /** Whether the out-of-service taint has made way for the quarantine since it was last put on. */
  swapped: boolean;
  /** Whether pods were deleted since they were last counted. */
  released: boolean;
  drain: { pods: number; attachments: number; atMs: number; checks: number } | undefined;
  override: BootOverride | undefined;
  backup: { status: NonNullable<BareMetalRemediationStatus["backup"]>; resourceVersion: string } | undefined;
  /** The node as deleted by us is gone. */
  nodeDeleted: boolean;
  rebootRecorded: boolean;
  /** UID of the new Node that has got its labels back. */
  restoredUid: string | undefined;
  quarantineLifted: boolean;
  devicesClosed: boolean;
  /** Whether it is this remediation's turn to have its Machine replaced; undefined where it has not asked. */
  replaceTurn: { granted: true } | { granted: false; by: string; atMs: number } | undefined;
  /** What the live node says of its Machine. */
  nodeMachine: NodeMachine | undefined;
  /** Live looks at what a reprovision acts on. */
  machine: MachineLook | undefined;
  installed: InstalledHost | undefined;
  replacement: ReplacementLook | undefined;
  /** The Machine's owner was told that the decision is its own. */
  handedToOwner: boolean;
  /** A live look at who waits for the host. */
  successor: { waiting: boolean; atMs: number } | undefined;
  hostReleased: boolean;
}

export interface ObservedLease {
  /** UID of the lease; `none` where there is none. */
  uid: string;
  /** Resource version in which its last renewal was seen; empty where there is no lease. */
  resourceVersion: string;
  /** Wall-clock time of the node's own last renewal, by the node's clock. */
  renewTimeMs: number | undefined;
  durationMs: number;
  /** When a renewal was last seen to happen by this process. */
  renewedAtMs: number | undefined;
  /** When it was last written, at the latest, by the API server's clock; undefined if that is not known. */
  writtenAtMs: number | undefined;
  /** When the lease was last read live. */
  readAtMs: number;
  /** Since when the API server had answered without an outage, at the last look. */
  answeringSinceMs: number;
}

export type PowerOrder = "ForceOff" | "On";

export interface SentOrder {
  attemptId: string;
  action: PowerOrder;
  /**
   * Uncertain: the answer was lost, so it may have taken effect. Rejected: it was not taken, and may be sent again; `hadNoEffect`
   * tells whether it can have been heard.
   */
  outcome: "Acknowledged" | "Uncertain" | "Rejected";
  /** Why it was rejected; kept until a further order is sent, whatever other calls to the device say meanwhile. */
  problem?: DeviceProblem;
  /** It was not sent: API calls took so long that the check of the identity had grown too old. */
  isLate?: true;
  /** When an order of this action before it went out that may have taken effect, of which `outcome` says nothing. */
  heardBeforeMs?: number;
  atMs: number;
}

export interface ObservedPower {
  /** `runs` is told where all devices were read (`readWhole`): then `On` is all of them, and `Off` is any of them. */
  last: { state: PowerState; raw: string; atMs: number; runs?: boolean } | undefined;
  /** Off readings in a row since the last power-off order of this process, or since it started. */
  offReads: number;
  /** When the host was last read Off. */
  offAtMs: number | undefined;
  /** When the second Off reading in a row was made. */
  provenAtMs: number | undefined;
}

/** Whether the host is this remediation's as far as this process knows: it took it, and has not given it up since. */
export function ownsHost({ claim, hostReleased }: Pick<Seen, "claim" | "hostReleased">): boolean {
  return claim?.owned === true && !hostReleased;
}

/** A live Machine, or why it tells nothing. */
export type MachineReading =
  | { found: true; machine: Machine }
  | { found: false; reason: "MachineNotFound" | "MachineUnreadable" | "SubjectMismatch"; message: string };

/** A node that runs a member of etcd, and whether that member can be counted on. */
export interface EtcdMember {
  node: string;
  up: boolean;
  /** Whether etcd runs outside the cluster: the node then serves the API alone, and another one that is up suffices. */
  external?: boolean;
}
