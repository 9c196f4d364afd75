import type { OutletTable } from "./table.ts";

const RPDU2 = "1.3.6.1.4.1.318.1.1.26";

/** APC and Schneider Electric, Rack PDU of the second generation (AP8xxx, APDU9xxx): PowerNet-MIB, rPDU2. */
export const APC_RPDU2: OutletTable = {
  mib: "APC-rPDU2",
  vendor: "APC",
  module: "PowerNet-MIB",
  sysObjectId: "1.3.6.1.4.1.318.1.3.4.6",
  index: ["outlet"],
  state: {
    name: "rPDU2OutletSwitchedStatusState",
    oid: `${RPDU2}.9.2.3.1.5.{index}`,
    values: { 1: { text: "off", means: "Off" }, 2: { text: "on", means: "On" } },
  },
  conditions: [
    {
      name: "rPDU2OutletSwitchedStatusCommandPending",
      oid: `${RPDU2}.9.2.3.1.6.{index}`,
      values: {
        1: { text: "commandPending", means: "Changing" },
        2: { text: "noCommandPending", means: "Fine" },
        3: { text: "commandPendingUnknown", means: "Doubtful" },
      },
    },
  ],
  meter: { name: "rPDU2OutletMeteredStatusPower", oid: `${RPDU2}.9.4.3.1.7.{index}`, unit: "W" },
  off: { name: "rPDU2OutletSwitchedControlCommand immediateOff", oid: `${RPDU2}.9.2.4.1.5.{index}`, value: 2 },
  on: { name: "rPDU2OutletSwitchedControlCommand immediateOn", oid: `${RPDU2}.9.2.4.1.5.{index}`, value: 1 },
  serial: { name: "rPDU2IdentSerialNumber", oid: `${RPDU2}.2.1.9.1` },
  label: { name: "rPDU2OutletSwitchedStatusName", oid: `${RPDU2}.9.2.3.1.3.{index}` },
};
