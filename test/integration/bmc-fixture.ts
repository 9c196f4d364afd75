import http from "node:http";
import https from "node:https";
import type { AddressInfo } from "node:net";
import { openDeviceOn } from "../lib/open-device.ts";
import type { DeviceConfig } from "../../src/bmc/interface/device-config.ts";
import type { PowerDriver } from "../../src/bmc/interface/driver.ts";
import type { BmcErrorCode } from "../../src/bmc/interface/errors.ts";
import { BmcError } from "../../src/bmc/interface/errors.ts";
import type { Clock } from "../../src/runtime/clock.ts";
import { Secret } from "../../src/runtime/secret.ts";
import { systemClock } from "../../src/runtime/system.ts";
import { createLogger } from "../../src/telemetry/logger.ts";

// A small Redfish service with one System, whose answers tests can change in any way.

export const SYSTEM = "/redfish/v1/Systems/1";
export const RESET = `${SYSTEM}/Actions/ComputerSystem.Reset`;
export const SESSIONS = "/redfish/v1/SessionService/Sessions";
export const CHASSIS = "/redfish/v1/Chassis/1";
export const PASSWORD = "s3cret-pass";

export type Json = Record<string, unknown>;

export interface Request {
  method: string;
  path: string;
  headers: http.IncomingHttpHeaders;
  body: Json;
}

/** `reset` breaks the connection, `hang` never answers. A string body is sent unchanged. */
export type Reply =
  | "reset"
  | "hang"
  | { status: number; headers?: Record<string, string | string[]>; body?: Json | string | Buffer };

export interface FakeBmc {
  url: string;
  /** The System resource. An order sets PowerState at once. */
  system: Json;
  chassis: Json;
  /** Paths of the open sessions. The first session is `SESSIONS/1`, and its token is `token-1`. */
  sessions: Set<string>;
  requests: Request[];
  /** Requests as `METHOD path`, in order. */
  log(): string[];
  /** Answers instead of the service; undefined lets the service answer. */
  override: (request: Request) => Reply | undefined;
  /** Completely answered requests, as `METHOD path`. */
  answered: string[];
  /** Delays every answer, after the effect of the request. */
  hold: () => Promise<void>;
  close(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

export async function startFakeBmc(tls?: https.ServerOptions): Promise<FakeBmc> {
  const sessions = new Set<string>();
  const requests: Request[] = [];
  const listener = (request: http.IncomingMessage, response: http.ServerResponse): void => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      const text = Buffer.concat(chunks).toString();
      const seen: Request = {
        method: request.method ?? "",
        path: request.url ?? "",
        headers: request.headers,
        body: text === "" ? {} : (JSON.parse(text) as Json),
      };
      requests.push(seen);
      const reply = bmc.override(seen) ?? answer(bmc, seen);
      if (reply === "hang") return;
      if (reply === "reset") {
        request.socket.destroy();
        return;
      }
      const send = (): void => {
        if (!response.destroyed) bmc.answered.push(`${seen.method} ${seen.path}`);
        response.writeHead(reply.status, reply.headers);
        const { body } = reply;
        response.end(typeof body === "object" && !Buffer.isBuffer(body) ? JSON.stringify(body) : body);
      };
      bmc.hold().then(send, send);
    });
  };
  const server = tls === undefined ? http.createServer(listener) : https.createServer(tls, listener);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  const close = async (): Promise<void> => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  };
  const bmc: FakeBmc = {
    url: `${tls === undefined ? "http" : "https"}://127.0.0.1:${port}`,
    system: {
      "@odata.id": SYSTEM,
      "@odata.type": "#ComputerSystem.v1_20_0.ComputerSystem",
      UUID: "4C4C4544-0042-3510-8051-B4C04F4E3732",
      SerialNumber: "SN-0001",
      Manufacturer: "Example",
      Model: "R1",
      PowerState: "On",
      Links: { Chassis: [{ "@odata.id": CHASSIS }] },
      Actions: {
        "#ComputerSystem.Reset": {
          target: RESET,
          "ResetType@Redfish.AllowableValues": ["On", "ForceOff", "GracefulShutdown", "PowerCycle"],
        },
      },
      Boot: { BootSourceOverrideEnabled: "Disabled", BootSourceOverrideTarget: "None", BootSourceOverrideMode: "UEFI" },
    },
    chassis: {
      "@odata.id": CHASSIS,
      "@odata.type": "#Chassis.v1_20_0.Chassis",
      ChassisType: "RackMount",
      Links: { ComputerSystems: [{ "@odata.id": SYSTEM }] },
    },
    sessions,
    requests,
    log: () => requests.map(({ method, path }) => `${method} ${path}`),
    override: () => undefined,
    answered: [],
    hold: () => Promise.resolve(),
    close,
    [Symbol.asyncDispose]: close,
  };
  return bmc;
}

/** The number of sessions that each BMC has created. */
const GIVEN = new WeakMap<FakeBmc, number>();

function answer(bmc: FakeBmc, { method, path, headers, body }: Request): Reply {
  if (path === "/redfish/v1/") {
    return ok({ Systems: { "@odata.id": "/redfish/v1/Systems" }, Links: { Sessions: { "@odata.id": SESSIONS } } });
  }
  if (method === "POST" && path === SESSIONS) {
    if (body["UserName"] !== "fence" || body["Password"] !== PASSWORD) return { status: 401 };
    const id = (GIVEN.get(bmc) ?? 0) + 1;
    GIVEN.set(bmc, id);
    const location = `${SESSIONS}/${id}`;
    bmc.sessions.add(location);
    const headers = { "X-Auth-Token": `token-${id}`, Location: location };
    return { status: 201, headers, body: { "@odata.id": location } };
  }
  const basic = `Basic ${Buffer.from(`fence:${PASSWORD}`).toString("base64")}`;
  const id = String(headers["x-auth-token"]).replace("token-", "");
  const inSession = [...bmc.sessions].some((path) => path.replace(/\/$/, "").endsWith(`/${id}`));
  if (!inSession && headers.authorization !== basic) return { status: 401 };
  if (method === "DELETE") return { status: bmc.sessions.delete(path) ? 204 : 404 };
  if (method === "GET" && path === SYSTEM) return ok(bmc.system);
  if (method === "GET" && path === CHASSIS) return ok(bmc.chassis);
  if (method === "GET" && path === "/redfish/v1/Systems") return ok({ Members: [{ "@odata.id": SYSTEM }] });
  if (method === "POST" && path === RESET) {
    bmc.system["PowerState"] = body["ResetType"] === "ForceOff" ? "Off" : "On";
    return { status: 204 };
  }
  if (method === "PATCH" && path === SYSTEM) {
    Object.assign(bmc.system["Boot"] as Json, body["Boot"]);
    return { status: 204 };
  }
  return { status: 404 };
}

/** An answer of status 200. */
export function ok(body: Json, headers: Record<string, string> = {}): Reply {
  return { status: 200, headers: { "content-type": "application/json", ...headers }, body };
}

/** A Redfish error answer with one message. */
export function redfishError(status: number, messageId: string, message = ""): Reply {
  return {
    status,
    body: { error: { code: messageId, "@Message.ExtendedInfo": [{ MessageId: messageId, Message: message }] } },
  };
}

/**
 * Each BMC has its own clock. Drivers with the same clock share what they know about an address, and ports are reused.
 */
const CLOCKS = new WeakMap<object, Clock>();

function clockOf(bmc: object): Clock {
  const clock = CLOCKS.get(bmc) ?? { ...systemClock };
  CLOCKS.set(bmc, clock);
  return clock;
}

/** Opens the driver for a fake BMC, with short timeouts and without a log. */
export function openFake(
  bmc: Pick<FakeBmc, "url">,
  options: {
    path?: string;
    username?: string;
    password?: string;
    tls?: DeviceConfig["tls"];
    callTimeoutMs?: number;
    connectTimeoutMs?: number;
    isHost?: DeviceConfig["isHost"];
    powerChassis?: readonly string[];
    clock?: Clock;
    isOrderAllowed?: () => boolean;
  } = {},
): PowerDriver & AsyncDisposable {
  const clock = options.clock ?? clockOf(bmc);
  const device = openDeviceOn(clock)(
    {
      address: `${bmc.url}${options.path ?? ""}`,
      username: options.username ?? "fence",
      password: new Secret(options.password ?? PASSWORD),
      tls: options.tls ?? { insecureSkipVerify: false },
      ...(options.isHost && { isHost: options.isHost }),
      ...(options.powerChassis && { redfish: { powerChassis: options.powerChassis } }),
      timeouts: {
        connectTimeoutMs: options.connectTimeoutMs ?? 5_000,
        callTimeoutMs: options.callTimeoutMs ?? 10_000,
      },
    },
    {
      clock,
      logger: createLogger("silent"),
      ...(options.isOrderAllowed !== undefined && { isOrderAllowed: options.isOrderAllowed }),
    },
  );
  return Object.assign(device, { [Symbol.asyncDispose]: () => device.close() });
}

/** A predicate for `assert.rejects`: a BmcError with this code. */
export function hasCode(code: BmcErrorCode, words?: RegExp): (error: unknown) => boolean {
  return (error) => {
    if (!(error instanceof BmcError)) throw error;
    if (error.message.includes(PASSWORD)) throw new Error("the message holds the password");
    if (error.code !== code || words?.test(error.message) === false) {
      throw new Error(`expected ${code} ${words?.source ?? ""}, got ${error.code}: ${error.message}`, { cause: error });
    }
    return true;
  };
}

/** A signal that is never aborted. */
export function forever(): AbortSignal {
  return new AbortController().signal;
}
