import type { BareMetalRemediationStatus } from "../../../../api/ironfence/bare-metal-remediation.ts";
import type { Node } from "../../../../api/kubernetes/core.ts";
import type { BmcEvidence } from "../../../../bmc/evidence/model.ts";
import type { OnceAnswer } from "../../../../bmc/topology/send-once.ts";
import type { BootOverride, PowerState } from "../../../../bmc/interface/driver.ts";
import type { DeviceProblem } from "../decision/reasons.ts";
import type { InstalledHost, MachineReport, NodeMachine, ReplacementReport } from "./reprovision.ts";
import type { Hold } from "./hold.ts";
import type { ApiFailure } from "./api-failure.ts";
import type { HostOwner } from "./host-facts.ts";
import type { IdentityCheck } from "../../../../bmc/identity/identity-check.ts";
import type { Machine } from "../../../../api/cluster-api/cluster-api.ts";

/**
 * What this process itself has learned about one remediation. A process starts without observations, so after a restart
 * or a change of leader it reads everything again. All times are monotonic, unless a comment says otherwise.
 */
export interface Observations {
  claim:
    | { owned: true; targetUid: string }
    | { owned: false; by: HostOwner; undoing: boolean; atMs: number }
    | undefined;
  /**
   * The last live read of the node in this attempt. `node` is undefined if there is none. `dispute` says why it is
   * doubtful that the node runs on the host.
   */
  examined: { node: Node | undefined; dispute?: string | undefined } | undefined;
  /** The subject's Machine as last read live, or as the watch of its UID last showed it. */
  subjectMachine: (MachineReading & { atMs: number }) | undefined;
  /** A live read of whether the outage that the remediation is about may be over. */
  request: { isReady: boolean; isFoundUnhealthy: boolean; atMs: number } | undefined;
  /** Whether the subject's Cluster is gone. It is read live while the agent cannot work with that cluster. */
  cluster: { gone: boolean; atMs: number } | undefined;
  /** The members of etcd, read live together with the node; empty if the node cannot run one. */
  members: readonly EtcdMember[];
  /** The last identity check. The next power order uses it up. */
  identity: { check: IdentityCheck; atMs: number } | undefined;
  /** A live read of what holds power orders. A read that `failed`, even in part, holds power-offs. */
  hold: { found: Hold | undefined; failed: boolean; atMs: number } | undefined;
  lease: ObservedLease | undefined;
  /** The last order that this process sent or dropped. */
  order: SentOrder | undefined;
  /** How this process's NMI ended; undefined if this process has not tried to send one. */
  nmi: OnceAnswer | undefined;
  /** The same for an AC cycle. `isAway`: the BMC has failed to answer since. */
  acCycle: (OnceAnswer & { isAway: boolean }) | undefined;
  /** When the last fence_kdump message of the node was received, after the NMI was ordered. It proves nothing. */
  kdump: { lastAtMs: number } | undefined;
  /**
   * Power-off orders of this process that may still take effect. If there are several, a reading of Off shows the
   * effect of one of them. The BMC may still carry out the others, even after an On.
   */
  unseenOffs: { count: number; lastAtMs: number } | undefined;
  power: ObservedPower;
  /** The last failure of the devices, until a call succeeds. */
  device: (DeviceProblem & { failures: number; retryAtMs: number }) | undefined;
  /** The kind of API call that has failed for longest, until such a call succeeds or the state changes. */
  kube: ApiFailure | undefined;
  /** Whose out-of-service taint the node had after our patch for the attempt. */
  taint: { attemptId: string; found: "Ours" | "Foreign" | "NoNode" } | undefined;
  /** When a patch was sent that puts our taint on and is still unanswered: it may yet take effect. */
  taintUnansweredAtMs: number | undefined;
  /** Why the last try to put our taint on failed. */
  taintFailure: string | undefined;
  quarantined: boolean;
  /**
   * Whether this process knows that our out-of-service taint is off: the process removed it or found none, and has put
   * none on since.
   */
  taintCleared: boolean;
  /** Whether this process has removed all our marks since it last put one on. */
  marksCleared: boolean;
  /** Whether the quarantine has replaced the out-of-service taint since that was last put on. */
  swapped: boolean;
  /** Whether pods were deleted since they were last counted. */
  released: boolean;
  /** The largest number of pods that had to leave when a release began, as far as this process knows. */
  podsToRelease: number;
  /** `isReported`: a status was stored since these counts were found. The API server may have dropped the counts. */
  drain: { pods: number; attachments: number; atMs: number; checks: number; isReported: boolean } | undefined;
  override: BootOverride | undefined;
  backup: { status: NonNullable<BareMetalRemediationStatus["backup"]>; resourceVersion: string } | undefined;
  /** The Node that this process deleted is gone. */
  nodeDeleted: boolean;
  rebootRecorded: boolean;
  /** UID of the new Node whose labels, annotations and taints were restored. */
  restoredUid: string | undefined;
  quarantineLifted: boolean;
  devicesClosed: boolean;
  /** Whether the Machine of this remediation may be replaced now; undefined if the agent has not asked yet. */
  replacementAdmission: { granted: true } | { granted: false; by: string; atMs: number } | undefined;
  /** The Machine that the live node names. */
  nodeMachine: NodeMachine | undefined;
  /** Live reads of what a reprovision acts on. */
  machine: MachineReport | undefined;
  installed: InstalledHost | undefined;
  replacement: ReplacementReport | undefined;
  /** The Machine's owner was informed that it decides about the Machine. */
  handedToOwner: boolean;
  /** A live read of whether another remediation waits for the host. */
  successor: { waiting: boolean; atMs: number } | undefined;
  hostReleased: boolean;
  /**
   * What the BMC shows about why the host died; undefined before it is read. A process reads it once for all attempts.
   */
  evidence: "Reading" | { found: BmcEvidence | undefined; readAtMs: number } | undefined;
}

export interface ObservedLease {
  /** UID of the lease; `none` if there is no lease. */
  uid: string;
  /** Resource version of the last renewal; empty if there is no lease. */
  resourceVersion: string;
  /** `spec.renewTime` of the last renewal, by the node's wall clock. */
  renewTimeMs: number | undefined;
  durationMs: number;
  /** When this process last saw the lease renewed; undefined if it has seen no renewal. */
  renewedAtMs: number | undefined;
  /** When this process first saw the lease renewed. */
  firstRenewedAtMs?: number;
  /** The latest time at which the lease may have been written; undefined if it has no stamp of the API server. */
  writtenAtMs: number | undefined;
  /** When the lease was last read live. */
  readAtMs: number;
  /** Since when the API server has answered without an outage, as known at the last read. */
  answeringSinceMs: number;
}

export type PowerOrder = "ForceOff" | "On";

export interface SentOrder {
  attemptId: string;
  action: PowerOrder;
  /**
   * Uncertain: the answer was lost, so the order may have taken effect. Rejected: the device refused the order, and it
   * may be sent again. A rejected order may have taken effect nevertheless: see `hadNoEffect`.
   */
  outcome: "Acknowledged" | "Uncertain" | "Rejected";
  /** Why it was rejected. Kept until the next order, even if other calls to the device succeed or fail differently. */
  problem?: DeviceProblem;
  /** The order was not sent: API calls took so long that the identity check had become too old. */
  isLate?: true;
  /** When an earlier order of this action was sent that may have taken effect. `outcome` is only about the last one. */
  earlierEffectAtMs?: number;
  atMs: number;
}

export interface ObservedPower {
  /**
   * The last reading (`PowerReading`, `WholeReading`). `runs` is set if all devices were read (`readWhole`): then `On`
   * means that all of them read On, and `Off` that any of them reads Off.
   */
  last:
    | {
        state: PowerState;
        raw: string;
        atMs: number;
        runs?: boolean;
        supplied?: true;
        bySupply?: true;
        unsupplied?: true;
        failed?: "Same" | "Other";
        bmcUpMs?: number;
      }
    | undefined;
  /** Off readings in a row since the last power-off order of this process, or since the process started. */
  offReads: number;
  /** When the host was last read Off. */
  offAtMs: number | undefined;
  /** When the second Off reading in a row was made. */
  provenAtMs: number | undefined;
}

/** Whether this process has claimed the host for the remediation and has not released it since. */
export function ownsHost({ claim, hostReleased }: Pick<Observations, "claim" | "hostReleased">): boolean {
  return claim?.owned === true && !hostReleased;
}

/** A live Machine, or why it shows nothing. */
export type MachineReading =
  | { found: true; machine: Machine }
  | { found: false; reason: "MachineNotFound" | "MachineUnreadable" | "SubjectMismatch"; message: string };

/** A node that runs a member of etcd. `up`: the member counts towards quorum. */
export interface EtcdMember {
  node: string;
  up: boolean;
  /** Whether etcd runs outside the cluster. Then the node only serves the API, and one other node is enough. */
  external?: boolean;
  /** Whether the Node was deleted. That does not remove the member from etcd. */
  deleted?: boolean;
}
