import { parseArgs } from "node:util";
import type { ParseArgsConfig } from "node:util";

/** Parses the command line of a script. If an option is wrong, prints one line and exits with code 2. */
export function parseOptions<T extends NonNullable<ParseArgsConfig["options"]>>(options: T) {
  try {
    return parseArgs({ options }).values;
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
    process.stderr.write(`${error.message}\nGive --help for the options.\n`);
    return process.exit(2);
  }
}
