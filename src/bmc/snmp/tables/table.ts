import type { Mib } from "../../interface/mibs.ts";

// The type of a vendor's outlet table. The other files in this folder contain the tables.

/** What one object shows about the outlet. `Doubtful`: the value means that the state is not known now. */
export type OutletState = "Off" | "On" | "Changing" | "Doubtful";

/**
 * One object of the MIB. `{index}` stands for the index of the outlet as in the address, `{unit}` for its first number,
 * and `{row}` for the row of a unit in the table of the units of a chain.
 */
export interface MibObject {
  /** The name that the MIB gives it. */
  name: string;
  oid: string;
}

/** An object that is checked before an Off counts, in addition to the state of the outlet. */
export interface OffCondition extends MibObject {
  /** The meanings of its values; any other value is `Doubtful`. */
  values: Readonly<Record<number, { text: string; means: "Fine" | "Changing" | "Doubtful" }>>;
}

/** The power that the outlet delivers now. */
export interface Meter extends MibObject {
  /** The unit of the value. */
  unit: string;
  /** The meter works only while each of these objects has one of its `values`. */
  works?: readonly (MibObject & { values: readonly number[] })[];
  /**
   * Pairs of objects of the meter and of the outlet. The meter belongs to the outlet only if both have the same value.
   */
  sameOutlet?: readonly (readonly [ofMeter: MibObject, ofOutlet: MibObject])[];
}

/**
 * Chained PDUs answer at one address with one table of outlets, whose indexes change with the chain. Only the serial
 * number of a unit and the number of an outlet on that unit stay the same.
 */
export interface Chain {
  /** An object that each unit of a chain has. If `outlet` is set, its value is the number of the unit. */
  unit: MibObject;
  /**
   * The objects with the unit of an outlet, as in `unit` above, and with its number there. Without them only a unit
   * that is not chained can be used.
   */
  outlet?: { unit: MibObject; number: MibObject };
}

/** An order: one SET of one INTEGER. */
export interface OutletOrder extends MibObject {
  value: number;
}

export interface OutletTable {
  mib: Mib;
  vendor: string;
  /** The MIB module that defines the objects. */
  module: string;
  /** The prefix of the sysObjectID of its PDUs. */
  sysObjectId: string;
  /** The names of the numbers in an index, for messages. */
  index: readonly string[];
  state: MibObject & { values: Readonly<Record<number, { text: string; means: OutletState }>> };
  conditions: readonly OffCondition[];
  meter: Meter | undefined;
  off: OutletOrder;
  on: OutletOrder;
  /** The serial number of the PDU, or of the unit of the outlet. */
  serial: MibObject;
  /** If an index begins with the unit: the unit whose SNMP engine ID the PDU sends. */
  firstUnit?: string;
  /** If an index does not contain the unit: how the unit of an outlet is found in a chain. */
  chain?: Chain;
  /** The name that a user gave the outlet. */
  label: MibObject;
  /** Whether the outlet has a relay. Without this object the outlet counts as switchable. */
  switchable?: MibObject & { value: number };
}
