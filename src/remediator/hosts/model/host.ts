import type { TargetOutcome } from "../../../api/ironfence/fencing-target.ts";
import type { BootOverride, PowerReading } from "../../../bmc/interface/driver.ts";
import type { BmcEvidence } from "../../../bmc/evidence/model.ts";
import type { IdentityCheck } from "../../../bmc/identity/identity-check.ts";
import type { OnOptions } from "../../../bmc/topology/topology.ts";
import type { WholeReading } from "../../../bmc/topology/whole-power.ts";
import type { Node } from "../../../api/kubernetes/core.ts";
import type { Subject } from "../../../nodes/subject.ts";
import type { Obstacle, OnceAnswer } from "../../../bmc/topology/send-once.ts";
import type { HostOwner, HostRefusalReason, LastReboot, LookupFailure } from "../../machine/model/facts/host-facts.ts";

// What the state machine of a remediation needs of a host. The folders `fencing-target` and `bare-metal-host` provide
// it.

/** Finds the host of a subject, only from watched objects: no call leaves the process. */
export interface HostDirectory {
  find(subject: Subject): { found: true; host: FencedHost } | LookupFailure;
  /** Finds the host that a remediation has recorded in its status, even if its node is gone. */
  byUid(uid: string): FencedHost | undefined;
}

/** One host that can be fenced: a snapshot of the fields of its target, with calls that act on the live object. */
export interface FencedHost {
  readonly ref: { kind: string; namespace: string; name: string; uid: string };
  /** Changes with every edit of the target, including its devices. */
  readonly version: string;
  /** Why the host now belongs to another subject; undefined if nothing shows that. */
  mismatchWith(subject: Subject): string | undefined;
  /**
   * Why ironfence may no longer power the host, although its target says so: another operator now powers it as well.
   * Undefined if the watched objects show no other operator.
   *
   * @param subject the subject of the host: its Machine may be the only way to find the other operator.
   */
  takenBack(subject: Subject): string | undefined;
  /**
   * The same by a live read, right before an order. A read that fails holds a power-off. It does not hold an On: then
   * the watched objects decide.
   *
   * @throws HostRefusal if ironfence may no longer power the host.
   */
  ensureOurs(subject: Subject, action: "ForceOff" | "On", signal: AbortSignal): Promise<void>;
  /** Whether the host is in use, according to its own object. A host that is not in use may be on. */
  readonly isInUse: boolean;
  /**
   * Whether the host is powered by a mark on its own object instead of an order to a BMC. ironfence may always remove
   * that mark.
   */
  readonly isPoweredByMark: boolean;
  /** The identity of the host in its target, from the spec or pinned; undefined if the target has none. */
  readonly identity: { systemUUID?: string; serialNumber?: string } | undefined;
  /** Why no power order may be sent because of maintenance; undefined without maintenance. */
  readonly maintenance: string | undefined;
  /** The same by a live read. @throws KubeError, NotFound if the target was deleted, or deleted and created again. */
  readMaintenance(signal: AbortSignal): Promise<string | undefined>;
  readonly owner: HostOwner | undefined;
  /** The last reboot that was proven off, for `requireReboot`. */
  readonly lastReboot: LastReboot | undefined;
  /**
   * Why it is doubtful that the node of the subject runs on this host. Called right before a power-off. Undefined if
   * nothing contradicts it.
   *
   * @param node the live Node; undefined for a Machine that has no node yet.
   * @param nodes of the same cluster.
   */
  disputeOf(
    subject: Subject,
    node: Node | undefined,
    nodes: Iterable<Node>,
    signal: AbortSignal,
  ): Promise<string | undefined>;
  /** Claims the host by compare-and-swap on the live object. A claim by the present owner succeeds. */
  claim(owner: HostOwner, signal: AbortSignal): Promise<{ owned: true } | { owned: false; by: HostOwner }>;
  /**
   * Releases the claim if this owner has it, and removes what keeps the host off, unless another remediation takes the
   * host over `asItIs`. A target keeps the `outcome`; a BareMetalHost has no field for it.
   */
  release(owner: HostOwner, options: HostRelease, signal: AbortSignal): Promise<void>;
  /** Records a reboot that was proven off. */
  recordReboot(reboot: LastReboot, signal: AbortSignal): Promise<void>;
  /**
   * Opens the devices with their credentials, read live.
   *
   * @param owner the remediation that gives the orders; undefined for a command, and for a caller that only reads.
   * @throws TargetError if the configuration of the target does not allow it (missing Secret or key, bad address),
   * HostRefusal if the state of the host does not allow it.
   */
  open(owner: HostOwner | undefined, signal: AbortSignal): Promise<HostPower>;
}

/** The checks before a power-off become outdated while API calls are made between the last of them and the order. */
export interface OrderCheck {
  /** The time in which the order must be sent, in milliseconds. */
  leftMs(): number;
  /** Called right before the order. @throws OrderNotDueError if it may no longer be sent. */
  ensureDue(): void;
  /** Why no further level of the host may be ordered off now. */
  obstacle: Obstacle;
}

/** A power order that was not sent, because its checks were outdated or because it may no longer be sent. */
export class OrderNotDueError extends Error {
  override readonly name = "OrderNotDueError";
  /** Whether the order was too late. Otherwise it was held. */
  readonly isLate: boolean;
  constructor(message: string, isLate: boolean, options?: { cause?: unknown }) {
    super(message, options);
    this.isLate = isLate;
  }
}

/** How a host is released. */
export interface HostRelease {
  asItIs: boolean;
  /** The verdict of its remediation; undefined if it is not over, or its object is gone. */
  outcome: TargetOutcome | undefined;
}

/**
 * The open devices of one host, as one. Levels are tried in order, and all devices of the level in use must agree on
 * Off. Failures are BmcErrors. Close it when the operation is over. The identity check is not left to the caller alone:
 * devices that no check has accepted are checked (without a Node) before they are used, and their Off is never
 * reported. While another host answers, or the identity is unknown, neither `forceOff` nor a network boot is ordered.
 * On a mismatch `on` is refused.
 */
export interface HostPower {
  /** Compares the identity that the devices report with the one in the target. Call it before every power order. */
  verifyIdentity(node: Node | undefined, signal: AbortSignal): Promise<IdentityCheck>;
  /** Off only if a fresh read of every device of the level in use shows Off. */
  readPower(signal: AbortSignal): Promise<PowerReading>;
  /**
   * Reads a host that must be on again. `Off` means that at least one device of any level is off, which does not prove
   * that the host is.
   */
  readWhole(signal: AbortSignal): Promise<WholeReading>;
  /** @param check stops an order that is too late because of API calls. */
  forceOff(signal: AbortSignal, check?: OrderCheck): Promise<void>;
  on(signal: AbortSignal, options?: OnOptions): Promise<void>;
  setBootOverride(override: BootOverride, signal: AbortSignal): Promise<void>;
  readBootOverride(signal: AbortSignal): Promise<BootOverride>;
  /**
   * Reads what the devices show about why the host died, next to other calls. Undefined if no device has a log. The
   * method is missing if ironfence calls no device of the host.
   */
  readEvidence?(signal: AbortSignal): Promise<BmcEvidence | undefined>;
  /**
   * Sends an NMI by one device, once, and only if the host reads On. Failures of devices are an answer. The method is
   * missing if ironfence calls no device of the host.
   */
  sendNmi?(signal: AbortSignal, obstacle: Obstacle): Promise<OnceAnswer>;
  /**
   * Cuts the mains power by one device, once, and only if the host reads Off. Failures of devices are an answer. The
   * method is missing if ironfence calls no device of the host.
   */
  acCycle?(signal: AbortSignal, obstacle: Obstacle): Promise<OnceAnswer>;
  close(): Promise<void>;
}

/** A host whose state does not allow an order. Its message names the object and the next step. */
export class HostRefusal extends Error {
  override readonly name = "HostRefusal";
  readonly reason: HostRefusalReason;
  constructor(reason: HostRefusalReason, message: string) {
    super(message);
    this.reason = reason;
  }
}

/** A target that cannot be used as it is configured. Its message names the object and the next step. */
export class TargetError extends Error {
  override readonly name = "TargetError";
  /** Shown as the reason of the target's Ready condition. */
  readonly reason: "SecretNotFound" | "SecretInvalid" | "AddressInvalid" | "AddressNotAllowed";
  constructor(reason: TargetError["reason"], message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.reason = reason;
  }
}
