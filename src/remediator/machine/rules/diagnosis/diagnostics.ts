import { isReady } from "../../../../nodes/ready.ts";
import { parseTimeMs, toMicroTime } from "../../../../runtime/time.ts";
import type { Decision } from "../../model/decision/decision.ts";
import type { AttemptSnapshot, Now } from "../../model/facts/snapshot.ts";
import { hasMessage, processing, statusCondition } from "../../model/status.ts";
import type { StatusStep } from "../../model/status.ts";
import { KDUMP_SILENCE_MS, ONCE_CALL_MAX_MS, REBOOTED_READY_MS } from "../../model/decision/timings.ts";
import { isEarly } from "../outage/early.ts";
import { endIfReturned, isRebooted } from "../outage/outage-over.ts";
import { ensureDeviceUsable } from "../preconditions.ts";
import { transition, wait } from "../transitions.ts";

// A crash dump before the first power-off (docs/explanation/crash-dump.md). An NMI proves nothing: the power-off and
// its proof are the same with and without it.

/** Characters kept of a message. */
const MESSAGE_MAX = 512;

/**
 * Stores that an NMI is sent, and then sends it: at most once in a remediation, before its first power-off, after all
 * checks that the power-off needs. Undefined if none is to be sent.
 */
export function orderDump(snapshot: AttemptSnapshot, now: Now): Decision | undefined {
  const { strategy, status, attempt } = snapshot;
  if (strategy.diagnostics !== "NMI" || strategy.diagnosticsTimeoutMs <= 0) return undefined;
  // A stored NMI counts as sent, even if another agent stored it: a second NMI would interrupt the dump.
  if (status.diagnostics !== undefined) return undefined;
  // A host that may be off has nothing to dump.
  if (attempt.action !== "None" || isEarly(snapshot)) return undefined;
  const endsAtMs = now.epochMs + strategy.diagnosticsTimeoutMs;
  const message = `the BMC sends an NMI, so that the host writes a crash dump: the power-off waits for at most ${strategy.diagnosticsTimeoutMs / 1_000} s`;
  const decision = store(snapshot, now, {
    step: "CrashDumpOrdered",
    message,
    endsAtMs,
    diagnostics: { orderedAt: toMicroTime(now.epochMs), endsAt: toMicroTime(endsAtMs) },
  });
  const withinMs = Math.min(ONCE_CALL_MAX_MS, strategy.diagnosticsTimeoutMs);
  return { ...decision, effects: [{ do: "sendNmi", withinMs }] };
}

/**
 * Waits for the end of a crash dump: until the timeout, until the crash kernel has ended, or until the node is Ready in
 * another boot. Undefined if there is nothing to wait for.
 */
export function awaitDump(snapshot: AttemptSnapshot, now: Now): Decision | undefined {
  const { status, attempt, node, nodeName } = snapshot;
  const { diagnostics } = status;
  if (diagnostics === undefined || attempt.action !== "None") return undefined;
  const endsAtMs = parseTimeMs(diagnostics.endsAt) ?? now.epochMs;
  const leftMs = timeLeftMs(snapshot, endsAtMs);
  if (leftMs <= 0) return undefined;
  const late = beginStateAfter(snapshot, now, endsAtMs);
  if (late !== undefined) return late;
  const answered = recordNmi(snapshot, now);
  if (answered !== undefined) return answered;
  if (node === undefined || !isRebooted(snapshot, node)) return awaitCrashKernel(snapshot, now, leftMs);
  const ended = isReady(node) ? (ensureDeviceUsable(snapshot, now) ?? endIfReturned(snapshot, now)) : undefined;
  if (ended !== undefined) return ended;
  if (diagnostics.result === "Rebooted") return wait(snapshot, leftMs);
  const readyByMs = now.epochMs + Math.min(leftMs, REBOOTED_READY_MS);
  return store(snapshot, now, {
    step: "HostRebooted",
    message: `node ${nodeName} has begun another boot: unless it is Ready within ${Math.ceil((readyByMs - now.epochMs) / 1_000)} s, its host is powered off`,
    endsAtMs: readyByMs,
    diagnostics: { ...diagnostics, endsAt: toMicroTime(readyByMs), result: "Rebooted" },
  });
}

/**
 * Stores whether the NMI was sent. What holds the power-off does not delay that: an answer that is forgotten counts as
 * sent. Undefined if there is nothing to store.
 */
export function recordNmi(snapshot: AttemptSnapshot, now: Now): Decision | undefined {
  const { diagnostics } = snapshot.status;
  const { nmi } = snapshot.observations;
  if (nmi === undefined || diagnostics === undefined || diagnostics.result !== undefined) return undefined;
  const { outcome } = nmi;
  const message = `${WORDS[outcome]}: ${nmi.message}`.slice(0, MESSAGE_MAX);
  const isSent = outcome !== "NotSent";
  const endsAtMs = isSent ? (parseTimeMs(diagnostics.endsAt) ?? now.epochMs) : now.epochMs;
  return store(snapshot, now, {
    step: isSent ? "NmiSent" : "NmiNotSent",
    message,
    warning: outcome !== "Sent",
    endsAtMs,
    diagnostics: { ...diagnostics, endsAt: toMicroTime(endsAtMs), result: outcome, message },
  });
}

/**
 * Moves the deadline of the state behind the end of the wait again, if the end of a hold or of another wait has set it
 * earlier. Undefined if the deadline is late enough.
 */
function beginStateAfter(snapshot: AttemptSnapshot, now: Now, endsAtMs: number): Decision | undefined {
  const { status, attempt, strategy } = snapshot;
  const { diagnostics } = status;
  if (diagnostics === undefined || attempt.deadlineMs >= endsAtMs + strategy.powerOffTimeoutMs) return undefined;
  return store(snapshot, now, {
    step: "CrashDumpAwaited",
    message: `the power-off still waits for the crash dump, until ${diagnostics.endsAt} at the latest`,
    endsAtMs,
    diagnostics,
  });
}

/**
 * Waits while the crash kernel of the node sends messages; without any message, waits until the timeout. Messages do
 * not extend the timeout. They are not authenticated: a forged one can only end the wait early.
 */
function awaitCrashKernel(snapshot: AttemptSnapshot, now: Now, leftMs: number): Decision {
  const { status, observations, nodeName } = snapshot;
  const { kdump } = observations;
  const { diagnostics } = status;
  if (kdump === undefined || diagnostics === undefined) return wait(snapshot, leftMs);
  const silentInMs = kdump.lastAtMs + KDUMP_SILENCE_MS - now.monotonicMs;
  const seconds = KDUMP_SILENCE_MS / 1_000;
  if (silentInMs <= 0)
    return store(snapshot, now, {
      step: "CrashDumpEnded",
      message: `the crash kernel of node ${nodeName} has sent no message for ${seconds} s: the power-off waits no longer`,
      endsAtMs: now.epochMs,
      diagnostics: { ...diagnostics, endsAt: toMicroTime(now.epochMs) },
    });
  const message = `the crash kernel of node ${nodeName} runs (fence_kdump): the power-off waits until ${seconds} s after its last message, or until ${diagnostics.endsAt} at the latest`;
  if (hasMessage(statusCondition(status, "Processing"), message)) return wait(snapshot, Math.min(leftMs, silentInMs));
  return store(snapshot, now, {
    step: "CrashKernelRuns",
    message,
    endsAtMs: parseTimeMs(diagnostics.endsAt) ?? now.epochMs,
    diagnostics,
  });
}

const WORDS = {
  Sent: "the NMI was sent",
  Uncertain: "the NMI counts as sent, since the answer of the BMC was lost",
  NotSent: "no NMI was sent, so the power-off does not wait",
} as const;

/** The rest of the wait by the monotonic clock. The deadline of the state is later than the end of the wait. */
function timeLeftMs({ remainingMs, attempt, strategy }: AttemptSnapshot, endsAtMs: number): number {
  return Math.min(remainingMs - (attempt.deadlineMs - endsAtMs), strategy.diagnosticsTimeoutMs);
}

/** Stores a step of the crash dump. The state stays Verifying, and its own time begins at the end of the wait. */
function store(
  snapshot: AttemptSnapshot,
  now: Now,
  change: Pick<StatusStep, "step" | "message" | "warning"> & {
    endsAtMs: number;
    diagnostics: NonNullable<NonNullable<StatusStep["fields"]>["diagnostics"]>;
  },
): Decision {
  const { attempt, strategy } = snapshot;
  const { step, message, warning, endsAtMs, diagnostics } = change;
  return transition(snapshot, now, {
    to: "Verifying",
    step,
    message,
    ...(warning !== undefined && { warning }),
    attempt: { ...attempt, deadlineMs: endsAtMs + strategy.powerOffTimeoutMs },
    conditions: processing("CrashDump", message),
    fields: { diagnostics },
  });
}
