import { ORDERS_MAX } from "../../../../../src/remediator/machine/rules/orders/power-orders.ts";
import { NOW, ordered, READ_OFF, READ_ON } from "../snapshots.ts";
import { readOff, UNKNOWN } from "./fixtures.ts";
import type { Step } from "./situations.ts";
import { poweringOff } from "./situations.ts";

/** What a remediation does in PoweringOff. */
export const POWERING_OFF_STEPS: readonly Step[] = [
  {
    name: "a taint that may be on the node without a proof is removed first, even if no BMC answers",
    given: poweringOff({ read: "On", device: "away", isOutOfTime: true }),
    expected: "untaint",
  },
  {
    name: "one Off reading proves nothing",
    given: poweringOff({ taint: "cleared", read: "Off×1", lease: "silent" }),
    expected: "readPower",
  },
  {
    name: "an order that may not have been sent before a restart is sent under a new id once the host reads Off",
    given: poweringOff({
      attempt: { sent: false },
      taint: "cleared",
      read: "Off×1",
      identity: "verified",
      examined: "NotReady",
    }),
    expected: "stay (PoweringOffAgain), forceOff",
  },
  {
    name: "an order that may have been sent before a restart gets its time while the host reads On",
    given: poweringOff({ attempt: { sent: false }, taint: "cleared", read: "On", identity: "verified" }),
    expected: "wait",
  },
  {
    name: "a host that still reads On 21 s after the order is powered off again",
    given: poweringOff({
      attempt: { actionAtMs: NOW.epochMs - 21_000 },
      taint: "cleared",
      read: "On",
      identity: "verified",
      examined: "NotReady",
    }),
    expected: "stay (PoweringOffAgain), forceOff",
  },
  {
    name: "a host that reads On 19 s after the order is given more time",
    given: poweringOff({ attempt: { actionAtMs: NOW.epochMs - 19_000 }, taint: "cleared", read: "On" }),
    expected: "wait",
  },
  {
    name: "a host that came on again after its proof is powered off again at once",
    given: poweringOff({
      attempt: { orders: 1, done: true, offConfirmedAtMs: NOW.epochMs - 1_000 },
      taint: "cleared",
      read: "On",
      identity: "verified",
      examined: "NotReady",
    }),
    expected: "stay (PoweringOffAgain), forceOff",
  },
  {
    name: "a host that came on again for the second time is powered off after a pause",
    given: poweringOff({
      attempt: { orders: 2, done: true, offConfirmedAtMs: NOW.epochMs - 1_000 },
      taint: "cleared",
      read: "On",
      identity: "verified",
    }),
    expected: "wait",
  },
  {
    name: "a host that came on again after the last order fails the attempt",
    given: poweringOff({
      attempt: { orders: ORDERS_MAX, done: true, offConfirmedAtMs: NOW.epochMs - 1_000 },
      strategy: { retryLimit: 0 },
      taint: "cleared",
      read: "On",
      identity: "verified",
      examined: "NotReady",
    }),
    expected: "→ Undoing (HostTurnsItselfOn)",
  },
  {
    name: "the last order gets its time before the host counts as turned on by itself",
    given: poweringOff({
      attempt: { orders: ORDERS_MAX, offConfirmedAtMs: NOW.epochMs - 1_000 },
      taint: "cleared",
      read: "On",
      identity: "verified",
    }),
    expected: "wait",
  },
  {
    name: "a host that obeys none of its power-offs gets no further one",
    given: poweringOff({
      attempt: { orders: ORDERS_MAX, actionAtMs: NOW.epochMs - 100_000 },
      taint: "cleared",
      read: "On",
      identity: "verified",
    }),
    expected: "wait",
  },
  {
    name: "an order that the BMC refused does not count",
    given: poweringOff({
      attempt: { orders: ORDERS_MAX, sent: false },
      taint: "cleared",
      examined: "NotReady",
      identity: "verified",
      observations: {
        order: { attemptId: "a1", action: "ForceOff", outcome: "Rejected", atMs: NOW.monotonicMs - 3_000 },
      },
    }),
    expected: "stay (PoweringOffAgain), forceOff",
  },
  {
    name: "a host that is not off in time gets another attempt",
    given: poweringOff({ taint: "cleared", read: "On", isOutOfTime: true }),
    expected: "→ Verifying (AttemptFailed)",
  },
  {
    name: "an order whose answer was lost is not repeated while it may still take effect",
    given: poweringOff({
      taint: "cleared",
      identity: "verified",
      read: "On",
      observations: {
        order: { attemptId: "a1", action: "ForceOff", outcome: "Uncertain", atMs: NOW.monotonicMs - 2_000 },
      },
    }),
    expected: "wait",
  },
  {
    name: "the answer to an earlier order does not count for the present one",
    given: poweringOff({
      attempt: { id: "a2", sent: false },
      taint: "cleared",
      read: "On",
      observations: { order: ordered("Acknowledged", 3_000) },
    }),
    expected: "wait",
  },
  {
    name: "a host that read Off before its order is still powered off",
    given: poweringOff({
      attempt: { sent: false },
      taint: "cleared",
      read: "Off×2",
      examined: "NotReady",
      identity: "verified",
      lease: "silent",
    }),
    expected: "stay (PoweringOffAgain), forceOff",
  },
  {
    name: "a power-off that is refused until its time is over fails with the BMC's reason",
    given: poweringOff({
      strategy: { retryLimit: 0 },
      taint: "cleared",
      observations: {
        order: ordered("Rejected", 3_000, { problem: { reason: "BMCRefused", message: "no", final: false } }),
      },
      isOutOfTime: true,
    }),
    expected: "→ Undoing (BMCRefused)",
  },
  {
    name: "an order whose answer was lost is stored as sent before its effect is looked for",
    given: poweringOff({
      attempt: { sent: false },
      read: "Off×2",
      observations: { order: ordered("Uncertain", 1_000) },
    }),
    expected: "stay (PowerOffSent)",
  },
  {
    name: "a host whose power state is unknown is not powered off repeatedly",
    given: poweringOff({
      taint: "cleared",
      identity: "verified",
      observations: {
        power: { ...READ_ON, last: { state: "Unknown", raw: "", atMs: NOW.monotonicMs - 100 } },
        order: ordered("Acknowledged", 30_000),
      },
    }),
    expected: "wait",
  },
  {
    name: "a host that reads Off does not count as turned on by itself, though its orders are used up",
    given: poweringOff({
      attempt: { orders: ORDERS_MAX, offConfirmedAtMs: NOW.epochMs - 60_000 },
      taint: "cleared",
      read: "Off×1",
      observations: { order: ordered("Acknowledged", 30_000) },
    }),
    expected: "readPower",
  },
  {
    name: "the second Off reading follows sooner than a reading after On",
    given: poweringOff({
      taint: "cleared",
      observations: { power: { ...READ_OFF, last: readOff(30) }, order: ordered("Acknowledged", 3_000) },
    }),
    expected: "readPower",
  },
  {
    name: "reboots that did not last do not justify a reprovision",
    given: poweringOff({
      attempt: { orders: 4, offConfirmedAtMs: NOW.epochMs - 60_000 },
      taint: "cleared",
      read: "On",
      identity: "verified",
      examined: "NotReady",
      observations: { order: ordered("Acknowledged", 21_000) },
      strategy: { type: "Escalate", retryLimit: 0 },
      status: { provenReboots: 1 },
    }),
    expected: "→ Undoing (RebootsNotProven)",
  },
  {
    name: "no power-off is repeated after a restart while the power state is unknown",
    given: poweringOff({
      attempt: { sent: false },
      taint: "cleared",
      identity: "verified",
      examined: "NotReady",
      observations: { power: UNKNOWN },
    }),
    expected: "wait",
  },
  {
    name: "a power-off that was never sent because the API is slow fails for that reason",
    given: poweringOff({
      strategy: { retryLimit: 0 },
      taint: "cleared",
      isOutOfTime: true,
      observations: { order: ordered("Rejected", 3_000, { isLate: true }) },
    }),
    expected: "→ Undoing (ApiFailing)",
  },
];
