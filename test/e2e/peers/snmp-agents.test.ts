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
import { SNMP_AUTH_PROTOCOLS, SNMP_PRIV_PROTOCOLS } from "../../../src/bmc/interface/device-config.ts";
import { MIBS } from "../../../src/bmc/interface/mibs.ts";
import type { Mib } from "../../../src/bmc/interface/mibs.ts";
import { MIB_VALUES, oidAt } from "../../../hack/snmp-mock/mib-values.ts";
import type { PowerDriver } from "../../../src/bmc/interface/driver.ts";
import { OUTLET_TABLES } from "../../../src/bmc/snmp/tables/tables.ts";

// Our SNMP driver with the agent of another project, snmpsim, and the table of each vendor. The community selects the
// recording that snmpsim plays: an outlet that is on, or one that is off. SNMPv3 has a user for each pair of protocols,
// and the recording `self`.

const INSTALL_TIMEOUT_MS = 5 * 60_000;
const READY_TIMEOUT_MS = 60_000;
const PASSWORD = "a password of SNMPv3";
/** The names of the ciphers in snmpsim. */
const CIPHERS = { AES: "AES", "AES-256": "AES256BLMT", "AES-256-C": "AES256" };
const PAIRS = SNMP_AUTH_PROTOCOLS.flatMap((auth) => SNMP_PRIV_PROTOCOLS.map((priv) => ({ auth, priv })));
const TAG = { integer: 2, octets: 4, oid: 6, ticks: 67 };

/** The unit of a PDU without a chain, and the outlet. */
const ALONE = { serials: ["SN-4711"], unit: 1, number: 7 };
const CHAIN = { serials: ["SN-4711", "SN-4712", "SN-4713"], unit: 2, number: 3 };
/** The second unit was removed, so the index belongs to an outlet of the third unit. */
const CHAIN_WITHOUT_SECOND = { serials: ["SN-4711", "SN-4713"], unit: 2, number: 3 };

/** A recording in the format of snmpsim (OID, tag, value), with the objects and values of the vendor's MIB. */
function recordingOf(mib: Mib, state: "on" | "off", watts: number, { serials, unit, number } = ALONE): string {
  const values = MIB_VALUES[mib];
  const { meter, setOff, setOn, chain } = values;
  const at = (oid: string): string => oidAt(oid, indexOf(mib));
  const places = [
    [chain?.outletUnit, unit],
    [chain?.meterUnit, unit],
    [chain?.outletNumber, number],
    [chain?.meterNumber, number],
  ] as const;
  const rows = [...values[state], ...values.always, ...meter.beside];
  const lines: [oid: string, tag: string | number, value: string | number][] = [
    ["1.3.6.1.2.1.1.2.0", TAG.oid, values.sysObjectId],
    ["1.3.6.1.2.1.1.3.0", TAG.ticks, 90_000_000],
    ...rows.map(([oid, value]): [string, number, number] => [at(oid), TAG.integer, value]),
    [at(meter.oid), meter.tag, watts],
    ...serials.flatMap((serial, row): [string, number, number | string][] => [
      [oidAt(values.serial, indexOf(mib), row + 1), TAG.octets, serial],
      ...(chain === undefined
        ? []
        : [[oidAt(chain.unit, "", row + 1), TAG.integer, row + 1] as [string, number, number]]),
    ]),
    ...places.flatMap(([oid, value]): [string, number, number][] =>
      oid === undefined ? [] : [[at(oid), TAG.integer, value]],
    ),
    [at(values.label), TAG.octets, "worker-3 left"],
    // Objects that accept writes.
    ...[...new Set([at(setOff[0]), at(setOn[0])])].map((oid): [string, string, string] => [
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

function indexOf(mib: Mib): string {
  return [...OUTLET_TABLES[mib].index.slice(1).map(() => (mib === "Eaton" ? 0 : 1)), 7].join(".");
}

let folder = "";
let port = 0;
let child: Child;

const open = (mib: Mib, recording: string): PowerDriver & AsyncDisposable =>
  openPeer({
    address: `snmp://127.0.0.1:${port}/${indexOf(mib)}`,
    username: "",
    password: `${mib}-${recording}`,
    snmp: { version: "v2c" },
  });

const openV3 = ({ auth, priv }: (typeof PAIRS)[number]): PowerDriver & AsyncDisposable =>
  openPeer({
    address: `snmp://127.0.0.1:${port}/7`,
    username: `${auth}-${priv}`,
    password: PASSWORD,
    snmp: { authProtocol: auth, privProtocol: priv },
  });

void describe("snmpsim", () => {
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "ironfence-snmp-"));
    const data = join(folder, "data");
    await mkdir(data);
    for (const mib of MIBS) {
      await writeFile(join(data, `${mib}-on.snmprec`), recordingOf(mib, "on", 180));
      await writeFile(join(data, `${mib}-off.snmprec`), recordingOf(mib, "off", 0));
      await writeFile(join(data, `${mib}-welded.snmprec`), recordingOf(mib, "off", 180));
    }
    await writeFile(join(data, "self.snmprec"), recordingOf("APC-rPDU2", "on", 180));
    for (const mib of ["APC-rPDU2", "APC-rPDU", "Vertiv"] as const) {
      await writeFile(join(data, `${mib}-chain.snmprec`), recordingOf(mib, "on", 180, CHAIN));
      await writeFile(join(data, `${mib}-shorter.snmprec`), recordingOf(mib, "on", 180, CHAIN_WITHOUT_SECOND));
    }
    [port = 0] = await freePorts(1);
    const programs = await installPythonTools(() => undefined, AbortSignal.timeout(INSTALL_TIMEOUT_MS));
    // As root, snmpsim runs only if a user is named.
    const asRoot = process.getuid?.() === 0 ? ["--process-user=root", "--process-group=root"] : [];
    const users = PAIRS.flatMap(({ auth, priv }) => [
      `--v3-user=${auth}-${priv}`,
      `--v3-auth-proto=${auth.replace("-", "")}`,
      `--v3-auth-key=${PASSWORD}`,
      `--v3-priv-proto=${CIPHERS[priv]}`,
      `--v3-priv-key=${PASSWORD}`,
    ]);
    const args = [
      `--cache-dir=${join(folder, "cache")}`,
      "--v3-engine-id=auto",
      `--data-dir=${data}`,
      `--agent-udpv4-endpoint=127.0.0.1:${port}`,
      ...users,
    ];
    const program = join(programs, "snmpsim-command-responder");
    child = startChild("snmpsim", program, [...asRoot, ...args], { logFile: join(folder, "snmpsim.log") });
    await eventually("snmpsim answers", READY_TIMEOUT_MS, async () => {
      if (!child.running) throw new Error(await child.ended);
      await using device = open("APC-rPDU2", "on");
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
    void test(`an outlet by the table ${mib} of an agent of snmpsim is identified, read and ordered off and on`, async () => {
      await using on = open(mib, "on");
      const identity = { pdu: "SN-4711", outlet: indexOf(mib), label: "worker-3 left", metered: true };
      assert.deepEqual(await on.identifyOutlet?.(forever()), identity);
      assert.equal((await on.readPower(forever())).state, "On");
      await on.forceOff(forever());
      await on.on(forever());
      await using off = open(mib, "off");
      assert.equal((await off.readPower(forever())).state, "Off");
      await using welded = open(mib, "welded");
      assert.equal((await welded.readPower(forever())).state, "Changing");
    });
  }

  void test("an outlet of an agent of snmpsim is used with each pair of protocols of SNMPv3", async () => {
    for (const pair of PAIRS) {
      await using device = openV3(pair);
      assert.equal((await device.identifyOutlet?.(forever()))?.pdu, "SN-4711", JSON.stringify(pair));
      assert.equal((await device.readPower(forever())).state, "On");
      await device.forceOff(forever());
    }
    await using stranger = openPeer({
      address: `snmp://127.0.0.1:${port}/7`,
      username: "SHA-256-AES",
      password: "another password",
    });
    await assert.rejects(stranger.readPower(forever()), { code: "AuthFailed" });
  });

  void test("an outlet of a chain of snmpsim is that of its unit, and is not used if the MIB has no unit", async () => {
    await using chain = open("APC-rPDU2", "chain");
    const { pdu, outlet } = (await chain.identifyOutlet?.(forever())) ?? {};
    assert.deepEqual([pdu, outlet], ["SN-4712", "3"]);
    await using shorter = open("APC-rPDU2", "shorter");
    assert.equal((await shorter.identifyOutlet?.(forever()))?.pdu, "SN-4713");
    for (const mib of ["APC-rPDU", "Vertiv"] as const) {
      await using refused = open(mib, "chain");
      await assert.rejects(refused.forceOff(forever()), /3 chained units answer/);
    }
  });
});
