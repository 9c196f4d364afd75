import { printable } from "../runtime/text/printable.ts";

/**
 * Why an API call failed. Callers decide by the code alone.
 *
 * Network: no connection, or it broke. Timeout: no answer by the deadline; a write may or may not have taken effect.
 * Aborted: the caller aborted its signal. BadResponse: an answer that is not what the API promises, or larger than its
 * bound. OverBudget: an untrusted API server sent more than the agent reads from it. The others follow from the HTTP
 * status: Unauthorized 401, Forbidden 403, NotFound 404, MethodNotAllowed 405, AlreadyExists and Conflict 409, Gone
 * 410, Invalid 422, TooManyRequests 429, BadRequest any other 4xx, Unavailable 5xx. A JSON patch that does not fit the
 * object (a `test` failed, or a path does not exist) is a Conflict, although the server answers 422.
 */
export type KubeErrorCode =
  | "Network"
  | "Timeout"
  | "Aborted"
  | "BadResponse"
  | "OverBudget"
  | "Unauthorized"
  | "Forbidden"
  | "NotFound"
  | "MethodNotAllowed"
  | "AlreadyExists"
  | "Conflict"
  | "Gone"
  | "BadRequest"
  | "Invalid"
  | "TooManyRequests"
  | "Unavailable";

const RETRYABLE: ReadonlySet<KubeErrorCode> = new Set(["Network", "Timeout", "TooManyRequests", "Unavailable"]);

/** The error that every failed API call throws. Its message names the call and the object. */
export class KubeError extends Error {
  override readonly name = "KubeError";
  readonly code: KubeErrorCode;
  /** HTTP status, if there was an answer. */
  readonly status: number | undefined;
  /** `metav1.Status.reason`, if the server gave one. */
  readonly reason: string | undefined;
  /** How long the server asked the client to wait (Retry-After), if it did. */
  readonly retryAfterMs: number | undefined;
  /** Whether the same call may succeed later without a change. */
  readonly retryable: boolean;

  constructor(
    code: KubeErrorCode,
    message: string,
    options: { status?: number; reason?: string; retryAfterMs?: number; cause?: unknown } = {},
  ) {
    // The message may contain text from an untrusted API server.
    super(printable(message), options.cause === undefined ? undefined : { cause: options.cause });
    this.code = code;
    this.status = options.status;
    this.reason = options.reason;
    this.retryAfterMs = options.retryAfterMs;
    this.retryable = RETRYABLE.has(code);
  }

  /** What the user can do; undefined if the message already says it, or if the error goes away without an action. */
  get nextStep(): string | undefined {
    switch (this.code) {
      case "Unauthorized":
        return "renew the credentials of the kubeconfig or service account";
      case "Forbidden":
        return "grant that permission; the installation (deploy/kustomize or the Helm chart) has those that the agent needs";
      case "NotFound":
        // A kind that is not served has no metav1.Status, and so no reason.
        if (this.status === 404 && this.reason === undefined) return "apply deploy/crds: the cluster has no such kind";
        if (this.message.includes(' namespaces "'))
          return "apply your installation (deploy/kustomize or the Helm chart), or name the agent's namespace with --namespace";
        return undefined;
      case "Network":
        return "check the server's address in the kubeconfig, and that it is up";
      default:
        return undefined;
    }
  }
}

/** Whether `error` is a KubeError with one of `codes`. */
export function isKubeError(error: unknown, ...codes: KubeErrorCode[]): error is KubeError {
  return error instanceof KubeError && (codes.length === 0 || codes.includes(error.code));
}

/** The configured connection to a cluster cannot be used. The message names the file or option and the next step. */
export class ClusterConfigError extends Error {
  override readonly name = "ClusterConfigError";
}

/** `source` provides no credentials at present. */
export function noCredentials(source: string, cause: unknown): KubeError {
  const reason = cause instanceof Error ? cause.message : String(cause);
  return new KubeError("Unauthorized", `no credentials from ${source}: ${reason}`, { cause });
}
