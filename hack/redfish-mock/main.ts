import { readFileSync, writeFileSync } from "node:fs";
import { Secret } from "../../src/runtime/secret.ts";
import { systemClock, systemRandom } from "../../src/runtime/system.ts";
import { parseOptions } from "../lib/options.ts";
import { controlHelp } from "../rack/control.ts";
import { createRack } from "../rack/rack.ts";
import { parseScenario, SCENARIO_HELP } from "../rack/scenario.ts";
import { serveRack } from "../rack/serve.ts";
import { makeCertificates } from "./certificates.ts";
import { FAULTS_HELP } from "./faults.ts";
import type { FaultRule } from "./faults.ts";
import { startRedfishMock } from "./server.ts";
import type { RedfishMock } from "./server.ts";

const EXAMPLE: FaultRule = { match: { method: "POST" }, times: 1, action: { type: "drop", effect: "done" } };
const CONTROL_HELP = controlHelp(EXAMPLE);

const HELP = `Simulated hosts behind Redfish BMCs, on 127.0.0.1.

Usage: npx node hack/redfish-mock/main.ts [options]

  --hosts N               hosts, named host-1 to host-N (1)
  --shared                one server for all hosts; otherwise each host has its own
  --port P                port of the first server, the next ones follow; 0: any free ones (8000)
  --control-port P        port of the control endpoint (0: any free one)
  --tls                   HTTPS, with a certificate of a CA made for this run
  --ca-file FILE          file to which the certificate of that CA is written
  --username NAME         (admin)
  --password TEXT         (password; not a secret: this is a mock)
  --sessions N            size of the session table (8)
  --reset-types-in WHERE  AllowableValues, ActionInfo or nowhere (AllowableValues)
  --boot-in WHERE         where the boot override is changed: System or Settings, its settings object (System)
  --off-ms N              time that a power-off takes (2000)
  --on-ms N               time that a power-on takes (1000)
  --boot-ms N             time that a boot takes (5000)
  --scenario FILE         commands and faults to play, see below
  --help

The control endpoint shows the real state and injects faults:

${CONTROL_HELP}
${SCENARIO_HELP}
${FAULTS_HELP}`;

const values = parseOptions({
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
  "boot-in": { type: "string", default: "System" },
  "off-ms": { type: "string", default: "2000" },
  "on-ms": { type: "string", default: "1000" },
  "boot-ms": { type: "string", default: "5000" },
  scenario: { type: "string" },
  help: { type: "boolean", default: false },
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
  const bootIn = (["System", "Settings"] as const).find((known) => known === values["boot-in"]);
  if (bootIn === undefined) throw new Error(`--boot-in: ${values["boot-in"]} is not known`);
  const timing = {
    powerOffDelayMs: readNumber("off-ms"),
    powerOnDelayMs: readNumber("on-ms"),
    bootMs: readNumber("boot-ms"),
  };
  const names = Array.from({ length: readNumber("hosts") }, (_, index) => `host-${index + 1}`);
  const deps = { clock: systemClock, random: systemRandom };
  const rack = createRack({ ...deps, hosts: names.map((name) => ({ name, ...timing })) });

  const { scenario } = values;
  const steps = scenario === undefined ? [] : parseScenario(readFileSync(scenario, "utf8"));
  const mocks = new Map<string, RedfishMock>();
  const firstPort = readNumber("port");
  const certificates = values.tls ? await makeCertificates(systemClock) : undefined;
  const file = values["ca-file"];
  if (certificates !== undefined && file !== undefined) writeFileSync(file, certificates.caPem);
  const groups: [string, string[]][] = values.shared ? [["all", names]] : names.map((name) => [name, [name]]);
  for (const [index, [name, hosts]] of groups.entries()) {
    const mock = await startRedfishMock({
      ...deps,
      rack,
      hosts,
      port: firstPort === 0 ? 0 : firstPort + index,
      ...(certificates !== undefined && { tls: certificates.good, spoilt: certificates.spoilt }),
      username: values.username,
      password: new Secret(values.password),
      sessionsMax: readNumber("sessions"),
      resetTypesIn,
      bootIn,
    });
    mocks.set(name, mock);
    for (const host of hosts) console.log(`${host}  ${mock.url}${mock.systemPath(host)}`);
  }
  await serveRack(rack, mocks, { help: CONTROL_HELP, controlPort: readNumber("control-port"), steps });
}

function readNumber(name: "hosts" | "port" | "control-port" | "sessions" | "off-ms" | "on-ms" | "boot-ms"): number {
  const number = Number(values[name]);
  if (!Number.isInteger(number) || number < 0) throw new Error(`--${name}: ${values[name]} is not a whole number`);
  if (name === "hosts" && number === 0) throw new Error("--hosts: at least one is needed");
  return number;
}
