import { buildCommand } from "@stricli/core";
import type { CliContext } from "../terminal/context.ts";

// The scripts ask ironfence itself for proposals (`ironfence __complete WORDS…`), so they never go out of date.
const SCRIPTS = {
  bash: [
    "_ironfence() {",
    '  mapfile -t COMPREPLY < <(ironfence __complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null | cut -f1)',
    "}",
    "complete -o default -F _ironfence ironfence",
  ],
  zsh: [
    "#compdef ironfence",
    "_ironfence() {",
    "  local -a proposals",
    '  proposals=("${(@f)$(ironfence __complete "${(@)words[2,CURRENT]}" 2>/dev/null | sed \'s/:/\\\\:/g; s/\\t/:/\')}")',
    "  _describe ironfence proposals || _files",
    "}",
    "compdef _ironfence ironfence",
  ],
  fish: ["complete -c ironfence -a '(ironfence __complete (commandline -opc)[2..] (commandline -ct) 2>/dev/null)'"],
} as const;

type Shell = keyof typeof SCRIPTS;
const SHELLS: readonly Shell[] = ["bash", "zsh", "fish"];

/** `ironfence completion SHELL`: prints a completion script. */
export const completionCommand = buildCommand({
  func: function completion(this: CliContext, _flags: Readonly<object>, shell: Shell) {
    this.process.stdout.write(`${SCRIPTS[shell].join("\n")}\n`);
  },
  parameters: {
    positional: {
      kind: "tuple",
      parameters: [
        { brief: "bash, zsh or fish", placeholder: "shell", parse: parseShell, proposeCompletions: () => SHELLS },
      ],
    },
  },
  docs: {
    brief: "Print a completion script for bash, zsh or fish",
    customUsage: [{ input: "bash > /etc/bash_completion.d/ironfence", brief: "for every user of this machine" }],
  },
});

function parseShell(text: string): Shell {
  const shell = SHELLS.find((candidate) => candidate === text);
  if (shell === undefined) throw new Error(`must be one of ${SHELLS.join(", ")}`);
  return shell;
}
