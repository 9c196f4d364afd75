import type { Mib } from "../../src/bmc/interface/mibs.ts";
import { integer, octets, oid, tlv, TAG } from "./ber.ts";
import { MIB_VALUES, oidAt } from "./mib-values.ts";
import type { Outlet, OutletStrip } from "./outlets.ts";

// The objects of a simulated PDU with the MIB of one vendor.

/** A further unit of a chain. */
export interface SnmpUnit {
  unit: number;
  serial: string | undefined;
}

export interface PduFacts {
  mib: Mib;
  strip: OutletStrip;
  serial: string | undefined;
  units: readonly SnmpUnit[];
  engineId: Buffer;
  upTimeMs: number;
}

/** The encoded value of an object; undefined if there is none. */
export function valueOf(facts: PduFacts, name: string): Buffer | undefined {
  const { mib, strip, serial, units, engineId, upTimeMs } = facts;
  const values = MIB_VALUES[mib];
  if (name === "1.3.6.1.2.1.1.2.0") return oid(values.sysObjectId);
  if (name === "1.3.6.1.2.1.1.3.0") return integer(Math.floor(upTimeMs / 10), TAG.ticks);
  if (name === "1.3.6.1.6.3.10.2.1.1.0") return octets(engineId);
  for (const [at, { unit, serial: own }] of [{ unit: 1, serial }, ...units].entries()) {
    if (values.chain !== undefined && name === oidAt(values.chain.unit, "", at + 1)) return integer(unit);
    const isSerial = strip.outlets.some(({ spec }) => name === oidAt(values.serial, spec.index, at + 1));
    if (isSerial && own !== undefined) return octets(own);
  }
  for (const outlet of strip.outlets) {
    const value = valueOfOutlet(mib, outlet, name);
    if (value !== undefined) return value;
  }
  return undefined;
}

function valueOfOutlet(mib: Mib, outlet: Outlet, name: string): Buffer | undefined {
  const { label, meter, always, chain, ...values } = MIB_VALUES[mib];
  const { index, unit = 1, number = Number(index.slice(index.lastIndexOf(".") + 1)) } = outlet.spec;
  const watts = outlet.faults.meterOf === undefined ? outlet.watts : 0;
  if (name === oidAt(chain?.outletUnit ?? "", index)) return integer(unit);
  if (name === oidAt(chain?.outletNumber ?? "", index)) return integer(number);
  if (watts !== undefined && name === oidAt(chain?.meterUnit ?? "", index)) return integer(unit);
  if (watts !== undefined && name === oidAt(chain?.meterNumber ?? "", index)) {
    return integer(outlet.faults.meterOf ?? number);
  }
  if (name === oidAt(label, index)) return octets(outlet.spec.label);
  if (watts !== undefined && name === oidAt(meter.oid, index)) return integer(watts, meter.tag);
  const rows = [...values[outlet.state], ...always, ...(watts === undefined ? [] : meter.beside)];
  const found = rows.find(([oid]) => name === oidAt(oid, index));
  return found && integer(found[1]);
}

/** The value with which an attacker makes an outlet appear off; undefined for other objects. */
export function forgedOff(mib: Mib, strip: OutletStrip, name: string): Buffer | undefined {
  const { off, meter } = MIB_VALUES[mib];
  for (const { spec } of strip.outlets) {
    if (name === oidAt(meter.oid, spec.index)) return integer(0, meter.tag);
    const found = off.find(([oid]) => name === oidAt(oid, spec.index));
    if (found !== undefined) return integer(found[1]);
  }
  return undefined;
}

/** Executes an order. @returns false if the object or the value cannot be written. */
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
