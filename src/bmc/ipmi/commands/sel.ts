import type { Request } from "../packets/message.ts";
import type { BmcLogEntry } from "../../evidence/model.ts";
import { plainText } from "../../evidence/plain-text.ts";
import { rankOf } from "../../evidence/rank.ts";
import { sensorEvent } from "../../evidence/sensor-events.ts";
import { topicOfWords } from "../../evidence/topics.ts";

// The System Event Log (IPMI 2.0, chapter 31), of which only the end is read.

const NETFN_STORAGE = 0x0a;
const RECORD_BYTES = 16;
/** The record id that stands for the last entry. */
export const LAST_RECORD = 0xffff;
const SYSTEM_EVENT = 0x02;
/** Record types from here up to `OEM_UNTIMED` have a time, and data of a vendor. */
const OEM_TIMED = 0xc0;
/** Record types from here on have data of a vendor and no time. */
const OEM_UNTIMED = 0xe0;
/** The time is not known (37.1). */
const UNSPECIFIED = 0xffffffff;

export const GET_SEL_INFO: Request = { netFn: NETFN_STORAGE, command: 0x40, data: [] };
export const RESERVE_SEL: Request = { netFn: NETFN_STORAGE, command: 0x42, data: [] };
export const GET_SEL_TIME: Request = { netFn: NETFN_STORAGE, command: 0x48, data: [] };

/**
 * Get SEL Entry of `count` bytes from `offset`.
 *
 * @param reservation needed for an offset other than 0; 0 otherwise (31.5).
 */
export function getSelEntry(record: number, reservation: number, offset = 0, count = 0xff): Request {
  const data = [reservation & 0xff, reservation >> 8, record & 0xff, record >> 8, offset, count];
  return { netFn: NETFN_STORAGE, command: 0x43, data };
}

/** How many entries there are. */
export function parseSelInfo(data: Buffer): number | undefined {
  return data.length < 3 ? undefined : data.readUInt16LE(1);
}

export function parseReservation(data: Buffer): number | undefined {
  return data.length < 2 ? undefined : data.readUInt16LE(0);
}

/** The time of the BMC in milliseconds. */
export function parseSelTime(data: Buffer): number | undefined {
  return data.length < 4 ? undefined : timeOf(data.readUInt32LE(0));
}

/** The bytes of a record in an answer to `getSelEntry`, after the id of the next one. */
export function recordBytes(data: Buffer): Buffer {
  return data.subarray(2, 2 + RECORD_BYTES);
}

/** The id of the record. It differs from the id in the request if that was `LAST_RECORD`. */
export function recordId(record: Buffer): number | undefined {
  return record.length < 2 ? undefined : record.readUInt16LE(0);
}

/** Reads a record (32.1); undefined if it is too short. */
export function parseRecord(record: Buffer): BmcLogEntry | undefined {
  if (record.length < RECORD_BYTES) return undefined;
  const id = record.readUInt16LE(0);
  const type = record.readUInt8(2);
  const base = {
    log: "SEL",
    id: String(id),
    bmcTimeMs: type < OEM_UNTIMED ? timeOf(record.readUInt32LE(3)) : undefined,
  };
  if (type === SYSTEM_EVENT) {
    const { topic, rank, words } = sensorEvent({
      sensorType: record.readUInt8(10),
      sensorNumber: record.readUInt8(11),
      direction: record.readUInt8(12),
      data1: record.readUInt8(13),
      more: [record.readUInt8(14), record.readUInt8(15)],
    });
    return { ...base, topic, rank, text: plainText(words) };
  }
  // Some vendors write text into untimed records.
  const bytes = record.subarray(type >= OEM_UNTIMED ? 3 : 10);
  const text = bytes.toString("latin1").replaceAll(/[^\x20-\x7e]/g, "");
  const isText = type >= OEM_TIMED && text.length >= bytes.length - 2;
  if (!isText) return { ...base, topic: "None", rank: 0, text: `OEM record ${type.toString(16).toUpperCase()}h` };
  return { ...base, topic: topicOfWords(text), rank: rankOf(text, undefined), text: plainText(text) };
}

function timeOf(seconds: number): number | undefined {
  return seconds === UNSPECIFIED || seconds === 0 ? undefined : seconds * 1_000;
}
