import type { Contact } from "../../src/kube/contact.ts";

/** An API server that was never away, and whose clock nobody knows. */
export const IN_CONTACT: Contact = { sinceMs: -Infinity, serverTimeMs: undefined, clockSteadySinceMs: -Infinity };
