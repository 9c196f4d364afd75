import { announced, node } from "../snapshots.ts";
import { AWAY, BACKUP, clusterChecked } from "./fixtures.ts";
import type { Step } from "./situations.ts";
import { failed } from "./situations.ts";

/** What a remediation does in Failed. */
export const FAILED_STEPS: readonly Step[] = [
  {
    name: "a Cluster that was deleted changes no verdict",
    given: failed({ remediation: { hasFinalizer: false }, observations: clusterChecked(true), other: AWAY }),
    expected: "wait for a change",
  },
  {
    name: "a remediation that has ended gives its labels back to a Node that joins late",
    given: failed({
      status: { conditions: [announced()], backup: BACKUP.status },
      other: { node: node({ uid: "new-uid" }) },
    }),
    expected: "restoreNode",
  },
  {
    name: "a remediation that has ended keeps its finalizer while it keeps the labels of a deleted Node",
    given: failed({ status: { conditions: [announced()], backup: BACKUP.status }, nodeNow: "gone" }),
    expected: "wait for a change",
  },
  {
    name: "a remediation that has ended and is deleted drops its finalizer, though it keeps labels",
    given: failed({ isDeleted: true, status: { conditions: [announced()], backup: BACKUP.status }, nodeNow: "gone" }),
    expected: "dropFinalizer",
  },
];
