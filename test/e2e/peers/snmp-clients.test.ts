import assert from "node:assert/strict";
import { join } from "node:path";
import { before, describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { runPeer } from "../../../hack/e2e/peers.ts";
import { installPythonTools } from "../../../hack/e2e/python-tools.ts";
import { MIB_VALUES, oidAt } from "../../../hack/snmp-mock/mib-values.ts";
import { SNMP_AUTH_PROTOCOLS } from "../../../src/bmc/interface/device-config.ts";
import type { Mib } from "../../../src/bmc/interface/mibs.ts";
import { MIBS } from "../../../src/bmc/interface/mibs.ts";
import {
  COMMUNITY,
  indexOf,
  PASSWORD,
  PRIV_PASSWORD,
  SERIAL,
  startSnmpWorld,
  USER,
} from "../../integration/snmp-fixture.ts";
import type { SnmpWorld } from "../../integration/snmp-fixture.ts";

// pysnmp with our simulated PDU, for the table of each vendor and each hash of SNMPv3.

const INSTALL_TIMEOUT_MS = 5 * 60_000;
const CLIENT = fileURLToPath(new URL("snmp_client.py", import.meta.url));
const SYS_OBJECT_ID = "1.3.6.1.2.1.1.2.0";

interface Requests {
  login: Record<string, unknown>;
  requests: readonly [oid: string, value?: number][];
}

let python = "";

/** The answers of each PDU. One client queries all of them, because it takes seconds to start. */
async function ask(worlds: readonly SnmpWorld[], each: readonly Requests[]): Promise<string[][]> {
  const agents = worlds.map(({ mock }, at) => ({ port: Number(new URL(mock.address).port), ...each[at] }));
  return JSON.parse(await runPeer(python, [CLIENT, JSON.stringify(agents)])) as string[][];
}

async function startAll(options: readonly Parameters<typeof startSnmpWorld>[0][]): Promise<{
  worlds: readonly SnmpWorld[];
  [Symbol.asyncDispose](): Promise<void>;
}> {
  const worlds = await Promise.all(options.map((each) => startSnmpWorld(each)));
  return {
    worlds,
    [Symbol.asyncDispose]: async () => {
      await Promise.all(worlds.map((world) => world[Symbol.asyncDispose]()));
    },
  };
}

/** Reads an outlet, switches it off, and on again. */
function cycleOf(mib: Mib): Requests {
  const { on, meter, setOff, setOn, serial, label } = MIB_VALUES[mib];
  const at = (oid: string): string => oidAt(oid, indexOf(mib, 1));
  const state = on.map(([oid]): [string] => [at(oid)]);
  const [off, back] = [setOff, setOn].map(([oid, value]): [string, number] => [at(oid), value]);
  assert.ok(off !== undefined && back !== undefined);
  const identity: [string][] = [[SYS_OBJECT_ID], [at(serial)], [at(label)]];
  return {
    login: { community: COMMUNITY },
    requests: [...identity, ...state, off, ...state, [at(meter.oid)], back, ...state],
  };
}

function answersOf(mib: Mib): string[] {
  const { sysObjectId, on, off, setOff, setOn } = MIB_VALUES[mib];
  const [ofOn, ofOff] = [on, off].map((rows) => rows.map(([, value]) => String(value)));
  assert.ok(ofOn !== undefined && ofOff !== undefined);
  return [sysObjectId, SERIAL, "one 1", ...ofOn, String(setOff[1]), ...ofOff, "0", String(setOn[1]), ...ofOn];
}

void describe("pysnmp on our simulated PDU", () => {
  before(async () => {
    const programs = await installPythonTools(() => undefined, AbortSignal.timeout(INSTALL_TIMEOUT_MS));
    python = join(programs, "python");
  });

  void test("pysnmp on our simulated PDU reads and switches an outlet by the table of each vendor", async () => {
    await using pdus = await startAll(MIBS.map((mib) => ({ mib })));
    const found = await ask(pdus.worlds, MIBS.map(cycleOf));
    for (const [at, mib] of MIBS.entries()) assert.deepEqual(found[at], answersOf(mib), mib);
  });

  void test("pysnmp on our simulated PDU speaks SNMPv3 with each hash, with encryption and without", async () => {
    const options = SNMP_AUTH_PROTOCOLS.map((auth) => ({ user: { authProtocol: auth, allowsNoPriv: true } }));
    await using pdus = await startAll(options);
    const requests: Requests["requests"] = [[SYS_OBJECT_ID]];
    for (const priv of [true, false]) {
      const login = { user: USER, password: PASSWORD, privPassword: PRIV_PASSWORD, priv };
      const found = await ask(
        pdus.worlds,
        SNMP_AUTH_PROTOCOLS.map((auth) => ({ login: { ...login, auth }, requests })),
      );
      assert.deepEqual(
        found,
        SNMP_AUTH_PROTOCOLS.map(() => [MIB_VALUES["APC-rPDU2"].sysObjectId]),
      );
    }
  });

  void test("pysnmp on our simulated PDU gets no answer with another community or password", async () => {
    await using pdus = await startAll([{}, { user: { authProtocol: "SHA-256" } }]);
    const v3 = { user: USER, auth: "SHA-256", priv: true, password: "another password", privPassword: PRIV_PASSWORD };
    const requests: Requests["requests"] = [[SYS_OBJECT_ID]];
    const found = await ask(pdus.worlds, [
      { login: { community: "another" }, requests },
      { login: v3, requests },
    ]);
    assert.match(found.flat().join(), /^No SNMP response.*,.*(?:digest|authentication)/i);
  });
});
