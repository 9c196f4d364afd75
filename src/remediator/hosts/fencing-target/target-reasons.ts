/** Reasons of the condition Ready of a FencingTarget. docs/reference/target-reasons.md explains each. */
export const TARGET_REASONS = [
  "Usable",
  "Degraded",
  "ChassisUnreadable",
  "ChassisDisagrees",
  "ManagerUnreadable",
  "OffNotOffered",
  "OffNotPermitted",
  "PowerUnreadable",
  "NodeNotFound",
  "BareMetalHostsUnreadable",
  "Ambiguous",
  "Maintenance",
  "SecretNotFound",
  "SecretInvalid",
  "SecretUnreadable",
  "AddressInvalid",
  "AddressNotAllowed",
  "AuthenticationFailed",
  "PrivilegeTooLow",
  "TlsUntrusted",
  "Unreachable",
  "Timeout",
  "SystemNotFound",
  "SystemAmbiguous",
  "Unsupported",
  "Busy",
  "Refused",
  "BadResponse",
  "Mismatch",
  "NothingToCompare",
  "NotReported",
  "NotUnique",
  "NoAnswer",
  "NotEnrolled",
  "EnrolmentEnded",
  "OutletsMisplaced",
] as const;

/** Reasons that only the conditions Reachable, IdentityVerified and OutletsEnrolled have. */
export const DEVICE_REASONS = ["Answering", "Matched", "VerificationDisabled", "Enrolled"] as const;

/** Every reason of a condition of a FencingTarget. */
export type TargetReason = (typeof TARGET_REASONS)[number] | (typeof DEVICE_REASONS)[number];
