import type { OutletTable } from "./table.ts";

const IMD = "1.3.6.1.4.1.21239.5.2";
const SERIAL = { name: "pduMainSerial", oid: `${IMD}.3.1.1.2.{row}` };

/** Vertiv and Geist PDUs with an interchangeable monitoring device (IMD): VERTIV-V5-MIB, earlier GEIST-V5-MIB. */
export const VERTIV: OutletTable = {
  mib: "Vertiv",
  vendor: "Vertiv",
  module: "VERTIV-V5-MIB",
  sysObjectId: IMD,
  index: ["outlet"],
  state: {
    name: "pduOutletSwitchState",
    oid: `${IMD}.3.5.1.4.{index}`,
    values: {
      1: { text: "on", means: "On" },
      2: { text: "off", means: "Off" },
      3: { text: "on2off", means: "Changing" },
      4: { text: "off2on", means: "Changing" },
      5: { text: "rebootOn", means: "Changing" },
      6: { text: "rebootOff", means: "Changing" },
      7: { text: "unavailable", means: "Doubtful" },
    },
  },
  conditions: [
    {
      name: "pduOutletSwitchRelayFailure",
      oid: `${IMD}.3.5.1.5.{index}`,
      values: { 1: { text: "true", means: "Doubtful" }, 2: { text: "false", means: "Fine" } },
    },
  ],
  meter: { name: "pduOutletMeterRealPower", oid: `${IMD}.3.6.1.12.{index}`, unit: "W" },
  off: { name: "pduOutletSwitchControl off", oid: `${IMD}.3.5.1.6.{index}`, value: 4 },
  on: { name: "pduOutletSwitchControl on", oid: `${IMD}.3.5.1.6.{index}`, value: 2 },
  serial: SERIAL,
  // No object of an outlet names the unit.
  chain: { unit: SERIAL },
  label: { name: "pduOutletSwitchLabel", oid: `${IMD}.3.5.1.3.{index}` },
};
