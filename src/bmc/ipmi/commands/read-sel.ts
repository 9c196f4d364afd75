import {
  GET_SEL_INFO,
  GET_SEL_TIME,
  getSelEntry,
  LAST_RECORD,
  parseRecord,
  parseReservation,
  parseSelInfo,
  parseSelTime,
  recordBytes,
  recordId,
  RESERVE_SEL,
} from "./sel.ts";
import { COMPLETION } from "../packets/codes.ts";
import type { Request, Response } from "../packets/message.ts";
import { readSensorAlarms } from "./read-sdr.ts";
import type { Ask } from "./read-sdr.ts";
import type { BmcEvidence, BmcLogEntry } from "../../evidence/model.ts";
import { plainText } from "../../evidence/plain-text.ts";
import type { ReadingBudget } from "../../gate/limits/reading-budget.ts";
import type { Clock } from "../../../runtime/clock.ts";
import type { Secret } from "../../../runtime/secret.ts";

const ENTRIES_MAX = 12;
/** How many missing ids are skipped: ids need not be consecutive. */
const GAPS_MAX = 4;
/** The size of the parts in which a record is read if the BMC does not return it as a whole. */
const PART_BYTES = 8;
const RECORD_BYTES = 16;
/** A shorter password is not hidden, because its bytes are in many records by chance. */
const HIDDEN_BYTES_MIN = 4;
/** Completion codes with which BMCs refuse to return a whole record. It is then read in parts. */
const TOO_LONG: ReadonlySet<number> = new Set([0xc7, 0xc8, 0xca, 0xce, 0xff]);

/**
 * Reads the clock of the BMC, the newest entries of its SEL, and its sensors.
 *
 * @param ask sends one command.
 * @param password It is replaced in what is read: a BMC may have written it to its log, and the result is shown to
 * other users.
 */
export async function readSel(
  ask: (request: Request, signal: AbortSignal) => Promise<Response>,
  password: Secret,
  budget: ReadingBudget,
  clock: Clock,
  signal: AbortSignal,
): Promise<BmcEvidence> {
  const hide: Hide = (data) => withoutPassword(data, password);
  const read: Ask = async (what, request) => {
    const answer = await budget.send(what, signal, (signal) => ask(request, signal));
    budget.spend(answer?.data.length ?? 0);
    return answer && { ...answer, data: hide(answer.data) };
  };
  const time = await read("the time of the SEL", GET_SEL_TIME);
  const bmcNowMs = time?.completionCode === COMPLETION.ok ? parseSelTime(time.data) : undefined;
  const clockAheadMs = bmcNowMs === undefined ? undefined : bmcNowMs - clock.nowMs();
  const info = await read("the size of the SEL", GET_SEL_INFO);
  const count = info?.completionCode === COMPLETION.ok ? parseSelInfo(info.data) : undefined;
  const entries = count === undefined ? [] : await readNewest(read, hide, Math.min(count, ENTRIES_MAX));
  if (info !== undefined && count === undefined) budget.note("the BMC does not let this account read its SEL");
  const sensors = await readSensorAlarms(read);
  const { incomplete } = budget;
  return {
    clockAheadMs,
    entries,
    sensors,
    lastResetMs: undefined,
    incomplete: incomplete === undefined ? undefined : plainText(incomplete, 200),
  };
}

type Hide = (data: Buffer) => Buffer;

/** Returns the bytes of an answer with asterisks instead of the password. */
function withoutPassword(data: Buffer, password: Secret): Buffer {
  const hidden = Buffer.from(password.reveal());
  if (hidden.length < HIDDEN_BYTES_MIN) return data;
  const shown = Buffer.from(data);
  for (let at = shown.indexOf(hidden); at !== -1; at = shown.indexOf(hidden, at)) {
    shown.fill("*", at, at + hidden.length);
    at += hidden.length;
  }
  return shown;
}

async function readNewest(read: Ask, hide: Hide, count: number): Promise<BmcLogEntry[]> {
  const entries: BmcLogEntry[] = [];
  let id = LAST_RECORD;
  for (let gaps = 0; entries.length < count && gaps <= GAPS_MAX && id > 0;) {
    const record = await readRecord(read, hide, id);
    if (record === "no answer") break;
    const own = record === undefined ? undefined : recordId(record);
    const entry = record === undefined ? undefined : parseRecord(record);
    if (entry === undefined) {
      if (id === LAST_RECORD) break;
      gaps += 1;
    } else entries.push(entry);
    id = (id === LAST_RECORD ? (own ?? 0) : id) - 1;
  }
  return entries;
}

/** @returns undefined if there is no such record. */
async function readRecord(read: Ask, hide: Hide, id: number): Promise<Buffer | "no answer" | undefined> {
  const whole = await read("an entry of the SEL", getSelEntry(id, 0));
  if (whole === undefined) return "no answer";
  if (whole.completionCode === COMPLETION.ok) return recordBytes(whole.data);
  if (!TOO_LONG.has(whole.completionCode)) return undefined;
  const reserved = await read("a reservation of the SEL", RESERVE_SEL);
  if (reserved === undefined) return "no answer";
  const reservation = reserved.completionCode === COMPLETION.ok ? (parseReservation(reserved.data) ?? 0) : 0;
  const parts: Buffer[] = [];
  for (let offset = 0; offset < RECORD_BYTES; offset += PART_BYTES) {
    const part = await read("a part of an entry of the SEL", getSelEntry(id, reservation, offset, PART_BYTES));
    if (part === undefined) return "no answer";
    if (part.completionCode !== COMPLETION.ok) return undefined;
    parts.push(part.data.subarray(2, 2 + PART_BYTES));
  }
  // The password may be split between two parts.
  return hide(Buffer.concat(parts));
}
