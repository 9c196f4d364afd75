import type { Announcement } from "./announcement.ts";
import type { CountedAttempt } from "./attempts.ts";

/** Record these attempts of a node or Machine, and drop the recorded ones. */
export interface RecordAttempts {
  type: "recordAttempts";
  key: string;
  attempts: readonly CountedAttempt[];
}

/** What the decisions of all families of health checks have in common; `A` are the actions that are run one by one. */
export interface HealthCheckDecision<A> {
  readonly actions: readonly (A | RecordAttempts)[];
  /** The next time at which the decision may change without a change of its input. */
  readonly nextCheckMs: number | undefined;
  /** Each is recorded once while its key stays in this list. */
  readonly standing: readonly Announcement[];
  /** Each is recorded when the status that shows it was stored. */
  readonly transitions: readonly Announcement[];
}

/** Asks for another evaluation at `atMs` at the latest. */
export function checkAgain(
  { decision }: { readonly decision: { nextCheckMs: number | undefined } },
  atMs: number,
): void {
  if (decision.nextCheckMs === undefined || atMs < decision.nextCheckMs) decision.nextCheckMs = atMs;
}
