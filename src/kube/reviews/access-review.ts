import { createHash } from "node:crypto";
import type { Clock } from "../../runtime/clock.ts";
import { withDeadline } from "../../runtime/deadline.ts";
import type { Secret } from "../../runtime/secret.ts";
import type { KubeClient } from "../client.ts";
import { KubeError } from "../errors.ts";
import type { KubeObject, ResourceType } from "../resource.ts";

/** What the API server says about a token: it does not know it, or its user may, or may not, read the path. */
export type AccessReviewResult = "unauthenticated" | "forbidden" | "allowed";

/**
 * Asks the API server which user a token belongs to, and whether that user may read a path. @throws KubeError or
 * DeadlineError if it cannot say.
 */
export type AccessReview = (token: Secret, path: string, signal: AbortSignal) => Promise<AccessReviewResult>;

/** Both reviews together. */
const REVIEW_DEADLINE_MS = 5_000;
/**
 * How long a result is kept. A client that loses the permission keeps access for that long; a scrape a minute is two
 * calls.
 */
const ALLOWED_MS = 60_000;
/**
 * A refusal is kept as well, so that a wrong token costs the API server little; it ends sooner, because permissions are
 * often granted late.
 */
const REFUSED_MS = 10_000;
/** Results that are kept. The oldest goes first, so that any number of tokens takes bounded memory. */
const RESULTS_MAX = 256;
/** Reviews under way. A client that tries a new token each time gets no more of the API server's time than these. */
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
 * Reviews by the API server itself, each kept for a while. `client` has connections of its own, so that they delay
 * nothing else.
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
    // Not the token itself: it would stay in memory for as long as its result.
    const key = `${createHash("sha256").update(token.reveal()).digest("hex")} ${path}`;
    const nowMs = clock.monotonicMs();
    const held = kept.get(key);
    if (held !== undefined && nowMs < held.untilMs) return held.result;
    kept.delete(key);
    // Until it is there, all that bear this token wait for the same one.
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
