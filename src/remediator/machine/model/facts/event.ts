import type { BareMetalRemediationStatus } from "../../../../api/ironfence/bare-metal-remediation.ts";
import type { Lease, Node } from "../../../../api/kubernetes/core.ts";
import type { BmcEvidence } from "../../../../bmc/evidence/model.ts";
import type { BootOverride, PowerReading } from "../../../../bmc/interface/driver.ts";
import type { OnceAnswer } from "../../../../bmc/devices/send-once.ts";
import type { BmcErrorCode } from "../../../../bmc/interface/errors.ts";
import type { IdentityCheck } from "../../../../bmc/identity/identity-check.ts";
import type { WholeReading } from "../../../../bmc/devices/topology.ts";
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
 * what was stored. Plain data, which JSON holds, so that a log of events can be played again. Times are monotonic.
 * `observe` says what each means.
 */
export type RemediationEvent =
  | HostEvent
  | DeviceEvent
  | NodeEvent
  | MachineEvent
  /** A status was stored. `isNodeNamed`: it names a node that was not named before. */
  | { type: "StatusStored"; from: State; to: State; isNodeNamed: boolean }
  /** The kind of API call that has failed for longest; undefined if no call fails. */
  | { type: "ApiCallsObserved"; oldest: ApiFailure | undefined }
  /** A live read for a remediation whose outage may be over. */
  | { type: "RequestExamined"; isReady: boolean; isFoundUnhealthy: boolean; atMs: number }
  | { type: "ClusterChecked"; isGone: boolean; atMs: number }
  /** What holds power orders, by a live read. `failed`: part of it could not be read. */
  | { type: "HoldsRead"; found: Hold | undefined; failed: boolean; atMs: number };

type HostEvent =
  | { type: "HostClaimed"; targetUid: string }
  | { type: "HostClaimRefused"; by: HostOwner; undoing: boolean; atMs: number }
  | { type: "HostReleased" }
  /** The target is another one than before, or was edited. */
  | { type: "TargetChanged"; targetUid: string; isEdited: boolean }
  | { type: "RebootRecorded" }
  /** Whether another remediation waits for the host, by a live read. */
  | { type: "SuccessorChecked"; waiting: boolean; atMs: number };

type DeviceEvent =
  | { type: "DevicesOpened" }
  | { type: "DevicesClosed" }
  | { type: "DeviceAnswered" }
  /** @property wasOpen its credentials were read a while ago. @property jitter a number in [0, 1) for the backoff. */
  | { type: "DeviceFailed"; problem: DeviceProblem; wasOpen: boolean; jitter: number; atMs: number }
  | { type: "IdentityRead"; verdict: IdentityCheck; atMs: number }
  /** What the identity was verified for has failed. */
  | { type: "IdentityDiscarded" }
  | { type: "PowerRead"; reading: PowerReading; atMs: number }
  | { type: "PowerReadFailed"; atMs: number }
  /** The power of all devices was read; undefined if the reading failed. */
  | { type: "WholePowerRead"; reading: WholeReading | undefined; atMs: number }
  /** An order is about to go out: the identity is used up, and what was read before proves nothing. */
  | { type: "OrderStarted" }
  /** An order was answered or has failed. @property failure undefined if the devices accepted the order. */
  | { type: "OrderAnswered"; attemptId: string; action: PowerOrder; failure: OrderFailure | undefined; atMs: number }
  /** An order was not sent. @property isLate since the check of the identity had grown too old. */
  | { type: "OrderDropped"; attemptId: string; action: PowerOrder; isLate: boolean; atMs: number }
  | { type: "NmiAnswered"; answer: OnceAnswer }
  | { type: "AcCycleAnswered"; answer: OnceAnswer }
  | { type: "BootOverrideRead"; override: BootOverride }
  | { type: "EvidenceBegun" }
  /** Undefined if no device has a log. @property epochMs when it was read, on the wall clock. */
  | { type: "EvidenceRead"; evidence: BmcEvidence | undefined; epochMs: number };

/** How a power order has failed. */
export interface OrderFailure {
  code: BmcErrorCode | undefined;
  /** Some of the devices took it. */
  isPartlyTaken: boolean;
}

type NodeEvent =
  | {
      type: "NodeExamined";
      node: Node | undefined;
      dispute: string | undefined;
      members: readonly EtcdMember[];
      /** The node has our out-of-service taint. */
      bearsOurs: boolean;
    }
  | {
      type: "LeaseRead";
      lease: Lease | undefined;
      /** When it was read live; undefined for a watch. */
      readAtMs: number | undefined;
      contact: Contact;
      atMs: number;
      /** The version whose silence the remediation rests on, if the duration of the node is not over yet. */
      proven: LeaseVersion | undefined;
    }
  /** The crash kernel of the node runs, by a message that is not signed. */
  | { type: "KdumpReceived"; atMs: number }
  | { type: "Quarantined" }
  | { type: "QuarantineLifted"; isNewBoot: boolean }
  /** A patch that puts our taint on is being sent: it may take effect though its answer never comes. */
  | { type: "TaintSent"; atMs: number }
  /** @property earlierAtMs when an earlier patch was sent that has had no answer. */
  | { type: "TaintFailed"; message: string; isAnswered: boolean; earlierAtMs: number | undefined }
  | { type: "TaintAnswered"; attemptId: string; found: "Ours" | "Foreign" | "NoNode" }
  /** The live node has no out-of-service taint. */
  | { type: "NoTaintFound" }
  /** A patch that had no answer can take effect no more. */
  | { type: "TaintOvertaken" }
  | { type: "Untainted" }
  /** Another part of the agent took our taint off. */
  | { type: "TaintTakenOff" }
  | { type: "MarksSwapped" }
  | { type: "MarksCleared" }
  /** `pods`: how many had to leave when the release began. */
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
  /** Undefined if the Machine has to be read again. */
  | { type: "MachineExamined"; machine: MachineReport | undefined }
  | { type: "OwnerInformed" }
  | { type: "ReplacementChecked"; replacement: ReplacementReport }
  /** Undefined if the host has to be read again. */
  | { type: "InstallationExamined"; installed: InstalledHost | undefined }
  | { type: "ReplacementAdmission"; admission: { granted: true } | { granted: false; by: string }; atMs: number };
