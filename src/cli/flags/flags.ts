import { BMC_OPTIONS } from "../../config/bmc-options.ts";
import type { Option } from "../../config/option.ts";
import { flagName } from "../../config/option.ts";
import { parseBoolean } from "../../config/parsers.ts";
import { RUN_OPTIONS } from "../../config/run-options.ts";

interface Flag {
  kind: "parsed";
  parse: (text: string) => string;
  optional: true;
  placeholder: string;
  brief: string;
  proposeCompletions?: (partial: string) => readonly string[];
}

/** Describes options to the command-line parser. Their values are resolved later, together with the environment. */
export function flagsOf<K extends string>(options: Readonly<Record<K, Option<unknown>>>): Record<K, Flag> {
  const entries = Object.values<Option<unknown>>(options).map((option) => [
    option.name,
    {
      kind: "parsed",
      parse: String,
      optional: true,
      placeholder: option.placeholder,
      brief: `${option.brief} [$${option.env}${option.defaultText === undefined ? "" : `, default ${option.defaultText}`}]`,
      ...(option.propose !== undefined && { proposeCompletions: option.propose }),
    },
  ]);
  return Object.fromEntries(entries);
}

/** A flag without a value. */
export interface SwitchFlag {
  kind: "boolean";
  default: false;
  withNegated: false;
  brief: string;
}

export function switchFlag(brief: string): SwitchFlag {
  return { kind: "boolean", default: false, withNegated: false, brief };
}

export const YES_FLAG = switchFlag("Answer yes to every question");

const SWITCHES = new Set(
  Object.values<Option<unknown>>({ ...BMC_OPTIONS, ...RUN_OPTIONS })
    .filter(({ parse }) => parse === parseBoolean)
    .flatMap(({ name }) => [flagName(name), `--${name}`]),
);

/**
 * Adds the value `true` to boolean flags without a value. An empty value stays, and is refused later: a variable that a
 * script left unset must not switch anything on.
 */
export function completeSwitches(inputs: readonly string[]): string[] {
  return inputs.map((input, index) => {
    const next = inputs[index + 1];
    const hasValue = next === "true" || next === "false" || next === "";
    return SWITCHES.has(input) && !hasValue ? `${input}=true` : input;
  });
}
