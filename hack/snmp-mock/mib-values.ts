import type { Mib } from "../../src/bmc/interface/mibs.ts";
import { TAG } from "./ber.ts";

// The values that PDUs of each vendor serve and accept, copied from the vendors' MIBs. The tables of the driver are
// tested against them. `{i}` stands for the index of the outlet.

/** An object and its INTEGER value. */
type Row = readonly [oid: string, value: number];

export interface MibValues {
  sysObjectId: string;
  /** The values of an outlet in each state, in addition to its meter, its label and `always`. */
  on: readonly Row[];
  off: readonly Row[];
  pendingOn: readonly Row[];
  pendingOff: readonly Row[];
  always: readonly Row[];
  /** `beside`: further objects of a working meter, in addition to its value. */
  meter: { oid: string; tag: number; beside: readonly Row[] };
  setOff: Row;
  setOn: Row;
  /** `{u}` stands for the first number of the index, `{r}` for the row of the unit. */
  serial: string;
  /**
   * Further objects of a chain. There is a `unit` for each unit. The others are the unit of each outlet and its number
   * on that unit.
   */
  chain?: { unit: string } & Partial<Record<"outletUnit" | "outletNumber" | "meterUnit" | "meterNumber", string>>;
  label: string;
}

const APC = "1.3.6.1.4.1.318.1.1";
const PX = "1.3.6.1.4.1.13742.6";
const EPDU = "1.3.6.1.4.1.534.6.6.7.6";
const GEIST = "1.3.6.1.4.1.21239.5.2.3";
const ST3 = "1.3.6.1.4.1.1718.3.2";
const ST4 = "1.3.6.1.4.1.1718.4.1";

export const MIB_VALUES: Readonly<Record<Mib, MibValues>> = {
  // PowerNet-MIB 4.5.1, rPDU2: off(1), on(2); commandPending(1), noCommandPending(2); immediateOn(1), immediateOff(2).
  "APC-rPDU2": {
    sysObjectId: "1.3.6.1.4.1.318.1.3.4.6",
    on: [
      [`${APC}.26.9.2.3.1.5.{i}`, 2],
      [`${APC}.26.9.2.3.1.6.{i}`, 2],
    ],
    off: [
      [`${APC}.26.9.2.3.1.5.{i}`, 1],
      [`${APC}.26.9.2.3.1.6.{i}`, 2],
    ],
    pendingOn: [
      [`${APC}.26.9.2.3.1.5.{i}`, 1],
      [`${APC}.26.9.2.3.1.6.{i}`, 1],
    ],
    pendingOff: [
      [`${APC}.26.9.2.3.1.5.{i}`, 2],
      [`${APC}.26.9.2.3.1.6.{i}`, 1],
    ],
    always: [],
    meter: { oid: `${APC}.26.9.4.3.1.7.{i}`, tag: TAG.integer, beside: [] },
    setOff: [`${APC}.26.9.2.4.1.5.{i}`, 2],
    setOn: [`${APC}.26.9.2.4.1.5.{i}`, 1],
    serial: `${APC}.26.2.1.9.{r}`,
    chain: {
      unit: `${APC}.26.2.1.2.{r}`,
      outletUnit: `${APC}.26.9.2.3.1.2.{i}`,
      outletNumber: `${APC}.26.9.2.3.1.4.{i}`,
      meterUnit: `${APC}.26.9.4.3.1.2.{i}`,
      meterNumber: `${APC}.26.9.4.3.1.4.{i}`,
    },
    label: `${APC}.26.9.2.3.1.3.{i}`,
  },
  // PowerNet-MIB, rPDU: outletStatusOn(1), outletStatusOff(2); outletStatusCommandPending(1),
  // outletStatusNoCommandPending(2); immediateOn(1), immediateOff(2).
  "APC-rPDU": {
    sysObjectId: "1.3.6.1.4.1.318.1.3.4.5",
    on: [
      [`${APC}.12.3.5.1.1.4.{i}`, 1],
      [`${APC}.12.3.5.1.1.5.{i}`, 2],
    ],
    off: [
      [`${APC}.12.3.5.1.1.4.{i}`, 2],
      [`${APC}.12.3.5.1.1.5.{i}`, 2],
    ],
    pendingOn: [
      [`${APC}.12.3.5.1.1.4.{i}`, 2],
      [`${APC}.12.3.5.1.1.5.{i}`, 1],
    ],
    pendingOff: [
      [`${APC}.12.3.5.1.1.4.{i}`, 1],
      [`${APC}.12.3.5.1.1.5.{i}`, 1],
    ],
    always: [],
    meter: { oid: `${APC}.12.3.5.1.1.7.{i}`, tag: TAG.gauge, beside: [] },
    setOff: [`${APC}.12.3.3.1.1.4.{i}`, 2],
    setOn: [`${APC}.12.3.3.1.1.4.{i}`, 1],
    serial: `${APC}.12.1.6.0`,
    chain: { unit: `${APC}.26.2.1.2.{r}` },
    label: `${APC}.12.3.5.1.1.2.{i}`,
  },
  // PDU2-MIB: on(7), off(8) of SensorStateEnumeration; off(0), on(1) of OutletSwitchingOperationsEnumeration. Of the
  // sensor activePower(5): measurementsOutletSensorIsAvailable true(1), measurementsOutletSensorState normal(4).
  Raritan: {
    sysObjectId: PX,
    on: [[`${PX}.4.1.2.1.3.{i}`, 7]],
    off: [[`${PX}.4.1.2.1.3.{i}`, 8]],
    pendingOn: [[`${PX}.4.1.2.1.3.{i}`, 8]],
    pendingOff: [[`${PX}.4.1.2.1.3.{i}`, 7]],
    always: [[`${PX}.3.5.3.1.28.{i}`, 1]],
    meter: {
      oid: `${PX}.5.4.3.1.4.{i}.5`,
      tag: TAG.gauge,
      beside: [
        [`${PX}.5.4.3.1.2.{i}.5`, 1],
        [`${PX}.5.4.3.1.3.{i}.5`, 4],
      ],
    },
    setOff: [`${PX}.4.1.2.1.2.{i}`, 0],
    setOn: [`${PX}.4.1.2.1.2.{i}`, 1],
    serial: `${PX}.3.2.1.1.4.{u}`,
    label: `${PX}.3.5.3.1.3.{i}`,
  },
  // EATON-EPDU-MIB: off(0), on(1), pendingOff(2), pendingOn(3). A command is a delay in seconds: 0 is at once.
  Eaton: {
    sysObjectId: "1.3.6.1.4.1.534.6.6.7",
    on: [[`${EPDU}.6.1.2.{i}`, 1]],
    off: [[`${EPDU}.6.1.2.{i}`, 0]],
    pendingOn: [[`${EPDU}.6.1.2.{i}`, 3]],
    pendingOff: [[`${EPDU}.6.1.2.{i}`, 2]],
    always: [[`${EPDU}.6.1.9.{i}`, 1]],
    meter: { oid: `${EPDU}.5.1.3.{i}`, tag: TAG.gauge, beside: [] },
    setOff: [`${EPDU}.6.1.3.{i}`, 0],
    setOn: [`${EPDU}.6.1.4.{i}`, 0],
    serial: "1.3.6.1.4.1.534.6.6.7.1.2.1.4.{u}",
    label: `${EPDU}.1.1.3.{i}`,
  },
  // VERTIV-V5-MIB: on(1), off(2), on2off(3), off2on(4); on(2), off(4) of pduOutletSwitchControl. A value of false(2)
  // means that the relay has not failed.
  Vertiv: {
    sysObjectId: "1.3.6.1.4.1.21239.5.2",
    on: [[`${GEIST}.5.1.4.{i}`, 1]],
    off: [[`${GEIST}.5.1.4.{i}`, 2]],
    pendingOn: [[`${GEIST}.5.1.4.{i}`, 4]],
    pendingOff: [[`${GEIST}.5.1.4.{i}`, 3]],
    always: [[`${GEIST}.5.1.5.{i}`, 2]],
    meter: { oid: `${GEIST}.6.1.12.{i}`, tag: TAG.gauge, beside: [] },
    setOff: [`${GEIST}.5.1.6.{i}`, 4],
    setOn: [`${GEIST}.5.1.6.{i}`, 2],
    serial: `${GEIST}.1.1.2.{r}`,
    label: `${GEIST}.5.1.3.{i}`,
  },
  // Sentry3-MIB: outletStatus off(0), on(1), offWait(2), onWait(3); outletControlState off(4), on(5), pendOn(10),
  // pendOff(11); outletControlAction on(1), off(2).
  "ServerTech-3": {
    sysObjectId: "1.3.6.1.4.1.1718.3",
    on: [
      [`${ST3}.3.1.5.{i}`, 1],
      [`${ST3}.3.1.10.{i}`, 5],
    ],
    off: [
      [`${ST3}.3.1.5.{i}`, 0],
      [`${ST3}.3.1.10.{i}`, 4],
    ],
    pendingOn: [
      [`${ST3}.3.1.5.{i}`, 2],
      [`${ST3}.3.1.10.{i}`, 10],
    ],
    pendingOff: [
      [`${ST3}.3.1.5.{i}`, 3],
      [`${ST3}.3.1.10.{i}`, 11],
    ],
    always: [],
    meter: { oid: `${ST3}.3.1.14.{i}`, tag: TAG.integer, beside: [] },
    setOff: [`${ST3}.3.1.11.{i}`, 2],
    setOn: [`${ST3}.3.1.11.{i}`, 1],
    serial: `${ST3}.1.1.6.{u}`,
    label: `${ST3}.3.1.3.{i}`,
  },
  // Sentry4-MIB: st4OutletState on(1), off(2); st4OutletStatus normal(0); st4OutletControlState pendOn(8), pendOff(9),
  // off(10), on(11); st4OutletControlAction on(1), off(2).
  "ServerTech-4": {
    sysObjectId: "1.3.6.1.4.1.1718.4",
    on: [
      [`${ST4}.8.3.1.1.{i}`, 1],
      [`${ST4}.8.5.1.1.{i}`, 11],
    ],
    off: [
      [`${ST4}.8.3.1.1.{i}`, 2],
      [`${ST4}.8.5.1.1.{i}`, 10],
    ],
    pendingOn: [
      [`${ST4}.8.3.1.1.{i}`, 2],
      [`${ST4}.8.5.1.1.{i}`, 8],
    ],
    pendingOff: [
      [`${ST4}.8.3.1.1.{i}`, 1],
      [`${ST4}.8.5.1.1.{i}`, 9],
    ],
    always: [[`${ST4}.8.3.1.2.{i}`, 0]],
    meter: { oid: `${ST4}.8.3.1.7.{i}`, tag: TAG.integer, beside: [] },
    setOff: [`${ST4}.8.5.1.2.{i}`, 2],
    setOn: [`${ST4}.8.5.1.2.{i}`, 1],
    serial: `${ST4}.2.2.1.4.{u}`,
    label: `${ST4}.8.2.1.3.{i}`,
  },
};

/** The OID of an object for one outlet, or for one unit. */
export function oidAt(oid: string, index: string, row = 1): string {
  return oid
    .replace("{i}", index)
    .replace("{u}", index.split(".", 1)[0] ?? "")
    .replace("{r}", String(row));
}
