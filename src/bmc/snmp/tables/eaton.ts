import type { OutletTable } from "./table.ts";

const EPDU = "1.3.6.1.4.1.534.6.6.7";

/** Eaton ePDU G3 and later: EATON-EPDU-MIB. The unit is 0 unless several are daisy-chained. */
export const EATON: OutletTable = {
  mib: "Eaton",
  vendor: "Eaton",
  module: "EATON-EPDU-MIB",
  sysObjectId: EPDU,
  index: ["unit", "outlet"],
  state: {
    name: "outletControlStatus",
    oid: `${EPDU}.6.6.1.2.{index}`,
    values: {
      0: { text: "off", means: "Off" },
      1: { text: "on", means: "On" },
      2: { text: "pendingOff", means: "Changing" },
      3: { text: "pendingOn", means: "Changing" },
    },
  },
  conditions: [],
  meter: { name: "outletWatts", oid: `${EPDU}.6.5.1.3.{index}`, unit: "W" },
  // The value is the delay in seconds.
  off: { name: "outletControlOffCmd", oid: `${EPDU}.6.6.1.3.{index}`, value: 0 },
  on: { name: "outletControlOnCmd", oid: `${EPDU}.6.6.1.4.{index}`, value: 0 },
  serial: { name: "serialNumber", oid: `${EPDU}.1.2.1.4.{unit}` },
  firstUnit: "0",
  label: { name: "outletName", oid: `${EPDU}.6.1.1.3.{index}` },
  switchable: { name: "outletControlSwitchable", oid: `${EPDU}.6.6.1.9.{index}`, value: 1 },
};
