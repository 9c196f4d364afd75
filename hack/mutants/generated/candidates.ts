import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Candidate } from "../series.ts";
import { isPure, testsFor } from "./areas.ts";
import { generateMutants } from "./generate.ts";

const ROOT = fileURLToPath(new URL("../../..", import.meta.url));
/** The most characters of a change that are printed. */
const SHOWN_MAX = 70;

/**
 * The generated mutants, each with the test files of its folder.
 *
 * @param places files, or lines of files (`src/a.ts:7`); by default, all files of the detector and the remediator that
 * decide.
 */
export async function generatedCandidates(
  places: readonly string[] = decidingFiles(),
): Promise<(Candidate & { says: string })[]> {
  const candidates = await Promise.all(places.map(candidatesAt));
  return candidates.flat();
}

function decidingFiles(): readonly string[] {
  return globSync("src/{detector,remediator}/**/*.ts", { cwd: ROOT })
    .filter((file) => isPure(readFileSync(join(ROOT, file), "utf8")))
    .toSorted();
}

async function candidatesAt(place: string): Promise<(Candidate & { says: string })[]> {
  const [, file = "", wantedLine] = /^(.+?)(?::(\d+))?$/.exec(place) ?? [];
  const source = readFileSync(join(ROOT, file), "utf8");
  const { fast, slow } = testsFor(file, ROOT);
  const mutants = await generateMutants(file, source);
  return mutants
    .filter(({ line }) => wantedLine === undefined || line === Number(wantedLine))
    .map(({ line, kind, edit }) => ({
      id: `${file}:${line}`,
      says: `${kind}: ${shorten(source.slice(edit.start, edit.end))} → ${shorten(edit.replacement)}`,
      edit,
      tiers: [fast, slow],
    }));
}

function shorten(code: string): string {
  const line = code.replaceAll(/\s+/g, " ");
  return line.length > SHOWN_MAX ? `${line.slice(0, SHOWN_MAX)}…` : line;
}
