import type { CliContext } from "./context.ts";
import { printNote } from "./context.ts";

/** What a command that switches hosts is going to do. */
export interface Plan {
  /** Why it must not begin. */
  obstacles: string[];
  /** What it does, step by step. */
  steps: string[];
}

/** Prints the steps. @param what the command, such as `a drill on node worker-3`. */
export function printPlan(context: CliContext, what: string, { steps }: Plan): void {
  printNote(context, `${what} would`);
  for (const [index, step] of steps.entries()) printNote(context, `  ${index + 1}. ${step}`);
}
