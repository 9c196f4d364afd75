/** A sensor of a BMC, with the numbers of IPMI 2.0 (tables 42-1 to 42-3). */
export interface SimulatedSensor {
  name: string;
  number: number;
  type: number;
  /** 01h: the sensor has thresholds. 6Fh: the sensor has states that depend on its type. */
  eventType: number;
  /** The exceeded thresholds or asserted states, as in the answer to Get Sensor Reading. */
  states: number;
  /** Whether its reading is unavailable. */
  isUnavailable?: boolean;
}

const THRESHOLDS = 0x01;
const STATES = 0x6f;

/** The sensors of a healthy host: no threshold is exceeded, and processors and power supplies are present. */
export const HEALTHY_SENSORS: readonly SimulatedSensor[] = [
  { name: "CPU1 Temp", number: 0x30, type: 0x01, eventType: THRESHOLDS, states: 0x00 },
  { name: "FAN1", number: 0x31, type: 0x04, eventType: THRESHOLDS, states: 0x00 },
  { name: "CPU1 Status", number: 0x32, type: 0x07, eventType: STATES, states: 0x0080 },
  { name: "PSU1 Status", number: 0x33, type: 0x08, eventType: STATES, states: 0x0001 },
];
