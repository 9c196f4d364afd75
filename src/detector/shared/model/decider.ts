/** The fields of an input in a log of decisions. The log repeats a field only if it has changed. */
export type InputFields = Readonly<Record<string, unknown>>;

/**
 * A pure function that decides about a health check by an input `I`, and how a log of decisions stores the input and
 * the decision.
 */
export interface Decider<I extends object, D> {
  /** The name of the function in the log. */
  name: string;
  decide: (input: I, nowMs: number) => D;
  fieldsOf: (input: I) => InputFields;
  /** The input that has these fields, as read from a log. */
  inputOf: (fields: InputFields) => I;
  /** The decision as the log holds it. */
  recorded: (decision: D) => unknown;
}

/** A decider whose input has few fields. */
export function wholeDecider<I extends object, D>(name: string, decide: Decider<I, D>["decide"]): Decider<I, D> {
  return {
    name,
    decide,
    fieldsOf: (input) => Object.fromEntries(Object.entries(input)),
    inputOf: (fields) => fields as object as I,
    recorded: (decision) => decision,
  };
}

/**
 * The fields of an input with a list that has an entry for each node or Machine that matters. Each entry is a field of
 * its own, so that a log of an outage of many nodes does not repeat all of them when one changes.
 */
export function listFields<F>(list: string, entries: readonly F[], nameOf: (entry: F) => string): InputFields {
  return {
    [list]: entries.map(nameOf),
    ...Object.fromEntries(entries.map((entry) => [fieldOf(list, nameOf(entry)), entry])),
  };
}

/** The list that has these fields. */
export function listOf(list: string, fields: InputFields): readonly unknown[] {
  return (fields[list] as readonly string[]).map((name) => fields[fieldOf(list, name)]);
}

function fieldOf(list: string, name: string): string {
  return `${list}/${name}`;
}
