import type { Bmc } from "../../hack/rack/bmc.ts";
import { openDeviceOn } from "../lib/open-device.ts";
import { Secret } from "../../src/runtime/secret.ts";
import { createLogger } from "../../src/telemetry/logger.ts";
import { cellClock, cellRack } from "./bmc-faults-cell.ts";
import type { CellWorld, Expected, Fault } from "./bmc-faults-cell.ts";
import { KEY, KEY_ID, startFakeDriver } from "./driver-fixture.ts";
import type { FakeDriver, Reply, Seen, Sent } from "./driver-fixture.ts";

export interface DriverCell extends CellWorld {
  bmc: Bmc;
  server: FakeDriver;
}

/** Starts a driver server for a host of the rack. The clock of the rack decides when the host is off. */
export async function startDriverCell(): Promise<DriverCell> {
  const clock = cellClock();
  const rack = cellRack();
  const server = await startFakeDriver();
  const bmc = rack.bmc("one");
  server.bmc = bmc;
  return {
    rack,
    clock,
    server,
    bmc,
    host: rack.host("one"),
    open: (timeouts) =>
      openDeviceOn(clock)(
        {
          address: server.address,
          username: KEY_ID,
          password: new Secret(KEY),
          tls: { insecureSkipVerify: false },
          timeouts,
        },
        { clock, logger: createLogger("silent") },
      ),
    sessionCount: () => 0,
    close: async () => {
      await server[Symbol.asyncDispose]();
      rack.stop();
    },
  };
}

type DriverFault = Fault<DriverCell>;

const isOrder = ({ method }: Seen): boolean => method === "POST";

/** Gives a wrong answer to every status request. Each operation begins with one. */
function onStatus(name: string, reply: Reply, expected: Expected, more: Partial<DriverFault> = {}): DriverFault {
  const outcomes = { identify: expected, readPower: expected, forceOff: expected, on: expected };
  const strike = ({ server }: DriverCell): void => {
    server.override = (request) => (isOrder(request) ? undefined : reply);
  };
  return { name: `${name}, to a status`, when: "later", outcomes, strike, ...more };
}

/** Gives a wrong answer to every order, which has no effect. */
function onOrder(name: string, reply: Reply, expected: Expected, more: Partial<DriverFault> = {}): DriverFault {
  const strike = ({ server }: DriverCell): void => {
    server.override = (request) => (isOrder(request) ? reply : undefined);
  };
  return {
    name: `${name}, to an order`,
    when: "later",
    outcomes: { forceOff: expected, on: expected },
    strike,
    ...more,
  };
}

/** Changes the correct answer to every request of one kind. Orders have already taken effect. */
function onTheWay(
  name: string,
  change: (sent: Sent, server: FakeDriver) => Reply,
  expected: Expected,
  more: Partial<DriverFault> = {},
): DriverFault[] {
  const outcomes = {
    status: { identify: expected, readPower: expected, forceOff: expected, on: expected },
    order: { forceOff: expected, on: expected },
  };
  return (["status", "order"] as const).map((kind) => ({
    name: `${name}, to ${kind === "status" ? "a status" : "an order"}`,
    when: "later",
    outcomes: outcomes[kind],
    strike: ({ server }) => {
      server.tamper = (request, sent) => (isOrder(request) === (kind === "order") ? change(sent, server) : undefined);
    },
    ...more,
  }));
}

/** Changes what the server reports about its host, in a signed answer. */
function says(
  name: string,
  content: object,
  outcomes: DriverFault["outcomes"],
  more: Partial<DriverFault> = {},
): DriverFault {
  const strike = ({ server }: DriverCell): void => {
    server.tamper = (request, { status, body }) =>
      isOrder(request)
        ? undefined
        : { status, signed: true, body: JSON.stringify({ ...(JSON.parse(body) as object), ...content }) };
  };
  return { name, when: "later", outcomes, strike, ...more };
}

const WAITS = { waits: true };
const ANOTHER = { systemUUID: "11112222-3333-4444-5555-666677778888", serialNumber: "SN-other" };
const GONE: Expected = ["Unreachable", "Timeout"];
const NOT_THE_HOST = { forceOff: "Refused", on: "Refused" } as const;

const REFUSALS: readonly [string, Reply, Expected][] = [
  ["a refused signature", { status: 401 }, "AuthFailed"],
  ["a lacking permission", { status: 403, signed: true }, "PrivilegeTooLow"],
  ["an unknown host", { status: 404, signed: true }, "SystemNotFound"],
  ["404 of a proxy", { status: 404, body: "<html>" }, "BadResponse"],
  ["a conflict", { status: 409, signed: true, body: '{"error":"another host"}' }, "Refused"],
  ["a request that is not understood", { status: 400, signed: true }, "Unsupported"],
  ["an operation that is not offered", { status: 501, signed: true }, "Unsupported"],
  ["too many requests", { status: 429, signed: true }, "Busy"],
  ["a busy server", { status: 503, signed: true }, "Busy"],
  ["a busy proxy", { status: 503 }, "Busy"],
  ["an error of the server", { status: 500, signed: true, body: '{"error":"the tool failed"}' }, "BadResponse"],
  ["an error of a proxy", { status: 502 }, "BadResponse"],
  ["a redirect", { status: 307, headers: { location: "http://127.0.0.1:9/hosts/one/off" } }, "Unsupported"],
  ["a success that is not in the contract", { status: 206, signed: true }, "BadResponse"],
  ["a success that is not signed", { status: 200, body: '{"state":"Off","identity":{}}' }, "BadResponse"],
];

export const DRIVER_FAULTS: readonly DriverFault[] = [
  ...REFUSALS.map(([name, reply, expected]) => onStatus(name, reply, expected)),
  ...REFUSALS.map(([name, reply, expected]) => onOrder(name, reply, expected)),
  onStatus("a hang", "hang", "Timeout", WAITS),
  onOrder("a hang before the effect", "hang", "Timeout", WAITS),
  onStatus("a broken connection", "reset", "Unreachable"),
  onOrder("a broken connection before the effect", "reset", "Unreachable"),
  onStatus("an answer that is not JSON", { status: 200, signed: true, body: "Off" }, "BadResponse"),
  onStatus("an answer without a state", { status: 200, signed: true, body: '{"identity":{}}' }, "BadResponse"),
  ...onTheWay("a hang after the effect", () => "hang", "Timeout", WAITS),
  ...onTheWay("a broken connection after the effect", () => "reset", "Unreachable"),
  ...onTheWay("an answer without its signature", (sent) => ({ ...sent, headers: {} }), "BadResponse"),
  ...onTheWay(
    "an answer with a changed body",
    (sent) => ({ ...sent, body: sent.body.replace("On", "Off") + " " }),
    "BadResponse",
  ),
  ...onTheWay(
    "an answer with a changed status",
    (sent) => ({ ...sent, status: sent.status === 200 ? 202 : 200 }),
    "BadResponse",
  ),
  ...onTheWay("the answer to an earlier request", (_sent, server) => server.answers[0] ?? "hang", "BadResponse"),
  ...onTheWay(
    "an answer that is cut short",
    (sent) => ({ ...sent, headers: { ...sent.headers, "content-length": "9999" }, cut: true }),
    ["Unreachable", "BadResponse"],
  ),
  ...onTheWay("a huge answer", ({ status }) => ({ status, signed: true, body: " ".repeat(70_000) }), "BadResponse"),
  ...onTheWay(
    "an answer in an unasked encoding",
    (sent) => ({ ...sent, headers: { ...sent.headers, "content-encoding": "gzip" } }),
    "BadResponse",
  ),
  ...onTheWay("an answer behind the deadline", (sent) => ({ ...sent, delayMs: 30_000 }), "Timeout", WAITS),
  ...onTheWay("a slow answer", (sent) => ({ ...sent, delayMs: 100 }), "ok"),
  says("a state that is not known", { state: "poweredOff" }, {}, { reading: "Unknown" }),
  says("a state in another case", { state: "OFF" }, {}, { reading: "Unknown" }),
  says("a host in transition", { state: "Changing" }, {}, { reading: "Changing" }),
  says("a false Off", { state: "Off" }, {}, { reading: "Off", lies: true }),
  says("no identity any more", { identity: {} }, NOT_THE_HOST, { reading: "Unknown", identified: true }),
  says("another host", { identity: ANOTHER }, NOT_THE_HOST, { reading: "Unknown", identified: true, lies: true }),
  says("another host, which is off", { state: "Off", identity: ANOTHER }, NOT_THE_HOST, {
    reading: "Unknown",
    identified: true,
    lies: true,
  }),
  {
    name: "a server that is gone",
    when: "later",
    outcomes: { identify: GONE, readPower: GONE, forceOff: GONE, on: GONE },
    strike: ({ server }) => server.stop(),
  },
];
