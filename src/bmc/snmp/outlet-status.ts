import { findUnit, SNMP_ENGINE_ID, unitOids } from "./outlet-unit.ts";
import { oidOf } from "./tables/tables.ts";
import type { Meter, MibObject, OutletTable } from "./tables/table.ts";
import { shown, textOf } from "./session/values.ts";
import type { Answers, SnmpValue } from "./session/values.ts";
import type { PowerReading } from "../interface/driver.ts";
import { BmcError } from "../interface/errors.ts";

// Parses what one answer of a PDU shows about one outlet. Pure.

const SYS_UP_TIME = "1.3.6.1.2.1.1.3.0";

/**
 * A PDU that started less than this ago may show Off for outlets whose relays it has not read yet. The PDU's own uptime
 * is used, so that a restart between two calls is noticed.
 */
export const PDU_SETTLE_MS = 30_000;

/** The largest Gauge32: some PDUs send it for "not measured", as others send -1. */
const GAUGE_MAX = 0xff_ff_ff_ff;

/** What the meter of an outlet shows. */
export type MeterReading = { kind: "none" } | { kind: "value"; value: number } | { kind: "unreadable"; raw: string };

export interface OutletStatus {
  /** The serial number of the unit; if a PDU has none, its engine ID. */
  pdu: string;
  /** The number of the outlet on its unit; if the MIB has none, its index. */
  outlet: string;
  label: string | undefined;
  /** False if the PDU reports that the outlet has no relay, or that it may not be switched. */
  isSwitchable: boolean;
  meter: MeterReading;
  reading: PowerReading;
}

/** The OIDs that one status needs, in one request. */
export function statusOids(table: OutletTable, outlet: string): readonly string[] {
  const { state, conditions, meter, label, switchable } = table;
  const beside = [...(meter?.works ?? []), ...(meter?.sameOutlet ?? []).flat()];
  const objects = [state, ...conditions, meter, ...beside, label, switchable];
  const oids = objects.flatMap((object) => (object === undefined ? [] : [oidOf(object, outlet)]));
  return [...new Set([SYS_UP_TIME, SNMP_ENGINE_ID, ...oids, ...unitOids(table, outlet)])];
}

/**
 * @param wasMetered Whether the outlet is known to have a meter. The meter then has to show 0.
 * @throws BmcError SystemNotFound if there is no such outlet, BadResponse if the PDU does not report the unit of the
 * outlet or its own uptime, Unsupported for a chain whose outlets have no unit.
 */
export function readStatus(
  table: OutletTable,
  outlet: string,
  answers: Answers,
  { what, wasMetered }: { what: string; wasMetered: boolean },
): OutletStatus {
  const valueOf = (object: MibObject): SnmpValue | undefined => answers.get(oidOf(object, outlet));
  if (valueOf(table.state)?.type === "none") {
    const message = `${what}: the PDU has no outlet ${outlet} (${table.state.name} of ${table.module}): correct the address, or set snmp.mib`;
    throw new BmcError("SystemNotFound", message);
  }
  const upTime = answers.get(SYS_UP_TIME);
  if (upTime?.type !== "ticks") throw new BmcError("BadResponse", `${what}: the PDU sends no sysUpTime`);
  const own = findUnit(table, outlet, answers, what);
  const meter = readMeter(table.meter, valueOf);
  const { switchable } = table;
  const relay = switchable && valueOf(switchable);
  const isSwitchable = relay === undefined || relay.type === "none" || isNumber(relay, switchable?.value);
  const upMs = upTime.value * 10;
  const reading = readPower(table, valueOf, { meter, wasMetered, upMs });
  return { ...own, label: textOf(valueOf(table.label)), isSwitchable, meter, reading };
}

type ValueOf = (object: MibObject) => SnmpValue | undefined;

function readPower(
  table: OutletTable,
  valueOf: ValueOf,
  { meter, wasMetered, upMs }: { meter: MeterReading; wasMetered: boolean; upMs: number },
): PowerReading {
  const state = valueOf(table.state);
  const known = state?.type === "integer" ? table.state.values[state.value] : undefined;
  if (known === undefined) return { state: "Unknown", raw: `${table.state.name} is ${shown(state)}` };
  const { means, text } = known;
  if (means === "Doubtful") return { state: "Unknown", raw: text };
  if (means === "Changing") return { state: "Changing", raw: text };
  const conditions = table.conditions.map((condition) => {
    const value = valueOf(condition);
    const meaning = value?.type === "integer" ? condition.values[value.value] : undefined;
    return { means: meaning?.means ?? "Doubtful", text: meaning?.text ?? `${condition.name} is ${shown(value)}` };
  });
  const changing = conditions.find((condition) => condition.means === "Changing");
  if (changing !== undefined) return { state: "Changing", raw: `${text}, ${changing.text}` };
  if (means === "On") return { state: "On", raw: text };
  const doubtful = conditions.find((condition) => condition.means === "Doubtful");
  if (doubtful !== undefined) return { state: "Unknown", raw: `${text}, but ${doubtful.text}` };
  if (upMs < PDU_SETTLE_MS) {
    return { state: "Unknown", raw: `${text}, but the PDU started ${Math.floor(upMs / 1_000)} s ago` };
  }
  const unit = table.meter?.unit ?? "";
  if (meter.kind === "value" && meter.value !== 0) {
    return { state: "Changing", raw: `${text}, but its meter shows ${meter.value} ${unit}` };
  }
  if (meter.kind === "unreadable") return { state: "Unknown", raw: `${text}, but its meter shows ${meter.raw}` };
  if (meter.kind === "none" && wasMetered) {
    return { state: "Unknown", raw: `${text}, but its meter shows nothing now` };
  }
  const raw = meter.kind === "value" ? `${text}, and its meter shows 0 ${unit}` : text;
  return { state: "Off", raw, bmcUpMs: upMs };
}

function readMeter(meter: Meter | undefined, valueOf: ValueOf): MeterReading {
  if (meter === undefined) return { kind: "none" };
  const { works = [], sameOutlet = [] } = meter;
  const value = valueOf(meter);
  if ([meter, ...works].every((object) => valueOf(object)?.type === "none")) return { kind: "none" };
  if (!sameOutlet.every(([ofMeter, ofOutlet]) => areSame(valueOf(ofMeter), valueOf(ofOutlet)))) return { kind: "none" };
  const broken = works.find((object) => !object.values.some((working) => isNumber(valueOf(object), working)));
  if (broken !== undefined) return { kind: "unreadable", raw: `${broken.name} ${shown(valueOf(broken))}` };
  if (value?.type !== "integer" && value?.type !== "gauge") return { kind: "unreadable", raw: shown(value) };
  return value.value < 0 || value.value === GAUGE_MAX ? { kind: "none" } : { kind: "value", value: value.value };
}

function isNumber(value: SnmpValue | undefined, expected: number | undefined): boolean {
  return value?.type === "integer" && value.value === expected;
}

function areSame(a: SnmpValue | undefined, b: SnmpValue | undefined): boolean {
  return a?.type === "integer" && b?.type === "integer" && a.value === b.value;
}
