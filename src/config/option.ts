/**
 * One option of a command: a flag, the environment variable behind it, and its default, in that order of precedence.
 */
export interface Option<T> {
  /** Name in camel case; on the command line in kebab case: `leaseName` is `--lease-name`. */
  name: string;
  env: string;
  /** The default as a user would write it; undefined if there is none and the option may be absent. */
  defaultText: string | undefined;
  placeholder: string;
  /** One line for `--help` and docs/reference/options.md. */
  brief: string;
  /** Reads the text of a flag or variable; throws an Error that says what would be right. */
  parse: (text: string) => T;
  /** What a shell may complete the beginning of a value to; absent if that is anything. */
  propose?: (partial: string) => readonly string[];
}

/** Flags, or environment variables, by name: the text of each that was given. */
export type FlagTexts = Readonly<Record<string, string | undefined>>;

/** An option's value that cannot be used: names the option, where the value came from, and what would be right. */
export class OptionError extends Error {
  override readonly name = "OptionError";
}

/** `leaseName` → `--lease-name`. */
export function flagName(name: string): string {
  return `--${name.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
}

/**
 * The value of one option: the flag's, else the environment variable's (an empty one counts as absent), else the
 * default.
 *
 * @throws OptionError if the text cannot be parsed.
 */
export function resolveOption<T>(option: Option<T>, flags: FlagTexts, env: FlagTexts): T | undefined {
  const flag = flags[option.name];
  const variable = env[option.env] === "" ? undefined : env[option.env];
  const text = flag ?? variable ?? option.defaultText;
  if (text === undefined) return undefined;
  try {
    return option.parse(text);
  } catch (error) {
    const where = flag === undefined && variable !== undefined ? option.env : flagName(option.name);
    const why = error instanceof Error ? error.message : "not valid";
    // A URL may hold a user and a password, which must not reach a log.
    const got = /:\/\/.*@/s.test(text) ? "" : ` (got ${JSON.stringify(text)})`;
    throw new OptionError(`${where}: ${why}${got}`, { cause: error });
  }
}

/** Same, for options that always have a value. */
export function requireOption<T>(option: Option<T>, flags: FlagTexts, env: FlagTexts): T {
  const value = resolveOption(option, flags, env);
  if (value === undefined) throw new OptionError(`${flagName(option.name)} (or ${option.env}) is required`);
  return value;
}
