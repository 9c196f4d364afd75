import type { Node } from "../../../../api/kubernetes/core.ts";
import { isReady } from "../../../../nodes/ready.ts";
import { fail } from "../attempts.ts";
import { ensureDeviceUsable, freshIdentityCheck } from "../preconditions.ts";
import { transition, run, wait } from "../transitions.ts";
import { isSettled } from "../orders/power-orders.ts";
import type { Now, Snapshot, AttemptSnapshot } from "../../model/facts/snapshot.ts";
import type { Attempt } from "../../model/decision/state.ts";
import { statusCondition, nodeRejoined, processing } from "../../model/status.ts";
import {
  IDENTITY_AGE_MAX_MS,
  OFF_CONFIRM_GAP_MS,
  POLL_SLOW_MS,
  RENEWAL_TIMEOUT_MS,
} from "../../model/decision/timings.ts";
import type { Decision } from "../../model/decision/decision.ts";
import { recordNode } from "./node-of-machine.ts";

/**
 * Ends the remediation if the outage is over, because a healthy host must not be powered off. The outage is over if
 * the node is Ready, and
 * - it is in another boot than the recorded one: this remediation, or the previous owner of the host, has brought it
 *   back; or
 * - it was not Ready when the remediation began, or is in another boot after an NMI, and no power order can have taken
 *   effect: it has come back by itself.
 * After a power order, the host must also read On, because the status of a Node may be older than the order. Undefined
 * if the outage is not over.
 *
 * @param action the last power order that may have taken effect.
 */
export function endIfBack(
  snapshot: AttemptSnapshot,
  node: Node,
  action: Attempt["action"],
  now: Now,
): Decision | undefined {
  const { nodeName, observations, attempt, status } = snapshot;
  const rebooted = action !== "None" && (isRebooted(snapshot, node) || hasJoinedSince(snapshot));
  // A node that was Ready when the remediation began was away if it renews its lease in another boot and the
  // remediation began early, or if it is in another boot after an NMI.
  const wasAway =
    status.node?.wasReady === false ||
    (snapshot.earlyForMs > 0 && isBackEarly(snapshot, node)) ||
    (status.diagnostics !== undefined && isRebooted(snapshot, node));
  const recovered = (action === "None" || action === "Inherited") && wasAway;
  if (!isReady(node) || !(rebooted || recovered)) return undefined;
  if (action !== "None") {
    const power = readIfOn(snapshot, now);
    if (power === "Off") return undefined;
    if (power !== "On") return power;
  }
  if (!observations.marksCleared) return run({ do: "clearMarks" });
  const [step, message] = !rebooted
    ? ["Recovered", `node ${nodeName} is Ready again by itself: its host is not powered off`]
    : snapshot.state.name === "PoweringOff"
      ? ["BroughtBack", `node ${nodeName} is Ready in another boot, so its host is not powered off again`]
      : action === "Inherited"
        ? ["BroughtBack", `node ${nodeName} was brought back by another remediation while this one waited for its host`]
        : ["BackLate", `node ${nodeName} came back after the deadline of its attempt`];
  const wasDeleted = statusCondition(status, "PermanentNodeDeletionExpected") !== undefined;
  return transition(snapshot, now, {
    to: "Restoring",
    step,
    message,
    // With these fields, no later step powers the host on.
    attempt: {
      ...attempt,
      ...(rebooted ? { action: "On", done: true } : { action: "None" }),
      deadlineMs: now.epochMs + snapshot.strategy.timeoutMs,
    },
    conditions: [...processing("Restoring", message), ...(wasDeleted ? [nodeRejoined(message)] : [])],
    // Every boot other than the one before the outage counts as a new one.
    ...(rebooted && { fields: { node: withBoot(status.node, status.node?.bootIDAtStart) } }),
  });
}

/** Whether the node of an early remediation is in another boot and has renewed its lease. */
function isBackEarly(snapshot: AttemptSnapshot, node: Node): boolean {
  return snapshot.observations.lease?.renewedAtMs !== undefined && isRebooted(snapshot, node);
}

/**
 * Ends the remediation if the live node is back in another boot: it may have come back while the agent was stopped,
 * while orders were held, or before the proof was lost. Every further power-off needs this check. Undefined if the node
 * is not back.
 */
export function endIfReturned(snapshot: AttemptSnapshot, now: Now): Decision | undefined {
  const { attempt, observations } = snapshot;
  if (observations.examined === undefined || freshIdentityCheck(snapshot, now) === undefined)
    return run({ do: "examine" });
  const named = recordNode(snapshot, now);
  if (named !== undefined) return named;
  const { node } = observations.examined;
  return node === undefined ? undefined : endIfBack(snapshot, node, attempt.action, now);
}

/**
 * Like `endIfReturned`, but only while power orders are held and the watched node seems to be back. Undefined
 * otherwise.
 */
export function endWhileHeld(snapshot: AttemptSnapshot, now: Now): Decision | undefined {
  const { hold, node, observations } = snapshot;
  const seemsBack = node !== undefined && isReady(node) && isRebooted(snapshot, node);
  const mayRead =
    observations.device === undefined ||
    (!observations.device.final && observations.device.retryAtMs <= now.monotonicMs);
  return hold !== undefined && seemsBack && mayRead ? endIfReturned(snapshot, now) : undefined;
}

type NodeRecord = Snapshot["status"]["node"];

function withBoot(record: NodeRecord, bootID: string | undefined): NodeRecord {
  return record === undefined || bootID === undefined ? record : { ...record, bootID };
}

/** Whether a node is in another boot than at the start of the attempt or at the start of the remediation. */
export function isRebooted({ status }: Pick<AttemptSnapshot, "status">, node: Node): boolean {
  const present = node.status.nodeInfo?.bootID;
  const { bootID, bootIDAtStart } = status.node ?? {};
  return present !== undefined && [bootID, bootIDAtStart].some((known) => known !== undefined && known !== present);
}

/**
 * Whether the host of a node that is Ready again is on. Ready alone does not show it, because the Node may have become
 * Ready before a power-off. `Off` needs two readings in a row. Until then, the decision is to read the power again.
 */
function readIfOn(snapshot: AttemptSnapshot, now: Now): "On" | "Off" | Decision {
  const { last, offReads } = snapshot.observations.power;
  const ageMs = last === undefined ? Infinity : now.monotonicMs - last.atMs;
  if (last !== undefined && ageMs <= IDENTITY_AGE_MAX_MS) {
    // A power-off that has shown no effect may still take effect.
    if (last.state === "On" && isSettled(snapshot, last.atMs, now)) {
      // If there are several devices, one may have carried out the power-off while another one reads On.
      const isWhole = last.runs !== undefined || snapshot.attempt.action !== "ForceOff";
      return isWhole ? "On" : run({ do: "readWhole" });
    }
    if (last.runs === true && isSettled(snapshot, last.atMs, now)) return powerOnAll(snapshot, last.raw, now);
    if (last.state === "Off" && offReads >= 2) return "Off";
  }
  const inMs = (last?.state === "Off" ? OFF_CONFIRM_GAP_MS : POLL_SLOW_MS) - ageMs;
  return ensureDeviceUsable(snapshot, now) ?? (inMs <= 0 ? run({ do: "readPower" }) : wait(snapshot, inMs));
}

/** Fails if the node is back but one of its devices is off because of the power-off: the undo powers that device on. */
function powerOnAll(snapshot: AttemptSnapshot, raw: string, now: Now): Decision {
  const message = `node ${snapshot.nodeName} is Ready in another boot, but some power devices of its host are not On (${raw}): the agent powers them on`;
  return fail(snapshot, now, "PowerOnTimeout", message);
}

/**
 * Whether a Machine that had no node when its host was powered off has a node now whose kubelet has renewed its lease
 * after the last order.
 */
function hasJoinedSince({ subject, status, attempt, intentAtMs, observations }: AttemptSnapshot): boolean {
  if (subject.machine === undefined || status.node?.uid !== undefined) return false;
  const { renewedAtMs, renewTimeMs } = observations.lease ?? {};
  if (renewedAtMs !== undefined) return renewedAtMs > intentAtMs + RENEWAL_TIMEOUT_MS;
  // Before a further power-off, the node's own clock counts as well: after a restart, the process has seen no renewal.
  if (attempt.action !== "ForceOff" || renewTimeMs === undefined) return false;
  return renewTimeMs > attempt.actionAtMs + RENEWAL_TIMEOUT_MS;
}
