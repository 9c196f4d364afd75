import { decide } from "../decide.ts";
import type { RemediationEvent } from "../model/facts/event.ts";
import type { Observations } from "../model/facts/observations.ts";
import type { Now, Snapshot } from "../model/facts/snapshot.ts";
import { nothingObserved } from "../model/facts/nothing-observed.ts";
import { observe } from "../observe.ts";
import { reportApiFailure } from "../rules/waits/api-failure.ts";

/** The functions that replay a log of the remediator's decisions. Each line has the types that were recorded. */
export const REMEDIATOR_FUNCTIONS = {
  deciders: {
    decide: (input: object, now: unknown, observations: unknown) => decide(snapshotOf(input, observations), now as Now),
    reportApiFailure: (input: object, now: unknown, observations: unknown) =>
      reportApiFailure(snapshotOf(input, observations), now as Now),
  },
  nothingObserved,
  observe: (observations: unknown, event: unknown): Observations =>
    observe(observations as Observations, event as RemediationEvent),
};

/** Name of the function that made a decision. */
export type DecidedBy = keyof typeof REMEDIATOR_FUNCTIONS.deciders;

function snapshotOf(input: object, observations: unknown): Snapshot {
  // The first decision of a session has every field in the log, and the replay adds the changes of the later ones.
  return { ...input, observations } as Snapshot;
}
