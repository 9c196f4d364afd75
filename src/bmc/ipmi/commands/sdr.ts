import type { Request } from "../packets/message.ts";
import type { SensorAlarm } from "../../evidence/model.ts";
import { plainText } from "../../evidence/plain-text.ts";
import { stateAlarm, thresholdAlarm } from "../../evidence/sensor-alarms.ts";

// The records of sensors (IPMI 2.0, chapters 33 and 43) and their readings (chapter 35).

const NETFN_SENSOR = 0x04;
const NETFN_STORAGE = 0x0a;
/** The first bytes of a record, up to the type of its events. They show whether the sensor is read. */
export const HEAD_BYTES = 14;
/** The record ids that stand for the first record and for the end of the list. */
export const FIRST_RECORD = 0x0000;
export const NO_RECORD = 0xffff;
const FULL_RECORD = 0x01;
const COMPACT_RECORD = 0x02;
/** Where the type and length of the name are in a record. */
const NAME_OFFSETS: Readonly<Record<number, number>> = { [FULL_RECORD]: 47, [COMPACT_RECORD]: 31 };
const NAME_BYTES_MAX = 17;
/** The owner of a sensor. Other owners are reached over a bus behind the BMC, and are not read. */
const BMC_ADDRESS = 0x20;
const THRESHOLD_EVENTS = 0x01;
const SENSOR_SPECIFIC_EVENTS = 0x6f;
/** Temperature, voltage and current. Fans stand still in a host that is off, and have no useful upper threshold. */
const THRESHOLD_TYPES: ReadonlySet<number> = new Set([0x01, 0x02, 0x03]);
/** Processor, power supply, power unit, memory, drive and critical interrupt. */
const DISCRETE_TYPES: ReadonlySet<number> = new Set([0x07, 0x08, 0x09, 0x0c, 0x0d, 0x13]);
/** The reading is not available, or the sensor is not scanned (35.14). */
const UNAVAILABLE = 0x20;
const SCANNED = 0x40;
const ASCII = 0b11;

export const RESERVE_SDR: Request = { netFn: NETFN_STORAGE, command: 0x22, data: [] };

/** Get SDR of `count` bytes from `offset` (33.12). */
export function getSdr(record: number, reservation: number, offset: number, count: number): Request {
  const data = [reservation & 0xff, reservation >> 8, record & 0xff, record >> 8, offset, count];
  return { netFn: NETFN_STORAGE, command: 0x23, data };
}

export function getSensorReading(sensorNumber: number): Request {
  return { netFn: NETFN_SENSOR, command: 0x2d, data: [sensorNumber] };
}

/** A sensor whose reading may show an alarm. */
export interface Sensor {
  number: number;
  type: number;
  eventType: number;
  /** The offset of the name in the record, and its maximum length in bytes. */
  nameAt: { offset: number; count: number };
}

/** The id of the next record in an answer to `getSdr`. */
export function parseNextRecord(data: Buffer): number | undefined {
  return data.length < 2 ? undefined : data.readUInt16LE(0);
}

/** Parses the sensor in the first bytes of a record; undefined if its reading cannot show an alarm. */
export function parseSensor(data: Buffer): Sensor | undefined {
  const head = data.subarray(2);
  if (head.length < HEAD_BYTES) return undefined;
  const nameOffset = NAME_OFFSETS[head.readUInt8(3)];
  const isOfBmc = head.readUInt8(5) === BMC_ADDRESS && (head.readUInt8(6) & 0x03) === 0;
  if (nameOffset === undefined || !isOfBmc) return undefined;
  const [number, type, eventType] = [head.readUInt8(7), head.readUInt8(12), head.readUInt8(13)];
  const isRead =
    (eventType === THRESHOLD_EVENTS && THRESHOLD_TYPES.has(type)) ||
    (eventType === SENSOR_SPECIFIC_EVENTS && DISCRETE_TYPES.has(type));
  if (!isRead) return undefined;
  const length = 5 + head.readUInt8(4);
  const count = Math.max(0, Math.min(NAME_BYTES_MAX, length - nameOffset));
  return { number, type, eventType, nameAt: { offset: nameOffset, count } };
}

/** The alarm in an answer to `getSensorReading`; undefined if it shows none. */
export function parseAlarm(
  { type, eventType, number }: Sensor,
  data: Buffer,
  name: string | undefined,
): SensorAlarm | undefined {
  if (data.length < 3) return undefined;
  const flags = data.readUInt8(1);
  if ((flags & UNAVAILABLE) !== 0 || (flags & SCANNED) === 0) return undefined;
  const low = data.readUInt8(2);
  if (eventType === THRESHOLD_EVENTS) return thresholdAlarm({ type, number, name, states: low });
  const high = data.length < 4 ? 0 : data.readUInt8(3) & 0x7f;
  return stateAlarm({ type, number, name, states: low | (high << 8) });
}

/** The name in an answer to `getSdr` (43.15); undefined if it is not in ASCII. */
export function parseSdrName(data: Buffer): string | undefined {
  const bytes = data.subarray(2);
  const coding = bytes.length === 0 ? 0 : bytes.readUInt8(0);
  if (coding >> 6 !== ASCII) return undefined;
  const name = plainText(bytes.subarray(1, 1 + (coding & 0x1f)).toString("latin1"), NAME_BYTES_MAX);
  return name === "" ? undefined : name;
}
