import type { BareMetalRemediationStatus } from "../../../../api/ironfence/bare-metal-remediation.ts";
import type { Node } from "../../../../api/kubernetes/core.ts";
import type { BmcEvidence } from "../../../../bmc/evidence/model.ts";
import type { OnceAnswer } from "../../../../bmc/devices/send-once.ts";
import type { BootOverride, PowerState } from "../../../../bmc/interface/driver.ts";
import type { DeviceProblem } from "../decision/reasons.ts";
import type { InstalledHost, MachineReport, NodeMachine, ReplacementReport } from "./reprovision.ts";
import type { Hold } from "./hold.ts";
import type { ApiFailure } from "./api-failure.ts";
import type { HostOwner } from "./host-facts.ts";
import type { IdentityCheck } from "../../../../bmc/identity/identity-check.ts";
import type { Machine } from "../../../../api/cluster-api/cluster-api.ts";

/**
 * What this process has learned itself about one remediation. All times are monotonic. It starts empty, so everything
 * that matters is read again after a restart or a change of leader.
 */
export interface Observations {
  claim:
    | { owned: true; targetUid: string }
    | { owned: false; by: HostOwner; undoing: boolean; atMs: number }
    | undefined;
  /**
   * What the check at the start of this attempt found. `node` is the live Node, undefined if there is none. `dispute`
   * says why it is doubtful that the node runs on the host.
   */
  examined: { node: Node | undefined; dispute?: string | undefined } | undefined;
  /** The subject's Machine as last seen, live or by a watch of its UID. */
  subjectMachine: (MachineReading & { atMs: number }) | undefined;
  /** What a live read says of a remediation that may be about an outage that is over. */
  request: { isReady: boolean; isFoundUnhealthy: boolean; atMs: number } | undefined;
  /** Whether the subject's Cluster is gone, by a live read while nothing can be done in it. */
  cluster: { gone: boolean; atMs: number } | undefined;
  /** The members of etcd, read live with a node that may run one. */
  members: readonly EtcdMember[];
  /** Used up by the next power order. */
  identity: { check: IdentityCheck; atMs: number } | undefined;
  /** What holds power orders by a live read; one that `failed`, in part or wholly, holds power-offs. */
  hold: { found: Hold | undefined; failed: boolean; atMs: number } | undefined;
  lease: ObservedLease | undefined;
  /** The last order that this process sent. */
  order: SentOrder | undefined;
  /** Whether the NMI was sent that this process was to send. */
  nmi: OnceAnswer | undefined;
  /** The same of an AC cycle, and whether its BMC has given no answer since. */
  acCycle: (OnceAnswer & { isAway: boolean }) | undefined;
  /** When a fence_kdump message of the node was received last, after the NMI was ordered. It proves nothing. */
  kdump: { lastAtMs: number } | undefined;
  /**
   * Power-off orders of this process that may have an effect that was not seen yet. Of several orders, an Off that is
   * read shows the effect of one. The others may still be carried out, even after an On.
   */
  unseenOffs: { count: number; lastAtMs: number } | undefined;
  power: ObservedPower;
  /** The last failure of the devices, until a call succeeds. */
  device: (DeviceProblem & { failures: number; retryAtMs: number }) | undefined;
  /** The kind of call to the API that has failed for longest, until one of its kind succeeds or the state changes. */
  kube: ApiFailure | undefined;
  /** Whose out-of-service taint the node had after our patch, and for which attempt. */
  taint: { attemptId: string; found: "Ours" | "Foreign" | "NoNode" } | undefined;
  /** When a patch was sent that puts our taint on and has had no answer: it may still be on its way. */
  taintUnansweredAtMs: number | undefined;
  /** Why our taint could not be put on, when that was last tried. */
  taintFailure: string | undefined;
  quarantined: boolean;
  /**
   * Whether this process knows that our out-of-service taint is off: it took it off, or saw none, and put none on
   * since.
   */
  taintCleared: boolean;
  /** Whether all our marks were, since one was last put on. */
  marksCleared: boolean;
  /** Whether the out-of-service taint has made way for the quarantine since it was last put on. */
  swapped: boolean;
  /** Whether pods were deleted since they were last counted. */
  released: boolean;
  /** The most pods that had to leave at once in this attempt, as far as this process knows. */
  podsToRelease: number;
  /** `isReported`: a status was stored since these counts were found, whether or not the API server has kept them. */
  drain: { pods: number; attachments: number; atMs: number; checks: number; isReported: boolean } | undefined;
  override: BootOverride | undefined;
  backup: { status: NonNullable<BareMetalRemediationStatus["backup"]>; resourceVersion: string } | undefined;
  /** The node as deleted by us is gone. */
  nodeDeleted: boolean;
  rebootRecorded: boolean;
  /** UID of the new Node that has got its labels back. */
  restoredUid: string | undefined;
  quarantineLifted: boolean;
  devicesClosed: boolean;
  /** Whether the Machine of this remediation may be replaced now; undefined if that was not asked yet. */
  replacementAdmission: { granted: true } | { granted: false; by: string; atMs: number } | undefined;
  /** What the live node says of its Machine. */
  nodeMachine: NodeMachine | undefined;
  /** Live reads of what a reprovision acts on. */
  machine: MachineReport | undefined;
  installed: InstalledHost | undefined;
  replacement: ReplacementReport | undefined;
  /** The Machine's owner was informed that the decision is its own. */
  handedToOwner: boolean;
  /** A live read of who waits for the host. */
  successor: { waiting: boolean; atMs: number } | undefined;
  hostReleased: boolean;
  /**
   * What the BMC shows of why the host died: undefined before it is read. It is read once by a process, and stays for
   * all attempts.
   */
  evidence: "Reading" | { found: BmcEvidence | undefined; readAtMs: number } | undefined;
}

export interface ObservedLease {
  /** UID of the lease; `none` if there is no lease. */
  uid: string;
  /** Resource version in which its last renewal was read; empty if there is no lease. */
  resourceVersion: string;
  /** Wall-clock time of the node's own last renewal, by the node's clock. */
  renewTimeMs: number | undefined;
  durationMs: number;
  /** When a renewal was last seen to happen by this process. */
  renewedAtMs: number | undefined;
  /** When that was first seen. */
  firstRenewedAtMs?: number;
  /** When it was last written, at the latest, by the API server's clock; undefined if that is not known. */
  writtenAtMs: number | undefined;
  /** When the lease was last read live. */
  readAtMs: number;
  /** Since when the API server had answered without an outage, at the last check. */
  answeringSinceMs: number;
}

export type PowerOrder = "ForceOff" | "On";

export interface SentOrder {
  attemptId: string;
  action: PowerOrder;
  /**
   * Uncertain: the answer was lost, so the order may have taken effect. Rejected: the device refused the order, and it
   * may be sent again. `hadNoEffect` says whether a rejected order can have taken effect nevertheless.
   */
  outcome: "Acknowledged" | "Uncertain" | "Rejected";
  /** Why it was rejected; kept until a further order is sent, whatever other calls to the device say meanwhile. */
  problem?: DeviceProblem;
  /** It was not sent: API calls took so long that the check of the identity had grown too old. */
  isLate?: true;
  /** When an earlier order of this action was sent that may have taken effect. `outcome` is that of the last order. */
  earlierEffectAtMs?: number;
  atMs: number;
}

export interface ObservedPower {
  /**
   * As a device or a host reports it (`PowerReading`, `WholeReading`). `runs` is known if all devices were read
   * (`readWhole`): then `On` is all of them, and `Off` is any of them.
   */
  last:
    | {
        state: PowerState;
        raw: string;
        atMs: number;
        runs?: boolean;
        supplied?: true;
        bySupply?: true;
        failed?: "Same" | "Other";
        bmcUpMs?: number;
      }
    | undefined;
  /** Off readings in a row since the last power-off order of this process, or since it started. */
  offReads: number;
  /** When the host was last read Off. */
  offAtMs: number | undefined;
  /** When the second Off reading in a row was made. */
  provenAtMs: number | undefined;
}

/** Whether the host is this remediation's as far as this process knows: it took it, and has not given it up since. */
export function ownsHost({ claim, hostReleased }: Pick<Observations, "claim" | "hostReleased">): boolean {
  return claim?.owned === true && !hostReleased;
}

/** A live Machine, or why it shows nothing. */
export type MachineReading =
  | { found: true; machine: Machine }
  | { found: false; reason: "MachineNotFound" | "MachineUnreadable" | "SubjectMismatch"; message: string };

/** A node that runs a member of etcd, and whether that member can be counted on. */
export interface EtcdMember {
  node: string;
  up: boolean;
  /** Whether etcd runs outside the cluster: the node then serves the API alone, and another one that is up suffices. */
  external?: boolean;
  /** Whether its Node was deleted, which does not remove the member from etcd. */
  deleted?: boolean;
}
