import { arrayAt, objectAt, stringAt, stringsAt } from "../http/json.ts";
import type { JsonObject } from "../http/json.ts";
import { parseBmcTime } from "../../evidence/bmc-time.ts";
import type { BmcLogEntry, Rank, Topic } from "../../evidence/model.ts";
import { plainText, WORDS_MAX } from "../../evidence/plain-text.ts";
import { rankOf } from "../../evidence/rank.ts";
import { nameOfSensorType, topicOfSensorName } from "../../evidence/sensor-types.ts";
import { topicOfId, topicOfWords } from "../../evidence/topics.ts";
import { isRecord } from "../../../runtime/record.ts";

/** A text that shows only that an event began or ended. */
const DIRECTION = /^(?:de-?)?assert(?:ed|ion)?\.?$/i;
/** A name or description that does not say what happened, such as `Log Entry 12`. */
const GENERIC = /^(?:[\w-]+ ){0,4}(?:entry|log)\b[\w #:.-]{0,24}$|^\d*$/i;
/** The bytes of a record of the SEL instead of a text. */
const BYTES = /^(?:(?:0x)?[0-9a-f]{2}h?[\s,:]*){3,}$/i;
/** A text that shows that an event ended, also an event of a threshold (IPMI 2.0, table 42-2). */
const OVER = /de-?assert|upper .*going low|lower .*going high/i;
const TIMES = ["Created", "EventTimestamp", "Timestamp", "Updated"] as const;
const IDS = ["MessageId", "MessageID", "EventId", "EventID"] as const;
const SEVERITIES = ["MessageSeverity", "Severity", "OemSeverity"] as const;
/** The sections of a CPER (UEFI 2.10, N.2.2) that say what has failed. */
const CPER_SECTIONS: Readonly<Record<string, Topic>> = {
  "a5bc1114-6f64-4ede-b863-3e83ed7c83b1": "Memory",
  "61ec04fc-48e6-d813-25c9-8daa44750b12": "Memory",
  "d995e954-bbc1-430f-ad91-b44dcb3c6f35": "PCIe",
  "c5753963-3b84-4095-bf78-eddad3f9c9dd": "PCIe",
  "9876ccad-47b4-4bdb-b65e-16f193c4f3db": "CPU",
  "dc3ea0b0-a144-4797-b95b-53fa242b6e1d": "CPU",
  "e19e3d16-bc11-11e4-9caa-c2051d5d46b0": "CPU",
};

/**
 * Parses a LogEntry (DSP0268) of any vendor.
 *
 * @param zone The offset of the BMC's local time, for times without a zone.
 * @returns undefined for a body without a text, such as a link.
 */
export function parseEntry(log: string, body: JsonObject, zone: string | undefined): BmcLogEntry | undefined {
  const messageId = IDS.map((name) => stringAt(body, name)).find((id) => id !== undefined && id !== "");
  const sensorType = sensorTypeOf(body);
  const entryCode = ownOr(body, "EntryCode", "OemLogEntryCode");
  const message = messageOf(body);
  const name = specific(textOf(body, "Name"));
  const happened = entryCode === undefined || DIRECTION.test(entryCode) ? (name ?? entryCode) : entryCode;
  const parts = [sensorType, happened].filter((part) => part !== undefined).join(": ");
  const section = sectionOf(body);
  const record = section === undefined ? undefined : `${section} error record (CPER)`;
  const said = message === undefined || DIRECTION.test(message) || BYTES.test(message) ? undefined : message;
  const byId = messageId === undefined ? undefined : [messageId, ...argumentsOf(body)].join(" ");
  const words = said ?? (parts === "" || parts === name ? (byId ?? record ?? name ?? message ?? "") : parts);
  if (words === "") return undefined;
  const isOver = isEnded(body) || OVER.test(entryCode ?? "") || (said === undefined && OVER.test(message ?? ""));
  const severity = SEVERITIES.map((name) => stringAt(body, name)).find((text) => text !== undefined && text !== "");
  const hints = [vendorWords(body), originOf(body)].join(" ");
  const rank = isOver ? 0 : rankOf(`${words} ${messageId ?? ""}`, severity);
  const time = TIMES.map((name) => parseBmcTime(body[name], zone)).find((found) => found !== undefined);
  return {
    log,
    id: plainText(textOf(body, "Id") ?? stringAt(body, "@odata.id") ?? "", 80),
    bmcTimeMs: time,
    topic: topicOf({ messageId: messageId ?? vendorId(body), section, sensorType, words, hints, rank }),
    rank,
    text: plainText(words),
  };
}

/** Whether a field of the standard or of the vendor shows that the event has ended. */
function isEnded(body: JsonObject): boolean {
  const vendors = Object.values(objectAt(body, "Oem")).filter(isRecord);
  return [body, ...vendors].some(
    (fields) =>
      fields["Resolved"] === true ||
      ["Status", "EventStatus"].some((name) =>
        /^(?:de-?assert|cleared$|resolved$)/i.test(stringAt(fields, name) ?? ""),
      ),
  );
}

/** The text; undefined if it does not say what happened. */
function specific(text: string | undefined): string | undefined {
  return text === undefined || GENERIC.test(text) ? undefined : text;
}

function sensorTypeOf(body: JsonObject): string | undefined {
  const number = body["SensorType"];
  return (
    (typeof number === "number" ? nameOfSensorType(number) : undefined) ?? ownOr(body, "SensorType", "OemSensorType")
  );
}

/** The id decides, then the section of an error record, then the words, then the type of the sensor. */
function topicOf({
  messageId,
  section,
  sensorType,
  words,
  hints,
  rank,
}: {
  messageId: string | undefined;
  section: Topic | undefined;
  sensorType: string | undefined;
  words: string;
  hints: string;
  rank: Rank;
}): Topic {
  const byId = messageId === undefined ? undefined : topicOfId(messageId);
  const ofWords = topicOfWords(words);
  // The words override the id in two cases: an entry with an id for a change of power may name its cause, and the
  // overheating of a part is reported under an id of the part.
  const isGeneral = byId === "Power" ? ofWords !== "None" : ofWords === "Thermal";
  if (byId !== undefined && !isGeneral) return byId;
  if (section !== undefined) return section;
  const bySensor = sensorType === undefined ? undefined : topicOfSensorName(sensorType);
  // The words of a temperature sensor name the part that it measures.
  if (bySensor === "Thermal") return bySensor;
  // The words are more specific than the type of the sensor: a processor can be too hot. Words about a change of power
  // are less specific.
  if (ofWords !== "None" && !(ofWords === "Power" && bySensor !== undefined)) {
    // If a change of power is a fault, the fields of the vendor may name its cause.
    const byHints = ofWords === "Power" && rank > 0 ? topicOfWords(hints) : "None";
    return byHints === "None" ? ofWords : byHints;
  }
  return bySensor ?? topicOfWords(hints);
}

/** The topic of an error record, by its section. */
function sectionOf(body: JsonObject): Topic | undefined {
  const cper = objectAt(body, "CPER");
  const section = stringAt(cper, "SectionType") ?? stringAt(cper, "NotificationType");
  return section === undefined ? undefined : CPER_SECTIONS[section.toLowerCase()];
}

/** The message id in a field of the vendor. */
function vendorId(body: JsonObject): string | undefined {
  return Object.values(objectAt(body, "Oem"))
    .filter(isRecord)
    .map((vendor) => stringAt(vendor, "CommonEventID"))
    .find((id) => id !== undefined);
}

/** The value of a property of the standard. If it is missing or `OEM`, that of the vendor's property. */
function ownOr(body: JsonObject, name: string, ofVendor: string): string | undefined {
  const value = textOf(body, name);
  return value === undefined || value.toUpperCase() === "OEM" ? textOf(body, ofVendor) : value;
}

/**
 * The message, with `%1` and similar placeholders replaced by its arguments. Its length is bounded, because a short
 * message can name a long argument thousands of times.
 */
function messageOf(body: JsonObject): string | undefined {
  const message = textOf(body, "Message") ?? specific(textOf(body, "Description")) ?? textOf(body, "EventMessage");
  if (message === undefined) return undefined;
  const args = argumentsOf(body);
  let left = WORDS_MAX;
  const expanded = message.replaceAll(/%(\d)/g, (whole, digit: string) => {
    const put = (args[Number(digit) - 1] ?? whole).slice(0, left);
    left -= put.length;
    return put;
  });
  return expanded.slice(0, WORDS_MAX);
}

function argumentsOf(body: JsonObject): readonly string[] {
  return stringsAt(body, "MessageArgs") ?? [];
}

/** What vendors report about an entry in their own fields: its class, category and part. */
function vendorWords(body: JsonObject): string {
  const oem = objectAt(body, "Oem");
  const texts = Object.values(oem)
    .filter(isRecord)
    .flatMap((vendor) => [
      ...[
        "Class",
        "ClassDescription",
        "Category",
        "EventType",
        "SubjectType",
        "Component",
        "Subsystem",
        "AffectedSubsystem",
        "AlertGroup",
        "Source",
      ].map((name) => stringAt(vendor, name)),
      ...(stringsAt(vendor, "Categories") ?? []),
    ]);
  return texts
    .filter((text) => text !== undefined)
    .join(" ")
    .slice(0, 400);
}

function originOf(body: JsonObject): string {
  const origin = stringAt(objectAt(objectAt(body, "Links"), "OriginOfCondition"), "@odata.id") ?? "";
  return origin.split("/").slice(-2).join(" ");
}

function textOf(body: JsonObject, name: string): string | undefined {
  const value = body[name];
  if (typeof value === "number" && Object.hasOwn(body, name)) return String(value);
  const text = stringAt(body, name)?.slice(0, WORDS_MAX).trim();
  if (text !== undefined) return text === "" ? undefined : text;
  const first = arrayAt(body, name)?.[0];
  if (typeof first === "string") return first.slice(0, WORDS_MAX).trim() || undefined;
  return isRecord(first) ? stringAt(first, "Member")?.slice(0, WORDS_MAX) : undefined;
}
