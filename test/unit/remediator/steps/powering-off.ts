import { ORDERS_MAX } from "../../../../src/remediator/machine/rules/power-orders.ts";
import { MISMATCH, node, NOW, ordered, PROVEN, READ_OFF, READ_ON, REFUSED, STALE_LEASE } from "../snapshots.ts";
import {
  AGO_2S,
  AWAY,
  CAME_BACK,
  cameBack,
  CUT_OFF,
  CUT_OFF_BY_GATEWAY,
  EXCHANGED,
  membersOfEtcd,
  readOff,
  RENEWED,
  UNKNOWN,
  TAKEN_BACK,
  SAID_PAUSED,
} from "./fixtures.ts";
import type { Step } from "./situations.ts";
import { poweringOff } from "./situations.ts";

/** What a remediation does in PoweringOff. */
export const POWERING_OFF_STEPS: readonly Step[] = [
  {
    name: "a taint that may stand without a proof is removed first, even if nothing answers",
    given: poweringOff({ read: "On", device: "away", isOutOfTime: true }),
    expected: "untaint",
  },
  {
    name: "a host whose node cannot be tainted is not kept off after its time",
    given: poweringOff({
      strategy: { retryLimit: 0 },
      read: "Off×2",
      lease: "silent",
      taint: "cleared",
      observations: { taintFailure: "forbidden" },
      isOutOfTime: true,
    }),
    expected: "→ Undoing (PowerOffTimeout)",
  },
  {
    name: "a taint that may stand is removed before an attempt fails because the node cannot be tainted",
    given: poweringOff({
      strategy: { retryLimit: 0 },
      read: "Off×2",
      lease: "silent",
      observations: { taintFailure: "no connection" },
      isOutOfTime: true,
    }),
    expected: "untaint",
  },
  {
    name: "one Off reading proves nothing",
    given: poweringOff({ taint: "cleared", read: "Off×1", lease: "silent" }),
    expected: "readPower",
  },
  {
    name: "two Off readings prove the host off, and the taint follows at once if the lease is silent",
    given: poweringOff({ read: "Off×2", lease: "silent" }),
    expected: "taint",
  },
  {
    name: "a lease that was renewed shortly before the order delays the taint",
    given: poweringOff({
      read: "Off×2",
      observations: { lease: { ...STALE_LEASE, renewTimeMs: NOW.epochMs - 10_000 } },
    }),
    expected: "wait",
  },
  {
    name: "a Ready condition that is still True delays the taint",
    given: poweringOff({ read: "Off×2", lease: "silent", examined: "Ready" }),
    expected: "wait",
  },
  {
    name: "a Ready condition that a kubelet has posted as False delays the taint",
    given: poweringOff({
      read: "Off×2",
      lease: "silent",
      observations: { examined: { node: node({ ready: "False" }) } },
    }),
    expected: "wait",
  },
  {
    name: "a node that has become Ready since it was examined delays the taint",
    given: poweringOff({ read: "Off×2", lease: "silent", examined: "NotReady", nodeNow: "Ready" }),
    expected: "wait",
  },
  {
    name: "a lease renewal that this process has seen delays the taint, whatever its timestamp",
    given: poweringOff({
      read: "Off×2",
      observations: { lease: { ...STALE_LEASE, renewedAtMs: NOW.monotonicMs - 5_000 } },
    }),
    expected: "wait",
  },
  {
    name: "a lease that was silent for 22 s by the API server's clock delays nothing",
    given: poweringOff({
      read: "Off×2",
      observations: {
        lease: { ...STALE_LEASE, renewTimeMs: NOW.epochMs - 1_000, writtenAtMs: NOW.monotonicMs - 22_000 },
      },
    }),
    expected: "taint",
  },
  {
    name: "a lease that was silent for less than 22 s delays the taint",
    given: poweringOff({
      read: "Off×2",
      observations: {
        lease: { ...STALE_LEASE, renewTimeMs: NOW.epochMs - 300_000, writtenAtMs: NOW.monotonicMs - 21_000 },
      },
    }),
    expected: "wait",
  },
  {
    name: "a renewal that this process has seen ends the silence of a lease",
    given: poweringOff({
      read: "Off×2",
      observations: {
        lease: { ...STALE_LEASE, writtenAtMs: NOW.monotonicMs - 60_000, renewedAtMs: NOW.monotonicMs - 20_000 },
      },
    }),
    expected: "wait",
  },
  {
    name: "a lease with a duration of 80 s delays the taint for longer",
    given: poweringOff({
      attempt: { actionAtMs: NOW.epochMs - 20_000 },
      examined: "Ready",
      observations: {
        power: { ...PROVEN, provenAtMs: NOW.monotonicMs - 21_000 },
        lease: { ...STALE_LEASE, durationMs: 80_000 },
      },
    }),
    expected: "wait",
  },
  {
    name: "a lease of any duration delays the taint for a minute at most",
    given: poweringOff({
      attempt: { actionAtMs: NOW.epochMs - 20_000 },
      examined: "Ready",
      observations: {
        power: { ...PROVEN, provenAtMs: NOW.monotonicMs - 64_000 },
        lease: { ...STALE_LEASE, durationMs: 100_000_000 },
      },
    }),
    expected: "taint",
  },
  {
    name: "silence of a lease while the API server was away does not count",
    given: poweringOff({
      read: "Off×2",
      observations: { lease: { ...STALE_LEASE, answeringSinceMs: NOW.monotonicMs - 21_000 } },
    }),
    expected: "wait",
  },
  {
    name: "silence of a lease while the API server was away does not count, whatever its timestamps show",
    given: poweringOff({
      read: "Off×2",
      observations: {
        lease: {
          ...STALE_LEASE,
          writtenAtMs: NOW.monotonicMs - 90_000,
          answeringSinceMs: NOW.monotonicMs - 21_000,
        },
      },
    }),
    expected: "wait",
  },
  {
    name: "a host is not kept off for a wait for silence that outages start again and again",
    given: poweringOff({
      strategy: { retryLimit: 0 },
      taint: "cleared",
      observations: {
        power: { ...PROVEN, provenAtMs: NOW.monotonicMs - 23_000 },
        lease: { ...STALE_LEASE, answeringSinceMs: NOW.monotonicMs - 10_000 },
      },
      isOutOfTime: true,
    }),
    expected: "→ Undoing (PowerOffTimeout)",
  },
  {
    name: "a host is not kept off for a wait for silence: a taint that may stand is removed first",
    given: poweringOff({
      observations: {
        power: { ...PROVEN, provenAtMs: NOW.monotonicMs - 23_000 },
        lease: { ...STALE_LEASE, answeringSinceMs: NOW.monotonicMs - 10_000 },
      },
      isOutOfTime: true,
    }),
    expected: "untaint",
  },
  {
    name: "a proof that came late still gets the time of one whole wait for silence",
    given: poweringOff({
      taint: "cleared",
      observations: {
        power: { ...PROVEN, provenAtMs: NOW.monotonicMs - 21_000 },
        lease: { ...STALE_LEASE, answeringSinceMs: NOW.monotonicMs - 10_000 },
      },
      isOutOfTime: true,
    }),
    expected: "wait",
  },
  {
    name: "a lease that was read before the proof is read again before the taint",
    given: poweringOff({ read: "Off×2", observations: { lease: { ...STALE_LEASE, readAtMs: NOW.monotonicMs - 101 } } }),
    expected: "readLease",
  },
  {
    name: "the lease is read live right before the taint",
    given: poweringOff({
      attempt: { actionAtMs: NOW.epochMs - 20_000 },
      observations: {
        power: { ...PROVEN, provenAtMs: NOW.monotonicMs - 13_000 },
        lease: { ...STALE_LEASE, renewTimeMs: NOW.epochMs - 25_000, readAtMs: NOW.monotonicMs - 20_000 },
      },
    }),
    expected: "readLease",
  },
  {
    name: "a lease renewal shortly after the proof starts the delay again",
    given: poweringOff({
      attempt: { actionAtMs: NOW.epochMs - 20_000 },
      observations: {
        power: { ...PROVEN, provenAtMs: NOW.monotonicMs - 13_000 },
        lease: { ...STALE_LEASE, renewTimeMs: NOW.epochMs - 10_000, renewedAtMs: NOW.monotonicMs - 4_000 },
      },
    }),
    expected: "wait",
  },
  {
    name: "the release begins once the taint of this attempt stands",
    given: poweringOff({ read: "Off×2", lease: "silent", taint: "ours" }),
    expected: "→ Releasing (PowerOffConfirmed)",
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
    name: "the node and etcd's members are examined before an order is repeated after a restart",
    given: poweringOff({ attempt: { sent: false }, taint: "cleared", read: "Off×1", identity: "verified" }),
    expected: "examine",
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
    name: "a host that obeys none of its orders gets no more of them",
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
    name: "a node that comes back while the BMC refuses the order is left alone",
    given: cameBack({}),
    expected: "→ Restoring (Recovered)",
  },
  {
    name: "the power is read before a node that came back is left alone, if the connection broke during the order",
    given: cameBack({ order: CUT_OFF }),
    expected: "readPower",
  },
  {
    name: "the power is read before a node that came back is left alone, if the order was answered with 503",
    given: cameBack({ order: CUT_OFF_BY_GATEWAY }),
    expected: "readPower",
  },
  {
    name: "the power is read before a node that came back is left alone, if the connection broke during an earlier order",
    given: cameBack({ order: { ...ordered("Rejected", 3_000), earlierEffectAtMs: CUT_OFF.atMs } }),
    expected: "readPower",
  },
  {
    name: "a node that came back is not left alone while an order whose connection broke can still take effect",
    given: cameBack({ order: CUT_OFF, power: READ_ON }),
    expected: "wait",
  },
  {
    name: "a node that came back is left alone once an order whose connection broke cannot take effect any more",
    given: cameBack({ order: { ...CUT_OFF, atMs: NOW.monotonicMs - 126_000 }, power: READ_ON }),
    expected: "→ Restoring (Recovered)",
  },
  {
    name: "the time in which an order can take effect counts from the one that may have been received, not from a refused one after it",
    given: cameBack({
      order: { ...ordered("Rejected", 3_000), earlierEffectAtMs: NOW.monotonicMs - 126_000 },
      power: READ_ON,
    }),
    expected: "→ Restoring (Recovered)",
  },
  {
    name: "a node that came back is not left alone while the power state of its host is unknown",
    given: cameBack({ order: CUT_OFF, power: UNKNOWN }),
    expected: "wait",
  },
  {
    name: "a node that came back is powered off all the same while its host reads Off",
    given: cameBack({ order: CUT_OFF, power: READ_OFF }),
    expected: "stay (PoweringOffAgain), forceOff",
  },
  {
    name: "a node that came back is powered off all the same if an earlier order may have taken effect",
    given: { ...cameBack({}), attempt: { sent: false, orders: 2 } },
    expected: "stay (PoweringOffAgain), forceOff",
  },
  {
    name: "an order to a member of etcd is not repeated before the other members are looked at again",
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
    name: "an order to a member of etcd whose host was proven off is repeated without a read of the others",
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
    name: "a host that read Off before its order is powered off all the same",
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
    name: "a node that is Ready again is powered off if an earlier power cycle may have taken effect",
    given: poweringOff({
      attempt: { sent: false },
      taint: "cleared",
      examined: "NotReady",
      identity: "verified",
      observations: { marksCleared: true, order: ordered("Rejected", 3_000) },
      nodeNow: "Ready",
      status: { ...CAME_BACK, retryCount: 1 },
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
    name: "no taint is set on a Node that is to be deleted",
    given: poweringOff({ strategy: { workloadRelease: "DeleteNode" }, read: "Off×2", lease: "silent" }),
    expected: "→ Releasing (PowerOffConfirmed)",
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
    name: "a host whose power state is unknown is not powered off again and again",
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
    name: "a node whose lease is renewed after its host was proven off runs on another host",
    given: poweringOff({
      observations: { power: { ...PROVEN, provenAtMs: NOW.monotonicMs - 15_000 }, lease: RENEWED },
    }),
    expected: "→ Undoing (WrongHost)",
  },
  {
    name: "one live read of the lease after the delay is enough",
    given: poweringOff({
      observations: {
        power: { ...PROVEN, provenAtMs: NOW.monotonicMs - 15_000 },
        lease: { ...STALE_LEASE, renewTimeMs: NOW.epochMs - 20_000, readAtMs: NOW.monotonicMs - 1_000 },
      },
    }),
    expected: "taint",
  },
  {
    name: "a node that is Ready after an accepted order is powered off again",
    given: poweringOff({
      taint: "cleared",
      read: "On",
      identity: "verified",
      examined: "Ready",
      observations: { order: ordered("Acknowledged", 25_000) },
      status: CAME_BACK,
      nodeNow: "Ready",
    }),
    expected: "stay (PoweringOffAgain), forceOff",
  },
  {
    name: "the node's lease is read before its host counts as the one that is off",
    given: poweringOff({ read: "Off×2" }),
    expected: "readLease",
  },
  {
    name: "a taint that the API server refuses is tried until the power-off's time is over",
    given: poweringOff({
      read: "Off×2",
      lease: "silent",
      observations: {
        kube: {
          call: "handToOwner",
          sinceMs: 0,
          refused: true,
          message: "no",
          failures: 1,
          retryAtMs: NOW.monotonicMs,
        },
      },
    }),
    expected: "taint",
  },
  {
    name: "a proof that has grown old is renewed before the taint",
    given: poweringOff({ lease: "silent", observations: { power: AGO_2S } }),
    expected: "readPower",
  },
  {
    name: "the taint is set again under the order that proved the host off",
    given: poweringOff({ read: "Off×2", lease: "silent", observations: { taint: { attemptId: "a0", found: "Ours" } } }),
    expected: "taint",
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
    name: "no order is sent to a host that its operator powers now",
    given: poweringOff({ read: "Off×2", other: TAKEN_BACK }),
    expected: "→ Undoing (HostAttached)",
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
  {
    name: "a host that reads Off is powered on while power orders are paused, if it is unknown whether the order was sent",
    given: poweringOff({
      attempt: { sent: false },
      taint: "cleared",
      read: "Off×1",
      identity: "verified",
      examined: "NotReady",
      stopped: "Paused",
      status: SAID_PAUSED,
    }),
    expected: "→ Undoing (Paused)",
  },
  {
    name: "a host that reads On is left alone while power orders are paused, if it is unknown whether the order was sent",
    given: poweringOff({
      attempt: { sent: false },
      taint: "cleared",
      read: "On",
      identity: "verified",
      examined: "NotReady",
      stopped: "Paused",
      status: SAID_PAUSED,
    }),
    expected: "wait",
  },
  {
    name: "a power-off that was sent is proven while power orders are paused",
    given: poweringOff({
      taint: "cleared",
      read: "Off×1",
      identity: "verified",
      examined: "NotReady",
      stopped: "Paused",
      status: SAID_PAUSED,
    }),
    expected: "readPower",
  },
  {
    name: "the power is read while power orders are paused, if nothing was read yet",
    given: poweringOff({ taint: "cleared", stopped: "Paused", status: SAID_PAUSED }),
    expected: "readPower",
  },
  {
    name: "a device that was away has its pause while power orders are paused",
    given: poweringOff({ taint: "cleared", device: "away", stopped: "Paused", status: SAID_PAUSED }),
    expected: "wait",
  },
  {
    name: "a device that refuses the account ends the remediation while power orders are paused",
    given: poweringOff({
      taint: "cleared",
      read: "On",
      device: "refused permanently",
      stopped: "Paused",
      status: SAID_PAUSED,
    }),
    expected: "→ Undoing (BMCAuthenticationFailed)",
  },
  {
    name: "a host that is proven off has its node tainted though its time is over",
    given: poweringOff({ read: "Off×2", lease: "silent", isOutOfTime: true }),
    expected: "taint",
  },
  {
    name: "the release begins once the taint stands, though an earlier try to set it failed and the time is over",
    given: poweringOff({
      read: "Off×2",
      lease: "silent",
      taint: "ours",
      isOutOfTime: true,
      observations: { taintFailure: "forbidden" },
    }),
    expected: "→ Releasing (PowerOffConfirmed)",
  },
  {
    name: "a node that seems to be back is not looked at during the pause of a device while power orders are paused",
    given: poweringOff({
      attempt: { actionAtMs: NOW.epochMs - 21_000 },
      taint: "cleared",
      read: "On",
      device: "away",
      stopped: "Paused",
      status: SAID_PAUSED,
      other: { node: node({ ready: "True", bootID: "new-boot" }) },
    }),
    expected: "wait",
  },
];
