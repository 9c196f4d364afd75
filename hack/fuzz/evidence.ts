import { must } from "./target.ts";
import type { FuzzTarget } from "./target.ts";
import { parseBmcTime } from "../../src/bmc/evidence/bmc-time.ts";
import type { BmcLogEntry } from "../../src/bmc/evidence/model.ts";
import { plainText, TEXT_MAX } from "../../src/bmc/evidence/plain-text.ts";
import { parseAlarm, parseSdrName, parseSensor } from "../../src/bmc/ipmi/commands/sdr.ts";
import { parseRecord, recordBytes } from "../../src/bmc/ipmi/commands/sel.ts";
import { parseEntry } from "../../src/bmc/redfish/logs/parse-entry.ts";
import { parseStart } from "../../src/bmc/redfish/logs/parse-start.ts";
import { judgeEvidence } from "../../src/remediator/machine/rules/diagnosis/cause.ts";

// Fuzzes logs of BMCs. Any client that can write to a log chooses its text.

const NOW_MS = 1_793_000_000_000;
const ENTRY = {
  "@odata.id": "/redfish/v1/Systems/1/LogServices/SEL/Entries/7",
  Id: "7",
  Created: "2026-11-23T21:03:04+01:00",
  Severity: "Critical",
  SensorType: "Memory",
  EntryCode: "Assert",
  MessageId: "OpenBMC.0.1.MemoryECCUncorrectable",
  Message: "Uncorrectable ECC at %1",
  MessageArgs: ["DIMM B2"],
  Links: { OriginOfCondition: { "@odata.id": "/redfish/v1/Systems/1/Memory/B2" } },
  Oem: { Hpe: { Categories: ["Hardware"], Class: 5 } },
};
const RECORD = Buffer.from("ffff0700020000a06a200004 0c876fa1ffff".replaceAll(" ", ""), "hex");
const TEXTS = [
  "\u001b[31mECC\u001b[0m\r\n",
  "\u202e**[x](https://y)**<b>@all",
  "2026-11-23T21:03:04Z",
  "11/23/2026 21:03",
];

/** Characters on which a terminal, a page or a chat would act. */
const ACTIVE = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}<>[\]{}`*|~\\$@]|:\/\//u;

export const EVIDENCE_TARGETS: readonly FuzzTarget[] = [
  {
    name: "a log entry over Redfish, from its first bytes",
    seeds: [Buffer.from(JSON.stringify(ENTRY)), Buffer.from(JSON.stringify({ Members: [ENTRY, ENTRY] }).slice(0, 300))],
    run: (input) => {
      const body = parseStart(input.toString(), "fuzz");
      const members = Array.isArray(body["Members"]) ? (body["Members"] as unknown[]) : [body];
      const entries = members.flatMap((member) =>
        typeof member === "object" && member !== null ? (parseEntry("SEL", { ...member }, "+01:00") ?? []) : [],
      );
      mustBePlain(entries);
    },
  },
  {
    name: "an entry of the SEL over IPMI",
    seeds: [RECORD],
    run: (input) => {
      const entry = parseRecord(recordBytes(input));
      mustBePlain(entry === undefined ? [] : [entry]);
    },
  },
  {
    name: "a record and a reading of a sensor over IPMI",
    seeds: [
      Buffer.from("ffff0100510224200002030167880101c94350553120", "hex"),
      Buffer.from("95c01880ffff01005102242000020301678808 6f".replaceAll(" ", ""), "hex"),
    ],
    run: (input) => {
      const sensor = parseSensor(input);
      const name = parseSdrName(input);
      must(name === undefined || (name.length <= TEXT_MAX && !ACTIVE.test(name)), "the name of a sensor is plain");
      if (sensor === undefined) return;
      must(sensor.nameAt.count <= 17, "the name of a sensor is bounded");
      const alarm = parseAlarm(sensor, input, name);
      must(alarm === undefined || (alarm.text.length <= TEXT_MAX && !ACTIVE.test(alarm.text)), "an alarm is plain");
    },
  },
  {
    name: "a text or a time of a BMC",
    seeds: TEXTS.map((text) => Buffer.from(text)),
    run: (input) => {
      const text = input.toString();
      const plain = plainText(text);
      must(plain.length <= TEXT_MAX, "a text of a BMC is bounded");
      must(!ACTIVE.test(plain), "a text of a BMC is plain");
      const timeMs = parseBmcTime(text);
      must(timeMs === undefined || Number.isFinite(timeMs), "a time of a BMC is a number");
    },
  },
];

/** Checks that the shown text of entries is plain and bounded. */
function mustBePlain(entries: readonly BmcLogEntry[]): void {
  const outage = { lostAtMs: NOW_MS - 60_000, startedAtMs: NOW_MS - 5_000, orderedAtMs: NOW_MS - 3_000 };
  const found = { clockAheadMs: 0, entries, sensors: [], lastResetMs: undefined, incomplete: undefined };
  const judged = judgeEvidence(found, NOW_MS, outage);
  must(judged.message.length <= 512, "the sentence fits its field");
  must(judged.entries.length <= 8, "the list is bounded");
  for (const { text } of entries) must(text.length <= TEXT_MAX && !ACTIVE.test(text), "an entry is plain");
}
