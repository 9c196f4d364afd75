// What a decision knows of the host, as plain data.

/** The remediation that may power a host now. */
export interface HostOwner {
  uid: string;
  kind: string;
  namespace: string;
  name: string;
}

/** Why no host can be fenced for a node. */
export type LookupFailure = {
  found: false;
  /**
   * NoTarget: none names the node. Ambiguous: several targets claim one node, System or UUID, so none is trusted. Else
   * there is one, but it is in no state to be fenced.
   */
  reason: "NoTarget" | "Ambiguous" | HostRefusalReason;
  message: string;
};

/**
 * Why a host cannot be fenced as it is, although its devices may be well: shown as the reason of a remediation's
 * Processing condition. docs/reference/metal3.md explains each.
 */
export type HostRefusalReason =
  | "HostAttached"
  | "HostBeingDeleted"
  | "HostDetaching"
  | "HostNotProvisioned"
  | "HostOffline"
  | "PowerOffDisabled"
  | "NotTheOwner";

/** The last reboot of a host that was proven off. */
export interface LastReboot {
  time: string;
  offConfirmedAt: string;
  nodeUID?: string;
  bootID?: string;
}

/** The host that was found. */
export interface HostFacts {
  ref: { kind: string; namespace: string; name: string; uid: string };
  /** The identity of the host according to its target, from the spec or pinned; undefined if the target has none. */
  identity: { systemUUID?: string; serialNumber?: string } | undefined;
  owner: HostOwner | undefined;
  /** For `requireReboot`. */
  lastReboot: LastReboot | undefined;
  /** What is done to it is a mark on its own object, not an order to a BMC. */
  isPoweredByMark: boolean;
  /** Whether the host is in use, according to its own object. */
  isInUse: boolean;
  /** Why ironfence may no longer power the host; undefined if it may. */
  takenBack: string | undefined;
}
