import type { WriteStream } from "node:tty";
import type { Node, Pod } from "../../src/api/kubernetes/core.ts";
import { NODES, PODS } from "../../src/api/kubernetes/core-types.ts";
import type { Entry } from "./chronicle.ts";
import { DATABASE, NODE_NAMES } from "./objects.ts";
import type { SceneResult } from "./scenes.ts";
import type { World } from "./world.ts";

/** Where the demo is shown. */
export interface Screen {
  title(text: string): void;
  entry(entry: Entry): void;
  /** Draws the present state again, if the output is a terminal. */
  refresh(world: World): void;
  summary(results: readonly SceneResult[], violations: readonly string[]): void;
}

/** One JSON object a line, for scripts. The last one is the summary. */
export function jsonScreen(out: NodeJS.WritableStream): Screen {
  const print = (value: unknown): void => void out.write(`${JSON.stringify(value)}\n`);
  return {
    title: () => undefined,
    entry: (entry) => {
      const { atMs, timeMs, scene, host, step, text } = entry;
      print({ atMs, time: new Date(timeMs).toISOString(), scene, host, ...(step !== undefined && { step }), text });
    },
    refresh: () => undefined,
    summary: (results, violations) =>
      print({
        summary: results.map(({ scene, ok, stepsMs, problems }) => ({
          scene,
          ok,
          stepsMs,
          ...(problems.length > 0 && { problems }),
        })),
        ...(violations.length > 0 && { violations }),
      }),
  };
}

const PLAIN = { good: "", bad: "", dim: "", bold: "", reset: "" };
const COLOURS = { good: "\u001B[32m", bad: "\u001B[31m", dim: "\u001B[2m", bold: "\u001B[1m", reset: "\u001B[0m" };
const CLEAR_LINE = "\u001B[2K";

/** Prints lines for the user. On a terminal, a board with one line per host stays below them. */
export function textScreen(out: WriteStream | NodeJS.WritableStream): Screen {
  const terminal = "isTTY" in out && out.isTTY;
  const colour = terminal && process.env["NO_COLOR"] === undefined ? COLOURS : PLAIN;
  let board: string[] = [];
  const print = (line: string): void => {
    // Clears the board, prints the line there, and draws the board again below it.
    const up = board.length === 0 ? "" : `\u001B[${board.length}A`;
    const below = board.map((row) => `${CLEAR_LINE}${row}\n`).join("");
    out.write(`${up}${terminal ? CLEAR_LINE : ""}${line}\n${below}`);
  };
  return {
    title: (text) => print(`\n${colour.bold}${text}${colour.reset}`),
    entry: ({ atMs, host, text, tone }) => {
      const seconds = (atMs / 1_000).toFixed(3).padStart(7);
      const tint = tone === "plain" ? "" : colour[tone];
      print(`${colour.dim}${seconds} s${colour.reset}  ${host.padEnd(8)} ${tint}${text}${colour.reset}`);
    },
    refresh: (world) => {
      if (!terminal) return;
      const rows = NODE_NAMES.map((name) => boardRow(world, name, out.columns ?? 80));
      const up = board.length === 0 ? "" : `\u001B[${board.length}A`;
      board = rows;
      out.write(up + rows.map((row) => `${CLEAR_LINE}${row}\n`).join(""));
    },
    summary: (results, violations) => {
      board = [];
      out.write(`\n${summaryLines(results, violations, colour).join("\n")}\n`);
    },
  };
}

function boardRow(world: World, name: string, columns: number): string {
  const host = world.rack.host(name);
  const node = world.server.collection<Node>(NODES).get({ name });
  const ready = node?.status.conditions?.find((condition) => condition.type === "Ready")?.status ?? "gone";
  const taints = (node?.spec.taints ?? []).map((taint) => taint.key.split("/").at(-1));
  const pods = [...world.server.collection<Pod>(PODS).values()]
    .filter((pod) => pod.spec.nodeName === name && pod.metadata.name.startsWith(DATABASE))
    .map((pod) => pod.metadata.name);
  const cells = [name, `power ${host.power}`.padEnd(17), host.os.padEnd(12), `Ready=${ready}`.padEnd(13)];
  return `| ${cells.join(" ")} ${pods.join(" ")} ${taints.length > 0 ? `[${taints.join(" ")}]` : ""}`.slice(
    0,
    columns - 1,
  );
}

function summaryLines(results: readonly SceneResult[], violations: readonly string[], colour: typeof PLAIN): string[] {
  const lines = ["When each step came, in seconds from its scene's outage on:"];
  for (const [index, { scene, ok, stepsMs, problems }] of results.entries()) {
    const verdict = ok ? `${colour.good}ok${colour.reset}` : `${colour.bad}FAILED${colour.reset}`;
    lines.push(`${colour.bold}Scene ${index + 1}: ${scene}${colour.reset}: ${verdict}`);
    const steps = Object.entries(stepsMs).sort(([, a], [, b]) => a - b);
    for (const [step, ms] of steps) lines.push(`  ${step.padEnd(13)} ${(ms / 1_000).toFixed(3).padStart(7)} s`);
    for (const problem of problems) lines.push(`  ${colour.bad}${problem}${colour.reset}`);
  }
  for (const violation of violations) lines.push(`${colour.bad}UNSAFE: ${violation}${colour.reset}`);
  return lines;
}
