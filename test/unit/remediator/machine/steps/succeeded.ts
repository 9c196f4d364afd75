import { SET } from "../snapshots.ts";
import type { Step } from "./situations.ts";
import { succeeded } from "./situations.ts";

/** What a remediation does in Succeeded. */
export const SUCCEEDED_STEPS: readonly Step[] = [
  {
    name: "a remediation that has ended and is being deleted does not delete itself",
    given: succeeded({ isDeleted: true, status: { replacement: { owner: SET, nodeName: "n2" } } }),
    expected: "dropFinalizer",
  },
  {
    name: "a remediation that has ended and has no finalizer does nothing",
    given: succeeded({ remediation: { deleting: true, hasFinalizer: false } }),
    expected: "wait for a change",
  },
];
