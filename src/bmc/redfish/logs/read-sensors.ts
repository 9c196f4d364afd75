import type { BoundedReads } from "./bounded-reads.ts";
import { arrayAt, objectAt, stringAt } from "../http/json.ts";
import type { JsonObject } from "../http/json.ts";
import type { CauseClass, SensorAlarm } from "../../evidence/model.ts";
import { plainText } from "../../evidence/plain-text.ts";
import { topicOfWords } from "../../evidence/topics.ts";
import { isRecord } from "../../../runtime/record.ts";
import { withoutTrailingSlashes } from "../../../runtime/text/trailing-slashes.ts";

const ALARMS_MAX = 5;

interface ChassisPart {
  list: string;
  topic: CauseClass;
  unit: string;
  readings: readonly string[];
}

/** The parts of Thermal and Power (DSP0268), which newer services no longer have. */
const PARTS: readonly ChassisPart[] = [
  { list: "Temperatures", topic: "Thermal", unit: "°C", readings: ["ReadingCelsius"] },
  { list: "Fans", topic: "Thermal", unit: "", readings: ["Reading"] },
  { list: "Voltages", topic: "PSU", unit: "V", readings: ["ReadingVolts"] },
  { list: "PowerSupplies", topic: "PSU", unit: "", readings: [] },
];
const UPPER = ["UpperThresholdFatal", "UpperThresholdCritical"] as const;

/**
 * Reads the sensors of a chassis that are above an upper threshold, and parts that report themselves as critical. Lower
 * thresholds are not compared: fans and voltages of a host that is being powered off fall below theirs.
 */
export async function readSensors(reads: BoundedReads, chassis: string): Promise<SensorAlarm[]> {
  const base = withoutTrailingSlashes(chassis);
  const alarms: SensorAlarm[] = [];
  let isServed = false;
  for (const resource of ["Thermal", "Power"]) {
    const read = await reads.get(`${base}/${resource}`);
    if (read?.status !== 200) continue;
    isServed = true;
    for (const part of PARTS) {
      for (const item of recordsAt(read.body, part.list)) alarms.push(...alarmOf(item, part));
    }
  }
  if (!isServed) {
    const read = await reads.get(`${base}/Sensors?$expand=.($levels=1)`);
    for (const sensor of recordsAt(read?.body ?? {}, "Members")) alarms.push(...sensorAlarm(sensor));
  }
  return alarms.slice(0, ALARMS_MAX);
}

function alarmOf(item: JsonObject, { topic, unit, readings }: ChassisPart): SensorAlarm[] {
  const state = stringAt(objectAt(item, "Status"), "State");
  if (state === "Absent" || state === "Disabled") return [];
  const reading = readings.map((name) => numberAt(item, name)).find((value) => value !== undefined);
  const limit = UPPER.map((name) => numberAt(item, name)).find(
    (value) => value !== undefined && isAbove(reading, value),
  );
  return alarm(topic, nameOf(item), { reading, limit, unit, health: stringAt(objectAt(item, "Status"), "Health") });
}

/** The alarm of a Sensor (DSP0268), whose `ReadingType` shows what it measures. */
function sensorAlarm(sensor: JsonObject): SensorAlarm[] {
  const type = stringAt(sensor, "ReadingType") ?? "";
  const thresholds = objectAt(sensor, "Thresholds");
  const reading = numberAt(sensor, "Reading");
  const limit = ["UpperFatal", "UpperCritical"]
    .map((name) => numberAt(objectAt(thresholds, name), "Reading"))
    .find((value) => value !== undefined && isAbove(reading, value));
  const topic = /temperature|rotational/i.test(type)
    ? "Thermal"
    : /voltage|power|current/i.test(type)
      ? "PSU"
      : undefined;
  const unit = type === "Temperature" ? "°C" : (stringAt(sensor, "ReadingUnits") ?? "");
  const words = topicOfWords(`${type} ${nameOf(sensor)}`);
  const found = topic ?? (words === "Power" ? "PSU" : words);
  return alarm(found, nameOf(sensor), { reading, limit, unit, health: stringAt(objectAt(sensor, "Status"), "Health") });
}

function alarm(
  topic: CauseClass,
  name: string,
  found: { reading: number | undefined; limit: number | undefined; unit: string; health: string | undefined },
): SensorAlarm[] {
  const { reading, limit, unit, health } = found;
  const subject = plainText(name, 60);
  if (reading !== undefined && limit !== undefined) {
    const text = plainText(`${subject} reads ${reading} ${unit}, at or above its limit of ${limit} ${unit}`);
    return [{ topic, text }];
  }
  return health === "Critical" ? [{ topic, text: plainText(`${subject} reports itself as critical`) }] : [];
}

function isAbove(reading: number | undefined, limit: number): boolean {
  // A limit of 0 means that there is no limit.
  return reading !== undefined && limit > 0 && reading >= limit;
}

function nameOf(item: JsonObject): string {
  return stringAt(item, "Name") ?? stringAt(item, "MemberId") ?? stringAt(item, "Id") ?? "a sensor";
}

function numberAt(item: JsonObject, name: string): number | undefined {
  const value = Object.hasOwn(item, name) ? item[name] : undefined;
  return typeof value === "number" && Number.isFinite(value) ? value : undefined;
}

function recordsAt(body: JsonObject, name: string): JsonObject[] {
  return (arrayAt(body, name) ?? []).filter(isRecord);
}
