import type { Mib } from "../../interface/mibs.ts";

// What an outlet table of a vendor looks like. The files next to this one are data.

/** What one object says about the outlet. `Doubtful`: the value says that the state is not known now. */
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

/** An object that an Off needs besides the state of the outlet. */
export interface OffCondition extends MibObject {
  /** What its values mean; any other value is `Doubtful`. */
  values: Readonly<Record<number, { text: string; means: "Fine" | "Changing" | "Doubtful" }>>;
}

/** The power that the outlet delivers now. */
export interface Meter extends MibObject {
  /** What one step of its value is. */
  unit: string;
  /** While the meter works, each of these objects has one of its values. */
  works?: readonly (MibObject & { values: readonly number[] })[];
  /** Objects of the meter and of the outlet. Each pair has the same value if the meter is that of the outlet. */
  sameOutlet?: readonly (readonly [ofMeter: MibObject, ofOutlet: MibObject])[];
}

/**
 * PDUs that are chained answer at one address, with one table of outlets whose indexes change with the chain. What
 * stays is the serial number of the unit of an outlet, and the number of the outlet on it.
 */
export interface Chain {
  /** An object that each unit has. */
  unit: MibObject;
  /** Which unit an outlet belongs to, as `unit` says, and its number there. Without it a unit has to be alone. */
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
  /** The sysObjectID of its PDUs begins with this. */
  sysObjectId: string;
  /** What the numbers of an index are, for messages. */
  index: readonly string[];
  state: MibObject & { values: Readonly<Record<number, { text: string; means: OutletState }>> };
  conditions: readonly OffCondition[];
  meter: Meter | undefined;
  off: OutletOrder;
  on: OutletOrder;
  /** The serial number of the PDU, or of the unit of the outlet. */
  serial: MibObject;
  /** The unit whose engine ID the PDU sends, if an index begins with the unit. */
  firstUnit?: string;
  /** How units are chained whose outlets have an index without the unit. */
  chain?: Chain;
  /** The name that a user has given the outlet. */
  label: MibObject;
  /** Whether the outlet has a relay; a PDU without this object is taken to have one. */
  switchable?: MibObject & { value: number };
}
