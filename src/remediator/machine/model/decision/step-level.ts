import type { Reason } from "./reasons.ts";
import { REASONS } from "./reasons.ts";
import type { StateName } from "./state.ts";
import type { Note } from "./decision.ts";

const KNOWN: ReadonlySet<string> = new Set(REASONS);
const DELETED: Reason = "RemediationDeleted";
const WRONG_HOST: Reason = "WrongHost";

/**
 * How a step of a remediation is logged. A node that was not fenced, and a wrong host that was powered off, are errors;
 * what a remediation waits for, and its end by a deletion, are warnings; the steps of a remediation that succeeds are
 * neither. Pure.
 */
export function stepLevel(
  to: StateName | "Unknown",
  { type, reason }: Pick<Note, "type" | "reason">,
): "error" | "warn" | "info" {
  if (reason === WRONG_HOST || (to === "Failed" && reason !== DELETED)) return "error";
  return type === "Warning" || KNOWN.has(reason) ? "warn" : "info";
}
