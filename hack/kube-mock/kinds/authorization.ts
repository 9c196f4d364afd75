import type { ServedResource } from "../resource.ts";
import { define } from "./define.ts";

/**
 * The answer is always "allowed": every client may do everything here, and tests refuse single calls with faults. On
 * the real server, a review is never stored and has no name.
 */
function review(kind: string): ServedResource {
  return define(
    {
      group: "authorization.k8s.io",
      kind,
      plural: `${kind.toLowerCase()}s`,
      namespaced: false,
      shortNames: [],
      hasStatus: false,
      strategy: { prepareCreate: (object) => ({ ...object, status: { allowed: true } }) },
    },
    { decode: (sent) => ({ ...sent, metadata: { generateName: "review-" } }) },
  );
}

/** authorization.k8s.io/v1 */
export const SELF_SUBJECT_ACCESS_REVIEWS = review("SelfSubjectAccessReview");
export const SUBJECT_ACCESS_REVIEWS = review("SubjectAccessReview");
