import type { Announcement } from "./announcement.ts";
import type { CountedAttempt } from "./attempts.ts";

/** Remember these attempts of a node or machine, and no others. */
export interface RecordAttempts {
  type: "recordAttempts";
  key: string;
  attempts: readonly CountedAttempt[];
}

/** What the decisions of all families of health checks have in common; `A` are the actions that are run one by one. */
export interface FamilyDecision<A> {
  readonly actions: readonly (A | RecordAttempts)[];
  /** When the answer changes though nothing else does. */
  readonly nextCheckMs: number | undefined;
  /** Recorded once for as long as their keys are among these. */
  readonly standing: readonly Announcement[];
  /** Recorded once the status that shows them is stored. */
  readonly transitions: readonly Announcement[];
}
