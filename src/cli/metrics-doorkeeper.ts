import type { AccessReview, Verdict } from "../kube/access-review.ts";
import type { Clock } from "../runtime/clock.ts";
import { Secret } from "../runtime/secret.ts";
import type { Answer, Doorkeeper } from "../telemetry/http-server.ts";
import type { Logger } from "../telemetry/logger.ts";

/** A token of a ServiceAccount has about 1 KiB. */
const TOKEN_CHARS_MAX = 8_192;

/** Strangers can bring about failures without end, which must not fill the log. */
const WARNING_PAUSE_MS = 60_000;

/** Serves a page to users that the API server allows to read it, as controller-runtime does, and to no one if it does not answer. */
export function createDoorkeeper(
  review: AccessReview,
  { clock, logger }: { clock: Clock; logger: Logger },
  signal: AbortSignal,
): Doorkeeper {
  let warnFromMs = -Infinity;
  const failed = (error: unknown): Answer => {
    const nowMs = clock.monotonicMs();
    if (nowMs >= warnFromMs) {
      warnFromMs = nowMs + WARNING_PAUSE_MS;
      logger.warn({ error }, "nobody is let in to the metrics: the API server does not say who may read them");
    }
    return refusal(503, "the API server does not say who may read this\n");
  };
  return async (authorization, path) => {
    const token = bearerOf(authorization);
    if (token === undefined) return UNAUTHENTICATED;
    try {
      return ANSWERS[await review(token, path, signal)];
    } catch (error) {
      return failed(error);
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

const ANSWERS: Readonly<Record<Verdict, Answer | undefined>> = {
  allowed: undefined,
  forbidden: refusal(403, "forbidden\n"),
  unauthenticated: UNAUTHENTICATED,
};
