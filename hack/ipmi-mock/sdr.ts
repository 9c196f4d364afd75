import type { Bmc } from "../rack/bmc.ts";
import type { SimulatedSensor } from "../rack/sensors.ts";
import type { CommandAnswer } from "./commands.ts";

// The repository of sensor records, and their readings (IPMI 2.0, chapters 33, 35 and 43).

const OK = 0x00;
const RESERVATION_CANCELLED = 0xc5;
const OUT_OF_RANGE = 0xc9;
const NOT_PRESENT = 0xcb;
const RESERVATION = 0x0002;
const LAST = 0xffff;
const COMPACT_RECORD = 0x02;
const NAME_OFFSET = 31;

export function reserveSdr(): CommandAnswer {
  return { completionCode: OK, data: [RESERVATION & 0xff, RESERVATION >> 8] };
}

/** Record ids count from 1 in the order of the sensors. */
export function getSdr(bmc: Bmc, data: readonly number[]): CommandAnswer {
  const [reservationLow = 0, reservationHigh = 0, low = 0, high = 0, offset = 0, count = 0xff] = data;
  const id = Math.max(1, low | (high << 8));
  const sensor = bmc.sensors[id - 1];
  if (sensor === undefined) return { completionCode: NOT_PRESENT, data: [] };
  if (offset > 0 && (reservationLow | (reservationHigh << 8)) !== RESERVATION) {
    return { completionCode: RESERVATION_CANCELLED, data: [] };
  }
  const record = recordOf(id, sensor);
  if (count !== 0xff && offset + count > record.length) return { completionCode: OUT_OF_RANGE, data: [] };
  const next = bmc.sensors[id] === undefined ? LAST : id + 1;
  return { completionCode: OK, data: [next & 0xff, next >> 8, ...record.slice(offset, offset + count)] };
}

export function getSensorReading(bmc: Bmc, [number = 0]: readonly number[]): CommandAnswer {
  const sensor = bmc.sensors.find((known) => known.number === number);
  if (sensor === undefined) return { completionCode: NOT_PRESENT, data: [] };
  const { states, isUnavailable = false } = sensor;
  return { completionCode: OK, data: [0x20, isUnavailable ? 0xe0 : 0xc0, states & 0xff, 0x80 | (states >> 8)] };
}

/** A compact sensor record (43.2). */
function recordOf(id: number, { name, number, type, eventType }: SimulatedSensor): number[] {
  const text = [...Buffer.from(name, "latin1")];
  const body = [0x20, 0x00, number, 0x03, 0x01, 0x00, 0x00, type, eventType];
  const fields = [...body, ...Array<number>(NAME_OFFSET - 5 - body.length).fill(0), 0xc0 | text.length, ...text];
  return [id & 0xff, id >> 8, 0x51, COMPACT_RECORD, fields.length, ...fields];
}
