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

/** The states from one to another, both included, in the order of a remediation that succeeds. */
export function statesBetween(first: StateName, last: StateName): readonly StateName[] {
  return STATE_NAMES.slice(STATE_NAMES.indexOf(first), STATE_NAMES.indexOf(last) + 1);
}

/**
 * The version of the stored state. Each change that would make an older agent act wrongly increases it; a new field
 * that an older agent may ignore does not. Version 0.1.0 has state version 1 and does not write it.
 */
export const STATE_VERSION = 1;

/** One power cycle of the host. It is stored before its first effect. */
export interface Attempt {
  /** The order id: a further power-off order within the same cycle gets a new one. */
  id: string;
  kind: "Reboot" | "Reprovision";
  /** The last power order, stored before it is sent. */
  action: "None" | "Inherited" | "ForceOff" | "On";
  actionAtMs: number;
  /** How many orders of this action may have taken effect in this power cycle: at most `ORDERS_MAX`. */
  orders: number;
  /** Whether the order was sent: it was answered, or its answer may have been lost. */
  sent: boolean;
  /** Whether a reading has shown the effect of the order. */
  done: boolean;
  startedAtMs: number;
  /** Deadline of the present state. */
  deadlineMs: number;
  /** When the host was first proven off in this cycle. */
  offConfirmedAtMs: number | undefined;
  /** When the release first began in this cycle. `drainTimeout` counts from then, even if the proof is lost. */
  releasingSinceMs: number | undefined;
  /** A boot override may be set and has to be cleared. */
  bootOverride: boolean;
  /**
   * An out-of-service taint of this id is signed by the ownership taint. This version sets the field when it chooses an
   * id, and never later. Version 0.1.0 signs by an annotation alone and drops this field from the status.
   */
  secondTaint: boolean;
}

/** The kept outcome: why a remediation is being undone, and what its verdict will be. */
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
  /** The agent undoes what the remediation has done, before it stores the verdict. */
  | { name: "Undoing"; attempt: Attempt; outcome: Outcome }
  | { name: "Succeeded" | "Failed" }
  | UnknownState;

/** The state of a remediation whose status or spec is of another version. This agent does not act on it. */
export interface UnknownState {
  name: "Unknown";
  /** The part that this version does not know. */
  of: "status" | "spec";
  /** Names the field that is not known, and why. */
  why: string;
  /** Set if this version can read `status.attempt`. */
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
 * The state of a remediation whose spec this version does not know: it neither begins nor continues. A remediation that
 * is being undone or has its verdict does not depend on the spec, so its state stays.
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
 * Whether a remediation is working on a host, according to its stored status: from Verifying until the verdict. An undo
 * counts only if there was a power order, and only until its deadline: its BMC may never answer again, and other
 * remediations must not wait for it forever.
 */
export function isUnderWay(status: BareMetalRemediationStatus | undefined, epochMs: number): boolean {
  const { phase = "Resolving", attempt } = status ?? {};
  if (phase === "Undoing") return attempt?.action !== "None" && epochMs <= (parseTimeMs(attempt?.deadline) ?? Infinity);
  return phase !== "Resolving" && !isFinal(phase);
}

/** Waits that may take long. Other remediations must not wait for them, so the slot lapses. */
const WAITS_ELSEWHERE: readonly (string | undefined)[] = [
  "ClusterUnreachable",
  "ClusterExchanged",
  "ApiFailing",
  "InputUnread",
  "UnknownState",
] satisfies Reason[];
/** Waits that an operator asked for. The operator may end them at any moment, so the slot is held. */
const WAITS_FOR_OPERATOR: readonly (string | undefined)[] = ["Paused", "Maintenance"] satisfies Reason[];

/**
 * Whether a remediation occupies a slot of the limits on concurrent hosts. A lapsing slot is released after
 * SLOT_KEPT_MS.
 */
export type Slot = "None" | "Held" | "Lapsing";

/**
 * The slot of a remediation, according to its stored status. It ends when the host reads On. It lapses during the waits
 * in WAITS_ELSEWHERE and after the deadline of the state, because other remediations must not wait for those. The
 * caller measures by the monotonic clock for how long a slot has been lapsing: the wall clock may jump past every
 * deadline at once.
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

/** Whether a remediation has begun to act on a host, according to its stored status. */
export function isBegun(status: BareMetalRemediationStatus | undefined): boolean {
  return (status?.phase ?? "Resolving") !== "Resolving";
}

/** Whether a remediation in that state has its verdict. */
export function isFinal(phase: string | undefined): boolean {
  return phase === "Succeeded" || phase === "Failed";
}
