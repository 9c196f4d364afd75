import { ORDERS_MAX } from "../../../../../src/remediator/machine/rules/orders/power-orders.ts";
import { node, NOW, ordered, READ_OFF, READ_ON } from "../snapshots.ts";
import { AWAY, HALF_ON, TAKEN_BACK } from "./fixtures.ts";
import type { Step } from "./situations.ts";
import { poweringOn } from "./situations.ts";

/** What a remediation does in PoweringOn. */
export const POWERING_ON_STEPS: readonly Step[] = [
  {
    name: "the intent to power on is stored with each order",
    given: poweringOn({ attempt: { orders: 0 }, identity: "verified" }),
    expected: "stay (PoweringOn), powerOn",
  },
  {
    name: "a host that obeys none of its power-ons gets no further one",
    given: poweringOn({
      attempt: { orders: ORDERS_MAX, actionAtMs: NOW.epochMs - 100_000 },
      identity: "verified",
      observations: { power: { ...READ_OFF, offReads: 2 } },
    }),
    expected: "wait",
  },
  {
    name: "the refusal of the last power-on becomes the verdict, though other calls succeed",
    given: poweringOn({
      strategy: { retryLimit: 0 },
      observations: {
        order: {
          attemptId: "a1",
          action: "On",
          outcome: "Rejected",
          problem: { reason: "BMCRefused", message: "not now", final: false },
          atMs: NOW.monotonicMs - 3_000,
        },
      },
      isOutOfTime: true,
    }),
    expected: "→ Undoing (BMCRefused)",
  },
  {
    name: "no further power-on is sent during maintenance",
    given: poweringOn({
      identity: "verified",
      read: "Off×1",
      observations: { order: { attemptId: "a1", action: "On", outcome: "Rejected", atMs: NOW.monotonicMs - 3_000 } },
      stopped: "Maintenance",
    }),
    expected: "stay (Maintenance)",
  },
  {
    name: "all devices are read before a refused power-on is repeated",
    given: poweringOn({ identity: "verified", observations: { order: ordered("Rejected", 3_000, { action: "On" }) } }),
    expected: "readWhole",
  },
  {
    name: "a host that runs while one of its devices is off gets another power-on",
    given: poweringOn({
      identity: "verified",
      observations: { power: HALF_ON, order: ordered("Acknowledged", 21_000, { action: "On" }) },
    }),
    expected: "stay (PoweringOnAgain), powerOn",
  },
  {
    name: "a power-on that one device refuses is repeated after a pause",
    given: poweringOn({
      identity: "verified",
      observations: { power: HALF_ON, order: ordered("Rejected", 3_000, { action: "On" }) },
    }),
    expected: "wait",
  },
  {
    name: "a host that runs continues without the device that stays off when the time is over",
    given: poweringOn({
      identity: "verified",
      observations: { power: HALF_ON, order: ordered("Rejected", 3_000, { action: "On" }), rebootRecorded: true },
      isOutOfTime: true,
    }),
    expected: "→ Rejoining (PoweredOn)",
  },
  {
    name: "a host that reads On waits for its node to rejoin",
    given: poweringOn({
      attempt: { orders: 1, sent: true },
      read: "On",
      observations: {
        rebootRecorded: true,
        order: { attemptId: "a1", action: "On", outcome: "Acknowledged", atMs: NOW.monotonicMs - 1_000 },
      },
    }),
    expected: "→ Rejoining (PoweredOn)",
  },
  {
    name: "a host whose release has ended is powered on although the node's cluster cannot be reached",
    given: poweringOn({ identity: "verified", other: AWAY }),
    expected: "stay (PoweringOnAgain), powerOn",
  },
  {
    name: "an earlier power-off does not count as a power-on",
    given: poweringOn({
      attempt: { orders: 0 },
      identity: "verified",
      read: "On",
      observations: { order: ordered("Acknowledged", 3_000) },
    }),
    expected: "stay (PoweringOn), powerOn",
  },
  {
    name: "a host that reads On is on, though this process has sent no order",
    given: poweringOn({ attempt: { orders: ORDERS_MAX }, read: "On" }),
    expected: "recordReboot",
  },
  {
    name: "a refused power-on is repeated although the power state is unknown",
    given: poweringOn({
      identity: "verified",
      observations: {
        order: ordered("Rejected", 1_000, { action: "On" }),
        power: { ...READ_ON, last: { state: "Unknown", raw: "", atMs: NOW.monotonicMs - 100, runs: false } },
      },
    }),
    expected: "stay (PoweringOnAgain), powerOn",
  },
  {
    name: "an accepted power-on is not repeated before the host reads Off",
    given: poweringOn({
      identity: "verified",
      observations: {
        order: ordered("Acknowledged", 30_000, { action: "On" }),
        power: { ...READ_ON, last: { state: "Unknown", raw: "", atMs: NOW.monotonicMs - 100, runs: false } },
      },
    }),
    expected: "wait",
  },
  {
    name: "a power-on that was sent runs out of time during maintenance too",
    given: poweringOn({
      strategy: { retryLimit: 0 },
      observations: {
        order: ordered("Rejected", 30_000, {
          action: "On",
          problem: { reason: "BMCRefused", message: "no", final: false },
        }),
      },
      isOutOfTime: true,
      stopped: "Maintenance",
    }),
    expected: "→ Undoing (BMCRefused)",
  },
  {
    name: "a power-on that maintenance holds back does not run out of time",
    given: poweringOn({ isOutOfTime: true, stopped: "Maintenance" }),
    expected: "stay (Maintenance)",
  },
  {
    name: "a remediation that is deleted before its host reads On is undone, though its node reports Ready",
    given: poweringOn({ isDeleted: true, other: { node: node({ ready: "True", bootID: "new-boot" }) } }),
    expected: "→ Undoing (RemediationDeleted)",
  },
  {
    name: "no order is sent to a host that its operator powers now",
    given: poweringOn({ read: "Off×2", other: TAKEN_BACK }),
    expected: "→ Undoing (HostAttached)",
  },
  {
    name: "a power-on without effect is repeated after 30 s",
    given: poweringOn({
      attempt: { orders: 1, sent: true },
      identity: "verified",
      observations: { power: { ...READ_OFF, offReads: 2 }, order: ordered("Acknowledged", 30_000, { action: "On" }) },
    }),
    expected: "stay (PoweringOnAgain), powerOn",
  },
  {
    name: "a second power-on without effect is given more time than the first",
    given: poweringOn({
      attempt: { orders: 2, sent: true },
      identity: "verified",
      observations: { power: { ...READ_OFF, offReads: 2 }, order: ordered("Acknowledged", 30_000, { action: "On" }) },
    }),
    expected: "wait",
  },
];
