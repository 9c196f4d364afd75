import type { OutletTable } from "./table.ts";

const SENTRY3 = "1.3.6.1.4.1.1718.3.2";

/** Server Technology, firmware of the third generation: Sentry3-MIB. */
export const SERVERTECH3: OutletTable = {
  mib: "ServerTech-3",
  vendor: "Server Technology",
  module: "Sentry3-MIB",
  sysObjectId: "1.3.6.1.4.1.1718.3",
  index: ["tower", "infeed", "outlet"],
  state: {
    name: "outletStatus",
    oid: `${SENTRY3}.3.1.5.{index}`,
    values: {
      0: { text: "off", means: "Off" },
      1: { text: "on", means: "On" },
      2: { text: "offWait", means: "Changing" },
      3: { text: "onWait", means: "Changing" },
      4: { text: "offError", means: "Doubtful" },
      5: { text: "onError", means: "Doubtful" },
      6: { text: "noComm", means: "Doubtful" },
      7: { text: "reading", means: "Doubtful" },
      // The host gets its power again when the fuse is replaced.
      8: { text: "offFuse", means: "Doubtful" },
      9: { text: "onFuse", means: "Doubtful" },
    },
  },
  conditions: [
    {
      name: "outletControlState",
      oid: `${SENTRY3}.3.1.10.{index}`,
      values: {
        0: { text: "idleOff", means: "Fine" },
        4: { text: "off", means: "Fine" },
        6: { text: "lockedOff", means: "Fine" },
        10: { text: "pendOn", means: "Changing" },
        11: { text: "pendOff", means: "Changing" },
        14: { text: "eventOff", means: "Fine" },
      },
    },
  ],
  meter: { name: "outletPower", oid: `${SENTRY3}.3.1.14.{index}`, unit: "W" },
  off: { name: "outletControlAction off", oid: `${SENTRY3}.3.1.11.{index}`, value: 2 },
  on: { name: "outletControlAction on", oid: `${SENTRY3}.3.1.11.{index}`, value: 1 },
  serial: { name: "towerProductSN", oid: `${SENTRY3}.1.1.6.{unit}` },
  firstUnit: "1",
  label: { name: "outletName", oid: `${SENTRY3}.3.1.3.{index}` },
};
