/**
 * Why a remediation waits or has failed: reasons of the conditions Processing and Succeeded. The function
 * that decides a reason writes its message; `BMC_PROBLEMS` has those of devices. docs/reference/reasons.md explains
 * them.
 */
export const REASONS = [
  "InputUnread",
  "UnknownState",
  "StaleRequest",
  "ApiFailing",
  "MachineNotFound",
  "MachineUnreadable",
  "SubjectMismatch",
  "ClusterUnreachable",
  "ClusterExchanged",
  "ClusterGone",
  "NodeNotFound",
  "NoTarget",
  "Ambiguous",
  "HostBusy",
  "WaitingForTurn",
  "ControlPlaneQuorum",
  "OwnNode",
  "BackupTooLarge",
  "Paused",
  "PauseUnknown",
  "Maintenance",
  "BMCUnreachable",
  "BMCTimeout",
  "BMCBusy",
  "BMCRefused",
  "BMCBadResponse",
  "BMCAuthenticationFailed",
  "BMCCertificateUntrusted",
  "BMCPrivilegeTooLow",
  "BMCSystemNotFound",
  "BMCSystemAmbiguous",
  "BMCUnsupported",
  "SecretNotFound",
  "SecretInvalid",
  "AddressInvalid",
  "AddressNotAllowed",
  "IdentityMismatch",
  "IdentityUnknown",
  "WrongHost",
  "ControlPlaneNode",
  "HostBeingDeleted",
  "HostDetaching",
  "HostAttached",
  "HostNotProvisioned",
  "HostOffline",
  "PowerOffDisabled",
  "NotTheOwner",
  "RebootRequired",
  "RebootsNotProven",
  "NoMachine",
  "MachineNotReplaced",
  "ReplacementTurn",
  "ReplacementTimeout",
  "HostNotInstallable",
  "HostTaken",
  "VerifyTimeout",
  "PowerOffTimeout",
  "PowerOffPending",
  "HostTurnsItselfOn",
  "ProvisionTimeout",
  "PowerOnTimeout",
  "RejoinTimeout",
  "ReadyTimeout",
  "HostLost",
  "TargetGone",
  "TimedOut",
  "RemediationDeleted",
] as const;
export type Reason = (typeof REASONS)[number];

/** Why a call to a device failed. */
export interface DeviceProblem {
  reason: Reason;
  /** Names the device, the cause and what to do. */
  message: string;
  /** Further tries are useless or harmful. */
  final: boolean;
}

/** The page that explains a reason, in the repository. A test ensures that each reason has its heading there. */
export function reasonPage(reason: Reason): string {
  return `docs/reference/reasons.md#${reason.toLowerCase()}`;
}
