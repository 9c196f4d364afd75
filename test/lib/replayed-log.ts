import assert from "node:assert/strict";
import { PURE_FUNCTIONS } from "../../src/cli/agent/pure-functions.ts";
import { DecisionRecorder } from "../../src/telemetry/decisions/recorder.ts";
import { Replayer } from "../../src/telemetry/decisions/replay.ts";

/** A log of decisions that is kept nowhere: each line is replayed as soon as it is written. */
export class ReplayedLog {
  readonly #replayer = new Replayer(PURE_FUNCTIONS);

  /** For a process that starts. */
  recorder(): DecisionRecorder {
    return new DecisionRecorder({ process: "test", write: (line) => this.#replayer.take(line.trimEnd()) });
  }

  /** @throws AssertionError if a decision was another one when it was made again. */
  assertSame(): void {
    assert.equal(this.#replayer.result.difference, undefined);
  }
}
