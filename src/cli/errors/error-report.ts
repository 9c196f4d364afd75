import { BmcError } from "../../bmc/interface/errors.ts";
import { OptionError } from "../../config/option.ts";
import type { KubeErrorCode } from "../../kube/errors.ts";
import { ClusterConfigError, KubeError } from "../../kube/errors.ts";
import { LeadershipLostError } from "../../kube/lease/lease-term.ts";
import { deviceProblem } from "../../remediator/hosts/model/device-problem.ts";
import type { Reason } from "../../remediator/machine/model/decision/reasons.ts";
import { reasonPage } from "../../remediator/machine/model/decision/reasons.ts";
import { DeadlineError } from "../../runtime/deadline.ts";
import { withoutControls } from "../../runtime/text/printable.ts";
import type { ErrorCode } from "./error-codes.ts";
import { pageOfError } from "./error-codes.ts";
import { CommandFailure, EXIT_FAILURE, EXIT_REFUSED, EXIT_USAGE, CommandRefusal } from "./failures.ts";

/** How a command that failed is reported. */
export interface ErrorReport {
  code: ErrorCode | Reason;
  /** Begins with the code in brackets; names the object, the cause and the next step. */
  message: string;
  /** The page in the repository that explains the code. */
  page: string;
  exitCode: number;
}

const API_CODES: Readonly<Record<KubeErrorCode, ErrorCode>> = {
  Network: "APIUnreachable",
  Timeout: "APITimeout",
  Aborted: "Stopped",
  BadResponse: "APIBadResponse",
  OverBudget: "APIBadResponse",
  Unauthorized: "APIUnauthorized",
  Forbidden: "APIForbidden",
  NotFound: "APINotFound",
  MethodNotAllowed: "APIRejected",
  AlreadyExists: "APIConflict",
  Conflict: "APIConflict",
  Gone: "APIConflict",
  BadRequest: "APIRejected",
  Invalid: "APIRejected",
  TooManyRequests: "APIUnavailable",
  Unavailable: "APIUnavailable",
};

/** The next step for errors whose messages do not name one. */
const NEXT_STEPS: Readonly<Partial<Record<ErrorCode, string>>> = {
  APITimeout: "check that the API server is up, then run the command again",
  APIUnavailable: "wait until the API server is ready, then run the command again",
  APIConflict: "run the command again",
  APIBadResponse: "check that the address in the kubeconfig is that of a Kubernetes API server",
  LeaseLost: "the agent ends, and its supervisor starts it again",
  DeadlineExceeded: "run the command again",
};

/** The report on a command line that cannot be parsed. */
export function reportUsage(message: string): ErrorReport {
  return reportOf("CommandLineInvalid", message, EXIT_USAGE);
}

/** The report on what a command threw. */
export function reportError(error: unknown): ErrorReport {
  const problem = deviceProblem(error);
  if (problem !== undefined) {
    const { reason, message } = problem;
    return { code: reason, message: withoutControls(message), page: reasonPage(reason), exitCode: EXIT_FAILURE };
  }
  const code = codeOf(error);
  if (code === undefined) return reportDefect(error);
  const { message, nextStep = NEXT_STEPS[code] } = error as Error & { nextStep?: string };
  return reportOf(code, nextStep === undefined ? message : `${message}: ${nextStep}`, exitCodeOf(error));
}

export function exitCodeOf(error: unknown): number {
  if (error instanceof OptionError) return EXIT_USAGE;
  return error instanceof CommandRefusal ? EXIT_REFUSED : EXIT_FAILURE;
}

/** Undefined for a defect of ironfence. */
function codeOf(error: unknown): ErrorCode | undefined {
  if (error instanceof CommandFailure || error instanceof CommandRefusal) return error.code;
  if (error instanceof KubeError) return API_CODES[error.code];
  if (error instanceof OptionError) return "CommandLineInvalid";
  if (error instanceof ClusterConfigError) return "KubeconfigInvalid";
  if (error instanceof LeadershipLostError) return "LeaseLost";
  if (error instanceof DeadlineError) return "DeadlineExceeded";
  // All other errors of devices are problems (`deviceProblem`), which have reasons of their own.
  return error instanceof BmcError ? "Stopped" : undefined;
}

function reportOf(code: ErrorCode, message: string, exitCode: number): ErrorReport {
  return { code, message: withoutControls(`[${code}] ${message}`), page: pageOfError(code), exitCode };
}

/** Reports a defect of ironfence with its stack, because the user cannot fix it. */
function reportDefect(error: unknown): ErrorReport {
  const code = "InternalError";
  const stack = error instanceof Error ? (error.stack ?? error.message) : String(error);
  return { code, message: `[${code}] ${stack}`, page: pageOfError(code), exitCode: EXIT_FAILURE };
}
