import type { OutletTable } from "./table.ts";

const RPDU2 = "1.3.6.1.4.1.318.1.1.26";
const UNIT = { name: "rPDU2OutletSwitchedStatusModule", oid: `${RPDU2}.9.2.3.1.2.{index}` };
const NUMBER = { name: "rPDU2OutletSwitchedStatusNumber", oid: `${RPDU2}.9.2.3.1.4.{index}` };

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
  meter: {
    name: "rPDU2OutletMeteredStatusPower",
    oid: `${RPDU2}.9.4.3.1.7.{index}`,
    unit: "W",
    // The table of the meters has rows of its own: a unit without meters has none.
    sameOutlet: [
      [{ name: "rPDU2OutletMeteredStatusModule", oid: `${RPDU2}.9.4.3.1.2.{index}` }, UNIT],
      [{ name: "rPDU2OutletMeteredStatusNumber", oid: `${RPDU2}.9.4.3.1.4.{index}` }, NUMBER],
    ],
  },
  off: { name: "rPDU2OutletSwitchedControlCommand immediateOff", oid: `${RPDU2}.9.2.4.1.5.{index}`, value: 2 },
  on: { name: "rPDU2OutletSwitchedControlCommand immediateOn", oid: `${RPDU2}.9.2.4.1.5.{index}`, value: 1 },
  serial: { name: "rPDU2IdentSerialNumber", oid: `${RPDU2}.2.1.9.{row}` },
  chain: {
    unit: { name: "rPDU2IdentModule", oid: `${RPDU2}.2.1.2.{row}` },
    outlet: { unit: UNIT, number: NUMBER },
  },
  label: { name: "rPDU2OutletSwitchedStatusName", oid: `${RPDU2}.9.2.3.1.3.{index}` },
};
