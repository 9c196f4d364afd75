import { announced, machineRead, node, NOW, said, STALE_LEASE } from "../snapshots.ts";
import { AWAY, BACKUP, bootless, clusterChecked, NODELESS, RENEWED, SAID_AWAY, TAKEN_BACK } from "./fixtures.ts";
import type { Step } from "./situations.ts";
import { rejoining } from "./situations.ts";

/** What a remediation does in Rejoining. */
export const REJOINING_STEPS: readonly Step[] = [
  {
    name: "a node in its old boot has not rejoined, whatever its lease shows",
    given: rejoining({
      observations: { devicesClosed: true, lease: { ...STALE_LEASE, renewedAtMs: NOW.monotonicMs } },
      nodeNow: "Ready",
    }),
    expected: "wait",
  },
  {
    name: "a node in a new boot whose lease was not renewed has not rejoined",
    given: rejoining({
      lease: "silent",
      observations: { devicesClosed: true },
      other: { node: node({ ready: "True", bootID: "new-boot" }) },
    }),
    expected: "wait",
  },
  {
    name: "a lease renewal from before the power-on does not count",
    given: rejoining({
      observations: {
        devicesClosed: true,
        order: { attemptId: "a1", action: "On", outcome: "Acknowledged", atMs: NOW.monotonicMs - 1_000 },
        lease: { ...STALE_LEASE, renewedAtMs: NOW.monotonicMs - 30_000 },
      },
      other: { node: node({ bootID: "new-boot" }) },
    }),
    expected: "wait",
  },
  {
    name: "a new boot and a renewed lease lift the quarantine",
    given: rejoining({
      observations: { devicesClosed: true, lease: { ...STALE_LEASE, renewedAtMs: NOW.monotonicMs } },
      other: { node: node({ bootID: "new-boot" }) },
    }),
    expected: "liftQuarantine",
  },
  {
    name: "a node that has rejoined without a quarantine is waited for until it is Ready",
    given: rejoining({
      observations: {
        devicesClosed: true,
        quarantineLifted: true,
        lease: { ...STALE_LEASE, renewedAtMs: NOW.monotonicMs },
      },
      other: { node: node({ bootID: "new-boot" }) },
    }),
    expected: "→ Restoring (NodeRejoined)",
  },
  {
    name: "a node whose host its operator powers now is waited for",
    given: rejoining({ other: TAKEN_BACK }),
    expected: "closeDevices",
  },
  {
    name: "the deadline starts again once the kubeconfig leads to the right cluster",
    given: rejoining({ status: { conditions: [said("ClusterExchanged", "away")] }, isOutOfTime: true }),
    expected: "stay (ClusterReached)",
  },
  {
    name: "the Cluster is looked up while its API server is away",
    given: rejoining({ status: SAID_AWAY, other: AWAY }),
    expected: "findCluster",
  },
  {
    name: "the Cluster is not looked up again for a while",
    given: rejoining({ status: SAID_AWAY, observations: clusterChecked(false), other: AWAY }),
    expected: "wait",
  },
  {
    name: "a remediation does not wait for a Cluster that was deleted",
    given: rejoining({ status: SAID_AWAY, observations: clusterChecked(true), other: AWAY }),
    expected: "→ Undoing (ClusterGone)",
  },
  {
    name: "a cluster that can be reached is used, though its Cluster was missing before",
    given: rejoining({ observations: { ...clusterChecked(true), devicesClosed: true } }),
    expected: "wait",
  },
  {
    name: "a remediation that is deleted while the node's cluster cannot be reached is undone",
    given: rejoining({ isDeleted: true, other: AWAY }),
    expected: "→ Undoing (RemediationDeleted)",
  },
  {
    name: "the deadline starts again once the node's cluster is back",
    given: rejoining({ status: { conditions: [said("ClusterUnreachable", "away")] }, isOutOfTime: true }),
    expected: "stay (ClusterReached)",
  },
  {
    name: "the node that a Machine has become after the power-on is stored",
    given: rejoining({ observations: { devicesClosed: true, ...machineRead("n7") }, other: NODELESS }),
    expected: "stay (NodeNamed)",
  },
  {
    name: "a Node that joined in place of the deleted one counts as back in its new boot",
    given: rejoining({
      observations: { devicesClosed: true, restoredUid: "new-uid", lease: RENEWED },
      status: {
        node: { name: "n1", uid: "node-uid", bootID: "old-boot" },
        conditions: [announced()],
        backup: BACKUP.status,
      },
      other: { node: node({ uid: "new-uid", bootID: "new-boot" }) },
    }),
    expected: "liftQuarantine",
  },
  {
    name: "the Node that is to be deleted does not count as the one that joins, whatever its boot",
    given: rejoining({
      observations: { devicesClosed: true, lease: RENEWED },
      status: { conditions: [announced()] },
      other: { node: node({ bootID: "new-boot" }) },
    }),
    expected: "wait",
  },
  {
    name: "a node without a boot ID has not rejoined",
    given: rejoining({ observations: { devicesClosed: true, lease: RENEWED }, other: { node: bootless() } }),
    expected: "wait",
  },
  {
    name: "a Node that has joined again gets its labels back before it is Ready",
    given: rejoining({
      observations: { devicesClosed: true },
      status: { backup: BACKUP.status },
      other: { node: node({ uid: "new-uid" }) },
    }),
    expected: "restoreNode",
  },
  {
    name: "a Node that joins again gets its labels restored again",
    given: rejoining({
      observations: { devicesClosed: true, restoredUid: "new-uid" },
      status: { backup: BACKUP.status },
      other: { node: node({ uid: "newer-uid" }) },
    }),
    expected: "restoreNode",
  },
  {
    name: "a Node that is not deleted yet gets no labels back",
    given: rejoining({
      observations: { devicesClosed: true },
      status: { backup: BACKUP.status },
      other: { node: node({ uid: BACKUP.status.nodeUID }) },
    }),
    expected: "wait",
  },
];
