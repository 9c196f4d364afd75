import assert from "node:assert/strict";
import { chmod, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { startChild } from "../../hack/lib/processes.ts";
import { createCertificateAuthority } from "../../hack/lib/pki.ts";
import { waitForPower } from "../../src/bmc/devices/wait-for-power.ts";
import type { PowerDriver } from "../../src/bmc/interface/driver.ts";
import { Secret } from "../../src/runtime/secret.ts";
import { systemClock } from "../../src/runtime/system.ts";
import { createLogger } from "../../src/telemetry/logger.ts";
import { openDeviceOn } from "../lib/open-device.ts";
import { forever, hasCode } from "./bmc-fixture.ts";
import { cli } from "./cli-fixture.ts";

// The example of a driver server, as a separate process that requires client certificates, with a fake virsh that
// stores its domain in a file.

const UUID = "3f8c1d52-6b0a-4e77-9a3e-0d5b8c1f2a44";
const SERVER = fileURLToPath(new URL("../../examples/driver-server/server.mjs", import.meta.url));
const SIGNED = fileURLToPath(new URL("../../examples/driver-server/signed.mjs", import.meta.url));
const VIRSH = `#!/bin/sh
echo "$@" >> FOLDER/calls
case "$1" in
  domuuid) echo ${UUID};;
  domstate) if [ -e FOLDER/off ]; then echo "shut off"; else echo running; fi;;
  destroy) [ "$2" = ${UUID} ] && touch FOLDER/off;;
  start) [ "$2" = ${UUID} ] && rm -f FOLDER/off;;
esac
`;

test("the example of a driver server powers a domain of libvirt for a client certificate, refuses what is not for it, and keeps every rule", async () => {
  const folder = await mkdtemp(join(tmpdir(), "ironfence-driver-"));
  const virsh = join(folder, "virsh");
  await writeFile(virsh, VIRSH.replaceAll("FOLDER", folder));
  await chmod(virsh, 0o700);
  const authority = await createCertificateAuthority(systemClock, "test CA");
  const { certPem, keyPem } = await authority.issue({
    commonName: "driver",
    ipAddresses: ["127.0.0.1"],
    usage: "server",
  });
  await writeFile(join(folder, "tls.crt"), certPem);
  await writeFile(join(folder, "tls.key"), keyPem);
  await writeFile(join(folder, "ca.crt"), authority.certPem);
  const clients = await createCertificateAuthority(systemClock, "clients");
  const client = await clients.issue({ commonName: "ironfence", usage: "client" });
  const stranger = await authority.issue({ commonName: "ironfence", usage: "client" });
  await writeFile(join(folder, "clients.crt"), clients.certPem);
  await writeFile(join(folder, "client.crt"), client.certPem);
  await writeFile(join(folder, "client.key"), client.keyPem);
  const env = {
    HOSTS: "worker-1,worker-2",
    VIRSH: virsh,
    PORT: "0",
    TLS_CERT: join(folder, "tls.crt"),
    TLS_KEY: join(folder, "tls.key"),
    CLIENT_CA: join(folder, "clients.crt"),
  };
  const logFile = join(folder, "log");
  const child = startChild("driver", process.execPath, [SERVER], { logFile, env });
  const opened: PowerDriver[] = [];
  try {
    const port = await portOf(logFile, child.ended);
    const open = (host: string, by = client): PowerDriver => {
      const driver = openDeviceOn(systemClock)(
        {
          address: `driver://127.0.0.1:${port}/hosts/${host}`,
          username: "",
          password: new Secret(""),
          certificate: { cert: by.certPem, key: new Secret(by.keyPem) },
          tls: { insecureSkipVerify: false, ca: authority.certPem },
          timeouts: { connectTimeoutMs: 20_000, callTimeoutMs: 30_000 },
        },
        { clock: systemClock, logger: createLogger("silent") },
      );
      opened.push(driver);
      return driver;
    };
    const device = open("worker-1");
    assert.equal((await device.identify(forever())).systemUUID, UUID);
    assert.ok((device.certificateUntilMs ?? 0) > Date.now());
    assert.equal((await device.readPower(forever())).state, "On");
    await device.forceOff(forever());
    const wait = { clock: systemClock, pollMs: 330, timeoutMs: 60_000, freshReads: 2 };
    assert.ok((await waitForPower(device, "Off", wait, forever())).proven);
    await device.forceOff(forever());
    await device.on(forever());
    assert.ok((await waitForPower(device, "On", wait, forever())).proven);
    const calls = (await readFile(join(folder, "calls"), "utf8")).split("\n");
    assert.deepEqual(
      calls.filter((call) => !call.startsWith("dom") && call !== ""),
      [`destroy ${UUID}`, `start ${UUID}`],
      "a host that is off is not powered off again",
    );
    await assert.rejects(open("worker-9").readPower(forever()), hasCode("SystemNotFound"));
    // Node closes the connection of a refused client.
    await assert.rejects(open("worker-1", stranger).readPower(forever()), hasCode("Unreachable"));
    const files = { "--ca-file": "ca.crt", "--client-cert-file": "client.crt", "--client-key-file": "client.key" };
    const flags = Object.entries(files).flatMap(([flag, name]) => [flag, join(folder, name)]);
    const checked = await cli(["driver", "check", `driver://127.0.0.1:${port}/hosts/worker-2`, ...flags, "--yes"]);
    assert.equal(checked.code, 0, checked.out + checked.err);
    assert.match(checked.out, /^√ other-certificate /mu);
  } finally {
    await Promise.all(opened.map((driver) => driver.close()));
    await child.stop();
    await rm(folder, { recursive: true, force: true });
  }
});

test("the example of a driver server with a key verifies and signs, refuses what was sent before, and keeps every rule", async () => {
  const folder = await mkdtemp(join(tmpdir(), "ironfence-signed-"));
  const virsh = join(folder, "virsh");
  await writeFile(virsh, VIRSH.replaceAll("FOLDER", folder));
  await chmod(virsh, 0o700);
  const key = "only-for-tests-0123456789abcdef-0123";
  await writeFile(join(folder, "key"), `${key}\n`);
  const env = { HOSTS: "worker-1", VIRSH: virsh, PORT: "0", KEY_ID: "ironfence", KEY_FILE: join(folder, "key") };
  const logFile = join(folder, "log");
  const child = startChild("signed driver", process.execPath, [SIGNED], { logFile, env });
  try {
    const port = await portOf(logFile, child.ended);
    const address = `driver+http://127.0.0.1:${port}/hosts/worker-1`;
    const login = { IRONFENCE_BMC_USERNAME: "ironfence", IRONFENCE_BMC_PASSWORD: key };
    const checked = await cli(["driver", "check", address, "--yes"], { env: login });
    assert.equal(checked.code, 0, checked.out + checked.err);
    assert.match(checked.out, /^√ replayed-nonce /mu);
    assert.match(checked.out, /^√ signed-body /mu);
  } finally {
    await child.stop();
    await rm(folder, { recursive: true, force: true });
  }
});

async function portOf(logFile: string, ended: Promise<string>): Promise<string> {
  let end: string | undefined;
  void ended.then((message) => (end = message));
  for (let tries = 0; tries < 600; tries += 1) {
    const [, port] = /listening on [\d.]+:(\d+)/.exec(await readFile(logFile, "utf8")) ?? [];
    if (port !== undefined) return port;
    if (end !== undefined) throw new Error(end);
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  throw new Error("the server does not listen");
}
