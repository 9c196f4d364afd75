import { node } from "../snapshots.ts";
import { BACKUP } from "./fixtures.ts";
import type { Step } from "./situations.ts";
import { restoring } from "./situations.ts";

/** What a remediation does in Restoring. */
export const RESTORING_STEPS: readonly Step[] = [
  {
    name: "the host is released once the node is Ready",
    given: restoring({
      observations: { devicesClosed: true },
      other: { node: node({ ready: "True", bootID: "new-boot" }) },
    }),
    expected: "releaseHost",
  },
  {
    name: "the verdict is given once the host is released",
    given: restoring({
      observations: { devicesClosed: true, hostReleased: true },
      other: { node: node({ ready: "True", bootID: "new-boot" }) },
    }),
    expected: "→ Succeeded (Succeeded)",
  },
  {
    name: "a boot override is cleared before the verdict",
    given: restoring({ attempt: { bootOverride: true }, other: { node: node({ ready: "True", bootID: "new-boot" }) } }),
    expected: "setBootOverride None",
  },
  {
    name: "a node in a new boot that is not Ready is waited for",
    given: restoring({
      observations: { devicesClosed: true, hostReleased: true },
      other: { node: node({ bootID: "new-boot" }) },
    }),
    expected: "wait",
  },
  {
    name: "a Node that is created again while it is awaited gets its labels back",
    given: restoring({ status: { backup: BACKUP.status }, other: { node: node({ uid: "new-uid", ready: "True" }) } }),
    expected: "restoreNode",
  },
  {
    name: "a boot override is not cleared during the pause of a device that was away",
    given: restoring({
      attempt: { bootOverride: true },
      device: "away",
      other: { node: node({ ready: "True", bootID: "new-boot" }) },
    }),
    expected: "stay (BMCUnreachable)",
  },
  {
    name: "a boot override counts as cleared once that was read",
    given: restoring({
      attempt: { bootOverride: true },
      observations: { override: "None" },
      other: { node: node({ ready: "True", bootID: "new-boot" }) },
    }),
    expected: "stay (BootOverrideCleared)",
  },
  {
    name: "a remediation that is deleted while its node is Ready in a new boot succeeds",
    given: restoring({
      isDeleted: true,
      observations: { devicesClosed: true, hostReleased: true },
      other: { node: node({ ready: "True", bootID: "new-boot" }) },
    }),
    expected: "→ Succeeded (Succeeded)",
  },
  {
    name: "a remediation that is deleted while its node is Ready in the old boot is undone",
    given: restoring({ isDeleted: true, nodeNow: "Ready" }),
    expected: "→ Undoing (RemediationDeleted)",
  },
  {
    name: "a remediation that is deleted while its node is not Ready in a new boot is undone",
    given: restoring({ isDeleted: true, other: { node: node({ ready: "False", bootID: "new-boot" }) } }),
    expected: "→ Undoing (RemediationDeleted)",
  },
  {
    name: "a node that came back by itself may be in its old boot",
    given: restoring({ attempt: { action: "None" }, nodeNow: "Ready" }),
    expected: "closeDevices",
  },
];
