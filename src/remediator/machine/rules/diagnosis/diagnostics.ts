import { isReady } from "../../../../nodes/ready.ts";
import { parseTimeMs, toMicroTime } from "../../../../runtime/time.ts";
import type { Decision } from "../../model/decision/decision.ts";
import type { AttemptSnapshot, Now } from "../../model/facts/snapshot.ts";
import { processing } from "../../model/status.ts";
import type { StatusStep } from "../../model/status.ts";
import { ONCE_CALL_MAX_MS, REBOOTED_READY_MS } from "../../model/decision/timings.ts";
import { isEarly } from "../outage/early.ts";
import { endIfReturned, isRebooted } from "../outage/outage-over.ts";
import { ensureDeviceUsable } from "../preconditions.ts";
import { transition, wait } from "../transitions.ts";

// A crash dump before the first power-off (docs/explanation/crash-dump.md). An NMI proves nothing: after it, or
// without it, the power-off and its proof are what they always are.

/** How much of an answer of a BMC is kept. */
const MESSAGE_MAX = 512;

/**
 * Stores that an NMI is sent, and sends it: once in a remediation, before its first power-off, when everything has been
 * checked that the power-off needs. Undefined if none is to be sent.
 */
export function orderDump(snapshot: AttemptSnapshot, now: Now): Decision | undefined {
  const { strategy, status, attempt } = snapshot;
  if (strategy.diagnostics !== "NMI" || strategy.diagnosticsTimeoutMs <= 0) return undefined;
  // What is stored counts as sent, also if another agent stored it: a second NMI would break off the dump.
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
 * Waits for the end of a crash dump: until its time is over, or until the node is Ready in another boot. Undefined if
 * there is nothing to wait for.
 */
export function awaitDump(snapshot: AttemptSnapshot, now: Now): Decision | undefined {
  const { status, attempt, observations, node, nodeName } = snapshot;
  const { diagnostics } = status;
  if (diagnostics === undefined || attempt.action !== "None") return undefined;
  const endsAtMs = parseTimeMs(diagnostics.endsAt) ?? now.epochMs;
  const leftMs = timeLeftMs(snapshot, endsAtMs);
  if (leftMs <= 0) return undefined;
  const { nmi } = observations;
  if (nmi !== undefined && diagnostics.result === undefined) {
    const { outcome } = nmi;
    const message = `${WORDS[outcome]}: ${nmi.message}`.slice(0, MESSAGE_MAX);
    const isSent = outcome !== "NotSent";
    const at = isSent ? endsAtMs : now.epochMs;
    return store(snapshot, now, {
      step: isSent ? "NmiSent" : "NmiNotSent",
      message,
      warning: outcome !== "Sent",
      endsAtMs: at,
      diagnostics: { ...diagnostics, endsAt: toMicroTime(at), result: outcome, message },
    });
  }
  if (node === undefined || !isRebooted(snapshot, node)) return wait(snapshot, leftMs);
  if (isReady(node)) return ensureDeviceUsable(snapshot, now) ?? endIfReturned(snapshot, now);
  if (diagnostics.result === "Rebooted") return wait(snapshot, leftMs);
  const readyByMs = now.epochMs + Math.min(leftMs, REBOOTED_READY_MS);
  return store(snapshot, now, {
    step: "HostRebooted",
    message: `node ${nodeName} has begun another boot: unless it is Ready within ${Math.ceil((readyByMs - now.epochMs) / 1_000)} s, its host is powered off`,
    endsAtMs: readyByMs,
    diagnostics: { ...diagnostics, endsAt: toMicroTime(readyByMs), result: "Rebooted" },
  });
}

const WORDS = {
  Sent: "the NMI was sent",
  Uncertain: "the NMI counts as sent, since the answer of the BMC was lost",
  NotSent: "no NMI was sent, so the power-off does not wait",
} as const;

/** What is left of the wait on the process's own clock: the deadline of the state is that long after its end. */
function timeLeftMs({ remainingMs, attempt, strategy }: AttemptSnapshot, endsAtMs: number): number {
  return Math.min(remainingMs - (attempt.deadlineMs - endsAtMs), strategy.diagnosticsTimeoutMs);
}

/** Stays in Verifying, whose own time begins at the end of the wait. */
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
