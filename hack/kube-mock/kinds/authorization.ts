import type { ServedResource } from "../resource.ts";
import { define } from "./define.ts";

/**
 * Every client may do everything here; tests refuse single calls by faults. A review is never stored on the real
 * server, and has no name.
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
