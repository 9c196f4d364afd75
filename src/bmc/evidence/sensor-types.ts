import type { Rank, Topic } from "./model.ts";

// The types of sensors in IPMI 2.0 (table 42-3), with their events. Pure.

export interface SensorType {
  topic: Topic;
  name: string;
  /** The events that are specific to the type, by their offsets. */
  offsets: Readonly<Record<number, readonly [rank: Rank, words: string]>>;
}

/** The sensor types whose events may be causes of an outage or show a change of power. */
export const SENSOR_TYPES: Readonly<Record<number, SensorType>> = {
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
export const OTHER_NAMES: Readonly<Record<number, string>> = {
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
