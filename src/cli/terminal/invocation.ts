import { basename } from "node:path";

/** How the user has called the program. */
export interface Invocation {
  /** What the user types before a command. */
  program: "ironfence" | "kubectl ironfence";
  inputs: readonly string[];
}

/**
 * kubectl runs `kubectl-ironfence` for `kubectl ironfence`, and asks `kubectl_complete-ironfence` for proposals. Both
 * are links to this program.
 *
 * @param path of the file that was run, links not resolved.
 */
export function invocationOf(path: string, inputs: readonly string[]): Invocation {
  const name = basename(path).replace(/\.js$/, "");
  if (name === "kubectl_complete-ironfence") return { program: "kubectl ironfence", inputs: ["__complete", ...inputs] };
  return { program: name === "kubectl-ironfence" ? "kubectl ironfence" : "ironfence", inputs };
}
