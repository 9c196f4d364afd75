import { announced, node, NOW, PROVEN, READ_OFF, STALE_LEASE } from "../snapshots.ts";
import { AGO_2S, AWAY, BACKUP, readOff, TAKEN_BACK, REFUSED_CALL, DRAINED, OURS } from "./fixtures.ts";
import type { Step } from "./situations.ts";
import { releasing } from "./situations.ts";

/** What a remediation does in Releasing. */
export const RELEASING_STEPS: readonly Step[] = [
  {
    name: "a lease renewal long after the proof reports the wrong host",
    given: releasing({
      observations: {
        power: { ...PROVEN, provenAtMs: NOW.monotonicMs - 13_000 },
        lease: { ...STALE_LEASE, renewedAtMs: NOW.monotonicMs - 1_000 },
      },
    }),
    expected: "→ Undoing (WrongHost)",
  },
  {
    name: "the taint is removed from a fenced host that reads On",
    given: releasing({ read: "On" }),
    expected: "untaint",
  },
  {
    name: "a fenced host that read On is powered off and proven off again once its taint is removed",
    given: releasing({ read: "On", taint: "cleared" }),
    expected: "→ PoweringOff (PowerOffLost)",
  },
  {
    name: "an old proof is renewed before anything else is done",
    given: releasing({ taint: "ours", observations: { power: { ...PROVEN, offAtMs: NOW.monotonicMs - 1_600 } } }),
    expected: "readPower",
  },
  {
    name: "pods are released once the taint of this attempt is on the node",
    given: releasing({ read: "Off×2", taint: "ours" }),
    expected: "releasePods",
  },
  {
    name: "nothing is released while the taint belongs to another attempt",
    given: releasing({ read: "Off×2", observations: { taint: { attemptId: "a0", found: "Ours" } } }),
    expected: "taint",
  },
  {
    name: "no pods are deleted if the strategy leaves that to Kubernetes",
    given: releasing({ strategy: { podRelease: "GarbageCollector" }, read: "Off×2", taint: "ours" }),
    expected: "checkDrained",
  },
  {
    name: "the host stays off while pods are left",
    given: releasing({
      read: "Off×2",
      taint: "ours",
      observations: {
        released: true,
        drain: { pods: 1, attachments: 0, atMs: NOW.monotonicMs - 10, checks: 1, isReported: true },
      },
    }),
    expected: "wait",
  },
  {
    name: "the host stays off while volumes are attached",
    given: releasing({
      read: "Off×2",
      taint: "ours",
      observations: {
        released: true,
        drain: { pods: 0, attachments: 1, atMs: NOW.monotonicMs - 10, checks: 1, isReported: true },
      },
    }),
    expected: "wait",
  },
  {
    name: "the taint is replaced by the quarantine once the node is drained",
    given: releasing({
      read: "Off×2",
      observations: { quarantined: true, drain: { pods: 0, attachments: 0, atMs: 0, checks: 1, isReported: true } },
    }),
    expected: "swapMarks",
  },
  {
    name: "the intent to power on is stored once the quarantine is on the node",
    given: releasing({
      read: "Off×2",
      observations: { swapped: true, drain: { pods: 0, attachments: 0, atMs: 0, checks: 1, isReported: true } },
    }),
    expected: "→ PoweringOn (Drained)",
  },
  {
    name: "a drained Reprovision continues with provisioning",
    given: releasing({
      attempt: { kind: "Reprovision" },
      read: "Off×2",
      observations: { swapped: true, drain: { pods: 0, attachments: 0, atMs: 0, checks: 1, isReported: true } },
    }),
    expected: "→ Provisioning (Drained)",
  },
  {
    name: "the power of a fenced host is read while the node's cluster cannot be reached",
    given: releasing({
      taint: "ours",
      observations: { power: { ...PROVEN, offAtMs: NOW.monotonicMs - 2_000 } },
      other: AWAY,
    }),
    expected: "readPower",
  },
  {
    name: "nothing is released while the node's cluster cannot be reached",
    given: releasing({ read: "Off×2", taint: "ours", other: AWAY }),
    expected: "stay (ClusterUnreachable)",
  },
  {
    name: "a proof is not renewed during the pause of a device that was away",
    given: releasing({ taint: "ours", device: "away", observations: { power: AGO_2S } }),
    expected: "wait",
  },
  {
    name: "a proof that has run out is renewed also during the pause of a device that was away",
    given: releasing({
      taint: "ours",
      device: "away",
      observations: { power: { ...PROVEN, offAtMs: NOW.monotonicMs - 6_000 } },
    }),
    expected: "readPower",
  },
  {
    name: "a process that takes over a release waits for a second Off reading of its own",
    given: releasing({ taint: "ours", observations: { power: { ...READ_OFF, last: readOff(10) } } }),
    expected: "wait",
  },
  {
    name: "a process that takes over a release reads the power again a moment after its first Off reading",
    given: releasing({ taint: "ours", observations: { power: { ...READ_OFF, last: readOff(30) } } }),
    expected: "readPower",
  },
  {
    name: "a device that refuses the account ends the release instead of being called repeatedly",
    given: releasing({ taint: "ours", device: "refused permanently", observations: { power: AGO_2S } }),
    expected: "→ Undoing (BMCAuthenticationFailed)",
  },
  {
    name: "an Off reading from before the device failed does not count towards a proof",
    given: releasing({ read: "Off×1", taint: "ours", device: "away" }),
    expected: "untaint",
  },
  {
    name: "a Node that has joined again is not deleted",
    given: releasing({
      strategy: { workloadRelease: "DeleteNode" },
      read: "Off×2",
      other: { node: node({ uid: "new-uid" }) },
    }),
    expected: "releasePods",
  },
  {
    name: "a Node that has changed is stored again before it is deleted",
    given: releasing({
      strategy: { workloadRelease: "DeleteNode" },
      read: "Off×2",
      observations: { backup: BACKUP },
      status: { conditions: [announced()], backup: { ...BACKUP.status, labels: { rack: "r6" } } },
    }),
    expected: "stay (NodeDeletionExpected)",
  },
  {
    name: "pods that were deleted are listed again, and not deleted again",
    given: releasing({ read: "Off×2", taint: "ours", observations: { released: true } }),
    expected: "checkDrained",
  },
  {
    name: "remaining pods are listed again when the pause is over",
    given: releasing({
      read: "Off×2",
      taint: "ours",
      observations: {
        released: true,
        drain: { pods: 1, attachments: 0, checks: 1, isReported: true, atMs: NOW.monotonicMs - 300 },
      },
    }),
    expected: "checkDrained",
  },
  {
    name: "a Node that is saved and announced is deleted",
    given: releasing({
      strategy: { workloadRelease: "DeleteNode" },
      read: "Off×2",
      observations: { backup: BACKUP },
      status: { conditions: [announced()], backup: BACKUP.status },
    }),
    expected: "deleteNode",
  },
  {
    name: "a Node that was deleted is not deleted again",
    given: releasing({
      strategy: { workloadRelease: "DeleteNode" },
      read: "Off×2",
      observations: { backup: BACKUP, nodeDeleted: true, released: true },
      status: { conditions: [announced()], backup: BACKUP.status },
    }),
    expected: "checkDrained",
  },
  {
    name: "a Node is not deleted if nothing of it is stored",
    given: releasing({
      strategy: { workloadRelease: "DeleteNode" },
      read: "Off×2",
      observations: { released: true },
      status: { node: { name: "n1" } },
    }),
    expected: "checkDrained",
  },
  {
    name: "no order is sent to a host that its operator powers now",
    given: releasing({ read: "Off×2", other: TAKEN_BACK }),
    expected: "→ Undoing (HostAttached)",
  },
  {
    name: "a host is not powered on without the quarantine while its taint is only believed to be removed",
    given: releasing({
      read: "Off×2",
      taint: "cleared",
      isOutOfTime: true,
      observations: { drain: DRAINED, taint: OURS },
    }),
    expected: "swapMarks",
  },
  {
    name: "a host is powered on without the quarantine once its taint is removed and the API server refuses the quarantine until the time is over",
    given: releasing({
      read: "Off×2",
      taint: "cleared",
      isOutOfTime: true,
      observations: { drain: DRAINED, taint: OURS, kube: REFUSED_CALL },
    }),
    expected: "→ PoweringOn (Drained)",
  },
  {
    name: "a refused quarantine is tried again before the time is over",
    given: releasing({
      read: "Off×2",
      taint: "cleared",
      observations: { drain: DRAINED, taint: OURS, kube: REFUSED_CALL },
    }),
    expected: "swapMarks",
  },
  {
    name: "a host is not powered on while its node may be tainted, whatever the API server refuses",
    given: releasing({
      read: "Off×2",
      taint: "ours",
      isOutOfTime: true,
      observations: { drain: DRAINED, kube: REFUSED_CALL },
    }),
    expected: "swapMarks",
  },
  {
    name: "remaining pods are listed less often after several lists",
    given: releasing({
      read: "Off×2",
      taint: "ours",
      observations: {
        released: true,
        drain: { ...DRAINED, pods: 1, atMs: NOW.monotonicMs - 1_000, checks: 6, isReported: true },
      },
    }),
    expected: "wait",
  },
  {
    name: "remaining pods are listed again a second after the first list",
    given: releasing({
      read: "Off×2",
      taint: "ours",
      observations: { released: true, drain: { ...DRAINED, pods: 1, atMs: NOW.monotonicMs - 1_000 } },
    }),
    expected: "checkDrained",
  },
];
