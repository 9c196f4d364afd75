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
  /** One line for `--help`. */
  brief: string;
  /** Parses the text of a flag or variable. Throws an Error that says what a valid value is. */
  parse: (text: string) => T;
  /** The values to which a shell may complete the beginning of one; absent if any text is valid. */
  propose?: (partial: string) => readonly string[];
}

/** The texts of flags or environment variables, by name. */
export type FlagTexts = Readonly<Record<string, string | undefined>>;

/**
 * The value of an option is not valid. The message names the flag or variable that it came from, and what a valid value
 * is.
 */
export class OptionError extends Error {
  override readonly name = "OptionError";
}

/** `leaseName` → `--lease-name`. */
export function flagName(name: string): string {
  return `--${name.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
}

/**
 * Returns the value of one option: that of the flag, otherwise that of the environment variable if it is not empty,
 * otherwise the default.
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

/** As `resolveOption`, for options that must have a value. @throws OptionError also if there is none. */
export function requireOption<T>(option: Option<T>, flags: FlagTexts, env: FlagTexts): T {
  const value = resolveOption(option, flags, env);
  if (value === undefined) throw new OptionError(`${flagName(option.name)} (or ${option.env}) is required`);
  return value;
}
