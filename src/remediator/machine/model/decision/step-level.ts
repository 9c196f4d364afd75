import type { Reason } from "./reasons.ts";
import { REASONS } from "./reasons.ts";
import type { StateName } from "./state.ts";
import type { Note } from "./decision.ts";

const KNOWN: ReadonlySet<string> = new Set(REASONS);
const DELETED: Reason = "RemediationDeleted";
const WRONG_HOST: Reason = "WrongHost";

/**
 * The log level of a step of a remediation. A failed remediation, and a wrong host that was powered off, are errors.
 * Waits, and the end of a remediation that was deleted, are warnings. All other steps are information. Pure.
 */
export function stepLevel(
  to: StateName | "Unknown",
  { type, reason }: Pick<Note, "type" | "reason">,
): "error" | "warn" | "info" {
  if (reason === WRONG_HOST || (to === "Failed" && reason !== DELETED)) return "error";
  return type === "Warning" || KNOWN.has(reason) ? "warn" : "info";
}
