import { APC_RPDU } from "./apc-rpdu.ts";
import { APC_RPDU2 } from "./apc-rpdu2.ts";
import { EATON } from "./eaton.ts";
import { RARITAN } from "./raritan.ts";
import { SERVERTECH3 } from "./servertech3.ts";
import { SERVERTECH4 } from "./servertech4.ts";
import type { OutletTable } from "./table.ts";
import { VERTIV } from "./vertiv.ts";
import { BmcError } from "../../interface/errors.ts";
import type { Mib } from "../../interface/mibs.ts";

/** The tables of all vendors. */
export const OUTLET_TABLES: Readonly<Record<Mib, OutletTable>> = {
  "APC-rPDU2": APC_RPDU2,
  "APC-rPDU": APC_RPDU,
  Raritan: RARITAN,
  Eaton: EATON,
  Vertiv: VERTIV,
  "ServerTech-3": SERVERTECH3,
  "ServerTech-4": SERVERTECH4,
};

/** The table of the PDUs with this sysObjectID; undefined if none is known. */
export function tableOf(sysObjectId: string): OutletTable | undefined {
  return Object.values(OUTLET_TABLES).find(({ sysObjectId: prefix }) => `${sysObjectId}.`.startsWith(`${prefix}.`));
}

/** The OID of an object for one outlet, or for the row of one unit of a chain. */
export function oidOf({ oid }: { oid: string }, outlet: string, row = 1): string {
  return oid.replace("{index}", outlet).replace("{unit}", unitOf(outlet)).replace("{row}", String(row));
}

/** The first number of the index of an outlet, which is the unit in some tables. */
export function unitOf(outlet: string): string {
  return outlet.split(".", 1)[0] ?? "";
}

/**
 * Checks that an index has as many numbers as the table, so that no two addresses mean the same outlet.
 *
 * @throws BmcError SystemNotFound for an index with more or fewer numbers than the table has.
 */
export function requireIndex({ index, vendor }: OutletTable, outlet: string, what: string): void {
  if (outlet.split(".").length === index.length) return;
  const form = index.map((part) => part.toUpperCase()).join(".");
  const message = `${what}: outlet ${outlet} does not have the form ${form} of the outlets of ${vendor}`;
  throw new BmcError("SystemNotFound", message);
}
