import { OptionError } from "../../config/option.ts";
import { proposeNodes } from "./proposals.ts";

/** `--node`, for commands that work on one node. */
export function nodeFlag(brief: string) {
  return {
    kind: "parsed",
    parse: String,
    optional: true,
    placeholder: "name",
    brief,
    proposeCompletions: proposeNodes,
  } as const;
}

/** @throws OptionError if the user has named no node. */
export function requireNode(name: string | undefined, what: string): string {
  if (name === undefined || name === "") throw new OptionError(`--node is required: name the node ${what}`);
  return name;
}
