import assert from "node:assert/strict";
import { test } from "node:test";
import { decodeVarbinds } from "../../../../src/bmc/snmp/session/decode.ts";
import type { SnmpValue } from "../../../../src/bmc/snmp/session/values.ts";
import { readStatus, statusOids } from "../../../../src/bmc/snmp/outlet-status.ts";
import type { OutletStatus } from "../../../../src/bmc/snmp/outlet-status.ts";
import { OUTLET_TABLES, oidOf, requireIndex, tableOf } from "../../../../src/bmc/snmp/tables/tables.ts";
import type { MibObject, OutletTable } from "../../../../src/bmc/snmp/tables/table.ts";
import { BmcError } from "../../../../src/bmc/interface/errors.ts";
import { MIBS } from "../../../../src/bmc/interface/mibs.ts";
import type { Mib } from "../../../../src/bmc/interface/mibs.ts";
import { MIB_VALUES, oidAt } from "../../../../hack/snmp-mock/mib-values.ts";

const UP_TIME = "1.3.6.1.2.1.1.3.0";
const ENGINE_ID = "1.3.6.1.6.3.10.2.1.1.0";
const integer = (value: number): SnmpValue => ({ type: "integer", value });
const text = (value: string): SnmpValue => ({ type: "bytes", value: Buffer.from(value) });
const NONE: SnmpValue = { type: "none" };

const indexOf = (table: OutletTable): string => table.index.map(() => "3").join(".");

function valueNamed(values: Readonly<Record<number, { means: string }>>, means: string): number {
  return Number(Object.entries(values).find(([, value]) => value.means === means)?.[0]);
}

/** The status from the values of an outlet that is off, with the given changes. */
function statusOf(
  table: OutletTable,
  changes: readonly [object: MibObject | string, value: SnmpValue][] = [],
  wasMetered = false,
): OutletStatus {
  const outlet = indexOf(table);
  const answers = new Map<string, SnmpValue>(statusOids(table, outlet).map((oid) => [oid, NONE]));
  const set = (object: MibObject | string, value: SnmpValue): void => {
    answers.set(typeof object === "string" ? object : oidOf(object, outlet), value);
  };
  set(UP_TIME, { type: "ticks", value: 500_000 });
  set(table.state, integer(valueNamed(table.state.values, "Off")));
  for (const condition of table.conditions) set(condition, integer(valueNamed(condition.values, "Fine")));
  set(table.serial, text("SN-1"));
  const { chain } = table;
  if (chain !== undefined && chain.unit !== table.serial) set(chain.unit, integer(1));
  if (chain?.outlet !== undefined) {
    set(chain.outlet.unit, integer(1));
    set(chain.outlet.number, integer(3));
  }
  for (const [ofMeter, ofOutlet] of table.meter?.sameOutlet ?? []) {
    set(ofMeter, integer(ofOutlet === chain?.outlet?.unit ? 1 : 3));
  }
  if (table.meter !== undefined) set(table.meter, integer(0));
  for (const object of table.meter?.works ?? []) set(object, integer(object.values[0] ?? NaN));
  for (const [object, value] of changes) set(object, value);
  return readStatus(table, outlet, answers, { what: "read", wasMetered });
}

const EVERY_VALUE = Array.from({ length: 42 }, (_, at) => at - 1);
/**
 * The values of an outlet that is off, by the MIBs: for each object of `off`, of `always` and of the meter in
 * `MIB_VALUES`. Whether the outlet has a relay is not part of its state.
 */
const OFF_WITH: Readonly<Record<Mib, readonly (readonly number[])[]>> = {
  "APC-rPDU2": [[1], [2]],
  "APC-rPDU": [[2], [2]],
  Raritan: [[8], EVERY_VALUE, [1], [2, 3, 4, 5, 6]],
  Eaton: [[0], EVERY_VALUE],
  Vertiv: [[2], [2]],
  "ServerTech-3": [[0], [0, 4, 6, 14]],
  "ServerTech-4": [[2], [2, 10, 14, 16], [0]],
};

for (const mib of MIBS) {
  const table = OUTLET_TABLES[mib];

  test(`an outlet by the table ${mib} is Off only if everything that the table has says so`, () => {
    assert.equal(statusOf(table).reading.state, "Off");
    for (const [value, { means }] of Object.entries(table.state.values)) {
      const expected = means === "Doubtful" ? "Unknown" : means;
      assert.equal(statusOf(table, [[table.state, integer(Number(value))]]).reading.state, expected, value);
    }
    for (const condition of table.conditions) {
      for (const [value, { means }] of Object.entries(condition.values)) {
        const expected = { Fine: "Off", Changing: "Changing", Doubtful: "Unknown" }[means];
        assert.equal(statusOf(table, [[condition, integer(Number(value))]]).reading.state, expected, condition.name);
      }
    }
  });

  test(`an outlet by the table ${mib} is not Off if a value is missing, of another type, or not known to the MIB`, () => {
    for (const object of [table.state, ...table.conditions]) {
      for (const value of [
        integer(4_711),
        integer(-1),
        text("off"),
        { type: "gauge", value: 2 } as const,
        { type: "other" } as const,
      ]) {
        assert.equal(statusOf(table, [[object, value]]).reading.state, "Unknown", object.name);
      }
    }
    for (const condition of table.conditions) {
      assert.equal(statusOf(table, [[condition, NONE]]).reading.state, "Unknown", condition.name);
    }
  });

  test(`an outlet by the table ${mib} is Off only with its meter at 0, if it has one`, () => {
    const { meter } = table;
    assert.ok(meter);
    const none = (value: SnmpValue): [MibObject, SnmpValue][] => [
      [meter, value],
      ...(value.type === "none" ? (meter.works ?? []).map((object): [MibObject, SnmpValue] => [object, NONE]) : []),
    ];
    for (const value of [1, 180]) assert.equal(statusOf(table, none(integer(value))).reading.state, "Changing");
    assert.equal(statusOf(table, none({ type: "gauge", value: 5 })).reading.state, "Changing");
    for (const value of [text("0"), { type: "ticks", value: 0 } as const, { type: "other" } as const]) {
      assert.equal(statusOf(table, none(value)).reading.state, "Unknown");
    }
    for (const absent of [NONE, integer(-1), { type: "gauge", value: 4_294_967_295 } as const]) {
      assert.equal(statusOf(table, none(absent)).reading.state, "Off");
      assert.equal(statusOf(table, none(absent), true).reading.state, "Unknown");
    }
    for (const object of meter.works ?? []) {
      for (const broken of [integer(-1), NONE, text("1")]) {
        assert.equal(statusOf(table, [[object, broken]]).reading.state, "Unknown", object.name);
      }
    }
  });

  test(`an outlet by the table ${mib} is read and ordered by the objects and values that its MIB defines`, () => {
    const values = MIB_VALUES[mib];
    const outlet = indexOf(table);
    const at = (oid: string): string => oidAt(oid, outlet);
    const read = (rows: readonly (readonly [string, number])[]): OutletStatus => {
      const answers = new Map<string, SnmpValue>(statusOids(table, outlet).map((oid) => [oid, NONE]));
      answers.set(UP_TIME, { type: "ticks", value: 500_000 });
      answers.set(at(values.serial), text("SN-1"));
      answers.set(at(values.label), text("left"));
      const { unit, outletUnit, outletNumber, meterUnit, meterNumber } = values.chain ?? {};
      for (const oid of [unit, outletUnit, meterUnit]) if (oid !== undefined) answers.set(at(oid), integer(1));
      for (const oid of [outletNumber, meterNumber]) if (oid !== undefined) answers.set(at(oid), integer(3));
      for (const [oid, value] of [...values.always, ...values.meter.beside, ...rows])
        answers.set(at(oid), integer(value));
      return readStatus(table, outlet, answers, { what: "read", wasMetered: false });
    };
    const unloaded = [values.meter.oid, 0] as const;
    const stateWith = (...rows: (readonly [string, number])[]): string => read(rows).reading.state;
    const { pdu, label, meter, isSwitchable } = read([...values.off, unloaded]);
    assert.deepEqual(
      { pdu, label, meter, isSwitchable },
      {
        pdu: "SN-1",
        label: "left",
        meter: { kind: "value", value: 0 },
        isSwitchable: true,
      },
    );
    assert.equal(stateWith(...values.off, unloaded), "Off");
    assert.equal(stateWith(...values.off, [values.meter.oid, 7]), "Changing");
    assert.equal(stateWith(...values.on, unloaded), "On");
    // PDU2-MIB has no pending state.
    assert.equal(stateWith(...values.pendingOff, unloaded), mib === "Raritan" ? "On" : "Changing");
    assert.equal(stateWith(...values.pendingOn, unloaded), mib === "Raritan" ? "Off" : "Changing");
    assert.deepEqual([oidOf(table.off, outlet), table.off.value], [at(values.setOff[0]), values.setOff[1]]);
    assert.deepEqual([oidOf(table.on, outlet), table.on.value], [at(values.setOn[0]), values.setOn[1]]);
    assert.equal(table.sysObjectId, values.sysObjectId);
    // Only these values mean Off, in the order of the objects.
    const offWith = [...values.off, ...values.always, ...values.meter.beside].map(([oid]) =>
      EVERY_VALUE.filter((value) => stateWith(...values.off, unloaded, [oid, value]) === "Off"),
    );
    assert.deepEqual(offWith, OFF_WITH[mib]);
  });

  test(`an outlet by the table ${mib} has one index, and its PDUs are known by their sysObjectID`, () => {
    assert.equal(tableOf(table.sysObjectId), table);
    assert.equal(tableOf(`${table.sysObjectId}.1.2`), table);
    assert.notEqual(tableOf(`${table.sysObjectId}0`), table);
    const outlet = indexOf(table);
    requireIndex(table, outlet, "read");
    for (const other of [`${outlet}.3`, outlet.slice(2)]) {
      if (other !== "") assert.throws(() => requireIndex(table, other, "read"), BmcError);
    }
    const oids = statusOids(table, outlet);
    assert.equal(new Set(oids).size, oids.length);
    for (const oid of [...oids, oidOf(table.off, outlet), oidOf(table.on, outlet)]) {
      assert.match(oid, /^1\.3\.6\.1(?:\.\d+)+$/);
    }
    assert.notEqual(`${table.off.oid} ${table.off.value}`, `${table.on.oid} ${table.on.value}`);
  });
}

test("a PDU is known by its serial number, otherwise by its engine ID, and not at all without both", () => {
  const table = OUTLET_TABLES["APC-rPDU2"];
  const engineId: SnmpValue = { type: "bytes", value: Buffer.from("8000013e0461", "hex") };
  assert.equal(statusOf(table, [[ENGINE_ID, engineId]]).pdu, "SN-1");
  assert.equal(
    statusOf(table, [
      [ENGINE_ID, engineId],
      [table.serial, text("  ")],
    ]).pdu,
    "8000013e0461",
  );
  assert.throws(() => statusOf(table, [[table.serial, NONE]]), /neither rPDU2IdentSerialNumber nor snmpEngineID/);
  assert.throws(() => statusOf(table, [[UP_TIME, NONE]]), /no sysUpTime/);
});

const row = (object: MibObject | undefined, at: number): string => oidOf(object ?? { oid: "" }, "3", at);

test("an outlet of a chain is that of the unit whose number it has, wherever that unit is in the table", () => {
  const table = OUTLET_TABLES["APC-rPDU2"];
  const { chain, serial } = table;
  const second: [string, SnmpValue][] = [
    [row(chain?.unit, 2), integer(4)],
    [row(serial, 2), text("SN-2")],
  ];
  const of = (unit: number, number: number): [MibObject, SnmpValue][] =>
    chain?.outlet === undefined
      ? []
      : [
          [chain.outlet.unit, integer(unit)],
          [chain.outlet.number, integer(number)],
        ];
  const place = (...changes: [string | MibObject, SnmpValue][]): string => {
    const { pdu, outlet } = statusOf(table, changes);
    return `${pdu} ${outlet}`;
  };
  assert.equal(place(...second, ...of(1, 3)), "SN-1 3");
  assert.equal(place(...second, ...of(4, 1)), "SN-2 1");
  for (const unclear of [
    [...second, ...of(2, 1)],
    [...second, [row(chain?.unit, 3), integer(4)], ...of(4, 1)],
    [...of(1, 3), [row(chain?.unit, 1), NONE]],
  ] as const) {
    assert.throws(() => place(...(unclear as [string, SnmpValue][])), /does not say to which of its first 4 units/);
  }
  for (const missing of [chain?.outlet?.unit, chain?.outlet?.number]) {
    assert.throws(() => place([missing ?? "", NONE]), /does not say to which/);
  }
});

test("the engine ID of a chain identifies only the unit that sends it", () => {
  const engineId: [string, SnmpValue] = [ENGINE_ID, { type: "bytes", value: Buffer.from("8000013e0461", "hex") }];
  const apc = OUTLET_TABLES["APC-rPDU2"];
  const silent = [engineId, [apc.serial, NONE]] as [string, SnmpValue][];
  assert.equal(statusOf(apc, silent).pdu, "8000013e0461");
  assert.throws(
    () => statusOf(apc, [...silent, [row(apc.chain?.unit, 2), integer(2)]]),
    /sends no rPDU2IdentSerialNumber of the unit of the outlet/,
  );
  for (const mib of ["Raritan", "Eaton", "ServerTech-3", "ServerTech-4"] as const) {
    const table = OUTLET_TABLES[mib];
    assert.throws(() => statusOf(table, [engineId, [table.serial, NONE]]), /of the unit of the outlet/, mib);
  }
});

test("outlets of a chain are not used if the MIB does not say which unit has them", () => {
  for (const mib of ["Vertiv", "APC-rPDU"] as const) {
    const table = OUTLET_TABLES[mib];
    assert.equal(statusOf(table).pdu, "SN-1");
    const second = mib === "Vertiv" ? text("SN-2") : integer(2);
    assert.throws(
      () => statusOf(table, [[row(table.chain?.unit, 2), second]]),
      /2 chained units answer, and .*-MIB does not say/,
    );
  }
});

test("the meter of another outlet says nothing about an outlet", () => {
  const table = OUTLET_TABLES["APC-rPDU2"];
  const load: [MibObject, SnmpValue] = [table.meter ?? table.state, integer(0)];
  for (const [ofMeter] of table.meter?.sameOutlet ?? []) {
    for (const other of [integer(2), NONE]) {
      const changes: [MibObject, SnmpValue][] = [load, [ofMeter, other]];
      assert.deepEqual(statusOf(table, changes).meter, { kind: "none" });
      assert.equal(statusOf(table, changes, true).reading.state, "Unknown");
    }
  }
});

test("a text of a PDU is cut and made printable", () => {
  const table = OUTLET_TABLES["APC-rPDU2"];
  const { label } = statusOf(table, [[table.label, text(`a\u001b[31m\n\u202eb${"x".repeat(500)}`)]]);
  assert.match(label ?? "", /^a \[31m b?x*/);
  assert.ok((label ?? "").length <= 64);
});

test("values of a PDU count only for the objects that were asked for, in their order", () => {
  const varbind = (oid: string): { oid: string; type: number; value: number } => ({ oid, type: 2, value: 1 });
  assert.equal(decodeVarbinds("read", ["1.3.1", "1.3.2"], [varbind("1.3.1"), varbind("1.3.2")]).size, 2);
  for (const answer of [["1.3.2", "1.3.1"], ["1.3.1"], ["1.3.1", "1.3.2", "1.3.3"], ["1.3.1", "1.3.9"]]) {
    assert.throws(() => decodeVarbinds("read", ["1.3.1", "1.3.2"], answer.map(varbind)), /does not match the request/);
  }
});
