import { integer, octets, oid, tlv, TAG } from "./ber.ts";
import type { Outlet, OutletStrip } from "./outlets.ts";
import { oidOf } from "../../src/bmc/snmp/tables/tables.ts";
import type { OutletTable } from "../../src/bmc/snmp/tables/table.ts";

// The objects of a simulated PDU, in the table of one vendor.

export interface PduFacts {
  table: OutletTable;
  strip: OutletStrip;
  serial: string | undefined;
  engineId: Buffer;
  upTimeMs: number;
}

/** The encoded value of an object; undefined if there is none. */
export function valueOf(facts: PduFacts, name: string): Buffer | undefined {
  const { table, strip, serial, engineId, upTimeMs } = facts;
  if (name === "1.3.6.1.2.1.1.2.0") return oid(table.sysObjectId);
  if (name === "1.3.6.1.2.1.1.3.0") return integer(Math.floor(upTimeMs / 10), TAG.ticks);
  if (name === "1.3.6.1.6.3.10.2.1.1.0") return octets(engineId);
  for (const outlet of strip.outlets) {
    const { index } = outlet.spec;
    if (serial !== undefined && name === oidOf(table.serial, index)) return octets(serial);
    const value = valueOfOutlet(table, outlet, (object) => name === oidOf(object, index));
    if (value !== undefined) return value;
  }
  return undefined;
}

function valueOfOutlet(
  table: OutletTable,
  outlet: Outlet,
  isAsked: (object: { oid: string }) => boolean,
): Buffer | undefined {
  const { state, conditions, meter, label, switchable } = table;
  const isPending = outlet.state.startsWith("pending");
  const values = Object.entries(state.values);
  if (isAsked(state)) {
    const changing = values.filter(([, { means }]) => means === "Changing");
    const pending = changing.find(([, { text }]) => text === outlet.state) ?? changing[0];
    const wanted = outlet.state === "on" || outlet.state === "pendingOff" ? "On" : "Off";
    const shown = (isPending ? pending : undefined) ?? values.find(([, { means }]) => means === wanted);
    return integer(Number(shown?.[0]));
  }
  for (const condition of conditions) {
    if (!isAsked(condition)) continue;
    const entries = Object.entries(condition.values);
    const pending = isPending ? entries.find(([, { means }]) => means === "Changing") : undefined;
    return integer(Number((pending ?? entries.find(([, { means }]) => means === "Fine"))?.[0]));
  }
  if (isAsked(label)) return octets(outlet.spec.label);
  if (switchable !== undefined && isAsked(switchable)) return integer(switchable.value);
  const { watts } = outlet;
  if (meter === undefined || watts === undefined) return undefined;
  if (isAsked(meter)) return integer(watts, meter.works === undefined ? TAG.integer : TAG.gauge);
  return meter.works !== undefined && isAsked(meter.works) ? integer(meter.works.value) : undefined;
}

/** Carries an order out. @returns false if nothing may be written there, or not this. */
export function order({ table, strip }: PduFacts, name: string, value: number): boolean {
  for (const outlet of strip.outlets) {
    for (const which of ["on", "off"] as const) {
      const object = table[which];
      if (name !== oidOf(object, outlet.spec.index) || value !== object.value) continue;
      outlet.order(which === "on");
      return true;
    }
  }
  return false;
}

export const NO_SUCH_INSTANCE = tlv(TAG.noSuchInstance);
