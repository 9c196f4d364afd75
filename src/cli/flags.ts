import type { Option } from "../config/option.ts";

/** Flags as the parser hands them over: the text of each, where it was given. */
export type FlagTexts = Readonly<Record<string, string | undefined>>;

/** Describes options to the command-line parser; their values are read later, together with the environment. */
export function flagsOf<K extends string>(
  options: Readonly<Record<K, Option<unknown>>>,
): Record<K, { kind: "parsed"; parse: (text: string) => string; optional: true; placeholder: string; brief: string }> {
  const entries = Object.values<Option<unknown>>(options).map((option) => [
    option.name,
    {
      kind: "parsed",
      parse: String,
      optional: true,
      placeholder: option.placeholder,
      brief: `${option.brief} [$${option.env}${option.defaultText === undefined ? "" : `, default ${option.defaultText}`}]`,
    },
  ]);
  return Object.fromEntries(entries);
}
