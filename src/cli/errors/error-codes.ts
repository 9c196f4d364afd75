/**
 * Codes of errors that end a command; docs/reference/errors.md explains each. Errors of devices have the codes in
 * reasons.ts.
 */
export const ERROR_CODES = [
  "CommandLineInvalid",
  "KubeconfigInvalid",
  "APIUnreachable",
  "APITimeout",
  "APIUnavailable",
  "APIUnauthorized",
  "APIForbidden",
  "APINotFound",
  "APIConflict",
  "APIRejected",
  "APIBadResponse",
  "ObjectNotFound",
  "Refused",
  "NotConfirmed",
  "PowerNotProven",
  "DrainUnfinished",
  "EnrolmentFailed",
  "FenceFailed",
  "FenceUnfinished",
  "PauseExpired",
  "ProblemsFound",
  "ChecksFailed",
  "DecisionsDiffer",
  "DecisionLogUnusable",
  "BundleNotWritten",
  "ListenFailed",
  "CertificateUnusable",
  "LeaseHandedOver",
  "LeaseLost",
  "DeadlineExceeded",
  "Stopped",
  "InternalError",
] as const;
export type ErrorCode = (typeof ERROR_CODES)[number];

/** The page that explains a code, in the repository. A test compares its headings with the codes. */
export function pageOfError(code: ErrorCode): string {
  return `docs/reference/errors.md#${code.toLowerCase()}`;
}
