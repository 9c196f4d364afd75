import { readFileSync } from "node:fs";
import { CIPHER_SUITE_IDS } from "../../src/bmc/interface/cipher-suites.ts";
import type { CipherSuiteId } from "../../src/bmc/interface/cipher-suites.ts";
import { Secret } from "../../src/runtime/secret.ts";
import { systemClock, systemRandom } from "../../src/runtime/system.ts";
import { parseOptions } from "../lib/options.ts";
import { controlHelp } from "../rack/control.ts";
import { createRack } from "../rack/rack.ts";
import { parseScenario, SCENARIO_HELP } from "../rack/scenario.ts";
import { serveRack } from "../rack/serve.ts";
import { FAULTS_HELP } from "./faults.ts";
import type { FaultRule } from "./faults.ts";
import { startIpmiMock } from "./server.ts";
import type { IpmiMock } from "./server.ts";

const EXAMPLE: FaultRule = { steps: ["ChassisControl"], times: 1, action: { type: "loseAnswer" } };
const CONTROL_HELP = controlHelp(EXAMPLE);

const HELP = `Simulated hosts with BMCs of IPMI 2.0 (RMCP+), on 127.0.0.1.

Usage: npx node hack/ipmi-mock/main.ts [options]

  --hosts N          hosts, named host-1 to host-N (1)
  --port P           UDP port of the first BMC, the next ones follow; 0: any free ones (6230)
  --control-port P   port of the control endpoint (0: any free one)
  --username NAME    (admin)
  --password TEXT    (password; not a secret: this is a mock)
  --bmc-key TEXT     the BMC's own key, K_G (none)
  --privilege N      highest level of that user: 3 operator, 4 administrator (4)
  --suites LIST      supported cipher suites, from 1, 2, 3, 15, 16, 17 (3,17)
  --sessions N       size of the session table (4)
  --off-ms N         time that a power-off takes (2000)
  --on-ms N          time that a power-on takes (1000)
  --boot-ms N        time that a boot takes (5000)
  --scenario FILE    commands and faults to play, see below
  --help

The control endpoint shows the real state and injects faults:

${CONTROL_HELP}
${SCENARIO_HELP}
${FAULTS_HELP}`;

const values = parseOptions({
  hosts: { type: "string", default: "1" },
  port: { type: "string", default: "6230" },
  "control-port": { type: "string", default: "0" },
  username: { type: "string", default: "admin" },
  password: { type: "string", default: "password" },
  "bmc-key": { type: "string" },
  privilege: { type: "string", default: "4" },
  suites: { type: "string", default: "3,17" },
  sessions: { type: "string", default: "4" },
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
  const firstPort = readNumber("port");
  const mocks = new Map<string, IpmiMock>();
  for (const [index, host] of names.entries()) {
    const mock = await startIpmiMock({
      ...deps,
      rack,
      host,
      port: firstPort === 0 ? 0 : firstPort + index,
      username: values.username,
      password: new Secret(values.password),
      ...(values["bmc-key"] !== undefined && { bmcKey: new Secret(values["bmc-key"]) }),
      privilegeMax: readNumber("privilege"),
      suites: readSuites(),
      sessionsMax: readNumber("sessions"),
    });
    mocks.set(host, mock);
    console.log(`${host}  ${mock.address}`);
  }
  await serveRack(rack, mocks, { help: CONTROL_HELP, controlPort: readNumber("control-port"), steps });
}

function readSuites(): readonly CipherSuiteId[] {
  return values.suites.split(",").map((text) => {
    const suite = CIPHER_SUITE_IDS.find((known) => String(known) === text.trim());
    if (suite === undefined) throw new Error(`--suites: ${text} is not known`);
    return suite;
  });
}

function readNumber(
  name: "hosts" | "port" | "control-port" | "privilege" | "sessions" | "off-ms" | "on-ms" | "boot-ms",
): number {
  const number = Number(values[name]);
  if (!Number.isInteger(number) || number < 0) throw new Error(`--${name}: ${values[name]} is not a whole number`);
  if (name === "hosts" && number === 0) throw new Error("--hosts: at least one is needed");
  return number;
}
