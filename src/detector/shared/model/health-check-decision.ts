import type { Announcement } from "./announcement.ts";
import type { CountedAttempt } from "./attempts.ts";

/** Record these attempts of a node or Machine in place of the recorded ones. */
export interface RecordAttempts {
  type: "recordAttempts";
  key: string;
  attempts: readonly CountedAttempt[];
}

/** What the decisions of all families of health checks have in common; `A` are the actions that are run one by one. */
export interface HealthCheckDecision<A> {
  readonly actions: readonly (A | RecordAttempts)[];
  /** When the decision changes although no input changes. */
  readonly nextCheckMs: number | undefined;
  /** Each is recorded once for as long as its key is among these. */
  readonly standing: readonly Announcement[];
  /** Recorded when the status that shows them is stored. */
  readonly transitions: readonly Announcement[];
}

/** Asks for another evaluation at `atMs` at the latest. */
export function checkAgain(
  { decision }: { readonly decision: { nextCheckMs: number | undefined } },
  atMs: number,
): void {
  if (decision.nextCheckMs === undefined || atMs < decision.nextCheckMs) decision.nextCheckMs = atMs;
}
