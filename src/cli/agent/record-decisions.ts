import { constants } from "node:fs";
import type { FileHandle } from "node:fs/promises";
import { open } from "node:fs/promises";
import type { Writable } from "node:stream";
import { DecisionRecorder, LOG_BYTES_MAX } from "../../telemetry/decisions/recorder.ts";
import type { Clock } from "../../runtime/clock.ts";
import { withDeadline } from "../../runtime/deadline.ts";
import type { Logger } from "../../telemetry/logger.ts";
import { CommandFailure } from "../errors/failures.ts";

/** Bytes that may wait to be written. If the disk is slower, the log ends and the agent continues. */
const WAITING_BYTES_MAX = 8 * 1_024 * 1_024;
/** How long the agent waits for the disk when it starts and when it ends. */
const DISK_TIMEOUT_MS = 2_000;
/** These flags do not follow a symbolic link, and do not wait for the reader of a pipe. */
const OPEN_FLAGS =
  constants.O_WRONLY | constants.O_APPEND | constants.O_CREAT | constants.O_NOFOLLOW | constants.O_NONBLOCK;
/** The errors of opening a symbolic link, a pipe or socket, and a folder with these flags. */
const NO_REGULAR_FILE: ReadonlySet<unknown> = new Set(["ELOOP", "ENXIO", "EISDIR"]);
/** The log holds labels and annotations of nodes, so only its owner may read it. */
const OWNER_ONLY = 0o600;
const UNWRITTEN = "the log of decisions cannot be written; the agent continues without it";

/** A log of decisions that is being written. */
export interface Recording {
  recorder: DecisionRecorder;
  close(): Promise<void>;
}

export interface RecordingDeps {
  clock: Clock;
  logger: Logger;
}

/**
 * Opens the log of decisions of one process: a file, which is appended to, or standard output for `-`.
 *
 * @param process identifies this process among others that write to the same log.
 * @returns undefined if the file cannot be written, which is logged: the agent fences without a log.
 * @throws CommandFailure if the path is not a regular file.
 */
export async function recordTo(path: string, process: string, deps: RecordingDeps): Promise<Recording | undefined> {
  if (path === "-") {
    const { stdout } = globalThis.process;
    const { recorder, stop } = recordOn(stdout, process, 0, deps);
    return { recorder, close: () => Promise.resolve(stop()) };
  }
  try {
    const { file, size } = await inTime(deps, `opening ${path}`, (signal) => openLog(path, signal));
    return recordInto(file.createWriteStream(), process, size, deps);
  } catch (error) {
    if (error instanceof CommandFailure) throw error;
    deps.logger.warn({ err: error, path }, UNWRITTEN);
    return undefined;
  }
}

/** Records into a stream and ends it with the recording. @param size the bytes that the log already has. */
export function recordInto(output: Writable, process: string, size: number, deps: RecordingDeps): Recording {
  // An earlier process may have left half a line.
  if (size > 0) output.write("\n");
  const { recorder } = recordOn(output, process, size, deps);
  const flush = (): Promise<void> => new Promise((resolve) => void output.end(() => resolve()));
  return {
    recorder,
    close: async () => {
      try {
        await inTime(deps, "writing the rest of the log of decisions", flush);
      } catch (error) {
        deps.logger.warn({ err: error }, "the log of decisions is not complete");
        output.destroy();
      }
    },
  };
}

function recordOn(
  output: Writable,
  process: string,
  size: number,
  { logger }: RecordingDeps,
): { recorder: DecisionRecorder; stop: () => void } {
  let failed = false;
  const onError = (error: Error): void => {
    if (!failed) logger.warn({ err: error }, UNWRITTEN);
    failed = true;
  };
  output.on("error", onError);
  const write = (line: string): boolean => {
    if (failed) return false;
    output.write(line);
    return output.writableLength < WAITING_BYTES_MAX;
  };
  return {
    recorder: new DecisionRecorder({ process, write, bytesMax: LOG_BYTES_MAX - size }),
    stop: () => void output.off("error", onError),
  };
}

async function openLog(path: string, signal: AbortSignal): Promise<{ file: FileHandle; size: number }> {
  const file = await open(path, OPEN_FLAGS, OWNER_ONLY).catch((error: NodeJS.ErrnoException) => {
    throw NO_REGULAR_FILE.has(error.code) ? noRegularFile(path) : error;
  });
  try {
    const stats = await file.stat();
    if (!stats.isFile()) throw noRegularFile(path);
    if ((stats.mode & 0o077) !== 0) await file.chmod(OWNER_ONLY);
    signal.throwIfAborted();
    return { file, size: stats.size };
  } catch (error) {
    await file.close();
    throw error;
  }
}

function noRegularFile(path: string): CommandFailure {
  return new CommandFailure(
    "DecisionLogUnusable",
    `--record-decisions: ${path} is not a regular file: name a file, or - for standard output`,
  );
}

function inTime<T>({ clock }: RecordingDeps, what: string, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  return withDeadline(clock, what, DISK_TIMEOUT_MS, new AbortController().signal, work);
}
