import assert from "node:assert/strict";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { eventually } from "../../../hack/e2e/eventually.ts";
import { forever, openPeer } from "../../../hack/e2e/peers.ts";
import { installPythonTools } from "../../../hack/e2e/python-tools.ts";
import { freePorts } from "../../../hack/lib/ports.ts";
import { startChild } from "../../../hack/lib/processes.ts";
import type { Child } from "../../../hack/lib/processes.ts";
import { MIBS } from "../../../src/bmc/interface/mibs.ts";
import type { PowerDriver } from "../../../src/bmc/interface/driver.ts";
import { oidOf, OUTLET_TABLES } from "../../../src/bmc/snmp/tables/tables.ts";
import type { OutletTable } from "../../../src/bmc/snmp/tables/table.ts";

// Our SNMP driver on an agent that others wrote, with the table of each vendor. The community names the recording that
// snmpsim plays: one of an outlet that is on, and one of an outlet that is off.

const INSTALL_TIMEOUT_MS = 5 * 60_000;
const READY_TIMEOUT_MS = 60_000;
const TAG = { integer: 2, octets: 4, oid: 6, gauge: 66, ticks: 67 };

/** A recording in the format of snmpsim: OID, tag, value. */
function recordingOf(table: OutletTable, state: "On" | "Off", watts: number): string {
  const outlet = indexOf(table);
  const valueFor = (values: Readonly<Record<number, { means: string }>>, means: string): string =>
    Object.entries(values).find(([, value]) => value.means === means)?.[0] ?? "";
  const { meter } = table;
  const lines: [oid: string, tag: string | number, value: string | number][] = [
    ["1.3.6.1.2.1.1.2.0", TAG.oid, table.sysObjectId],
    ["1.3.6.1.2.1.1.3.0", TAG.ticks, 90_000_000],
    [oidOf(table.state, outlet), TAG.integer, valueFor(table.state.values, state)],
    ...table.conditions.map((condition): [string, number, string] => [
      oidOf(condition, outlet),
      TAG.integer,
      valueFor(condition.values, "Fine"),
    ]),
    ...(meter === undefined ? [] : [[oidOf(meter, outlet), TAG.gauge, watts] as [string, number, number]]),
    ...(meter?.works === undefined
      ? []
      : [[oidOf(meter.works, outlet), TAG.integer, meter.works.value] as [string, number, number]]),
    [oidOf(table.serial, outlet), TAG.octets, "SN-4711"],
    [oidOf(table.label, outlet), TAG.octets, "worker-3 left"],
    // Takes what is written.
    ...[...new Set([oidOf(table.off, outlet), oidOf(table.on, outlet)])].map((oid): [string, string, string] => [
      oid,
      `${TAG.integer}:writecache`,
      "value=1",
    ]),
  ];
  const inOrder = lines.toSorted(([a], [b]) => compareOids(a, b));
  return inOrder.map((line) => `${line.join("|")}\n`).join("");
}

function compareOids(a: string, b: string): number {
  const [left, right] = [a, b].map((oid) => oid.split(".").map(Number));
  const differing = left?.findIndex((number, at) => number !== right?.[at]) ?? -1;
  return (left?.[differing] ?? 0) - (right?.[differing] ?? 0);
}

function indexOf({ mib, index }: OutletTable): string {
  return [...index.slice(1).map(() => (mib === "Eaton" ? 0 : 1)), 7].join(".");
}

let folder = "";
let port = 0;
let child: Child;

const open = (table: OutletTable, recording: string): PowerDriver & AsyncDisposable =>
  openPeer({
    address: `snmp://127.0.0.1:${port}/${indexOf(table)}`,
    username: "",
    password: `${table.mib}-${recording}`,
    snmp: { version: "v2c" },
  });

void describe("snmpsim", () => {
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "ironfence-snmp-"));
    const data = join(folder, "data");
    await mkdir(data);
    for (const mib of MIBS) {
      const table = OUTLET_TABLES[mib];
      await writeFile(join(data, `${mib}-on.snmprec`), recordingOf(table, "On", 180));
      await writeFile(join(data, `${mib}-off.snmprec`), recordingOf(table, "Off", 0));
      await writeFile(join(data, `${mib}-welded.snmprec`), recordingOf(table, "Off", 180));
    }
    [port = 0] = await freePorts(1);
    const programs = await installPythonTools(() => undefined, AbortSignal.timeout(INSTALL_TIMEOUT_MS));
    // As root it runs only if a user is named.
    const asRoot = process.getuid?.() === 0 ? ["--process-user=root", "--process-group=root"] : [];
    const args = [
      `--data-dir=${data}`,
      `--cache-dir=${join(folder, "cache")}`,
      `--agent-udpv4-endpoint=127.0.0.1:${port}`,
    ];
    const program = join(programs, "snmpsim-command-responder");
    child = startChild("snmpsim", program, [...args, ...asRoot], { logFile: join(folder, "snmpsim.log") });
    await eventually("snmpsim answers", READY_TIMEOUT_MS, async () => {
      if (!child.running) throw new Error(await child.ended);
      await using device = open(OUTLET_TABLES["APC-rPDU2"], "on");
      try {
        await device.readPower(forever());
        return true;
      } catch {
        return false;
      }
    });
  });
  after(async () => {
    await child?.stop();
    await rm(folder, { recursive: true, force: true });
  });

  for (const mib of MIBS) {
    const table = OUTLET_TABLES[mib];

    void test(`an outlet by the table ${mib} of an agent of snmpsim is identified, read and ordered off and on`, async () => {
      await using on = open(table, "on");
      const identity = { pdu: "SN-4711", outlet: indexOf(table), label: "worker-3 left", metered: true };
      assert.deepEqual(await on.identifyOutlet?.(forever()), identity);
      assert.equal((await on.readPower(forever())).state, "On");
      await on.forceOff(forever());
      await on.on(forever());
      await using off = open(table, "off");
      assert.equal((await off.readPower(forever())).state, "Off");
      await using welded = open(table, "welded");
      assert.equal((await welded.readPower(forever())).state, "Changing");
    });
  }
});
