import { AWAY, clusterChecked, SAID_AWAY } from "./fixtures.ts";
import type { Step } from "./situations.ts";
import { provisioning } from "./situations.ts";

/** What a remediation does in Provisioning. */
export const PROVISIONING_STEPS: readonly Step[] = [
  {
    name: "a boot override is stored before it is set",
    given: provisioning({ read: "Off×2", identity: "verified" }),
    expected: "stay (BootOverride)",
  },
  {
    name: "the deletion of the node is announced before it is done",
    given: provisioning({
      attempt: { bootOverride: true },
      read: "Off×2",
      observations: { override: "NetworkOnce", backup: { status: { nodeUID: "node-uid" }, resourceVersion: "1" } },
    }),
    expected: "stay (NodeDeletionExpected)",
  },
  {
    name: "the deletion of the node is announced again if only an earlier attempt stored the same backup",
    given: provisioning({
      attempt: { bootOverride: true },
      status: { backup: { nodeUID: "node-uid" } },
      read: "Off×2",
      observations: { override: "NetworkOnce", backup: { status: { nodeUID: "node-uid" }, resourceVersion: "1" } },
    }),
    expected: "stay (NodeDeletionExpected)",
  },
  {
    name: "a node is not deleted while its host is not proven off",
    given: provisioning({
      attempt: { bootOverride: true },
      read: "On",
      observations: { override: "NetworkOnce", backup: { status: { nodeUID: "node-uid" }, resourceVersion: "1" } },
    }),
    expected: "→ PoweringOff (PowerOffLost)",
  },
  {
    name: "a host that is provisioned is powered on",
    given: provisioning({
      attempt: { bootOverride: true },
      read: "Off×2",
      observations: { override: "NetworkOnce", nodeDeleted: true },
    }),
    expected: "→ PoweringOn (Provisioned)",
  },
  {
    name: "no Machine is deleted while the node's cluster cannot be reached",
    given: provisioning({
      strategy: { via: "MachineDeletion" },
      attempt: { kind: "Reprovision" },
      status: SAID_AWAY,
      observations: clusterChecked(false),
      other: AWAY,
    }),
    expected: "wait",
  },
  {
    name: "a boot override waits until the host is verified again",
    given: provisioning({ attempt: { bootOverride: true }, read: "Off×2" }),
    expected: "verifyIdentity",
  },
  {
    name: "a boot override is set once its intent is stored",
    given: provisioning({
      strategy: { type: "Reprovision", via: "NetworkBoot" },
      attempt: { bootOverride: true },
      read: "Off×2",
      identity: "verified",
    }),
    expected: "setBootOverride NetworkOnce",
  },
];
