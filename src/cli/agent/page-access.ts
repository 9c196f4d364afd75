import type { AccessReview, AccessReviewResult } from "../../kube/reviews/access-review.ts";
import type { Clock } from "../../runtime/clock.ts";
import { Secret } from "../../runtime/secret.ts";
import type { Answer, Authorizer } from "../../telemetry/http-server.ts";
import type { Logger } from "../../telemetry/logger.ts";

/** The longest token that is accepted. A token of a ServiceAccount has about 1 KiB. */
const TOKEN_CHARS_MAX = 8_192;

/**
 * The shortest time between two warnings. Any client that reaches the port can cause failures, and they must not fill
 * the log.
 */
const WARNING_PAUSE_MS = 60_000;

/**
 * Allows a request if the API server allows its user to read the page, as controller-runtime does. If the API server
 * does not answer, the request is refused.
 */
export function createAuthorizer(
  review: AccessReview,
  { clock, logger }: { clock: Clock; logger: Logger },
  signal: AbortSignal,
): Authorizer {
  let warnFromMs = -Infinity;
  const failed = (error: unknown, path: string): Answer => {
    const nowMs = clock.monotonicMs();
    if (nowMs >= warnFromMs) {
      warnFromMs = nowMs + WARNING_PAUSE_MS;
      logger.warn({ error, path }, "cannot check who may read a page, so the request is refused");
    }
    return refusal(503, "the API server did not answer the check of your permissions\n");
  };
  return async (authorization, path) => {
    const token = bearerOf(authorization);
    if (token === undefined) return UNAUTHENTICATED;
    try {
      return ANSWERS[await review(token, path, signal)];
    } catch (error) {
      return failed(error, path);
    }
  };
}

/** The token of `Bearer <token>` (RFC 6750); undefined for everything else. */
export function bearerOf(authorization: string | undefined): Secret | undefined {
  if (authorization === undefined || authorization.length > TOKEN_CHARS_MAX) return undefined;
  const [, token] = /^bearer +([A-Za-z0-9._~+/-]+=*)$/i.exec(authorization) ?? [];
  return token === undefined ? undefined : new Secret(token);
}

function refusal(status: number, body: string): Answer {
  return { status, contentType: "text/plain", body };
}

const UNAUTHENTICATED: Answer = { ...refusal(401, "unauthenticated\n"), headers: { "www-authenticate": "Bearer" } };

const ANSWERS: Readonly<Record<AccessReviewResult, Answer | undefined>> = {
  allowed: undefined,
  forbidden: refusal(403, "forbidden\n"),
  unauthenticated: UNAUTHENTICATED,
};
