import { createReadStream } from "node:fs";
import { createInterface } from "node:readline/promises";
import { buildCommand } from "@stricli/core";
import { Replayer } from "../../telemetry/decisions/replay.ts";
import { PURE_FUNCTIONS } from "../agent/pure-functions.ts";
import type { CliContext } from "../terminal/context.ts";
import { withoutControls } from "../../runtime/text/printable.ts";
import { CommandFailure } from "../errors/failures.ts";

/** `ironfence replay FILE`: makes the decisions of a log again, and compares them. */
export const replayCommand = buildCommand({
  func: async function replay(this: CliContext, _flags: Readonly<object>, file: string) {
    const replayer = new Replayer(PURE_FUNCTIONS);
    try {
      const lines = createInterface({ input: createReadStream(file), signal: this.signal });
      for await (const line of lines) {
        if (!replayer.take(line)) break;
      }
    } catch (error) {
      throw this.signal.aborted ? error : unusable(file, error);
    }
    const { sessions, events, decisions, difference, endsEarly } = replayer.result;
    const { stdout } = this.process;
    stdout.write(`${decisions} decisions from ${events} events, in ${sessions} sessions\n`);
    if (endsEarly !== undefined) stdout.write(`the log is not complete: ${endsEarly}\n`);
    if (difference === undefined) {
      stdout.write("every decision is the same\n");
      return;
    }
    const { line, session, recorded, replayed } = difference;
    stdout.write(withoutControls(`recorded: ${recorded}\nreplayed: ${replayed}`) + "\n");
    throw new CommandFailure(
      "DecisionsDiffer",
      `${file}, line ${line}, ${session}: this version decides differently: compare the two lines above`,
    );
  },
  parameters: {
    positional: {
      kind: "tuple",
      parameters: [
        { brief: "log that ironfence run --record-decisions has written", placeholder: "file", parse: String },
      ],
    },
  },
  docs: {
    brief: "Make the decisions of a recorded log again and compare them",
    fullDescription: [
      "Reads a log that the agent wrote with --record-decisions, makes every decision again from the recorded events, and",
      "prints the first one that differs. It connects to no cluster and to no BMC. Exit codes: 0 every decision is the same, 1",
      "one differs or the log cannot be read.",
    ].join("\n"),
    customUsage: [{ input: "decisions.jsonl", brief: "compare a log with this version" }],
  },
});

function unusable(file: string, cause: unknown): CommandFailure {
  const why = cause instanceof Error ? cause.message : String(cause);
  return new CommandFailure(
    "DecisionLogUnusable",
    `cannot replay ${file}: ${why}: give a log that ironfence run --record-decisions has written`,
    { cause },
  );
}
