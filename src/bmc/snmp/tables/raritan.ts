import type { OutletTable } from "./table.ts";

const PDU2 = "1.3.6.1.4.1.13742.6";
/** SensorTypeEnumeration: activePower. */
const ACTIVE_POWER = 5;
/** SensorStateEnumeration: belowLowerCritical, belowLowerWarning, normal, aboveUpperWarning, aboveUpperCritical. */
const SENSOR_STATES_MEASURED = [2, 3, 4, 5, 6];

/** Raritan PX2 and PX3, Server Technology with the same firmware (Xerus): PDU2-MIB. */
export const RARITAN: OutletTable = {
  mib: "Raritan",
  vendor: "Raritan",
  module: "PDU2-MIB",
  sysObjectId: PDU2,
  index: ["PDU", "outlet"],
  state: {
    name: "outletSwitchingState",
    oid: `${PDU2}.4.1.2.1.3.{index}`,
    values: { 7: { text: "on", means: "On" }, 8: { text: "off", means: "Off" } },
  },
  conditions: [],
  meter: {
    name: "measurementsOutletSensorValue activePower",
    oid: `${PDU2}.5.4.3.1.4.{index}.${ACTIVE_POWER}`,
    unit: "W, or a part of it by outletSensorDecimalDigits",
    works: [
      {
        name: "measurementsOutletSensorIsAvailable activePower",
        oid: `${PDU2}.5.4.3.1.2.{index}.${ACTIVE_POWER}`,
        values: [1],
      },
      {
        // The value does not apply while the state is unavailable (-1).
        name: "measurementsOutletSensorState activePower",
        oid: `${PDU2}.5.4.3.1.3.{index}.${ACTIVE_POWER}`,
        values: SENSOR_STATES_MEASURED,
      },
    ],
  },
  off: { name: "switchingOperation off", oid: `${PDU2}.4.1.2.1.2.{index}`, value: 0 },
  on: { name: "switchingOperation on", oid: `${PDU2}.4.1.2.1.2.{index}`, value: 1 },
  serial: { name: "pduSerialNumber", oid: `${PDU2}.3.2.1.1.4.{unit}` },
  firstUnit: "1",
  label: { name: "outletName", oid: `${PDU2}.3.5.3.1.3.{index}` },
  switchable: { name: "outletSwitchable", oid: `${PDU2}.3.5.3.1.28.{index}`, value: 1 },
};
