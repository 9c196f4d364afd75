import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Rank, Topic } from "../../../../src/bmc/evidence/model.ts";
import { TEXT_MAX, WORDS_MAX } from "../../../../src/bmc/evidence/plain-text.ts";
import { rankOf } from "../../../../src/bmc/evidence/rank.ts";
import { sensorEvent } from "../../../../src/bmc/evidence/sensor-events.ts";
import { topicOfId, topicOfWords } from "../../../../src/bmc/evidence/topics.ts";
import { parseEntry } from "../../../../src/bmc/redfish/logs/parse-entry.ts";

type Case = [body: Record<string, unknown>, topic: Topic, rank: Rank];

/** Log entries in the forms that vendors document, with invented locations. */
const ENTRIES: Readonly<Record<string, readonly Case[]>> = {
  "Dell iDRAC": [
    [
      {
        Id: "1",
        MessageId: "MEM0001",
        Severity: "Critical",
        Message: "Multi-bit memory errors detected on a memory device at location(s) DIMM_B2.",
      },
      "Memory",
      3,
    ],
    [
      { Id: "2", MessageId: "IDRAC.2.8.CPU0000", Severity: "Critical", Message: "CPU 1 has an internal error (IERR)." },
      "CPU",
      3,
    ],
    [
      {
        Id: "3",
        MessageId: "CPU0001",
        Severity: "Critical",
        Message: "CPU 1 has a thermal trip (over-temperature) event.",
      },
      "Thermal",
      3,
    ],
    [
      { Id: "4", MessageId: "PSU0003", Severity: "Critical", Message: "The power input for power supply 1 is lost." },
      "PSU",
      2,
    ],
    [
      {
        Id: "5",
        MessageId: "PCI1318",
        Severity: "Critical",
        Message: "A fatal error was detected on a component at bus 59 device 0 function 0.",
      },
      "PCIe",
      3,
    ],
    [
      {
        Id: "6",
        MessageId: "PDR1016",
        Severity: "Critical",
        Message: "Disk 3 in Backplane 1 of RAID Controller in Slot 4 is removed.",
      },
      "Disk",
      2,
    ],
    [
      { Id: "7", MessageId: "ASR0001", Severity: "Critical", Message: "The watchdog timer reset the system." },
      "Watchdog",
      3,
    ],
    [{ Id: "8", MessageId: "SYS1001", Severity: "OK", Message: "System is turning off." }, "Power", 0],
    [
      {
        Id: "9",
        MessageId: "USR0030",
        Severity: "OK",
        Message: "Successfully logged in using root, from 192.0.2.9 and REDFISH.",
      },
      "None",
      0,
    ],
    [
      {
        Id: "10",
        MessageId: "MEM0702",
        Severity: "Warning",
        Message: "Correctable memory error rate exceeded for DIMM_A1.",
      },
      "Memory",
      1,
    ],
  ],
  "HPE iLO (IML)": [
    [
      {
        Id: "13",
        Severity: "Critical",
        EntryType: "Oem",
        OemRecordFormat: "Hpe-IML",
        Message: "Uncorrectable Machine Check Exception (Processor 1, APIC ID 0x00000000, Bank 0x00000005)",
        Oem: { Hpe: { Categories: ["Hardware"], Class: 2, Code: 9, Repaired: false } },
      },
      "CPU",
      3,
    ],
    [
      { Id: "14", Severity: "Caution", Message: "Corrected Memory Error threshold exceeded (Processor 2, DIMM 8)" },
      "Memory",
      1,
    ],
    [{ Id: "15", Severity: "Critical", Message: "ASR Detected by System ROM" }, "Watchdog", 2],
    [
      { Id: "16", Severity: "Critical", Message: "System Overheating (Zone 2, Location CPU, Temperature 102C)" },
      "Thermal",
      2,
    ],
    [
      {
        Id: "17",
        Severity: "Repaired",
        Message: "System Power Supply: Input Power Loss or Unplugged Power Cord (Power Supply 2)",
      },
      "PSU",
      3,
    ],
  ],
  "Lenovo XCC": [
    [
      {
        Id: "1",
        MessageId: "FQXSFMA0008I",
        Severity: "Warning",
        Message: "An Uncorrectable Error has occurred on DIMM 4.",
      },
      "Memory",
      3,
    ],
    [
      {
        Id: "2",
        MessageId: "FQXSPPU0001N",
        Severity: "Critical",
        Message: "An Over-Temperature Condition has been detected on Processor 1.",
      },
      "Thermal",
      2,
    ],
    [{ Id: "3", MessageId: "FQXSPPW0003L", Severity: "Critical", Message: "Power Supply 1 has lost input." }, "PSU", 2],
    [
      {
        Id: "4",
        MessageId: "FQXSPIO0011N",
        Severity: "Critical",
        Message: "An Uncorrectable Error has occurred on PCIe slot 2.",
      },
      "PCIe",
      3,
    ],
  ],
  "Supermicro and AMI": [
    [
      {
        Id: "1",
        EntryType: "SEL",
        EntryCode: "Assert",
        SensorType: "Memory",
        Severity: "OK",
        Message: "Uncorrectable ECC @DIMMB2 - Assertion",
      },
      "Memory",
      3,
    ],
    [
      {
        Id: "2",
        EntryType: "SEL",
        EntryCode: "Deassert",
        SensorType: "Power Supply / Converter",
        Severity: "Critical",
        Message: "Failure Detected",
      },
      "PSU",
      0,
    ],
    [{ Id: "3", SensorType: "Critical Interrupt", EntryCode: "Assert", Severity: "Critical" }, "PCIe", 2],
    [{ Id: "4", SensorType: "Processor", EntryCode: "IERR", Severity: "Critical" }, "CPU", 3],
  ],
  OpenBMC: [
    [
      {
        Id: "1",
        MessageId: "OpenBMC.0.1.CPUThermalTrip",
        MessageArgs: ["1"],
        Severity: "Critical",
        Message: "CPU %1 thermal trip.",
      },
      "Thermal",
      3,
    ],
    [
      {
        Id: "2",
        MessageId: "OpenBMC.0.4.PowerSupplyFailed",
        Severity: "Critical",
        Message: "Power supply PSU1 failed.",
      },
      "PSU",
      2,
    ],
    [
      { Id: "3", MessageId: "OpenBMC.0.1.PCIeFatalECRCError", Severity: "Critical", Message: "PCIe Fatal ECRC Error." },
      "PCIe",
      3,
    ],
    [
      { Id: "4", MessageId: "OpenBMC.0.1.DCPowerOff", Severity: "OK", Message: "Host system DC power is off" },
      "Power",
      0,
    ],
  ],
  "an error record (CPER)": [
    [
      {
        Id: "1",
        Severity: "Critical",
        Message: "Platform error",
        CPER: { SectionType: "a5bc1114-6f64-4ede-b863-3e83ed7c83b1" },
      },
      "Memory",
      2,
    ],
  ],
  "Cisco CIMC": [
    [
      { Severity: "Critical", Message: "P1_THERMTRIP_N: Temperature sensor, Limit Exceeded was asserted" },
      "Thermal",
      3,
    ],
    // This entry is written at each power-on.
    [{ Severity: "OK", Message: "P1_THERMTRIP_N: Temperature sensor, Limit Not Exceeded was asserted" }, "Thermal", 0],
  ],
  "sensors that are named after their part": [
    [{ Severity: "OK", Message: "CPU1 Temp: Upper Critical - Going High - Assertion" }, "Thermal", 1],
    [
      {
        Severity: "Critical",
        MessageId: "OpenBMC.0.1.SensorThresholdCriticalHighGoingHigh",
        Message: "%1 sensor crossed a critical high threshold going high. Reading=%2 Threshold=%3.",
        MessageArgs: ["CPU1_Temp", "99", "95"],
      },
      "Thermal",
      2,
    ],
    [
      { Severity: "Critical", SensorType: "Temperature", Message: "P1-DIMMA1: upper critical, going high" },
      "Thermal",
      2,
    ],
    [
      {
        Severity: "Critical",
        MessageId: "ResourceEvent.1.0.ResourceErrorsDetected",
        Message: "The resource property %1 has detected errors of type '%2'.",
        MessageArgs: ["HGX_GPU_SXM_1", "THERM_OVERT"],
      },
      "Thermal",
      2,
    ],
  ],
};

describe("the classification of log entries", () => {
  for (const [vendor, cases] of Object.entries(ENTRIES)) {
    it(`the classification of log entries knows the entries of ${vendor}`, () => {
      for (const [body, topic, rank] of cases) {
        const entry = parseEntry("SEL", body, undefined);
        assert.deepEqual({ topic: entry?.topic, rank: entry?.rank }, { topic, rank }, JSON.stringify(body));
      }
    });
  }

  it("the classification of log entries puts the arguments of a registry into its message", () => {
    const body = { Message: "CPU %1 thermal trip at %2.", MessageArgs: ["1", "104 C"] };
    assert.equal(parseEntry("SEL", body, undefined)?.text, "CPU 1 thermal trip at 104 C");
  });

  it("the classification of log entries limits the length of a message with the arguments of a registry", () => {
    // Without a bound, the text would exceed the maximum length of a string.
    const body = { Id: "1", Message: "%1".repeat(40_000), MessageArgs: ["DIMM ".repeat(220_000)] };
    assert.equal(parseEntry("SEL", body, undefined)?.topic, "Memory");
    const within = { Message: `${"%1".repeat(500)} fan`, MessageArgs: ["x".repeat(1_000)] };
    assert.equal(parseEntry("SEL", within, undefined)?.text.length, TEXT_MAX);
  });

  it("the classification of log entries reads only the beginning of a long text", () => {
    const late = `${"- ".repeat(WORDS_MAX / 2)}uncorrectable DIMM error`;
    assert.equal(topicOfWords(late), "None");
    assert.equal(rankOf(late, undefined), 0);
    assert.equal(topicOfId(`${"x".repeat(WORDS_MAX)}.MEM0001`), undefined);
    assert.equal(topicOfWords(late.slice(2 * 100)), "Memory");
    assert.equal(rankOf(late.slice(2 * 100), undefined), 3);
  });

  it("the classification of log entries takes nothing from an entry that says nothing", () => {
    assert.equal(parseEntry("SEL", { "@odata.id": "/redfish/v1/x/1" }, undefined), undefined);
    assert.equal(parseEntry("SEL", { Message: "", Created: 5, MessageId: 7 }, undefined), undefined);
  });
});

describe("the events of sensors (IPMI 2.0, table 42-3)", () => {
  const cases: [what: string, type: number, direction: number, data1: number, topic: Topic, rank: Rank][] = [
    ["uncorrectable ECC", 0x0c, 0x6f, 0xa1, "Memory", 3],
    ["correctable ECC", 0x0c, 0x6f, 0x00, "Memory", 1],
    ["an IERR", 0x07, 0x6f, 0x00, "CPU", 3],
    ["a thermal trip of a processor", 0x07, 0x6f, 0x01, "Thermal", 3],
    ["a failed power supply", 0x08, 0x6f, 0x01, "PSU", 2],
    ["a loss of AC", 0x09, 0x6f, 0x04, "PSU", 3],
    ["a power-off", 0x09, 0x6f, 0x00, "Power", 0],
    ["a drive fault", 0x0d, 0x6f, 0x01, "Disk", 2],
    ["a fatal bus error", 0x13, 0x6f, 0x0a, "PCIe", 3],
    ["a watchdog reset", 0x23, 0x6f, 0x01, "Watchdog", 2],
    ["a temperature above critical", 0x01, 0x01, 0x59, "Thermal", 2],
    ["a temperature below critical again", 0x01, 0x81, 0x59, "Thermal", 0],
    ["CATERR, a state of a processor that is asserted", 0x07, 0x03, 0x01, "CPU", 2],
    ["a state of a power supply that is asserted", 0x08, 0x03, 0x01, "PSU", 2],
    ["a state that is deasserted", 0x07, 0x03, 0x00, "CPU", 0],
    ["a state of a drive slot that is asserted", 0x0d, 0x03, 0x01, "Disk", 0],
    ["a temperature whose limit is exceeded", 0x01, 0x05, 0x01, "Thermal", 2],
    ["a temperature whose limit is not exceeded", 0x01, 0x05, 0x00, "Thermal", 0],
    ["an unknown sensor", 0xd0, 0x6f, 0x03, "None", 0],
  ];
  for (const [what, sensorType, direction, data1, topic, rank] of cases) {
    it(`the events of sensors (IPMI 2.0, table 42-3) show ${what} as ${topic}`, () => {
      const found = sensorEvent({ sensorType, sensorNumber: 0x87, direction, data1 });
      assert.deepEqual({ topic: found.topic, rank: found.rank }, { topic, rank });
    });
  }

  const details: [text: string, topic: Topic, type: number, data: [number, number, number]][] = [
    ["Uncorrectable ECC, DIMM 5, memory sensor 87h", "Memory", 0x0c, [0x31, 0xff, 0x05]],
    ["Uncorrectable ECC, memory sensor 87h", "Memory", 0x0c, [0x31, 0xff, 0xff]],
    // Vendor-specific bytes have no meaning in the standard.
    ["Uncorrectable ECC, memory sensor 87h", "Memory", 0x0c, [0xa1, 0x20, 0x05]],
    ["Uncorrectable ECC, memory sensor 87h", "Memory", 0x0c, [0x01, 0x20, 0x05]],
    ["POST error, no usable system memory, system firmware sensor 87h", "Memory", 0x0f, [0xc0, 0x02, 0xff]],
    ["POST error, system firmware sensor 87h", "None", 0x0f, [0x00, 0x02, 0xff]],
    ["Hard reset, SMS or OS, watchdog 2 sensor 87h", "Watchdog", 0x23, [0xc1, 0x04, 0xff]],
    ["Configuration error, vendor mismatch, power supply sensor 87h", "PSU", 0x08, [0x36, 0xff, 0x00]],
    ["Fault, PCIe slot 3, slot sensor 87h", "PCIe", 0x21, [0xf0, 0x09, 0x03]],
    ["Fault, DIMM 7, slot sensor 87h", "Memory", 0x21, [0xf0, 0x07, 0x07]],
    ["Correctable memory error logging disabled, DIMM 2, event logging sensor 87h", "Memory", 0x10, [0xc0, 0x02, 0xff]],
    ["Thermal trip, chip set sensor 87h", "Thermal", 0x19, [0x01, 0xff, 0xff]],
    ["event 01h, battery sensor 87h", "None", 0x29, [0x01, 0xff, 0xff]],
    ["event 03h, sensor type d0h sensor 87h", "None", 0xd0, [0xf3, 0x01, 0x02]],
  ];
  for (const [text, topic, type, [data1, data2, data3]] of details) {
    const bytes = [data1, data2, data3].map((byte) => byte.toString(16)).join(" ");
    it(`the events of sensors (IPMI 2.0, table 42-3) of type ${type} with the data ${bytes} are shown as ${topic}`, () => {
      const found = sensorEvent({ sensorType: type, sensorNumber: 0x87, direction: 0x6f, data1, more: [data2, data3] });
      assert.deepEqual([found.words, found.topic], [text, topic]);
    });
  }

  it("the events of sensors (IPMI 2.0, table 42-3) with any bytes have short words", () => {
    for (let type = 0; type < 256; type += 1) {
      for (const data1 of [0x00, 0x31, 0xc0, 0xf6, 0xff]) {
        const { words } = sensorEvent({
          sensorType: type,
          sensorNumber: 255,
          direction: 0xef,
          data1,
          more: [data1, 254],
        });
        assert.ok(words.length < TEXT_MAX, words);
      }
    }
  });
});
