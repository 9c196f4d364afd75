import { ORDERS_MAX } from "../../../../../src/remediator/machine/rules/orders/power-orders.ts";
import { DEVICE_AWAY, MISMATCH, NOW, READ_OFF, READ_ON, TARGET_GONE, UNDOING, ordered } from "../snapshots.ts";
import {
  AWAY,
  clusterChecked,
  CUT_OFF,
  EXCHANGED,
  HALF_ON,
  SUPPLIED,
  TAKEN_BACK,
  TARGET,
  UNKNOWN,
  UNSUPPLIED,
  UNUSED,
  REFUSED_CALL,
} from "./fixtures.ts";
import type { Step } from "./situations.ts";
import { undoing } from "./situations.ts";

const OVERRIDE = { bootOverride: true };

/** What a remediation does in Undoing. */
export const UNDOING_STEPS: readonly Step[] = [
  {
    name: "an undo stops sending power-ons that have no effect",
    given: undoing({
      attempt: { action: "On", done: false, orders: ORDERS_MAX, actionAtMs: NOW.epochMs - 1_000_000 },
      taint: "cleared",
      identity: "verified",
      successor: "none",
      observations: { power: { ...READ_OFF, offReads: 2 } },
    }),
    expected: "wait",
  },
  {
    name: "an undo of a deleted remediation keeps sending power-ons",
    given: undoing({
      attempt: { action: "On", done: false, orders: ORDERS_MAX, actionAtMs: NOW.epochMs - 1_000_000 },
      isDeleted: true,
      taint: "cleared",
      read: "Off×1",
      identity: "verified",
      successor: "none",
    }),
    expected: "stay (PoweringOnAgain), powerOn",
  },
  {
    name: "an undo verifies the identity of a host whose power state is unknown",
    given: undoing({
      taint: "cleared",
      successor: "none",
      observations: {
        power: UNKNOWN,
        identity: { check: { verified: false, reason: "Mismatch", message: "another" }, atMs: 0 },
      },
    }),
    expected: "verifyIdentity",
  },
  {
    name: "an undo reports that another host answers",
    given: undoing({
      taint: "cleared",
      successor: "none",
      observations: {
        power: UNKNOWN,
        identity: {
          check: { verified: false, reason: "Mismatch", message: "another" },
          atMs: NOW.monotonicMs - 100,
        },
      },
    }),
    expected: "stay (IdentityMismatch)",
  },
  {
    name: "an undo sends no power-on during maintenance",
    given: undoing({
      taint: "cleared",
      read: "Off×1",
      identity: "verified",
      successor: "none",
      stopped: "Maintenance",
    }),
    expected: "stay (Maintenance)",
  },
  {
    name: "an undo powers on a device that was turned off while the other one refused",
    given: undoing({ identity: "verified", observations: { ...UNDOING, power: HALF_ON } }),
    expected: "stay (PoweringOnAgain), powerOn",
  },
  {
    name: "an undo gives up a device that stays off when its time is over, since the host runs",
    given: undoing({ observations: { ...UNDOING, power: HALF_ON }, isOutOfTime: true }),
    expected: "stay (PoweredOnAgain)",
  },
  {
    name: "an undo gives up a device that stays off although nothing else would power it on",
    given: undoing({ observations: { ...UNDOING, power: HALF_ON }, isOutOfTime: true, isDeleted: true }),
    expected: "stay (PoweredOnAgain)",
  },
  {
    name: "an undo clears the boot override of a host that is off before anything else",
    given: undoing({ attempt: OVERRIDE, taint: "cleared", successor: "none", read: "Off×1", identity: "verified" }),
    expected: "setBootOverride None",
  },
  {
    name: "an undo reads the outlets of a host if its boot override could not be cleared",
    given: undoing({
      attempt: OVERRIDE,
      taint: "cleared",
      successor: "none",
      observations: { device: { ...DEVICE_AWAY, retryAtMs: NOW.monotonicMs } },
    }),
    expected: "readWhole",
  },
  {
    name: "an undo only switches on the outlets of a host while its boot override exists and no BMC answers",
    given: undoing({
      attempt: OVERRIDE,
      taint: "cleared",
      successor: "none",
      identity: "verified",
      observations: { power: UNSUPPLIED },
    }),
    expected: "stay (PoweringOnAgain), powerOn outletsOnly",
  },
  {
    name: "an undo switches on no outlets while another host answers",
    given: undoing({
      attempt: OVERRIDE,
      taint: "cleared",
      successor: "none",
      observations: { power: UNSUPPLIED, identity: MISMATCH },
    }),
    expected: "stay (IdentityMismatch)",
  },
  {
    name: "an undo switches on no outlets during maintenance",
    given: undoing({
      attempt: OVERRIDE,
      taint: "cleared",
      successor: "none",
      identity: "verified",
      observations: { power: UNSUPPLIED },
      stopped: "Maintenance",
    }),
    expected: "stay (Maintenance)",
  },
  {
    name: "an undo reads outlets again that it has just switched on, before it repeats the order",
    given: undoing({
      attempt: { ...OVERRIDE, action: "On", done: false, orders: 1 },
      taint: "cleared",
      successor: "none",
      identity: "verified",
      observations: {
        power: { ...UNSUPPLIED, last: { ...UNSUPPLIED.last, atMs: NOW.monotonicMs - 2_000 } },
        order: ordered("Acknowledged", 3_000, { action: "On" }),
      },
    }),
    expected: "readWhole",
  },
  {
    name: "an undo clears the boot override as soon as the outlets of the host are on",
    given: undoing({ attempt: OVERRIDE, taint: "cleared", successor: "none", observations: { power: SUPPLIED } }),
    expected: "setBootOverride None",
  },
  {
    name: "an undo looks for a successor before it powers the host on",
    given: undoing({ taint: "cleared", read: "Off×1" }),
    expected: "checkSuccessor",
  },
  {
    name: "an undo that owes a power-on waits for the target to be created again",
    given: undoing({ taint: "cleared", other: { host: TARGET_GONE } }),
    expected: "stay (TargetGone)",
  },
  {
    name: "an undo stops waiting for a deleted target when its time is over",
    given: undoing({ taint: "cleared", isOutOfTime: true, other: { host: TARGET_GONE } }),
    expected: "clearMarks",
  },
  {
    name: "an undo that owes no power-on does not wait for a deleted target",
    given: undoing({ attempt: { action: "None" }, taint: "cleared", other: { host: TARGET_GONE } }),
    expected: "clearMarks",
  },
  {
    name: "an undo sends no power-on if a successor waits for the host",
    given: undoing({ taint: "cleared", observations: { successor: { waiting: true, atMs: NOW.monotonicMs } } }),
    expected: "clearMarks",
  },
  {
    name: "an undo stores its intent before it sends the power-on",
    given: undoing({ taint: "cleared", read: "Off×1", identity: "verified", successor: "none" }),
    expected: "stay (PoweringOnAgain), powerOn",
  },
  {
    name: "an undo waits until an unproven power-off cannot take effect any more",
    given: undoing({ attempt: { done: false }, taint: "cleared", read: "On", successor: "none" }),
    expected: "wait",
  },
  {
    name: "an undo waits until a power-off whose connection broke cannot take effect any more",
    given: undoing({
      attempt: { done: false },
      taint: "cleared",
      read: "On",
      successor: "none",
      observations: { order: CUT_OFF },
    }),
    expected: "wait",
  },
  {
    name: "the verdict is given once everything is undone",
    given: undoing({
      attempt: { action: "None" },
      taint: "cleared",
      observations: { marksCleared: true, devicesClosed: true, hostReleased: true },
    }),
    expected: "→ Failed (Failed)",
  },
  {
    name: "an undo looks again for a successor if the last read is old",
    given: undoing({
      taint: "cleared",
      read: "Off×1",
      identity: "verified",
      observations: { successor: { waiting: false, atMs: NOW.monotonicMs - 2_000 } },
      other: {
        siblings: [
          { uid: "b", namespace: "ns", name: "b", waiting: true, succeeded: false, offConfirmedAt: undefined },
        ],
      },
    }),
    expected: "checkSuccessor",
  },
  {
    name: "an undo does not believe an On reading from before a power-off had its time",
    given: undoing({
      attempt: { done: false },
      taint: "cleared",
      successor: "none",
      observations: {
        power: { ...READ_ON, last: { state: "On", raw: "On", atMs: NOW.monotonicMs - 5_000 } },
        order: { attemptId: "a1", action: "ForceOff", outcome: "Uncertain", atMs: NOW.monotonicMs - 126_000 },
      },
    }),
    expected: "readWhole",
  },
  {
    name: "an undo believes an On reading from after a power-off had its time",
    given: undoing({
      attempt: { done: false },
      taint: "cleared",
      read: "On",
      successor: "none",
      observations: {
        order: { attemptId: "a1", action: "ForceOff", outcome: "Uncertain", atMs: NOW.monotonicMs - 126_000 },
      },
    }),
    expected: "verifyIdentity",
  },
  {
    name: "an undo does not power on a host that its operator powers now",
    given: undoing({
      identity: "verified",
      read: "Off×1",
      observations: UNDOING,
      status: { target: TARGET },
      other: TAKEN_BACK,
    }),
    expected: "readWhole",
  },
  {
    name: "an undo stops waiting for a host that its operator powers when its time is over, also while being deleted",
    given: undoing({
      isDeleted: true,
      identity: "verified",
      read: "Off×1",
      observations: UNDOING,
      status: { target: TARGET },
      isOutOfTime: true,
      other: TAKEN_BACK,
    }),
    expected: "clearMarks",
  },
  {
    name: "an undo looks for no marks in another cluster that the kubeconfig leads to",
    given: undoing({ status: { target: TARGET }, other: EXCHANGED }),
    expected: "stay (ClusterExchanged)",
  },
  {
    name: "an undo does not power on a host of a deleted Cluster while the node may be tainted",
    given: undoing({ status: { target: TARGET }, observations: clusterChecked(true), other: AWAY }),
    expected: "closeDevices",
  },
  {
    name: "an undo powers on a host of a deleted Cluster that nothing uses any more",
    given: undoing({
      status: { target: TARGET },
      identity: "verified",
      read: "Off×1",
      successor: "none",
      observations: { ...clusterChecked(true) },
      other: { ...AWAY, ...UNUSED },
    }),
    expected: "stay (PoweringOnAgain), powerOn",
  },
  {
    name: "an undo powers on a host of a deleted Cluster whose taint is removed",
    given: undoing({
      attempt: { action: "On", done: false },
      status: { target: TARGET },
      identity: "verified",
      read: "Off×1",
      successor: "none",
      observations: { ...clusterChecked(true) },
      other: AWAY,
    }),
    expected: "stay (PoweringOnAgain), powerOn",
  },
  {
    name: "an undo does not power on a host whose node may be tainted while the node's cluster cannot be reached",
    given: undoing({ identity: "verified", read: "Off×1", status: { target: TARGET }, other: AWAY }),
    expected: "stay (ClusterUnreachable)",
  },
  {
    name: "an undo powers on a host whose taint is removed although the node's cluster cannot be reached",
    given: undoing({
      identity: "verified",
      read: "Off×1",
      observations: UNDOING,
      status: { target: TARGET },
      other: AWAY,
    }),
    expected: "stay (PoweringOnAgain), powerOn",
  },
  {
    name: "a remediation that had begun nothing ends although the node's cluster cannot be reached",
    given: undoing({
      attempt: { action: "None" },
      observations: { devicesClosed: true, hostReleased: true },
      other: AWAY,
    }),
    expected: "→ Failed (Failed)",
  },
  {
    name: "an undo does not count the refusal of an earlier attempt's order as that of its own",
    given: undoing({
      attempt: { done: false },
      taint: "cleared",
      read: "On",
      identity: "verified",
      successor: "none",
      observations: { order: ordered("Rejected", 3_000, { attemptId: "a0" }) },
    }),
    expected: "wait",
  },
  {
    name: "an undo powers on a host that has had all of its power-offs",
    given: undoing({
      attempt: { orders: ORDERS_MAX },
      taint: "cleared",
      identity: "verified",
      successor: "none",
      observations: { power: { ...READ_OFF, offReads: 2 } },
    }),
    expected: "stay (PoweringOnAgain), powerOn",
  },
  {
    name: "an undo that could not read its devices because of the API continues when its time is over",
    given: undoing({
      taint: "cleared",
      identity: "verified",
      successor: "none",
      isOutOfTime: true,
      observations: { kube: REFUSED_CALL },
    }),
    expected: "readWhole",
  },
];
