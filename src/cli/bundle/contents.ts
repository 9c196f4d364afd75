import type { PartFile } from "./part.ts";
import type { Redactor } from "./redact/redactor.ts";

/** One file as it is written. */
export interface BundleFile {
  path: string;
  text: string;
  /** Lines that were left out to keep the size. */
  droppedLines: number;
}

/** Files get space in this order: those that explain most first, and logs, which are the largest, last. */
const ORDER = ["versions", "status", "check", "live", "explain", "kinds", "leases", "events", "metrics", "logs"];

/** Removes secrets from all files, and cuts them to `bytesMax` together. */
export function finishFiles(files: readonly PartFile[], redactor: Redactor, bytesMax: number): BundleFile[] {
  // Every file is searched before the first is finished: a secret that one file names may be in any other.
  const searched = files
    .map((file) => searchedOf(file, redactor))
    .sort((one, other) => rankOf(one.path) - rankOf(other.path));
  let leftBytes = bytesMax;
  return searched.map(({ path, lines, keeps }, index) => {
    const finished = lines.map((line) => redactor.finish(line));
    const isLog = keeps === "last";
    // The logs that follow share the rest.
    const roomBytes = isLog ? Math.floor(leftBytes / (searched.length - index)) : leftBytes;
    const kept = fit(finished, roomBytes, keeps);
    const text = kept.map((line) => `${line}\n`).join("");
    leftBytes -= Buffer.byteLength(text);
    return { path, text, droppedLines: finished.length - kept.length };
  });
}

interface SearchedFile {
  path: string;
  lines: string[];
  keeps: "first" | "last";
}

function searchedOf(file: PartFile, redactor: Redactor): SearchedFile {
  const path = file.path.replaceAll(/[^\w./-]/gu, "_");
  if ("objects" in file) {
    return { path, lines: file.objects.map((object) => JSON.stringify(redactor.value(object))), keeps: "first" };
  }
  if ("json" in file) return { path, lines: [JSON.stringify(redactor.value(file.json), null, 2)], keeps: "first" };
  if ("log" in file) return { path, lines: redactor.lines(file.log), keeps: "last" };
  return { path, lines: redactor.lines(file.text.trimEnd().split("\n")), keeps: "first" };
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
