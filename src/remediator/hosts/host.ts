import type { TargetOutcome } from "../../api/fencing-target.ts";
import type { BootOverride, PowerReading } from "../../bmc/driver.ts";
import type { IdentityVerdict, WholeReading } from "../../bmc/topology.ts";
import type { Node } from "../../api/core.ts";
import type { Subject } from "../../nodes/subject.ts";
import type { HostOwner, HostRefusalReason, LastReboot, LookupFailure } from "../machine/model/host-facts.ts";

// What the remediation state machine needs of a power target; `fencing-target.ts` serves it from FencingTargets.

/** Finds the host of a subject, from watched objects alone: no call leaves the process. */
export interface HostDirectory {
  find(subject: Subject): { found: true; host: FencedHost } | LookupFailure;
  /** Finds the host that a remediation has recorded in its status, also after its node is gone. */
  byUid(uid: string): FencedHost | undefined;
}

/** One host that can be fenced: a snapshot of its target's fields, with calls that act on the live object. */
export interface FencedHost {
  readonly ref: { kind: string; namespace: string; name: string; uid: string };
  /** Another one as soon as anything is edited of what the target says, its devices included. */
  readonly version: string;
  /** Why the host is another subject's by now than this one's; undefined where nothing says so. */
  strayedFrom(subject: Subject): string | undefined;
  /**
   * Why the host is not ours to power any more, although its target says so: somebody else has begun to power it as well. Undefined
   * where nobody has, as far as is watched.
   *
   * @param subject whose host it is: its Machine may be all that leads to who does.
   */
  takenBack(subject: Subject): string | undefined;
  /**
   * The same by a live look, right before an order. A look that fails holds a power-off; an On it does not: then what is watched
   * decides.
   *
   * @throws HostRefusal where the host is not ours any more.
   */
  ensureOurs(subject: Subject, action: "ForceOff" | "On", signal: AbortSignal): Promise<void>;
  /** Whether anybody uses the host, as far as its own object tells: one that nobody uses may be on, whoever used it before. */
  readonly isInUse: boolean;
  /** What is done to it is a mark on its own object, ours to take off whomever it serves by now: not an order to a BMC. */
  readonly isPoweredByMark: boolean;
  /** Who the host is by its target, in its spec or pinned; undefined where it does not say. */
  readonly identity: { systemUUID?: string; serialNumber?: string } | undefined;
  /** Hands off: why no power order may be sent; undefined where it may. */
  readonly maintenance: string | undefined;
  /** The same by a live look. @throws KubeError, NotFound where the target is gone or was made anew. */
  lookAtMaintenance(signal: AbortSignal): Promise<string | undefined>;
  readonly owner: HostOwner | undefined;
  /** The last reboot that was proven off, for `requireReboot`. */
  readonly lastReboot: LastReboot | undefined;
  /**
   * Why the subject's node is not to be believed to run on this host: asked right before a power-off. Undefined where nothing
   * speaks against it.
   *
   * @param node as it is live; undefined for a Machine that has not become a node.
   * @param nodes of the same cluster.
   */
  disputeOf(
    subject: Subject,
    node: Node | undefined,
    nodes: Iterable<Node>,
    signal: AbortSignal,
  ): Promise<string | undefined>;
  /** Takes the host by compare-and-swap on the live object. Owning it already is fine. */
  claim(owner: HostOwner, signal: AbortSignal): Promise<{ owned: true } | { owned: false; by: HostOwner }>;
  /**
   * Gives the host up, if this owner has it. What the owner holds it off by goes with it, except where another remediation
   * takes the host over `asItIs`. A target keeps the `outcome`; a BareMetalHost has no place for it.
   */
  release(owner: HostOwner, options: HostRelease, signal: AbortSignal): Promise<void>;
  /** Records a reboot that was proven off. */
  recordReboot(reboot: LastReboot, signal: AbortSignal): Promise<void>;
  /**
   * Opens the devices with their credentials, read live.
   *
   * @param owner who gives the orders; undefined for a person, and for who only looks.
   * @throws TargetError where the target's own configuration does not allow it (Secret or key missing, bad address),
   * HostRefusal where the host is in no state for it.
   */
  open(owner: HostOwner | undefined, signal: AbortSignal): Promise<HostPower>;
}

/** What a power-off rests on grows old while API calls are made between the last look and the order. */
export interface OrderGate {
  /** Milliseconds in which the order must be out. */
  leftMs(): number;
  /** Asked right before the order. @throws OrderNotDueError where it may not go out any more. */
  ensureDue(): void;
}

/** A power order that was not sent: what it rests on had grown too old, or it may not go out any more. */
export class OrderNotDueError extends Error {
  override readonly name = "OrderNotDueError";
  /** It came too late, and was not held by anybody. */
  readonly isLate: boolean;
  constructor(message: string, isLate: boolean, options?: { cause?: unknown }) {
    super(message, options);
    this.isLate = isLate;
  }
}

/** How a host is given up. */
export interface HostRelease {
  asItIs: boolean;
  /** What its remediation has come to; undefined where that is not over, or is gone. */
  outcome: TargetOutcome | undefined;
}

/**
 * The open devices of one host, as one. Levels are tried in order; all devices of the level in use must agree on Off.
 * Failures are BmcErrors. Close it when the operation is over. Identity is not a matter of the caller's care alone: devices
 * that no check has accepted are checked (without a Node) before they are used, their Off is never reported, and neither
 * `forceOff` nor a network boot is ordered while another host answers or nobody can tell; `on` is refused on a mismatch.
 */
export interface HostPower {
  /** Compares who answers with who the target says it must be. Call it before every power order. */
  verifyIdentity(node: Node | undefined, signal: AbortSignal): Promise<IdentityVerdict>;
  /** Off only where every device of the level in use says so, freshly. */
  readPower(signal: AbortSignal): Promise<PowerReading>;
  /** For a host that is to be on again: `Off` where any device of any level is off, which proves nothing about the host. */
  readWhole(signal: AbortSignal): Promise<WholeReading>;
  /** @param gate holds back an order that API calls have made too late. */
  forceOff(signal: AbortSignal, gate?: OrderGate): Promise<void>;
  on(signal: AbortSignal): Promise<void>;
  setBootOverride(override: BootOverride, signal: AbortSignal): Promise<void>;
  readBootOverride(signal: AbortSignal): Promise<BootOverride>;
  close(): Promise<void>;
}

/** A host whose state rules an order out. Its message names the object and the next step. */
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
