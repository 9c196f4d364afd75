import { VERSION } from "../../runtime/version.ts";
import { toTime } from "../../runtime/time.ts";
import { withoutControls } from "../../runtime/text/printable.ts";
import type { BundleFile } from "./contents.ts";
import type { Gathered } from "./gather.ts";
import type { SecretKind } from "./redact/marks.ts";

const MEANINGS: Readonly<Record<string, string>> = {
  versions: "versions of the command and of Kubernetes, and how far their clocks differ",
  status: "what `ironfence status` shows",
  check: "what `ironfence check` shows",
  live: "what `ironfence check --live` shows: every BMC was probed for this bundle",
  explain: "what the detector decides about every node and health check, and why",
  kinds: "objects, one a line",
  leases: "Leases, one a line: who leads, and which nodes are alive",
  events: "Kubernetes Events about these objects, one a line",
  metrics: "metrics of each replica",
  logs: "log of each replica, the newest lines",
};

export interface IndexFacts {
  nowMs: number;
  /** The address of the API server. */
  server: string;
  files: readonly BundleFile[];
  gaps: Gathered["gaps"];
  redacted: ReadonlyMap<SecretKind, number>;
}

/**
 * The first page of a bundle: what is in it, what is missing and what was removed. Secrets were already removed from
 * the facts.
 */
export function renderIndex({ nowMs, server, files, gaps, redacted }: IndexFacts): string {
  const cut = files.filter(({ droppedLines }) => droppedLines > 0);
  return [
    "# Support bundle of ironfence",
    "",
    `Gathered at ${toTime(nowMs)} from ${code(server)} by \`ironfence bundle\` ${VERSION}.`,
    "",
    "Start with `check.txt`, then `status.txt`, then the line of the node in `explain/nodes.jsonl`.",
    "",
    "## What is in it",
    "",
    "| file | lines | bytes | what it is |",
    "|---|---|---|---|",
    ...files.map(({ path, text }) => {
      const lines = text.split("\n").length - 1;
      return `| ${path} | ${lines} | ${Buffer.byteLength(text)} | ${MEANINGS[path.split(/[./]/u, 1)[0] ?? ""] ?? ""} |`;
    }),
    "",
    "## What is missing",
    "",
    ...(gaps.length === 0 ? ["Nothing: every part was read."] : gaps.map(({ part, why }) => `- ${part}: ${code(why)}`)),
    "",
    ...(cut.length === 0
      ? ["No file was cut to keep the size limit."]
      : cut.map(
          ({ path, droppedLines }) =>
            `- ${path}: ${droppedLines} lines were cut to keep the size limit (\`--max-size\`)`,
        )),
    "",
    "## What was removed",
    "",
    "Secrets were not read. What looks like a password, token, key or user name in a URL was replaced by `[redacted: …]`:",
    "",
    ...(redacted.size === 0 ? ["- nothing"] : [...redacted].map(([kind, count]) => `- ${kind}: ${count}`)),
    "",
    "Names and addresses of nodes, BMCs and users are still in it. Read it before you give it to others.",
    "",
  ].join("\n");
}

/** Quotes text of unknown origin as code, so that Markdown renders no link, image or HTML in it. */
function code(text: string): string {
  return `\`${withoutControls(text).replaceAll("`", "'")}\``;
}
