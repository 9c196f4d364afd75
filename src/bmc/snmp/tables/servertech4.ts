import type { OutletTable } from "./table.ts";

const SENTRY4 = "1.3.6.1.4.1.1718.4.1";

/** Server Technology, PRO2 and later: Sentry4-MIB. */
export const SERVERTECH4: OutletTable = {
  mib: "ServerTech-4",
  vendor: "Server Technology",
  module: "Sentry4-MIB",
  sysObjectId: "1.3.6.1.4.1.1718.4",
  index: ["unit", "cord", "outlet"],
  state: {
    name: "st4OutletState",
    oid: `${SENTRY4}.8.3.1.1.{index}`,
    values: {
      0: { text: "unknown", means: "Doubtful" },
      1: { text: "on", means: "On" },
      2: { text: "off", means: "Off" },
    },
  },
  conditions: [
    {
      name: "st4OutletStatus",
      oid: `${SENTRY4}.8.3.1.2.{index}`,
      values: { 0: { text: "normal", means: "Fine" }, 6: { text: "settle", means: "Changing" } },
    },
    {
      name: "st4OutletControlState",
      oid: `${SENTRY4}.8.5.1.1.{index}`,
      values: {
        2: { text: "idleOff", means: "Fine" },
        8: { text: "pendOn", means: "Changing" },
        9: { text: "pendOff", means: "Changing" },
        10: { text: "off", means: "Fine" },
        14: { text: "lockedOff", means: "Fine" },
        16: { text: "eventOff", means: "Fine" },
      },
    },
  ],
  meter: { name: "st4OutletActivePower", oid: `${SENTRY4}.8.3.1.7.{index}`, unit: "W" },
  off: { name: "st4OutletControlAction off", oid: `${SENTRY4}.8.5.1.2.{index}`, value: 2 },
  on: { name: "st4OutletControlAction on", oid: `${SENTRY4}.8.5.1.2.{index}`, value: 1 },
  serial: { name: "st4UnitProductSN", oid: `${SENTRY4}.2.2.1.4.{unit}` },
  firstUnit: "1",
  label: { name: "st4OutletName", oid: `${SENTRY4}.8.2.1.3.{index}` },
};
