import type { Bmc } from "../rack/bmc.ts";
import { LOGGED } from "../rack/event-log.ts";
import type { LoggedEvent } from "../rack/event-log.ts";
import type { CommandAnswer } from "./commands.ts";

// The System Event Log (IPMI 2.0, chapter 31), the oldest entry first.

const OK = 0x00;
const RESERVATION_CANCELLED = 0xc5;
const NOT_PRESENT = 0xcb;
const RESERVATION = 0x0001;
const FIRST = 0x0000;
const LAST = 0xffff;

export function getSelTime(bmc: Bmc): CommandAnswer {
  return { completionCode: OK, data: uint32(bmc.nowMs() / 1_000) };
}

export function getSelInfo(bmc: Bmc): CommandAnswer {
  const { length } = bmc.log;
  return { completionCode: OK, data: [0x51, ...uint16(length), 0xff, 0xff, ...uint32(0), ...uint32(0), 0x02] };
}

export function reserveSel(): CommandAnswer {
  return { completionCode: OK, data: uint16(RESERVATION) };
}

export function getSelEntry(bmc: Bmc, data: readonly number[]): CommandAnswer {
  const [reservationLow = 0, reservationHigh = 0, low = 0, high = 0, offset = 0, count = 0xff] = data;
  const id = low | (high << 8);
  const { log } = bmc;
  const at = id === LAST ? log.length - 1 : id === FIRST ? 0 : log.findIndex((event) => event.id === id);
  const event = log[at];
  if (event === undefined) return { completionCode: NOT_PRESENT, data: [] };
  if (offset > 0 && (reservationLow | (reservationHigh << 8)) !== RESERVATION) {
    return { completionCode: RESERVATION_CANCELLED, data: [] };
  }
  const next = log[at + 1]?.id ?? LAST;
  return { completionCode: OK, data: [...uint16(next), ...recordOf(event).slice(offset, offset + count)] };
}

/** A system event record (32.1) of a discrete, sensor-specific event. */
function recordOf({ id, bmcTimeMs, kind }: LoggedEvent): number[] {
  const { sensorType, offset } = LOGGED[kind];
  return [
    ...uint16(id),
    0x02,
    ...uint32(bmcTimeMs / 1_000),
    0x20,
    0x00,
    0x04,
    sensorType,
    0x87,
    0x6f,
    offset,
    0xff,
    0xff,
  ];
}

function uint16(value: number): number[] {
  return [value & 0xff, value >> 8];
}

function uint32(value: number): number[] {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(Math.max(0, Math.floor(value)));
  return [...bytes];
}
