import { createWriteStream } from "node:fs";
import type { Writable } from "node:stream";
import { DecisionRecorder } from "../remediator/machine/log/recorder.ts";

/** What may wait to be written: a disk that is slower than that ends the log, not the agent. */
const WAITING_BYTES_MAX = 8 * 1_024 * 1_024;

/** A log of decisions that is being written. */
export interface Recording {
  recorder: DecisionRecorder;
  close(): Promise<void>;
}

/**
 * Opens the log of decisions of one process: a file, to which an earlier log is kept, or standard output for `-`.
 *
 * @param process identifies this process among others that write to the same log.
 */
export function recordTo(path: string, process: string): Recording {
  const isFile = path !== "-";
  // Labels and annotations of nodes are in it, which are not for everybody.
  const output: Writable = isFile ? createWriteStream(path, { flags: "a", mode: 0o600 }) : globalThis.process.stdout;
  let failed = false;
  const onError = (): void => void (failed = true);
  output.on("error", onError);
  const write = (line: string): boolean => {
    if (failed) return false;
    output.write(line);
    return output.writableLength < WAITING_BYTES_MAX;
  };
  return {
    recorder: new DecisionRecorder({ process, write }),
    close: async () => {
      if (!isFile) output.off("error", onError);
      else await new Promise<void>((resolve) => output.end(resolve));
    },
  };
}
