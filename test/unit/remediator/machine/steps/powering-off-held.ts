import { MISMATCH, node, NOW, ordered, REFUSED } from "../snapshots.ts";
import { AWAY, EXCHANGED, membersOfEtcd, TAKEN_BACK, SAID_PAUSED } from "./fixtures.ts";
import type { Step } from "./situations.ts";
import { poweringOff } from "./situations.ts";

/** In PoweringOff, without a taint, while power orders are paused and the status says so. */
const stillPaused: typeof poweringOff = (more) =>
  poweringOff({ taint: "cleared", stopped: "Paused", status: SAID_PAUSED, ...more });

/** What a remediation in PoweringOff does while it cannot send another power-off. */
export const POWERING_OFF_HELD_STEPS: readonly Step[] = [
  {
    name: "the node and etcd's members are examined before an order is repeated after a restart",
    given: poweringOff({ attempt: { sent: false }, taint: "cleared", read: "Off×1", identity: "verified" }),
    expected: "examine",
  },
  {
    name: "no further power-off is sent while power orders are paused",
    given: poweringOff({
      attempt: { actionAtMs: NOW.epochMs - 21_000 },
      taint: "cleared",
      read: "On",
      identity: "verified",
      stopped: "Paused",
    }),
    expected: "stay (Paused)",
  },
  {
    name: "an order to a member of etcd is not repeated before the other members are read again",
    given: poweringOff({
      attempt: { sent: false },
      observations: { ...REFUSED, identity: undefined, members: membersOfEtcd(true) },
    }),
    expected: "examine",
  },
  {
    name: "an order to a member of etcd is not repeated while another member is down",
    given: poweringOff({ attempt: { sent: false }, observations: { ...REFUSED, members: membersOfEtcd(false) } }),
    expected: "stay (ControlPlaneQuorum)",
  },
  {
    name: "an order to a member of etcd whose host was proven off is repeated without a read of the other members",
    given: poweringOff({
      attempt: { sent: false, offConfirmedAtMs: NOW.epochMs - 5_000 },
      observations: { ...REFUSED, members: membersOfEtcd(false) },
    }),
    expected: "stay (PoweringOffAgain), forceOff",
  },
  {
    name: "an agent that has moved to the failed node hands its lease over instead of repeating the order",
    given: poweringOff({ attempt: { sent: false }, observations: REFUSED, other: { runsHere: true } }),
    expected: "stay (OwnNode), handOver",
  },
  {
    name: "a host that another Node claims is not powered off again",
    given: poweringOff({ observations: { ...REFUSED, examined: { node: node(), dispute: "both" } } }),
    expected: "→ Undoing (Ambiguous)",
  },
  {
    name: "no further power-off is sent while the kubeconfig leads to another cluster",
    given: poweringOff({ observations: REFUSED, other: EXCHANGED }),
    expected: "stay (ClusterExchanged)",
  },
  {
    name: "no further power-off is sent while the node's cluster cannot be reached",
    given: poweringOff({ observations: REFUSED, other: AWAY }),
    expected: "stay (ClusterUnreachable)",
  },
  {
    name: "a further order waits for a fresh check of the identity",
    given: poweringOff({
      taint: "cleared",
      read: "On",
      examined: "NotReady",
      observations: { order: ordered("Acknowledged", 21_000) },
    }),
    expected: "examine",
  },
  {
    name: "no further power-off is sent to a host with another identity",
    given: poweringOff({
      taint: "cleared",
      read: "On",
      examined: "NotReady",
      observations: { identity: MISMATCH, order: ordered("Acknowledged", 21_000) },
    }),
    expected: "→ Undoing (IdentityMismatch)",
  },
  {
    name: "no order is sent to a host that its operator powers now",
    given: poweringOff({ read: "Off×2", other: TAKEN_BACK }),
    expected: "→ Undoing (HostAttached)",
  },
  {
    name: "a host that reads Off is powered on while power orders are paused, if it is unknown whether the order was sent",
    given: stillPaused({
      attempt: { sent: false },
      read: "Off×1",
      identity: "verified",
      examined: "NotReady",
    }),
    expected: "→ Undoing (Paused)",
  },
  {
    name: "a host that reads On is left alone while power orders are paused, if it is unknown whether the order was sent",
    given: stillPaused({
      attempt: { sent: false },
      read: "On",
      identity: "verified",
      examined: "NotReady",
    }),
    expected: "wait",
  },
  {
    name: "a power-off that was sent is proven while power orders are paused",
    given: stillPaused({
      read: "Off×1",
      identity: "verified",
      examined: "NotReady",
    }),
    expected: "readPower",
  },
  {
    name: "the power is read while power orders are paused, if nothing was read yet",
    given: stillPaused({}),
    expected: "readPower",
  },
  {
    name: "a device that could not be reached is not called during its pause while power orders are paused",
    given: stillPaused({ device: "away" }),
    expected: "wait",
  },
  {
    name: "a device that refuses the account ends the remediation while power orders are paused",
    given: stillPaused({
      read: "On",
      device: "refused permanently",
    }),
    expected: "→ Undoing (BMCAuthenticationFailed)",
  },
  {
    name: "a node that seems to be back is not read during the pause of a device while power orders are paused",
    given: stillPaused({
      attempt: { actionAtMs: NOW.epochMs - 21_000 },
      read: "On",
      device: "away",
      other: { node: node({ ready: "True", bootID: "new-boot" }) },
    }),
    expected: "wait",
  },
];
