import { oidOf, unitOf } from "./tables/tables.ts";
import type { MibObject, OutletTable } from "./tables/table.ts";
import { textOf } from "./session/values.ts";
import type { Answers } from "./session/values.ts";
import type { OutletIdentity } from "../interface/driver.ts";
import { BmcError } from "../interface/errors.ts";

// Identifies the outlet and the unit that an answer is about. If PDUs are chained, the index of an outlet may belong to
// another outlet after a unit is removed, added or renumbered, so the index does not identify it. Pure.

export const SNMP_ENGINE_ID = "1.3.6.1.6.3.10.2.1.1.0";

/** The rows that are read of the table of units: a chain of APC has at most 4 units. */
const ROWS = [1, 2, 3, 4];

/** The OIDs by which an outlet is identified. They are read together with its state. */
export function unitOids({ serial, chain }: OutletTable, outlet: string): string[] {
  if (chain === undefined) return [oidOf(serial, outlet)];
  const ofOutlet = chain.outlet === undefined ? [] : [chain.outlet.unit, chain.outlet.number];
  const ofUnits = ROWS.flatMap((row) => [serial, chain.unit].map((object) => oidOf(object, outlet, row)));
  return [...ofOutlet.map((object) => oidOf(object, outlet)), ...ofUnits];
}

/**
 * @throws BmcError BadResponse if the PDU does not identify the unit, Unsupported for a chain whose table of outlets
 * cannot.
 */
export function findUnit(
  table: OutletTable,
  outlet: string,
  answers: Answers,
  what: string,
): Pick<OutletIdentity, "pdu" | "outlet"> {
  const { chain, firstUnit, module } = table;
  const pduOf = (row: number, isAlone: boolean): string => serialOf(table, outlet, row, answers, isAlone, what);
  if (chain === undefined) {
    return { pdu: pduOf(1, firstUnit === undefined || firstUnit === unitOf(outlet)), outlet };
  }
  const rows = ROWS.filter((row) => (answers.get(oidOf(chain.unit, outlet, row))?.type ?? "none") !== "none");
  if (chain.outlet === undefined) {
    if (rows.length <= 1) return { pdu: pduOf(rows[0] ?? 1, true), outlet };
    const message = `${what}: ${rows.length} chained units answer, and ${module} does not say to which of them an outlet belongs: connect the unit to the network by itself`;
    throw new BmcError("Unsupported", message);
  }
  const numberOf = (object: MibObject, row = 1): number | undefined => {
    const value = answers.get(oidOf(object, outlet, row));
    return value?.type === "integer" ? value.value : undefined;
  };
  const [unit, number] = [numberOf(chain.outlet.unit), numberOf(chain.outlet.number)];
  const [own, ...others] = rows.filter((row) => unit !== undefined && numberOf(chain.unit, row) === unit);
  if (own === undefined || others.length > 0 || number === undefined) {
    const message = `${what}: the PDU does not say to which of its first ${ROWS.length} units outlet ${outlet} belongs (${chain.outlet.unit.name}, ${chain.unit.name})`;
    throw new BmcError("BadResponse", message);
  }
  return { pdu: pduOf(own, rows.length === 1), outlet: String(number) };
}

/** @param isAlone Whether the SNMP engine ID, which belongs to one unit, belongs to the unit of the outlet. */
function serialOf(
  { serial }: OutletTable,
  outlet: string,
  row: number,
  answers: Answers,
  isAlone: boolean,
  what: string,
): string {
  const text = textOf(answers.get(oidOf(serial, outlet, row)));
  const engineId = isAlone ? engineIdOf(answers) : undefined;
  if (text !== undefined) return text;
  if (engineId !== undefined) return engineId;
  const lack = isAlone ? `neither ${serial.name} nor snmpEngineID` : `no ${serial.name} of the unit of the outlet`;
  throw new BmcError("BadResponse", `${what}: the PDU sends ${lack}`);
}

function engineIdOf(answers: Answers): string | undefined {
  const value = answers.get(SNMP_ENGINE_ID);
  if (value?.type !== "bytes" || value.value.length < 5 || value.value.length > 32) return undefined;
  return Buffer.from(value.value).toString("hex");
}
