import type { Rank, Topic } from "./model.ts";

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

type Offsets = Readonly<Record<number, readonly [rank: Rank, words: string]>>;
interface SensorType {
  topic: Topic;
  name: string;
  offsets: Offsets;
}

const SENSOR_TYPES: Readonly<Record<number, SensorType>> = {
  0x01: { topic: "Thermal", name: "Temperature", offsets: {} },
  0x02: { topic: "PSU", name: "Voltage", offsets: {} },
  0x03: { topic: "PSU", name: "Current", offsets: {} },
  0x04: { topic: "Thermal", name: "Fan", offsets: {} },
  0x07: {
    topic: "CPU",
    name: "Processor",
    offsets: {
      0x0: [3, "IERR"],
      0x1: [3, "Thermal trip"],
      0x2: [2, "FRB1/BIST failure"],
      0x3: [2, "FRB2/Hang in POST failure"],
      0x4: [2, "FRB3/Processor startup failure"],
      0x5: [2, "Configuration error"],
      0x6: [3, "SM BIOS uncorrectable CPU-complex error"],
      0x8: [1, "Processor disabled"],
      0xa: [1, "Processor automatically throttled"],
      0xb: [3, "Machine check exception (uncorrectable)"],
      0xc: [1, "Correctable machine check error"],
    },
  },
  0x08: {
    topic: "PSU",
    name: "Power supply",
    offsets: {
      0x1: [2, "Failure detected"],
      0x2: [1, "Predictive failure"],
      0x3: [2, "Power supply input lost (AC/DC)"],
      0x4: [2, "Power supply input lost or out of range"],
      0x5: [1, "Power supply input out of range, but present"],
      0x6: [1, "Configuration error"],
    },
  },
  0x09: {
    topic: "Power",
    name: "Power unit",
    offsets: {
      0x0: [0, "Power off"],
      0x1: [0, "Power cycle"],
      0x2: [0, "240 VA power down"],
      0x3: [0, "Interlock power down"],
      0x4: [3, "AC lost"],
      0x5: [3, "Soft power control failure"],
      0x6: [3, "Power unit failure detected"],
      0x7: [1, "Predictive failure"],
    },
  },
  0x0a: { topic: "Thermal", name: "Cooling device", offsets: {} },
  0x0c: {
    topic: "Memory",
    name: "Memory",
    offsets: {
      0x0: [1, "Correctable ECC"],
      0x1: [3, "Uncorrectable ECC"],
      0x2: [2, "Parity"],
      0x3: [1, "Memory scrub failed"],
      0x4: [2, "Memory device disabled"],
      0x5: [1, "Correctable ECC logging limit reached"],
      0x7: [2, "Configuration error"],
      0x9: [1, "Memory automatically throttled"],
      0xa: [3, "Critical overtemperature"],
    },
  },
  0x0d: {
    topic: "Disk",
    name: "Drive",
    offsets: {
      0x1: [2, "Drive fault"],
      0x2: [1, "Predictive failure"],
      0x5: [1, "In critical array"],
      0x6: [2, "In failed array"],
    },
  },
  0x0f: { topic: "None", name: "System firmware", offsets: { 0x0: [2, "POST error"], 0x1: [2, "Firmware hang"] } },
  0x10: {
    topic: "None",
    name: "Event logging",
    offsets: {
      0x0: [1, "Correctable memory error logging disabled"],
      0x6: [1, "Correctable machine check error logging disabled"],
    },
  },
  0x11: {
    topic: "Watchdog",
    name: "Watchdog 1",
    offsets: {
      0x1: [2, "OS watchdog reset"],
      0x2: [2, "OS watchdog shut down"],
      0x3: [2, "OS watchdog power down"],
      0x4: [2, "OS watchdog power cycle"],
    },
  },
  0x12: { topic: "Power", name: "System event", offsets: { 0x1: [0, "OEM system boot event"] } },
  0x13: {
    topic: "PCIe",
    name: "Critical interrupt",
    offsets: {
      0x0: [1, "Front panel NMI or diagnostic interrupt"],
      0x1: [2, "Bus timeout"],
      0x2: [1, "I/O channel check NMI"],
      0x3: [1, "Software NMI"],
      0x4: [2, "PCI PERR"],
      0x5: [3, "PCI SERR"],
      0x7: [1, "Bus correctable error"],
      0x8: [3, "Bus uncorrectable error"],
      0x9: [3, "Fatal NMI"],
      0xa: [3, "Bus fatal error"],
      0xb: [1, "Bus degraded"],
    },
  },
  0x19: {
    topic: "None",
    name: "Chip set",
    offsets: { 0x0: [2, "Soft power control failure"], 0x1: [3, "Thermal trip"] },
  },
  0x1d: { topic: "Power", name: "System boot", offsets: {} },
  0x20: {
    topic: "Watchdog",
    name: "OS stop",
    offsets: {
      0x0: [3, "Critical stop during OS load"],
      0x1: [3, "Run-time critical stop"],
      0x3: [0, "OS graceful shutdown"],
    },
  },
  0x21: {
    topic: "PCIe",
    name: "Slot",
    offsets: { 0x0: [2, "Fault"], 0x2: [0, "Device installed"], 0x5: [0, "Slot power off"], 0x8: [1, "Slot disabled"] },
  },
  0x22: { topic: "Power", name: "ACPI power state", offsets: {} },
  0x23: {
    topic: "Watchdog",
    name: "Watchdog 2",
    offsets: {
      0x0: [2, "Timer expired"],
      0x1: [2, "Hard reset"],
      0x2: [2, "Power down"],
      0x3: [2, "Power cycle"],
      0x8: [1, "Timer interrupt"],
    },
  },
  0x24: { topic: "None", name: "Platform alert", offsets: {} },
};

/** The names of sensor types whose events are not causes of an outage. */
const OTHER_NAMES: Readonly<Record<number, string>> = {
  0x05: "Physical security",
  0x06: "Platform security",
  0x0b: "Other units",
  0x0e: "POST memory resize",
  0x14: "Button",
  0x15: "Module",
  0x16: "Microcontroller",
  0x17: "Add-in card",
  0x18: "Chassis",
  0x1a: "Other FRU",
  0x1b: "Cable",
  0x1c: "Terminator",
  0x1e: "Boot error",
  0x1f: "OS boot",
  0x25: "Entity presence",
  0x26: "Monitor ASIC",
  0x27: "LAN",
  0x28: "Management subsystem",
  0x29: "Battery",
  0x2a: "Session audit",
  0x2b: "Version change",
  0x2c: "FRU state",
};

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

/** The name of a sensor type, for services that report only its number. */
export function nameOfSensorType(number: number): string | undefined {
  return SENSOR_TYPES[number]?.name ?? OTHER_NAMES[number];
}

/** The topic of a sensor type by the name that Redfish gives it (DSP0268, LogEntry.SensorType). */
export function topicOfSensorName(name: string): Topic | undefined {
  const key = name.toLowerCase().replaceAll(/[^a-z0-9]/g, "");
  return NAMES.get(key);
}

const NAMES: ReadonlyMap<string, Topic> = new Map<string, Topic>([
  ...Object.values(SENSOR_TYPES).map(
    ({ name, topic }) => [name.toLowerCase().replaceAll(/[^a-z0-9]/g, ""), topic] as const,
  ),
  ["powersupplyconverter", "PSU"],
  ["powerunit", "PSU"],
  ["driveslotbay", "Disk"],
  ["driveslot", "Disk"],
  ["watchdog1", "Watchdog"],
  ["watchdog2", "Watchdog"],
  ["osstopshutdown", "Watchdog"],
  ["systemacpipowerstate", "Power"],
  ["systembootrestartinitiated", "Power"],
  ["slotconnector", "PCIe"],
  ["addincard", "PCIe"],
]);

function hex(byte: number): string {
  return `${byte.toString(16).toUpperCase().padStart(2, "0")}h`;
}
