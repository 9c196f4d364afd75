import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { runPeer } from "../../../hack/e2e/peers.ts";
import { PASSWORD } from "../../integration/bmc-fixture.ts";
import { CIPHER_SUITE_IDS } from "../../../src/bmc/interface/cipher-suites.ts";
import { Secret } from "../../../src/runtime/secret.ts";
import { startIpmiWorld, USERNAME } from "../../integration/ipmi-fixture.ts";

const GUID = "3f8c1d52-6b0a-4e77-9a3e-0d5b8c1f2a44";

for (const suite of CIPHER_SUITE_IDS) {
  void describe(`clients of other makes on our simulated BMC that knows cipher suite ${suite} alone`, () => {
    void test("ipmitool and ipmipower read the status and power a host off", async () => {
      await using world = await startIpmiWorld({ host: { powerOffDelayMs: 0 }, mock: { suites: [suite] } });
      const { host, mock } = world;
      const to = ["-H", "127.0.0.1", "-p", String(mock.port), "-U", USERNAME, "-P", PASSWORD];
      const ipmitool = (...command: string[]): Promise<string> =>
        runPeer("ipmitool", ["-I", "lanplus", "-C", String(suite), ...to, ...command]);
      assert.match(await ipmitool("power", "status"), /Power is on/);
      await ipmitool("power", "off");
      const login = ["-h", `127.0.0.1:${mock.port}`, "-u", USERNAME, "-p", PASSWORD];
      assert.match(await runPeer("ipmipower", ["-D", "LAN_2_0", "-I", String(suite), ...login, "--stat"]), /: off/);
      assert.equal(host.orders.length, 1);
      assert.equal(mock.sessionCount, 0);
    });
  });
}

void test("ipmitool can use our simulated BMC with a key of its own (K_G)", async () => {
  await using world = await startIpmiWorld({ mock: { bmcKey: new Secret("own-key") } });
  const to = ["-H", "127.0.0.1", "-p", String(world.mock.port), "-U", USERNAME, "-P", PASSWORD, "-k", "own-key"];
  assert.match(await runPeer("ipmitool", ["-I", "lanplus", "-C", "17", ...to, "power", "status"]), /Power is on/);
});

for (const suite of ["3", "17"]) {
  void describe(`clients of other makes on our simulated BMC, cipher suite ${suite}`, () => {
    void test("ipmitool reads status, GUID and FRU, powers a host off and on, and sets its boot device", async () => {
      await using world = await startIpmiWorld({
        host: { systemUUID: GUID, serialNumber: "SN-7", powerOffDelayMs: 0 },
      });
      const { host, mock } = world;
      const to = ["-H", "127.0.0.1", "-p", String(mock.port), "-U", USERNAME, "-P", PASSWORD];
      const ipmitool = (...command: string[]): Promise<string> =>
        runPeer("ipmitool", ["-I", "lanplus", "-C", suite, ...to, ...command]);
      assert.match(await ipmitool("power", "status"), /Power is on/);
      await ipmitool("power", "off");
      assert.match(await ipmitool("power", "status"), /Power is off/);
      assert.match(await ipmitool("mc", "guid"), new RegExp(GUID));
      assert.match(await ipmitool("fru", "print", "0"), /Product Serial\s*: SN-7/);
      await ipmitool("chassis", "bootdev", "pxe", "options=efiboot");
      assert.deepEqual(host.bootSetting, { enabled: "Once", target: "Pxe", mode: "UEFI" });
      assert.match(await ipmitool("chassis", "bootparam", "get", "5"), /Force PXE/);
      await ipmitool("power", "on");
      assert.deepEqual(
        host.orders.map(({ type }) => type),
        ["ForceOff", "On"],
      );
      assert.equal(mock.sessionCount, 0);
    });

    void test("ipmipower reads the status, and powers a host off and on", async () => {
      await using world = await startIpmiWorld({ host: { powerOffDelayMs: 0 } });
      const { host, mock } = world;
      const login = ["-D", "LAN_2_0", "-I", suite, "-h", `127.0.0.1:${mock.port}`, "-u", USERNAME, "-p", PASSWORD];
      const ipmipower = (command: string): Promise<string> => runPeer("ipmipower", [...login, command]);
      assert.match(await ipmipower("--stat"), /: on/);
      assert.match(await ipmipower("--off"), /: ok/);
      assert.match(await ipmipower("--stat"), /: off/);
      assert.match(await ipmipower("--on"), /: ok/);
      assert.deepEqual(
        host.orders.map(({ type }) => type),
        ["ForceOff", "On"],
      );
    });

    void test("fence_ipmilan reads the status, and powers a host off and on", async () => {
      await using world = await startIpmiWorld({ host: { powerOffDelayMs: 300, powerOnDelayMs: 300 } });
      const { host, mock } = world;
      const to = ["--ip=127.0.0.1", `--ipport=${mock.port}`, `--username=${USERNAME}`, `--password=${PASSWORD}`];
      const fence = (action: string): Promise<string> =>
        runPeer("fence_ipmilan", [...to, "--lanplus", `--cipher=${suite}`, `--action=${action}`]);
      assert.match(await fence("status"), /Status: ON/);
      assert.match(await fence("off"), /Success: Powered OFF/);
      assert.equal(host.power, "Off");
      assert.match(await fence("on"), /Success: Powered ON/);
      assert.deepEqual(
        host.orders.map(({ type }) => type),
        ["ForceOff", "On"],
      );
      assert.equal(mock.sessionCount, 0);
    });
  });
}
