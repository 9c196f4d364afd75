// What a decision knows about the host, as plain data.

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
   * NoTarget: no target names the node. Ambiguous: several targets claim one node, System or UUID, so none is trusted.
   * HostRefusalReason: there is a host, but it cannot be fenced in its present state.
   */
  reason: "NoTarget" | "Ambiguous" | HostRefusalReason;
  message: string;
};

/**
 * Why a host cannot be fenced although its devices may work: the reason of the Processing condition of its remediation.
 * docs/reference/metal3.md explains each.
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
  /** The identity that the target has in its spec or has pinned; undefined if it has none. */
  identity: { systemUUID?: string; serialNumber?: string } | undefined;
  owner: HostOwner | undefined;
  /** The last proven reboot, for `requireReboot`. */
  lastReboot: LastReboot | undefined;
  /** An annotation on its own object powers the host off and on, not an order to a BMC. */
  isPoweredByMark: boolean;
  /** Whether the host is in use, according to its own object. */
  isInUse: boolean;
  /** Why ironfence may no longer power the host; undefined if it may. */
  takenBack: string | undefined;
}
