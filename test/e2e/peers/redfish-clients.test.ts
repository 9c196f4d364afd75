import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { eventually } from "../../../hack/e2e/eventually.ts";
import { runPeer, startRedfishWorld } from "../../../hack/e2e/peers.ts";
import type { RedfishWorld } from "../../../hack/e2e/peers.ts";
import { installPythonTools } from "../../../hack/e2e/python-tools.ts";
import { createCertificateAuthority } from "../../../hack/lib/pki.ts";
import { systemClock } from "../../../src/runtime/system.ts";

const INSTALL_TIMEOUT_MS = 5 * 60_000;
const POWER_TIMEOUT_MS = 30_000;

void describe("clients of other makes on our simulated BMC, over TLS", () => {
  let world: RedfishWorld;
  let programs = "";

  before(async () => {
    programs = await installPythonTools(() => undefined, AbortSignal.timeout(INSTALL_TIMEOUT_MS));
    world = await startRedfishWorld();
  });
  after(() => world?.[Symbol.asyncDispose]());

  void test("fence_redfish reads the status, and powers off and on, with the certificate verified", async () => {
    const login = [
      "--ip=127.0.0.1",
      `--ipport=${world.port}`,
      `--username=${world.username}`,
      `--password=${world.password}`,
    ];
    const system = ["--systems-uri=/redfish/v1/Systems/host-1", "--ssl-secure"];
    const fence = (action: string, env = world.env): Promise<string> =>
      runPeer("fence_redfish", [...login, ...system, `--action=${action}`], env);
    assert.match(await fence("status"), /Status: ON/);
    assert.match(await fence("off"), /Success: Powered OFF/);
    assert.equal(world.host("host-1").power, "Off");
    assert.match(await fence("on"), /Success: Powered ON/);
    assert.deepEqual(world.orders("host-1"), ["ForceOff", "On"]);
    const stranger = join(world.folder, "stranger.pem");
    await writeFile(stranger, (await createCertificateAuthority(systemClock, "stranger")).certPem);
    await assert.rejects(
      fence("off", { REQUESTS_CA_BUNDLE: stranger }),
      "it does not talk to a BMC with an unknown certificate",
    );
    assert.equal(world.host("host-1").power, "On");
  });

  for (const login of ["session", "basic"]) {
    void test(`sushy powers off, sets a boot override and powers on with ${login} authentication`, async () => {
      const script = fileURLToPath(new URL("sushy_client.py", import.meta.url));
      const args = [script, world.url, world.caFile, login, world.username, world.password, "host-2"];
      const before = world.orders("host-2").length;
      const printed = JSON.parse(await runPeer(join(programs, "python"), args)) as Record<string, unknown>;
      assert.deepEqual(printed, {
        uuid: world.host("host-2").spec.systemUUID,
        before: "On",
        off: "Off",
        bootTarget: "Pxe",
        bootEnabled: "Once",
        after: "On",
        resetTypes: ["ForceOff", "ForceRestart", "GracefulShutdown", "Nmi", "On", "PowerCycle"],
      });
      assert.deepEqual(world.orders("host-2").slice(before), ["ForceOff", "On"]);
      assert.equal(world.sessionCount, 0, "the session was ended");
    });
  }

  for (const login of ["Basic", "Session"]) {
    void test(`DMTF's redfishtool reads the status, powers off and powers on with ${login} authentication`, async () => {
      const { username, password, port } = world;
      const flags = ["-r", `127.0.0.1:${port}`, "-S", "Always", "-A", login, "-u", username, "-p", password];
      const tool = (...args: string[]): Promise<string> =>
        runPeer(join(programs, "python"), [
          join(programs, "redfishtool"),
          ...flags,
          "Systems",
          "-I",
          "host-1",
          ...args,
        ]);
      const before = world.orders("host-1").length;
      assert.match(await tool(), /"PowerState": "On"/);
      await tool("reset", "ForceOff");
      await eventually("it is off", POWER_TIMEOUT_MS, async () => (await tool()).includes('"PowerState": "Off"'));
      await tool("reset", "On");
      await eventually("it is on", POWER_TIMEOUT_MS, async () => (await tool()).includes('"PowerState": "On"'));
      assert.deepEqual(world.orders("host-1").slice(before), ["ForceOff", "On"]);
      assert.equal(world.sessionCount, 0, "every session was ended");
    });
  }

  void test("DMTF's redfish_utilities read the inventory, switch power and set a boot override", async () => {
    const login = ["-u", world.username, "-p", world.password, "-r", world.url];
    const tool = (name: string, ...args: string[]): Promise<string> =>
      runPeer(join(programs, "python"), [join(programs, name), ...login, ...args], world.env);
    const power = (...args: string[]): Promise<string> => tool("rf_power_reset.py", "-s", "host-3", ...args);
    const boot = (...args: string[]): Promise<string> => tool("rf_boot_override.py", "-s", "host-3", ...args);

    assert.match(await tool("rf_sys_inventory.py"), /Chassis: host-3/);
    assert.match(await power("--info"), /power state: On/);
    await power("--type", "ForceOff");
    await eventually("it is off", POWER_TIMEOUT_MS, async () => (await power("--info")).includes("power state: Off"));
    await boot("--target", "Pxe");
    assert.deepEqual(world.host("host-3").bootSetting, { enabled: "Once", target: "Pxe", mode: "UEFI" });
    await boot("--target", "None");
    assert.equal(world.host("host-3").bootSetting.enabled, "Disabled");
    await power("--type", "On");
    assert.deepEqual(world.orders("host-3"), ["ForceOff", "On"]);
    assert.equal(world.sessionCount, 0, "every session was ended");
  });
});
