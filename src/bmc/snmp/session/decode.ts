import type { NetSnmpVarbind } from "net-snmp";
import type { Answers, SnmpValue } from "./values.ts";
import { BmcError } from "../../interface/errors.ts";

// Checks the values that net-snmp has decoded. They have JavaScript types, so the SNMP tag of each value decides what
// it is. Pure.

const INTEGER = 0x02;
const OCTET_STRING = 0x04;
const OBJECT_ID = 0x06;
const GAUGE = 0x42;
const TIME_TICKS = 0x43;
/** NoSuchObject, NoSuchInstance and EndOfMibView of RFC 3416. */
const NOTHING: ReadonlySet<number> = new Set([0x80, 0x81, 0x82]);

/** @throws BmcError BadResponse unless the answer has a value for each OID, in the order of the request. */
export function decodeVarbinds(what: string, oids: readonly string[], varbinds: readonly NetSnmpVarbind[]): Answers {
  const matches = varbinds.length === oids.length && varbinds.every(({ oid }, at) => oid === oids[at]);
  if (!matches) throw new BmcError("BadResponse", `${what}: the answer of the PDU does not match the request`);
  return new Map(varbinds.map(({ oid, type, value }) => [oid, decodeValue(type, value)]));
}

function decodeValue(type: number, value: unknown): SnmpValue {
  if (NOTHING.has(type)) return { type: "none" };
  if (type === OCTET_STRING && value instanceof Uint8Array) return { type: "bytes", value };
  if (type === OBJECT_ID && typeof value === "string") return { type: "oid", value };
  if (typeof value !== "number" || !Number.isSafeInteger(value)) return { type: "other" };
  if (type === INTEGER) return { type: "integer", value };
  if (type === GAUGE) return { type: "gauge", value };
  return type === TIME_TICKS ? { type: "ticks", value } : { type: "other" };
}
