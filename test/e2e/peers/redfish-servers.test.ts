import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { after, before, describe, test } from "node:test";
import { assertReadFails, fenceDevice, openPeer, overrideBoot } from "../../../hack/e2e/peers.ts";
import { BMC_PASSWORD, BMC_USERNAME, startSushyEmulator } from "../../../hack/e2e/sushy-emulator.ts";
import type { SushyEmulator } from "../../../hack/e2e/sushy-emulator.ts";

const START_TIMEOUT_MS = 120_000;

// These tests cover only the driver. Whole remediations with this emulator are in `remediation.test.ts` and the files
// next to it.
void describe("our Redfish driver on sushy-emulator, over TLS with basic authentication", () => {
  const [first, second] = [
    { uuid: randomUUID(), name: "one" },
    { uuid: randomUUID(), name: "two" },
  ];
  let emulator: SushyEmulator;

  before(async () => {
    const options = { systems: [first, second], powerDelayMs: 500, progress: () => undefined };
    emulator = await startSushyEmulator(options, AbortSignal.timeout(START_TIMEOUT_MS));
  });
  after(() => emulator?.stop());

  const open = (overrides: { path?: string; password?: string; caPem?: string } = {}) =>
    openPeer({
      address: `${emulator.url}${overrides.path ?? `/redfish/v1/Systems/${first.uuid}`}`,
      username: BMC_USERNAME,
      password: overrides.password ?? BMC_PASSWORD,
      caPem: overrides.caPem ?? emulator.caPem,
    });

  void test("the driver identifies a host, powers it off and on and sets its boot override, and leaves the other System alone", async () => {
    await using device = open();
    await fenceDevice(device, first.uuid);
    await overrideBoot(device);
    assert.equal(await emulator.powerState(first.uuid), "On");
    const orders = (await emulator.records(first.uuid)).filter(({ kind }) => kind === "order");
    assert.deepEqual([...new Set(orders.map(({ value }) => value))], ["ForceOff", "On"]);
    assert.deepEqual(await emulator.records(second.uuid), []);
  });

  void test("the driver reports SystemAmbiguous for a service with two Systems and an address that names neither", () =>
    assertReadFails(open({ path: "" }), "SystemAmbiguous"));

  void test("a certificate that no known CA has signed is TlsUntrusted", async () => {
    const device = openPeer({ address: emulator.url, username: BMC_USERNAME, password: BMC_PASSWORD });
    await assertReadFails(device, "TlsUntrusted");
  });

  void test("a wrong password is AuthFailed on the sushy emulator", () =>
    assertReadFails(open({ password: "wrong" }), "AuthFailed"));
});
