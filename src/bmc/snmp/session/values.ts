import { printable } from "../../../runtime/text/printable.ts";

// The values of an answer, whatever library has decoded them. Pure.

/** One value that the PDU has sent. `none`: there is no such object or instance. */
export type SnmpValue =
  | { type: "integer" | "gauge" | "ticks"; value: number }
  | { type: "bytes"; value: Uint8Array }
  | { type: "oid"; value: string }
  | { type: "none" }
  | { type: "other" };

/** The values of one answer by their OIDs. */
export type Answers = ReadonlyMap<string, SnmpValue>;

const TEXT_LENGTH_MAX = 64;

const HAS_TEXT = /[^\s]/u;

/** A short text of the PDU; undefined for an empty one, and for a value that is not a text. */
export function textOf(value: SnmpValue | undefined): string | undefined {
  if (value?.type !== "bytes") return undefined;
  const text = printable(Buffer.from(value.value.subarray(0, 4 * TEXT_LENGTH_MAX)).toString("utf8"))
    .replaceAll("\ufffd", "?")
    .trim();
  return HAS_TEXT.test(text) ? text.slice(0, TEXT_LENGTH_MAX) : undefined;
}

/** The value as text for messages. */
export function shown(value: SnmpValue | undefined): string {
  if (value === undefined || value.type === "none") return "nothing";
  if (value.type === "bytes") return `the text ${JSON.stringify(textOf(value) ?? "")}`;
  if (value.type === "other") return "a value of another type";
  return value.type === "ticks" ? `${value.value} ticks` : String(value.value);
}
