import type { BareMetalRemediationStatus } from "../../../../api/ironfence/bare-metal-remediation.ts";
import type { Lease, Node } from "../../../../api/kubernetes/core.ts";
import type { BmcEvidence } from "../../../../bmc/evidence/model.ts";
import type { BootOverride, PowerReading } from "../../../../bmc/interface/driver.ts";
import type { OnceAnswer } from "../../../../bmc/topology/send-once.ts";
import type { BmcErrorCode } from "../../../../bmc/interface/errors.ts";
import type { IdentityCheck } from "../../../../bmc/identity/identity-check.ts";
import type { WholeReading } from "../../../../bmc/topology/whole-power.ts";
import type { Contact } from "../../../../kube/contact.ts";
import type { ApiFailure } from "./api-failure.ts";
import type { Hold } from "./hold.ts";
import type { HostOwner } from "./host-facts.ts";
import type { EtcdMember, MachineReading, PowerOrder } from "./observations.ts";
import type { DeviceProblem } from "../decision/reasons.ts";
import type { InstalledHost, MachineReport, NodeMachine, ReplacementReport } from "./reprovision.ts";
import type { State } from "../decision/state.ts";
import type { LeaseVersion } from "../decision/strategy.ts";

/**
 * One thing that this process has learned about a remediation: what an effect found or did, what a watch showed, or
 * what was stored. An event is plain data that JSON can represent, so a log of events can be replayed. Times are
 * monotonic. `observe` defines what each event changes.
 */
export type RemediationEvent =
  | HostEvent
  | DeviceEvent
  | NodeEvent
  | MachineEvent
  /** A status was stored. `isNodeNamed`: the status names a node for the first time. */
  | { type: "StatusStored"; from: State; to: State; isNodeNamed: boolean }
  /** The kind of API call that has failed for longest; undefined if no call fails. */
  | { type: "ApiCallsObserved"; oldest: ApiFailure | undefined }
  /** A live read for a remediation whose outage may be over. */
  | { type: "RequestExamined"; isReady: boolean; isFoundUnhealthy: boolean; atMs: number }
  | { type: "ClusterChecked"; isGone: boolean; atMs: number }
  /** A live read of what holds power orders. `failed`: part of it could not be read. */
  | { type: "HoldsRead"; found: Hold | undefined; failed: boolean; atMs: number };

type HostEvent =
  | { type: "HostClaimed"; targetUid: string }
  | { type: "HostClaimRefused"; by: HostOwner; undoing: boolean; atMs: number }
  | { type: "HostReleased" }
  /** The target was replaced by another one, or was edited. */
  | { type: "TargetChanged"; targetUid: string; isEdited: boolean }
  | { type: "RebootRecorded" }
  /** Whether another remediation waits for the host, by a live read. */
  | { type: "SuccessorChecked"; waiting: boolean; atMs: number };

type DeviceEvent =
  | { type: "DevicesOpened" }
  | { type: "DevicesClosed" }
  | { type: "DeviceAnswered" }
  /**
   * @property wasOpen the device was already open, so its credentials may have changed since they were read.
   * @property jitter a number in [0, 1) for the backoff.
   */
  | { type: "DeviceFailed"; problem: DeviceProblem; wasOpen: boolean; jitter: number; atMs: number }
  | { type: "IdentityRead"; verdict: IdentityCheck; atMs: number }
  /** The call that the identity was verified for has failed. */
  | { type: "IdentityDiscarded" }
  | { type: "PowerRead"; reading: PowerReading; atMs: number }
  | { type: "PowerReadFailed"; atMs: number }
  /** The power of all devices was read; undefined if the reading failed. */
  | { type: "WholePowerRead"; reading: WholeReading | undefined; atMs: number }
  /** An order is about to be sent: it uses up the identity check, and earlier readings prove nothing about it. */
  | { type: "OrderStarted" }
  /** An order was answered or has failed. @property failure undefined if the devices accepted the order. */
  | { type: "OrderAnswered"; attemptId: string; action: PowerOrder; failure: OrderFailure | undefined; atMs: number }
  /** An order was not sent. @property isLate whether that is because the identity check had become too old. */
  | { type: "OrderDropped"; attemptId: string; action: PowerOrder; isLate: boolean; atMs: number }
  | { type: "NmiAnswered"; answer: OnceAnswer }
  | { type: "AcCycleAnswered"; answer: OnceAnswer }
  | { type: "BootOverrideRead"; override: BootOverride }
  | { type: "EvidenceBegun" }
  /** `evidence` is undefined if no device has a log. @property epochMs when it was read, by the wall clock. */
  | { type: "EvidenceRead"; evidence: BmcEvidence | undefined; epochMs: number };

/** How a power order has failed. */
export interface OrderFailure {
  code: BmcErrorCode | undefined;
  /** Some of the devices accepted the order. */
  isPartlyTaken: boolean;
}

type NodeEvent =
  | {
      type: "NodeExamined";
      node: Node | undefined;
      dispute: string | undefined;
      members: readonly EtcdMember[];
      /** The node has our out-of-service taint. */
      hasOurs: boolean;
    }
  | {
      type: "LeaseRead";
      lease: Lease | undefined;
      /** When it was read live; undefined for a watch. */
      readAtMs: number | undefined;
      contact: Contact;
      atMs: number;
      /** The version that was silent when the remediation began early; undefined if it did not. */
      proven: LeaseVersion | undefined;
    }
  /** A fence_kdump message says that the crash kernel of the node runs. The message is not authenticated. */
  | { type: "KdumpReceived"; atMs: number }
  | { type: "Quarantined" }
  | { type: "QuarantineLifted"; isNewBoot: boolean }
  /** A patch that puts our taint on is being sent: it may take effect even if no answer arrives. */
  | { type: "TaintSent"; atMs: number }
  /** @property earlierAtMs when an earlier patch was sent that is still unanswered; undefined if there is none. */
  | { type: "TaintFailed"; message: string; isAnswered: boolean; earlierAtMs: number | undefined }
  | { type: "TaintAnswered"; attemptId: string; found: "Ours" | "Foreign" | "NoNode" }
  /** The live node has no out-of-service taint. */
  | { type: "NoTaintFound" }
  /** A patch that was never answered can no longer take effect. */
  | { type: "TaintOvertaken" }
  | { type: "Untainted" }
  /** Another part of the agent removed our taint. */
  | { type: "TaintTakenOff" }
  | { type: "MarksSwapped" }
  | { type: "MarksCleared" }
  /** `pods`: how many pods had to leave when this release of pods began. */
  | { type: "PodsReleased"; pods: number }
  | { type: "DrainChecked"; pods: number; attachments: number; atMs: number }
  /** The watch shows that a pod of the node is gone. */
  | { type: "PodGone" }
  | {
      type: "NodeSaved";
      backup: NonNullable<BareMetalRemediationStatus["backup"]>;
      resourceVersion: string;
    }
  /** The node has changed since it was saved. */
  | { type: "SavedNodeOutdated" }
  | { type: "NodeDeleted" }
  | { type: "NodeRestored"; uid: string | undefined };

type MachineEvent =
  | { type: "MachineRead"; machine: MachineReading; atMs: number }
  | { type: "NodeMachineRead"; machine: NodeMachine }
  /** `machine` is undefined if the Machine has to be read again. */
  | { type: "MachineExamined"; machine: MachineReport | undefined }
  | { type: "OwnerInformed" }
  | { type: "ReplacementChecked"; replacement: ReplacementReport }
  /** `installed` is undefined if the host has to be read again. */
  | { type: "InstallationExamined"; installed: InstalledHost | undefined }
  | { type: "ReplacementAdmission"; admission: { granted: true } | { granted: false; by: string }; atMs: number };
