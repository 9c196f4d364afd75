import { createHash } from "node:crypto";
import type { Clock } from "../../runtime/clock.ts";
import { withDeadline } from "../../runtime/deadline.ts";
import type { Secret } from "../../runtime/secret.ts";
import type { KubeClient } from "../client.ts";
import { KubeError } from "../errors.ts";
import type { KubeObject, ResourceType } from "../resource.ts";

/** The result for a token: the API server does not know it, or its user may not, or may, read the path. */
export type AccessReviewResult = "unauthenticated" | "forbidden" | "allowed";

/**
 * Asks the API server which user a token belongs to, and whether that user may read a path. @throws KubeError or
 * DeadlineError if it gets no answer.
 */
export type AccessReview = (token: Secret, path: string, signal: AbortSignal) => Promise<AccessReviewResult>;

/** The deadline of both reviews together. */
const REVIEW_DEADLINE_MS = 5_000;
/**
 * How long `allowed` is cached. A client that loses the permission keeps access for this long. A client that scrapes
 * once a minute causes two calls a minute.
 */
const ALLOWED_MS = 60_000;
/**
 * How long a refusal is cached, so that a wrong token causes little load on the API server. It is shorter, because a
 * permission is often granted after the first refusal.
 */
const REFUSED_MS = 10_000;
/** How many results are cached. The oldest one is dropped first, so that any number of tokens takes bounded memory. */
const RESULTS_MAX = 256;
/** How many reviews run at the same time. This bounds the load of a client that sends a new token with each request. */
const REVIEWS_AT_ONCE_MAX = 16;

const TOKEN_REVIEWS: ResourceType = {
  group: "authentication.k8s.io",
  version: "v1",
  kind: "TokenReview",
  plural: "tokenreviews",
  namespaced: false,
};
const SUBJECT_ACCESS_REVIEWS: ResourceType = {
  group: "authorization.k8s.io",
  version: "v1",
  kind: "SubjectAccessReview",
  plural: "subjectaccessreviews",
  namespaced: false,
};

interface TokenReview extends KubeObject {
  spec: { token: string };
  status?: { authenticated?: boolean; user?: User };
}
interface User {
  username?: string;
  uid?: string;
  groups?: string[];
  extra?: Record<string, string[]>;
}
interface SubjectAccessReview extends KubeObject {
  spec: Record<string, unknown>;
  status?: { allowed?: boolean; denied?: boolean };
}

/**
 * Access reviews by the API server, with a cache. `client` must have its own connections, so that reviews do not delay
 * other calls.
 */
export function createAccessReview(deps: { client: KubeClient; clock: Clock }): AccessReview {
  const { client, clock } = deps;
  const kept = new Map<string, { result: Promise<AccessReviewResult>; untilMs: number }>();
  let underWay = 0;

  const ask = async (token: Secret, path: string, signal: AbortSignal): Promise<AccessReviewResult> => {
    if (underWay >= REVIEWS_AT_ONCE_MAX) throw new KubeError("TooManyRequests", "too many tokens are being reviewed");
    underWay += 1;
    try {
      return await review(token, path, signal);
    } finally {
      underWay -= 1;
    }
  };
  const review = (token: Secret, path: string, signal: AbortSignal): Promise<AccessReviewResult> =>
    withDeadline(clock, "the review of a token", REVIEW_DEADLINE_MS, signal, async (signal) => {
      const reviewed = await client.create<TokenReview>(
        TOKEN_REVIEWS,
        { ...headOf(TOKEN_REVIEWS), spec: { token: token.reveal() } },
        {},
        signal,
      );
      const user = reviewed.status?.user;
      if (reviewed.status?.authenticated !== true || !user?.username) return "unauthenticated";
      const { username, ...rest } = user;
      const { status } = await client.create<SubjectAccessReview>(
        SUBJECT_ACCESS_REVIEWS,
        {
          ...headOf(SUBJECT_ACCESS_REVIEWS),
          spec: { ...rest, user: username, nonResourceAttributes: { path, verb: "get" } },
        },
        {},
        signal,
      );
      return status?.allowed === true && status.denied !== true ? "allowed" : "forbidden";
    });

  return (token, path, signal) => {
    // A hash, so that the token itself does not stay in memory.
    const key = `${createHash("sha256").update(token.reveal()).digest("hex")} ${path}`;
    const nowMs = clock.monotonicMs();
    const held = kept.get(key);
    if (held !== undefined && nowMs < held.untilMs) return held.result;
    kept.delete(key);
    // Until the result arrives, all requests with this token and path wait for this review.
    const mine = { result: ask(token, path, signal), untilMs: Infinity };
    kept.set(key, mine);
    for (const oldest of kept.keys()) {
      if (kept.size <= RESULTS_MAX) break;
      kept.delete(oldest);
    }
    const keep = (result: AccessReviewResult): void => {
      mine.untilMs = clock.monotonicMs() + (result === "allowed" ? ALLOWED_MS : REFUSED_MS);
    };
    const forget = (): void => {
      if (kept.get(key) === mine) kept.delete(key);
    };
    mine.result.then(keep, forget);
    return mine.result;
  };
}

function headOf(type: ResourceType): { apiVersion: string; kind: string; metadata: object } {
  return { apiVersion: `${type.group}/${type.version}`, kind: type.kind, metadata: {} };
}
