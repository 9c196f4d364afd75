import { writeFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { Secret } from "../../src/runtime/secret.ts";
import { systemClock, systemRandom } from "../../src/runtime/system.ts";
import { createCertificateAuthority } from "../lib/pki.ts";
import { createRack } from "../rack/rack.ts";
import { CONTROL_HELP, startControlEndpoint } from "./control.ts";
import { startRedfishMock } from "./server.ts";
import type { RedfishMock } from "./server.ts";

const HELP = `Simulated hosts behind Redfish BMCs, on 127.0.0.1.

Usage: node hack/redfish-mock/main.ts [options]

  --hosts N               hosts, named host-1 to host-N (1)
  --shared                one server fronts all hosts; otherwise each host has its own
  --port P                port of the first server, the next ones follow; 0: any free ones (8000)
  --control-port P        port of the control endpoint (0: any free one)
  --tls                   HTTPS, with a certificate of a CA made for this run
  --ca-file FILE          where to write that CA's certificate
  --username NAME         (admin)
  --password TEXT         (password; it is no secret, this is a mock)
  --sessions N            size of the session table (8)
  --reset-types-in WHERE  AllowableValues, ActionInfo or nowhere (AllowableValues)
  --off-ms N              time that a power-off takes (2000)
  --on-ms N               time that a power-on takes (1000)
  --boot-ms N             time that a boot takes (5000)
  --help

The control endpoint shows what is true, and switches faults:

${CONTROL_HELP}`;

const { values } = parseArgs({
  options: {
    hosts: { type: "string", default: "1" },
    shared: { type: "boolean", default: false },
    port: { type: "string", default: "8000" },
    "control-port": { type: "string", default: "0" },
    tls: { type: "boolean", default: false },
    "ca-file": { type: "string" },
    username: { type: "string", default: "admin" },
    password: { type: "string", default: "password" },
    sessions: { type: "string", default: "8" },
    "reset-types-in": { type: "string", default: "AllowableValues" },
    "off-ms": { type: "string", default: "2000" },
    "on-ms": { type: "string", default: "1000" },
    "boot-ms": { type: "string", default: "5000" },
    help: { type: "boolean", default: false },
  },
});

if (values.help) console.log(HELP);
else {
  await run().catch((error: unknown) => {
    console.error(error instanceof Error ? error.message : error);
    process.exitCode = 1;
  });
}

async function run(): Promise<void> {
  const resetTypesIn = (["AllowableValues", "ActionInfo", "nowhere"] as const).find(
    (known) => known === values["reset-types-in"],
  );
  if (resetTypesIn === undefined) throw new Error(`--reset-types-in: ${values["reset-types-in"]} is not known`);
  const timing = {
    powerOffDelayMs: readNumber("off-ms"),
    powerOnDelayMs: readNumber("on-ms"),
    bootMs: readNumber("boot-ms"),
  };
  const names = Array.from({ length: readNumber("hosts") }, (_, index) => `host-${index + 1}`);
  const deps = { clock: systemClock, random: systemRandom };
  const rack = createRack({ ...deps, hosts: names.map((name) => ({ name, ...timing })) });

  const mocks = new Map<string, RedfishMock>();
  const firstPort = readNumber("port");
  const tls = values.tls ? await makeCertificate() : undefined;
  const groups: [string, string[]][] = values.shared ? [["all", names]] : names.map((name) => [name, [name]]);
  for (const [index, [name, hosts]] of groups.entries()) {
    const mock = await startRedfishMock({
      ...deps,
      rack,
      hosts,
      port: firstPort === 0 ? 0 : firstPort + index,
      ...(tls !== undefined && { tls }),
      username: values.username,
      password: new Secret(values.password),
      sessionsMax: readNumber("sessions"),
      resetTypesIn,
    });
    mocks.set(name, mock);
    for (const host of hosts) console.log(`${host}  ${mock.url}${mock.systemPath(host)}`);
  }
  const control = await startControlEndpoint({ rack, mocks, port: readNumber("control-port") });
  console.log(`control  ${control.url}`);

  const stop = async (): Promise<void> => {
    rack.stop();
    await Promise.all([control.close(), ...[...mocks.values()].map((mock) => mock.close())]);
  };
  for (const name of ["SIGINT", "SIGTERM"] as const) process.once(name, () => void stop());
}

async function makeCertificate(): Promise<{ certPem: string; keyPem: string }> {
  const ca = await createCertificateAuthority(systemClock, "redfish-mock CA");
  const file = values["ca-file"];
  if (file !== undefined) writeFileSync(file, ca.certPem);
  return await ca.issue({
    commonName: "redfish-mock",
    dnsNames: ["localhost"],
    ipAddresses: ["127.0.0.1"],
    usage: "server",
  });
}

function readNumber(name: "hosts" | "port" | "control-port" | "sessions" | "off-ms" | "on-ms" | "boot-ms"): number {
  const number = Number(values[name]);
  if (!Number.isInteger(number) || number < 0) throw new Error(`--${name}: ${values[name]} is not a whole number`);
  return number;
}
