import assert from "node:assert/strict";
import { PURE_FUNCTIONS } from "../../src/cli/agent/pure-functions.ts";
import { DecisionRecorder } from "../../src/telemetry/decisions/recorder.ts";
import { Replayer } from "../../src/telemetry/decisions/replay.ts";

/** A log of decisions that replays each line as soon as it is written, and stores none. */
export class ReplayedLog {
  readonly #replayer = new Replayer(PURE_FUNCTIONS);

  /** A recorder for a new process. */
  recorder(): DecisionRecorder {
    return new DecisionRecorder({ process: "test", write: (line) => this.#replayer.take(line.trimEnd()) });
  }

  /** @throws AssertionError if a replayed decision differs. */
  assertSame(): void {
    assert.equal(this.#replayer.result.difference, undefined);
  }
}
