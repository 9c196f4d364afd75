import { createHash } from "node:crypto";
import type { FenceReadiness } from "../../status/could-fence/could-fence.ts";

/**
 * How many nodes a slice has. The page has the rows of one slice, and its script loads others when the viewer scrolls
 * near them.
 */
export const SLICE_NODES = 50;
const FILTER_CHARS_MAX = 100;
const VERSION_CHARS = 8;
/** The length of a message in a row. The page of the node has the whole message. */
const MESSAGE_CHARS_MAX = 160;

/** Which nodes the page of all nodes shows. */
export interface NodeQuery {
  /** Part of a name, an answer, a reason or a message, in lower case; empty for all nodes. */
  filter: string;
  /** The position of the first node of the slice with rows. */
  from: number;
}

/** The rows of one slice of all nodes, and where the other slices are. */
export interface NodeList extends NodeQuery {
  total: number;
  matching: number;
  slices: readonly NodeSlice[];
  rows: readonly FenceReadiness[];
}

interface NodeSlice {
  from: number;
  count: number;
  /** Changes when the content of the rows changes. */
  version: string;
}

/** Reads the query of an address, and ignores invalid parts of it. */
export function nodeQuery(query: URLSearchParams): NodeQuery {
  const filter = (query.get("q") ?? "").trim().toLowerCase().slice(0, FILTER_CHARS_MAX);
  const text = query.get("from") ?? "";
  const from = /^\d{1,7}$/u.test(text) ? Number(text) : 0;
  return { filter, from: from - (from % SLICE_NODES) };
}

/** The nodes that a query asks for. Pure. */
export function nodeList(all: readonly FenceReadiness[], { filter, from: wanted }: NodeQuery): NodeList {
  const nodes = all
    .map(shorten)
    .filter((readiness) => filter === "" || textOf(readiness).toLowerCase().includes(filter));
  const slices = Array.from({ length: Math.ceil(nodes.length / SLICE_NODES) }, (_, index): NodeSlice => {
    const rows = nodes.slice(index * SLICE_NODES, (index + 1) * SLICE_NODES);
    return { from: index * SLICE_NODES, count: rows.length, version: versionOf(rows) };
  });
  const from = slices.at(wanted / SLICE_NODES)?.from ?? 0;
  const rows = nodes.slice(from, from + SLICE_NODES);
  return { filter, from, total: all.length, matching: nodes.length, slices, rows };
}

function shorten(readiness: FenceReadiness): FenceReadiness {
  const { message } = readiness;
  return message.length <= MESSAGE_CHARS_MAX
    ? readiness
    : { ...readiness, message: `${message.slice(0, MESSAGE_CHARS_MAX)}…` };
}

function textOf({ node, answer, reason, message }: FenceReadiness): string {
  return `${node} ${answer} ${reason} ${message}`;
}

function versionOf(rows: readonly FenceReadiness[]): string {
  const text = rows.map(textOf).join("\n");
  return createHash("sha256").update(text).digest("base64url").slice(0, VERSION_CHARS);
}
