import type { CauseClass, SensorAlarm } from "./model.ts";
import { plainText } from "./plain-text.ts";
import { sensorEvent } from "./sensor-events.ts";
import type { SensorEvent } from "./sensor-events.ts";

/** What a sensor shows now, in the numbers of IPMI 2.0. */
export interface SensorStates {
  type: number;
  number: number;
  /** Undefined if the name is not known. */
  name: string | undefined;
  /** The bits of Get Sensor Reading (35.14): thresholds that are exceeded, or states that are asserted. */
  states: number;
}

const THRESHOLD_EVENTS = 0x01;
const SENSOR_SPECIFIC_EVENTS = 0x6f;
const STATES = 15;
/** The lowest rank that counts as an alarm: a failure. */
const ALARM_RANK = 2;
/** The bits of the upper thresholds, and the events that report them (table 42-2); the more severe one first. */
const UPPER = [
  { bit: 0x20, event: 0x0b, threshold: "non-recoverable" },
  { bit: 0x10, event: 0x09, threshold: "critical" },
] as const;

/**
 * The alarm of a sensor with thresholds; undefined if it shows none. Lower thresholds are not compared: fans and
 * voltages of a host that is being powered off fall below theirs.
 */
export function thresholdAlarm(sensor: SensorStates): SensorAlarm | undefined {
  const upper = UPPER.find(({ bit }) => (sensor.states & bit) !== 0);
  if (upper === undefined) return undefined;
  const event = eventOf(sensor, THRESHOLD_EVENTS, upper.event);
  const text = `${sensor.name ?? event.where} is at or above its upper ${upper.threshold} threshold`;
  return { topic: classOf(event), text: plainText(text) };
}

/** The most severe alarm of a sensor that reports states instead of thresholds; undefined if it shows none. */
export function stateAlarm(sensor: SensorStates): SensorAlarm | undefined {
  const [worst] = Array.from({ length: STATES }, (_, offset) => offset)
    .filter((offset) => (sensor.states & (1 << offset)) !== 0)
    .map((offset) => eventOf(sensor, SENSOR_SPECIFIC_EVENTS, offset))
    .filter((event) => event.rank >= ALARM_RANK && classOf(event) !== "None")
    .toSorted((a, b) => b.rank - a.rank);
  if (worst === undefined) return undefined;
  return { topic: classOf(worst), text: plainText(`${worst.what}, ${sensor.name ?? worst.where}`) };
}

function eventOf({ type, number }: SensorStates, direction: number, data1: number): SensorEvent {
  return sensorEvent({ sensorType: type, sensorNumber: number, direction, data1 });
}

function classOf({ topic }: SensorEvent): CauseClass {
  return topic === "Power" ? "None" : topic;
}
