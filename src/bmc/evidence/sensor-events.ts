import type { Rank, Topic } from "./model.ts";
import { OTHER_NAMES, SENSOR_TYPES } from "./sensor-types.ts";
import type { SensorType } from "./sensor-types.ts";

/** A decoded event of a sensor (IPMI 2.0, table 42-3). */
export interface SensorEvent {
  topic: Topic;
  rank: Rank;
  /** What happened, such as `Uncorrectable ECC`. */
  what: string;
  /** The sensor, such as `memory sensor 0Ah`. */
  where: string;
  /** What happened, its details and the sensor as one text. */
  words: string;
}

/** Decoders of bytes 2 and 3 of the event data, for the sensor types that define these bytes. FFh means unspecified. */
const DETAILS: Readonly<Record<number, (event: { offset: number; data2: number; data3: number }) => Detail>> = {
  0x08: ({ offset, data3 }) => (offset === 0x6 ? known(POWER_SUPPLY_CONFIGURATIONS[data3 & 0x0f]) : {}),
  0x0c: ({ data3 }) => numbered("DIMM", data3),
  0x0f: ({ offset, data2 }) => (offset === 0x0 ? (POST_ERRORS[data2] ?? {}) : {}),
  0x10: ({ offset, data2 }) => (offset === 0x0 ? numbered("DIMM", data2) : {}),
  0x21: ({ data2, data3 }) => {
    const { name = "slot", topic } = SLOTS[data2 & 0x7f] ?? {};
    return { ...numbered(name, data3), ...(topic !== undefined && { topic }) };
  },
  0x23: ({ data2 }) => known(TIMER_USES[data2 & 0x0f]),
};
const UNSPECIFIED = 0xff;

interface Detail {
  words?: string;
  topic?: Topic;
}

const POWER_SUPPLY_CONFIGURATIONS: readonly string[] = [
  "vendor mismatch",
  "revision mismatch",
  "processor missing",
  "power rating mismatch",
  "voltage rating mismatch",
];
const POST_ERRORS: Readonly<Record<number, Detail>> = {
  0x01: { words: "no system memory is installed", topic: "Memory" },
  0x02: { words: "no usable system memory", topic: "Memory" },
  0x03: { words: "unrecoverable disk failure", topic: "Disk" },
  0x04: { words: "unrecoverable system board failure" },
  0x06: { words: "unrecoverable disk controller failure", topic: "Disk" },
  0x08: { words: "removable boot media not found" },
  0x09: { words: "unrecoverable video controller failure" },
  0x0b: { words: "firmware ROM corruption detected" },
  0x0c: { words: "CPU voltage mismatch", topic: "CPU" },
  0x0d: { words: "CPU speed matching failure", topic: "CPU" },
};
const SLOTS: Readonly<Record<number, { name: string; topic: Topic }>> = {
  0x01: { name: "drive array slot", topic: "Disk" },
  0x07: { name: "DIMM", topic: "Memory" },
  0x08: { name: "fan", topic: "Thermal" },
  0x09: { name: "PCIe slot", topic: "PCIe" },
  0x0a: { name: "SCSI slot", topic: "Disk" },
  0x0b: { name: "SATA or SAS slot", topic: "Disk" },
};
const TIMER_USES: readonly (string | undefined)[] = [undefined, "BIOS FRB2", "BIOS or POST", "OS load", "SMS or OS"];

function known(words: string | undefined): Detail {
  return words === undefined ? {} : { words };
}

function numbered(what: string, number: number): Detail {
  return number === UNSPECIFIED ? {} : { words: `${what} ${number}` };
}

/**
 * The details in bytes 2 and 3. Bits 7:6 and 5:4 of byte 1 show whether they have the meaning that IPMI defines for the
 * type.
 */
function detailOf(sensorType: number, data: readonly [number, number, number] | undefined): Detail {
  if (data === undefined) return {};
  const [data1, second, third] = data;
  const data2 = data1 >> 6 === 0b11 ? second : UNSPECIFIED;
  const data3 = ((data1 >> 4) & 0b11) === 0b11 ? third : UNSPECIFIED;
  return DETAILS[sensorType]?.({ offset: data1 & 0x0f, data2, data3 }) ?? {};
}

/** Thresholds (table 42-2, event type 01h): going low and going high of non-critical, critical, non-recoverable. */
const THRESHOLDS: readonly (readonly [rank: Rank, words: string])[] = [
  [1, "lower non-critical, going low"],
  [0, "lower non-critical, going high"],
  [2, "lower critical, going low"],
  [0, "lower critical, going high"],
  [3, "lower non-recoverable, going low"],
  [0, "lower non-recoverable, going high"],
  [0, "upper non-critical, going low"],
  [1, "upper non-critical, going high"],
  [0, "upper critical, going low"],
  [2, "upper critical, going high"],
  [0, "upper non-recoverable, going low"],
  [3, "upper non-recoverable, going high"],
];
/** Severity events (event type 07h). */
const SEVERITIES: readonly (readonly [rank: Rank, words: string])[] = [
  [0, "transition to OK"],
  [1, "transition to non-critical"],
  [2, "transition to critical"],
  [3, "transition to non-recoverable"],
  [0, "transition to non-critical from more severe"],
  [1, "transition to critical from non-recoverable"],
  [3, "transition to non-recoverable"],
];
const GENERIC: Readonly<Record<number, readonly (readonly [rank: Rank, words: string])[]>> = {
  0x01: THRESHOLDS,
  0x03: [
    [0, "state deasserted"],
    [2, "state asserted"],
  ],
  0x04: [
    [0, "predictive failure deasserted"],
    [1, "predictive failure"],
  ],
  0x05: [
    [0, "limit not exceeded"],
    [2, "limit exceeded"],
  ],
  0x07: SEVERITIES,
  0x0b: [
    [0, "fully redundant"],
    [1, "redundancy lost"],
    [1, "redundancy degraded"],
    [2, "not redundant, insufficient resources"],
  ],
};
const SENSOR_SPECIFIC = 0x6f;
const STATE_ASSERTED = 0x03;
/** Temperature, processor and power supply: the types whose asserted state is a fault, such as CATERR. */
const FAULT_IF_ASSERTED: readonly number[] = [0x01, 0x07, 0x08];

/** Decodes the event of a system event record. A deasserted event has rank 0. */
export function sensorEvent(event: {
  sensorType: number;
  sensorNumber: number;
  /** Byte 13 of the record: bit 7 is set if the event is deasserted, the other bits are the type of the event. */
  direction: number;
  data1: number;
  /** Bytes 15 and 16 of a log record; absent for the state of a sensor. */
  more?: readonly [data2: number, data3: number];
}): SensorEvent {
  const name = OTHER_NAMES[event.sensorType] ?? `Sensor type ${hex(event.sensorType)}`;
  const type = SENSOR_TYPES[event.sensorType] ?? { topic: "None", name, offsets: {} };
  const offset = event.data1 & 0x0f;
  const eventType = event.direction & 0x7f;
  const isOver = (event.direction & 0x80) !== 0;
  const isNeutral = eventType === STATE_ASSERTED && !FAULT_IF_ASSERTED.includes(event.sensorType);
  const [rank, words] =
    (eventType === SENSOR_SPECIFIC ? type.offsets[offset] : GENERIC[eventType]?.[offset]) ??
    ([0, `event ${hex(offset)}`] as const);
  const where = `${type.name.toLowerCase()} sensor ${hex(event.sensorNumber)}`;
  const { data1, more } = event;
  const detail = eventType === SENSOR_SPECIFIC ? detailOf(event.sensorType, more && [data1, ...more]) : {};
  const parts = [words, ...(detail.words === undefined ? [] : [detail.words]), where];
  return {
    topic: detail.topic ?? topicOf(type, event.sensorType, eventType, offset),
    rank: isOver || isNeutral ? 0 : rank,
    what: words,
    where,
    words: `${parts.join(", ")}${isOver ? ", deasserted" : ""}`,
  };
}

/** The topic of an event. Some offsets have another topic than their sensor type. */
function topicOf(type: SensorType, sensorType: number, eventType: number, offset: number): Topic {
  if (eventType !== SENSOR_SPECIFIC) return type.topic;
  if (sensorType === 0x07 && offset === 0x1) return "Thermal";
  if (sensorType === 0x0c && offset === 0xa) return "Thermal";
  if (sensorType === 0x09 && offset >= 0x4) return "PSU";
  if (sensorType === 0x10) return offset === 0x6 ? "CPU" : "Memory";
  if (sensorType === 0x19) return offset === 0x1 ? "Thermal" : "PSU";
  return type.topic;
}

function hex(byte: number): string {
  return `${byte.toString(16).toUpperCase().padStart(2, "0")}h`;
}
