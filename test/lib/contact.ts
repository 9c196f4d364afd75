import type { ClusterContact } from "../../src/kube/contact.ts";

/** An API server that was never away, and whose clock is not known. */
export const IN_CONTACT: ClusterContact = {
  sinceMs: -Infinity,
  serverTimeMs: undefined,
  earliestServerTimeMs: undefined,
  clockSteadySinceMs: -Infinity,
};
