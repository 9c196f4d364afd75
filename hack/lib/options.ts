import { parseArgs } from "node:util";
import type { ParseArgsConfig } from "node:util";

/** The options of a script's command line. A wrong one ends the process with a line that says so, and exit code 2. */
export function parseOptions<T extends NonNullable<ParseArgsConfig["options"]>>(options: T) {
  try {
    return parseArgs({ options }).values;
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
    process.stderr.write(`${error.message}\nGive --help for the options.\n`);
    return process.exit(2);
  }
}
