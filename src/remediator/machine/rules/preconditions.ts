import type { Now, Snapshot, AttemptSnapshot } from "../model/facts/snapshot.ts";
import { IDENTITY_AGE_MAX_MS } from "../model/decision/timings.ts";
import type { Decision } from "../model/decision/decision.ts";
import { allowsOn } from "../../../bmc/identity/identity-check.ts";
import type { IdentityCheck } from "../../../bmc/identity/identity-check.ts";
import { fail } from "./attempts.ts";
import { run, waitBecause } from "./transitions.ts";

// What has to be done before an order. A function that begins with `ensure` returns undefined if nothing is left to do.

/**
 * Hands the agent lease over if the agent runs on the node that is to be powered off: an agent that powered its own
 * host off could not power it on again. If no other agent takes the lease, the state reaches its deadline. The reason
 * is stored first, so that the lease is handed over once.
 */
export function ensureNotOwnNode(snapshot: Snapshot, now: Now): Decision | undefined {
  if (!snapshot.runsHere) return undefined;
  const waiting = waitBecause(snapshot, now, "OwnNode", ownNodeMessage(snapshot), Math.max(snapshot.remainingMs, 0));
  return waiting.status === undefined ? waiting : { ...waiting, effects: [{ do: "handOver" }] };
}

export function ownNodeMessage({ nodeName }: Snapshot): string {
  return `this agent runs on node ${nodeName}, so it hands its lease over: another agent has to power it off; run a second replica if there is none`;
}

/**
 * Waits until a failed device may be called again. Fails permanently if more calls would do harm. Undefined if the
 * device may be called now.
 */
export function ensureDeviceUsable(snapshot: AttemptSnapshot, now: Now): Decision | undefined {
  const { device } = snapshot.observations;
  if (device === undefined) return undefined;
  if (device.final) return fail(snapshot, now, device.reason, device.message);
  const inMs = device.retryAtMs - now.monotonicMs;
  return inMs <= 0
    ? undefined
    : waitBecause(snapshot, now, device.reason, device.message, Math.min(inMs, Math.max(snapshot.remainingMs, 0)));
}

/**
 * Verifies the identity of the host. Undefined if it is verified now.
 *
 * @param order an On needs less (`allowsOn`), because the host was verified before its power-off.
 */
export function ensureIdentity(
  snapshot: AttemptSnapshot,
  now: Now,
  order: "ForceOff" | "On" = "ForceOff",
): Decision | undefined {
  const check = freshIdentityCheck(snapshot, now);
  if (check === undefined) return run({ do: "verifyIdentity" });
  if (check.verified || (order === "On" && allowsOn(check))) return undefined;
  const reason = check.reason === "Mismatch" ? "IdentityMismatch" : "IdentityUnknown";
  return fail(snapshot, now, reason, check.message, [
    { type: "IdentityVerified", status: "False", reason, message: check.message },
  ]);
}

/** The result of an identity check that is fresh enough for a power order; undefined if a check is due. */
export function freshIdentityCheck(snapshot: AttemptSnapshot, now: Now): IdentityCheck | undefined {
  const { identity } = snapshot.observations;
  return identity === undefined || now.monotonicMs - identity.atMs > IDENTITY_AGE_MAX_MS ? undefined : identity.check;
}
