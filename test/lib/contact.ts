import type { ClusterContact } from "../../src/kube/contact.ts";

/** Contact with an API server that has always answered, and whose clock is unknown. */
export const IN_CONTACT: ClusterContact = {
  sinceMs: -Infinity,
  serverTimeMs: undefined,
  earliestServerTimeMs: undefined,
  clockSteadySinceMs: -Infinity,
};
