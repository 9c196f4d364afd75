import type { Clock } from "../../runtime/clock.ts";
import { sleep } from "../../runtime/clock.ts";
import type { PartFile } from "./part.ts";
import type { Redactor } from "./redact/redactor.ts";

/** One file as it is written. */
export interface BundleFile {
  path: string;
  text: string;
  /** How many lines were left out to keep the size limit. */
  droppedLines: number;
}

/** Files get space in this order: those that explain most first, and logs, which are the largest, last. */
const ORDER = ["versions", "status", "check", "live", "explain", "kinds", "leases", "events", "metrics", "logs"];

/** After this many lines, the work pauses so that the process can handle other things, such as Ctrl-C. */
const LINES_AT_ONCE = 500;

/**
 * The share of the time that the search may take. Searching a line takes ten times as long as finishing it, and a file
 * has to be finished before it is written.
 */
const SEARCH_SHARE = 0.8;

/** What may end the work before all files are done. */
export interface Bounds {
  clock: Clock;
  /** When the time is over, on the monotonic clock. */
  endMs: number;
  signal: AbortSignal;
}

/** Files without secrets, and files for which there was no time. */
export interface Finished {
  files: BundleFile[];
  gaps: { part: string; why: string }[];
}

/**
 * Removes secrets from all files, and cuts the files to `bytesMax` in total. A file whose secrets cannot be removed in
 * time is left out.
 *
 * @throws the reason of the signal on abort.
 */
export async function finishFiles(
  files: readonly PartFile[],
  redactor: Redactor,
  bytesMax: number,
  bounds: Bounds,
): Promise<Finished> {
  const startMs = bounds.clock.monotonicMs();
  const search = new Breaks({ ...bounds, endMs: startMs + SEARCH_SHARE * (bounds.endMs - startMs) });
  const breaks = new Breaks(bounds);
  const ranked = files.toSorted((one, other) => rankOf(one.path) - rankOf(other.path));
  const gaps: Finished["gaps"] = [];
  const late = (path: string): void => void gaps.push({ part: path, why: LATE });
  // Every file is searched before the first one is finished: a secret that one file names may be in any other file.
  const searched: SearchedFile[] = [];
  for (const file of ranked) {
    const found = await searchedOf(file, redactor, search);
    if (found === undefined) late(file.path);
    else searched.push(found);
  }
  let leftBytes = bytesMax;
  const result: BundleFile[] = [];
  for (const [index, { path, lines, keeps }] of searched.entries()) {
    const finished = await inBatches(lines, breaks, (some) => some.map((line) => redactor.finish(line)));
    if (finished === undefined) {
      late(path);
      continue;
    }
    const isLog = keeps === "last";
    // Logs come last and share the space that is left.
    const roomBytes = isLog ? Math.floor(leftBytes / (searched.length - index)) : leftBytes;
    const kept = fit(finished, roomBytes, keeps);
    const text = kept.map((line) => `${line}\n`).join("");
    leftBytes -= Buffer.byteLength(text);
    result.push({ path, text, droppedLines: finished.length - kept.length });
  }
  return { files: result, gaps };
}

const LATE = "left out: the time of the whole bundle was over before its secrets were removed";

/** Pauses work on many lines for a moment, and finds out whether its time is over. */
class Breaks {
  readonly #bounds: Bounds;

  constructor(bounds: Bounds) {
    this.#bounds = bounds;
  }

  /** @returns whether there is time for more. @throws the reason of the signal on abort. */
  async pause(): Promise<boolean> {
    const { clock, endMs, signal } = this.#bounds;
    await sleep(clock, 0, signal);
    return clock.monotonicMs() < endMs;
  }
}

/** Works on all items, a batch at a time. Undefined if there is not enough time for all of them. */
async function inBatches<T>(
  items: readonly T[],
  breaks: Breaks,
  work: (some: readonly T[]) => string[],
): Promise<string[] | undefined> {
  const result: string[] = [];
  for (let from = 0; from < items.length || from === 0; from += LINES_AT_ONCE) {
    if (!(await breaks.pause())) return undefined;
    for (const line of work(items.slice(from, from + LINES_AT_ONCE))) result.push(line);
  }
  return result;
}

interface SearchedFile {
  path: string;
  lines: string[];
  keeps: "first" | "last";
}

async function searchedOf(file: PartFile, redactor: Redactor, breaks: Breaks): Promise<SearchedFile | undefined> {
  const path = file.path.replaceAll(/[^\w./-]/gu, "_");
  const lines = await searchedLines(file, redactor, breaks);
  return lines && { path, lines, keeps: "log" in file ? "last" : "first" };
}

function searchedLines(file: PartFile, redactor: Redactor, breaks: Breaks): Promise<string[] | undefined> {
  if ("objects" in file) {
    return inBatches(file.objects, breaks, (some) => some.map((object) => JSON.stringify(redactor.value(object))));
  }
  if ("json" in file) {
    return inBatches([file.json], breaks, (some) =>
      some.flatMap((json) => JSON.stringify(redactor.value(json), null, 2).split("\n")),
    );
  }
  // A secret may have several lines, so one search continues over all batches.
  return inBatches("log" in file ? file.log : file.text.trimEnd().split("\n"), breaks, redactor.lineSearch());
}

function rankOf(path: string): number {
  const rank = ORDER.findIndex((name) => path.startsWith(name));
  return rank === -1 ? ORDER.length : rank;
}

function fit(lines: readonly string[], bytesMax: number, keeps: "first" | "last"): string[] {
  const ordered = keeps === "last" ? lines.toReversed() : lines;
  const kept: string[] = [];
  let bytes = 0;
  for (const line of ordered) {
    bytes += Buffer.byteLength(line) + 1;
    if (bytes > bytesMax) break;
    kept.push(line);
  }
  return keeps === "last" ? kept.reverse() : kept;
}
