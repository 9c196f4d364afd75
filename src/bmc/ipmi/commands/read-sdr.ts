import {
  FIRST_RECORD,
  getSdr,
  getSensorReading,
  HEAD_BYTES,
  NO_RECORD,
  parseAlarm,
  parseSdrName,
  parseNextRecord,
  parseSensor,
  RESERVE_SDR,
} from "./sdr.ts";
import type { Sensor } from "./sdr.ts";
import { parseReservation } from "./sel.ts";
import { COMPLETION } from "../packets/codes.ts";
import type { Request, Response } from "../packets/message.ts";
import type { SensorAlarm } from "../../evidence/model.ts";

const RECORDS_MAX = 256;
const ALARMS_MAX = 5;
const RESERVATION_CANCELLED = 0xc5;
const RESERVATIONS_MAX = 3;

/**
 * Sends one request within a budget. @returns undefined if there is no answer, or the budget does not allow the
 * request.
 */
export type Ask = (what: string, request: Request) => Promise<Response | undefined>;

/** Reads the sensors of the BMC, one record after the other, and returns those that show an alarm. */
export async function readSensorAlarms(ask: Ask): Promise<SensorAlarm[]> {
  const records = new Records(ask);
  const alarms: SensorAlarm[] = [];
  let id = FIRST_RECORD;
  for (let count = 0; count < RECORDS_MAX && id !== NO_RECORD && alarms.length < ALARMS_MAX; count += 1) {
    const head = await records.read(id, 0, HEAD_BYTES);
    if (head === undefined) break;
    const sensor = parseSensor(head);
    const alarm = sensor === undefined ? undefined : await readAlarm(ask, records, id, sensor);
    if (alarm !== undefined) alarms.push(alarm);
    id = parseNextRecord(head) ?? NO_RECORD;
  }
  return alarms;
}

async function readAlarm(ask: Ask, records: Records, id: number, sensor: Sensor): Promise<SensorAlarm | undefined> {
  const reading = await ask("a sensor", getSensorReading(sensor.number));
  if (reading?.completionCode !== COMPLETION.ok) return undefined;
  const alarm = parseAlarm(sensor, reading.data, undefined);
  const { offset, count } = sensor.nameAt;
  if (alarm === undefined || count === 0) return alarm;
  const name = await records.read(id, offset, count);
  return parseAlarm(sensor, reading.data, name === undefined ? undefined : parseSdrName(name));
}

/** The repository of records. The BMC returns parts of records only for a reservation, which it may cancel (33.11). */
class Records {
  readonly #ask: Ask;
  #reservation: number | undefined;
  #reservations = 0;

  constructor(ask: Ask) {
    this.#ask = ask;
  }

  /** @returns the answer to `getSdr`; undefined if there is none. */
  async read(id: number, offset: number, count: number): Promise<Buffer | undefined> {
    for (;;) {
      this.#reservation ??= await this.#reserve();
      if (this.#reservation === undefined) return undefined;
      const part = await this.#ask("a record of a sensor", getSdr(id, this.#reservation, offset, count));
      if (part?.completionCode === COMPLETION.ok) return part.data;
      if (part?.completionCode !== RESERVATION_CANCELLED) return undefined;
      this.#reservation = undefined;
    }
  }

  async #reserve(): Promise<number | undefined> {
    this.#reservations += 1;
    if (this.#reservations > RESERVATIONS_MAX) return undefined;
    const reserved = await this.#ask("a reservation of the sensors", RESERVE_SDR);
    return reserved?.completionCode === COMPLETION.ok ? parseReservation(reserved.data) : undefined;
  }
}
