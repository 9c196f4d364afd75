import { createInterface } from "node:readline";
import { parseArgs } from "node:util";
import { z } from "zod";
import type { CipherSuiteId } from "../../src/bmc/ipmi/cipher-suite.ts";
import { Secret } from "../../src/runtime/secret.ts";
import { systemClock, systemRandom } from "../../src/runtime/system.ts";
import { commandSchema, runCommand } from "../rack/commands.ts";
import { createRack } from "../rack/rack.ts";
import type { Rack } from "../rack/rack.ts";
import { faultRuleSchema, STEPS } from "./faults.ts";
import { startIpmiMock } from "./server.ts";
import type { IpmiMock } from "./server.ts";

const HELP = `Simulated hosts behind BMCs that speak IPMI 2.0 (RMCP+), on 127.0.0.1.

Usage: node hack/ipmi-mock/main.ts [options]

  --hosts N          hosts, named host-1 to host-N (1)
  --port P           UDP port of the first BMC, the next ones follow; 0: any free ones (6230)
  --username NAME    (admin)
  --password TEXT    (password; it is no secret, this is a mock)
  --privilege N      highest level of that user: 3 operator, 4 administrator (4)
  --suites LIST      cipher suites that it knows, of 2, 3, 16, 17 (3,17)
  --sessions N       size of the session table (4)
  --off-ms N         time that a power-off takes (2000)
  --on-ms N          time that a power-on takes (1000)
  --boot-ms N        time that a boot takes (5000)
  --help

Standard input takes one JSON object a line, and each is answered by one line with what is true of the host:

  {"host":"host-1"}
  {"host":"host-1","command":{"do":"hang"}}
  {"host":"host-1","fault":{"steps":["ChassisControl"],"times":1,"action":{"type":"loseAnswer"}}}
  {"host":"host-1","fault":null}                                    all faults off

Steps: ${STEPS.join(", ")}.
`;

const lineSchema = z.strictObject({
  host: z.string(),
  command: commandSchema.optional(),
  fault: faultRuleSchema.nullable().optional(),
});

const { values } = parseArgs({
  options: {
    hosts: { type: "string", default: "1" },
    port: { type: "string", default: "6230" },
    username: { type: "string", default: "admin" },
    password: { type: "string", default: "password" },
    privilege: { type: "string", default: "4" },
    suites: { type: "string", default: "3,17" },
    sessions: { type: "string", default: "4" },
    "off-ms": { type: "string", default: "2000" },
    "on-ms": { type: "string", default: "1000" },
    "boot-ms": { type: "string", default: "5000" },
    help: { type: "boolean", default: false },
  },
});

if (values.help) console.log(HELP);
else await run();

async function run(): Promise<void> {
  const timing = {
    powerOffDelayMs: readNumber("off-ms"),
    powerOnDelayMs: readNumber("on-ms"),
    bootMs: readNumber("boot-ms"),
  };
  const names = Array.from({ length: readNumber("hosts") }, (_, index) => `host-${index + 1}`);
  const deps = { clock: systemClock, random: systemRandom };
  const rack = createRack({ ...deps, hosts: names.map((name) => ({ name, ...timing })) });
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
      privilegeMax: readNumber("privilege"),
      suites: readSuites(),
      sessionsMax: readNumber("sessions"),
    });
    mocks.set(host, mock);
    console.log(`${host}  ${mock.address}`);
  }

  const lines = createInterface({ input: process.stdin });
  lines.on("line", (line) => {
    try {
      console.log(JSON.stringify(obey(rack, mocks, line)));
    } catch (error) {
      console.log(JSON.stringify({ error: error instanceof Error ? error.message : String(error) }));
    }
  });
  const stop = async (): Promise<void> => {
    lines.close();
    rack.stop();
    await Promise.all([...mocks.values()].map((mock) => mock.close()));
  };
  for (const name of ["SIGINT", "SIGTERM"] as const) process.once(name, () => void stop());
}

function obey(rack: Rack, mocks: ReadonlyMap<string, IpmiMock>, line: string): object {
  const { host, command, fault } = lineSchema.parse(JSON.parse(line));
  if (command !== undefined) runCommand(rack, host, command);
  if (fault === null) mocks.get(host)?.clearFaults();
  else if (fault !== undefined) mocks.get(host)?.addFault(fault);
  const { name, power, os, bootID, canWrite, bootSetting, orders } = rack.host(host);
  return { name, power, os, bootID, canWrite, bootSetting, orders, sessions: mocks.get(host)?.sessionCount };
}

function readSuites(): readonly CipherSuiteId[] {
  return values.suites.split(",").map((text) => {
    const suite = ([2, 3, 16, 17] as const).find((known) => String(known) === text.trim());
    if (suite === undefined) throw new Error(`--suites: ${text} is not known`);
    return suite;
  });
}

function readNumber(name: "hosts" | "port" | "privilege" | "sessions" | "off-ms" | "on-ms" | "boot-ms"): number {
  const number = Number(values[name]);
  if (!Number.isInteger(number) || number < 0) throw new Error(`--${name}: ${values[name]} is not a whole number`);
  return number;
}
