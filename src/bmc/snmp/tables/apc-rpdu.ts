import type { OutletTable } from "./table.ts";

const RPDU = "1.3.6.1.4.1.318.1.1.12";
const RPDU2_IDENT = "1.3.6.1.4.1.318.1.1.26.2.1";

/** APC and Schneider Electric, Rack PDU of the first generation (AP7xxx): PowerNet-MIB, rPDU. */
export const APC_RPDU: OutletTable = {
  mib: "APC-rPDU",
  vendor: "APC",
  module: "PowerNet-MIB",
  sysObjectId: "1.3.6.1.4.1.318.1.3.4.5",
  index: ["outlet"],
  state: {
    name: "rPDUOutletStatusOutletState",
    oid: `${RPDU}.3.5.1.1.4.{index}`,
    values: { 1: { text: "outletStatusOn", means: "On" }, 2: { text: "outletStatusOff", means: "Off" } },
  },
  conditions: [
    {
      name: "rPDUOutletStatusCommandPending",
      oid: `${RPDU}.3.5.1.1.5.{index}`,
      values: {
        1: { text: "outletStatusCommandPending", means: "Changing" },
        2: { text: "outletStatusNoCommandPending", means: "Fine" },
      },
    },
  ],
  // Only models that monitor outlets have it.
  meter: { name: "rPDUOutletStatusLoad", oid: `${RPDU}.3.5.1.1.7.{index}`, unit: "tenths of A" },
  off: { name: "rPDUOutletControlOutletCommand immediateOff", oid: `${RPDU}.3.3.1.1.4.{index}`, value: 2 },
  on: { name: "rPDUOutletControlOutletCommand immediateOn", oid: `${RPDU}.3.3.1.1.4.{index}`, value: 1 },
  serial: { name: "rPDUIdentSerialNumber", oid: `${RPDU}.1.6.0` },
  // Units of the second generation also have this table, but only with the serial number of one unit of a chain.
  chain: { unit: { name: "rPDU2IdentModule", oid: `${RPDU2_IDENT}.2.{row}` } },
  label: { name: "rPDUOutletStatusOutletName", oid: `${RPDU}.3.5.1.1.2.{index}` },
};
