import type { Mib } from "../../src/bmc/interface/mibs.ts";
import { integer, octets, oid, tlv, TAG } from "./ber.ts";
import { MIB_VALUES, oidAt } from "./mib-values.ts";
import type { Outlet, OutletStrip } from "./outlets.ts";

// The objects of a simulated PDU, in the table of one vendor.

export interface PduFacts {
  mib: Mib;
  strip: OutletStrip;
  serial: string | undefined;
  engineId: Buffer;
  upTimeMs: number;
}

/** The encoded value of an object; undefined if there is none. */
export function valueOf(facts: PduFacts, name: string): Buffer | undefined {
  const { mib, strip, serial, engineId, upTimeMs } = facts;
  const values = MIB_VALUES[mib];
  if (name === "1.3.6.1.2.1.1.2.0") return oid(values.sysObjectId);
  if (name === "1.3.6.1.2.1.1.3.0") return integer(Math.floor(upTimeMs / 10), TAG.ticks);
  if (name === "1.3.6.1.6.3.10.2.1.1.0") return octets(engineId);
  for (const outlet of strip.outlets) {
    if (serial !== undefined && name === oidAt(values.serial, outlet.spec.index)) return octets(serial);
    const value = valueOfOutlet(mib, outlet, name);
    if (value !== undefined) return value;
  }
  return undefined;
}

function valueOfOutlet(mib: Mib, outlet: Outlet, name: string): Buffer | undefined {
  const { label, meter, always, ...values } = MIB_VALUES[mib];
  const { index } = outlet.spec;
  const { watts } = outlet;
  if (name === oidAt(label, index)) return octets(outlet.spec.label);
  if (watts !== undefined && name === oidAt(meter.oid, index)) return integer(watts, meter.tag);
  const rows = [...values[outlet.state], ...always, ...(watts === undefined ? [] : meter.beside)];
  const found = rows.find(([oid]) => name === oidAt(oid, index));
  return found && integer(found[1]);
}

/** What a stranger would answer who wants the outlets to look off; undefined for other objects. */
export function forgedOff(mib: Mib, strip: OutletStrip, name: string): Buffer | undefined {
  const { off, meter } = MIB_VALUES[mib];
  for (const { spec } of strip.outlets) {
    if (name === oidAt(meter.oid, spec.index)) return integer(0, meter.tag);
    const found = off.find(([oid]) => name === oidAt(oid, spec.index));
    if (found !== undefined) return integer(found[1]);
  }
  return undefined;
}

/** Carries an order out. @returns false if nothing may be written there, or not this. */
export function order({ mib, strip }: PduFacts, name: string, value: number): boolean {
  const { setOn, setOff } = MIB_VALUES[mib];
  for (const outlet of strip.outlets) {
    for (const [oid, ordered] of [setOn, setOff]) {
      if (name !== oidAt(oid, outlet.spec.index) || value !== ordered) continue;
      outlet.order(oid === setOn[0] && ordered === setOn[1]);
      return true;
    }
  }
  return false;
}

export const NO_SUCH_INSTANCE = tlv(TAG.noSuchInstance);
