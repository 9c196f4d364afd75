import type { BareMetalRemediationStatus } from "../../../../api/ironfence/bare-metal-remediation.ts";
import { bareMetalRemediationStateSchema } from "../../../../api/ironfence/bare-metal-remediation.ts";
import { parseTimeMs, toMicroTime } from "../../../../runtime/time.ts";
import type { Reason } from "./reasons.ts";

/**
 * The states of a remediation, in the order of a remediation that succeeds; `status.phase` holds the name.
 * docs/explanation/remediation.md describes them, and a test keeps the two together.
 */
export const STATE_NAMES = [
  "Resolving",
  "Verifying",
  "PoweringOff",
  "Releasing",
  "Provisioning",
  "PoweringOn",
  "Rejoining",
  "Restoring",
  "Undoing",
  "Succeeded",
  "Failed",
] as const;
export type StateName = (typeof STATE_NAMES)[number];

/**
 * The version of what a status says. It is counted up with each change that an agent which does not know of it would
 * act on wrongly; a field that it may overlook does not count. 1 is that of 0.1.0, which does not write it.
 */
export const STATE_VERSION = 1;

/** One power cycle of the host, as it is stored before anything of it is done. */
export interface Attempt {
  /** Identifies one power-off order: a second order within the same cycle gets an id of its own. */
  id: string;
  kind: "Reboot" | "Reprovision";
  /** The last power order, stored before it is sent. */
  action: "None" | "Inherited" | "ForceOff" | "On";
  actionAtMs: number;
  /** How many orders of this action, in this power cycle, may have taken effect: bounded, see `ORDERS_MAX`. */
  orders: number;
  /** Whether the order has left this process: it was answered, or its answer may have been lost. */
  sent: boolean;
  /** Whether the order's effect has been read back. */
  done: boolean;
  startedAtMs: number;
  /** When the present state is out of time. */
  deadlineMs: number;
  /** The first proof of this cycle that the host is off. */
  offConfirmedAtMs: number | undefined;
  /**
   * When the release of workloads first began in this cycle: `drainTimeout` counts from then, however often the proof
   * is lost.
   */
  releasingSinceMs: number | undefined;
  /** A boot override may be set and has to be cleared. */
  bootOverride: boolean;
  /**
   * An out-of-service taint of this id is signed by a second taint. Set with each id that is chosen here, and never
   * later: version 0.1.0 signs by an annotation alone, and drops this field from what it stores.
   */
  secondTaint: boolean;
}

/** Why a remediation is being undone, and what its verdict will be. */
export interface Outcome {
  verdict: "Failed" | "TimedOut" | "Deleted";
  reason: string;
  message: string;
}

export type AttemptStateName = Exclude<StateName, "Resolving" | "Undoing" | "Succeeded" | "Failed">;

export type State =
  /** The agent looks up the node and its host, and claims the host. `attempt` is set after a first wait or a retry. */
  | { name: "Resolving"; attempt: Attempt | undefined }
  | { name: AttemptStateName; attempt: Attempt }
  /** What was begun is taken back before the verdict is given. */
  | { name: "Undoing"; attempt: Attempt; outcome: Outcome }
  | { name: "Succeeded" | "Failed" }
  | UnknownState;

/** What an agent of another version has stored, on which this one does not act. */
export interface UnknownState {
  name: "Unknown";
  /** What this version does not know: what an agent has stored, or what was asked for. */
  of: "status" | "spec";
  /** The same, in words. */
  why: string;
  /** Set if that part of the status can be read. */
  attempt: Attempt | undefined;
}

/** Reads the state that a status holds. */
export function parseState(status: BareMetalRemediationStatus | undefined): State {
  try {
    return parseKnown(status);
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    return { name: "Unknown", of: "status", why, attempt: readableAttempt(status) };
  }
}

/**
 * The state of a remediation whose spec this version does not know: nothing begins or goes on by it. What is being
 * taken back, or has its verdict, depends on no spec.
 */
export function withUnknownSpec(state: State, why: string): State {
  if (state.name === "Unknown" || state.name === "Undoing" || isFinal(state.name)) return state;
  return { name: "Unknown", of: "spec", why, attempt: "attempt" in state ? state.attempt : undefined };
}

function readableAttempt(status: BareMetalRemediationStatus | undefined): Attempt | undefined {
  const read = bareMetalRemediationStateSchema.shape.attempt.safeParse(status?.attempt);
  if (!read.success || read.data === undefined) return undefined;
  try {
    return parseAttempt(read.data);
  } catch {
    return undefined;
  }
}

/** @throws Error if the status does not hold a state that this version knows. */
function parseKnown(status: BareMetalRemediationStatus | undefined): Exclude<State, UnknownState> {
  const { stateVersion = 1 } = status ?? {};
  if (stateVersion > STATE_VERSION) {
    throw new Error(`status.stateVersion is ${stateVersion}, and this agent knows ${STATE_VERSION}`);
  }
  const name = STATE_NAMES.find((known) => known === (status?.phase ?? "Resolving"));
  if (name === undefined) throw new Error(`status.phase "${status?.phase}" is not a state of this version`);
  const read = bareMetalRemediationStateSchema.safeParse(status ?? {});
  if (!read.success) {
    const [issue] = read.error.issues;
    throw new Error(`status.${issue?.path.join(".")} is not of this version: ${issue?.message}`);
  }
  const attempt = status?.attempt === undefined ? undefined : parseAttempt(status.attempt);
  switch (name) {
    case "Succeeded":
    case "Failed":
      return { name };
    case "Resolving":
      return { name, attempt };
    case "Undoing":
      if (attempt === undefined || status?.outcome === undefined) throw new Error("status lacks attempt or outcome");
      return { name, attempt, outcome: status.outcome };
    default:
      if (attempt === undefined) throw new Error(`status.phase is ${name}, but status.attempt is missing`);
      return { name, attempt };
  }
}

function parseAttempt(stored: NonNullable<BareMetalRemediationStatus["attempt"]>): Attempt {
  return {
    id: stored.id,
    kind: stored.kind,
    action: stored.action,
    actionAtMs: timeMs("actionAt", stored.actionAt),
    orders: stored.orders ?? 0,
    sent: stored.sent,
    done: stored.done,
    startedAtMs: timeMs("startedAt", stored.startedAt),
    deadlineMs: timeMs("deadline", stored.deadline),
    offConfirmedAtMs: parseTimeMs(stored.offConfirmedAt),
    releasingSinceMs: parseTimeMs(stored.releasingSince),
    bootOverride: stored.bootOverride,
    secondTaint: stored.secondTaint ?? false,
  };
}

function timeMs(field: string, text: string): number {
  const epochMs = parseTimeMs(text);
  if (epochMs === undefined) throw new Error(`status.attempt.${field} is not a time`);
  return epochMs;
}

/** Writes an attempt as `status.attempt`. */
export function formatAttempt(attempt: Attempt): NonNullable<BareMetalRemediationStatus["attempt"]> {
  return {
    id: attempt.id,
    kind: attempt.kind,
    action: attempt.action,
    actionAt: toMicroTime(attempt.actionAtMs),
    orders: attempt.orders,
    sent: attempt.sent,
    done: attempt.done,
    startedAt: toMicroTime(attempt.startedAtMs),
    deadline: toMicroTime(attempt.deadlineMs),
    ...(attempt.offConfirmedAtMs !== undefined && { offConfirmedAt: toMicroTime(attempt.offConfirmedAtMs) }),
    ...(attempt.releasingSinceMs !== undefined && { releasingSince: toMicroTime(attempt.releasingSinceMs) }),
    bootOverride: attempt.bootOverride,
    ...(attempt.secondTaint && { secondTaint: true }),
  };
}

/** Whether the host may be off because of this remediation, so that an undo has to power it on. */
export function mayHaveTurnedOff({ action, done }: Attempt): boolean {
  return action === "On" ? !done : action !== "None";
}

/**
 * Whether a remediation has a host under way, by what it has stored: from the check before the power-off until the
 * verdict. One that undoes nothing that it has begun has none; nor has one that does so for longer than its time, whose
 * BMC may never answer again: it must not keep others waiting forever.
 */
export function isUnderWay(status: BareMetalRemediationStatus | undefined, epochMs: number): boolean {
  const { phase = "Resolving", attempt } = status ?? {};
  if (phase === "Undoing") return attempt?.action !== "None" && epochMs <= (parseTimeMs(attempt?.deadline) ?? Infinity);
  return phase !== "Resolving" && !isFinal(phase);
}

/** What a remediation waits for that may take long and does not affect other remediations. */
const WAITS_ELSEWHERE: readonly (string | undefined)[] = [
  "ClusterUnreachable",
  "ClusterExchanged",
  "ApiFailing",
  "InputUnread",
  "UnknownState",
] satisfies Reason[];
/** What an operator has it wait for, who may end that at any moment. */
const WAITS_FOR_OPERATOR: readonly (string | undefined)[] = ["Paused", "Maintenance"] satisfies Reason[];

/**
 * The slot that a remediation occupies of the limits on concurrent hosts. A lapsing slot is released after
 * SLOT_KEPT_MS.
 */
export type Slot = "None" | "Held" | "Lapsing";

/**
 * The slot of a remediation, according to its stored status. It ends when the host reads On. It lapses while the
 * cluster or an API is unreachable, and after the deadline of the state, because other remediations must not wait for
 * that. The caller measures by the monotonic clock for how long a slot has been lapsing: the wall clock may jump past
 * every deadline at once.
 */
export function slotOf(status: BareMetalRemediationStatus | undefined, epochMs: number): Slot {
  const { phase = "Resolving", attempt } = status ?? {};
  if (phase === "Resolving" || isFinal(phase)) return "None";
  if (phase === "Rejoining" || phase === "Restoring") return "None";
  if (phase === "Undoing" && (attempt?.action === "None" || (attempt?.action === "On" && attempt.done))) return "None";
  const reason = status?.conditions?.find(({ type }) => type === "Processing")?.reason;
  if (WAITS_FOR_OPERATOR.includes(reason)) return "Held";
  const isLate = epochMs > (parseTimeMs(attempt?.deadline) ?? Infinity);
  return isLate || WAITS_ELSEWHERE.includes(reason) ? "Lapsing" : "Held";
}

/** Whether a remediation has stored that it acts on a host, or did. */
export function isBegun(status: BareMetalRemediationStatus | undefined): boolean {
  return (status?.phase ?? "Resolving") !== "Resolving";
}

/** Whether a remediation in that state has its verdict. */
export function isFinal(phase: string | undefined): boolean {
  return phase === "Succeeded" || phase === "Failed";
}
