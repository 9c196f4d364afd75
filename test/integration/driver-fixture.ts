import { createHash, createHmac } from "node:crypto";
import http from "node:http";
import type { AddressInfo, Socket } from "node:net";
import type { Bmc } from "../../hack/rack/bmc.ts";
import { openDeviceOn } from "../lib/open-device.ts";
import type { PowerDriver } from "../../src/bmc/interface/driver.ts";
import type { Clock } from "../../src/runtime/clock.ts";
import { Secret } from "../../src/runtime/secret.ts";
import { systemClock } from "../../src/runtime/system.ts";
import { createLogger } from "../../src/telemetry/logger.ts";

// A driver server for two hosts that can break each rule of the contract. It is written only from
// docs/reference/driver.md.

export const KEY_ID = "ironfence";
export const KEY = "0123456789abcdef0123456789abcdef";
export const HOST = "/hosts/one";
/**
 * After this many reads of the state in a row, "carries out refused orders late" powers the host off. The reads are
 * counted because, with a timer, the orders that follow would find the host off on a busy machine.
 */
const LATE_GETS = 6;

/** The faults of a server. */
export type Bug =
  | "answers unsigned"
  | "signs without the nonce"
  | "accepts any key"
  | "accepts a nonce twice"
  | "accepts any time"
  | "ignores the path in the signature"
  | "ignores the body in the signature"
  | "compares the first digits of a signature"
  | "accepts the beginning of a signature"
  | "powers a host that does not exist"
  | "powers a host whose name begins a path"
  | "ignores the end of a path"
  | "ignores the identity of an order"
  | "compares one value of an identity"
  | "orders without an identity"
  | "fails to power off twice"
  | "fails to power on twice"
  | "restarts a host that is on"
  | "accepts orders without a signature"
  | "verifies a signature only if there is one"
  | "carries out refused orders late"
  | "is off"
  | "shows Off, then On"
  | "never powers off"
  | "has no identity"
  | "has no known state"
  | "waits for the slowest client"
  | "serves one connection at a time"
  | "takes any operation"
  | "reads a cache";

export interface FakeHost {
  power: "On" | "Off";
  /** The power after the transition that is in progress. */
  wanted: "On" | "Off" | undefined;
  systemUUID: string | undefined;
  serialNumber: string | undefined;
}

export interface Seen {
  method: string;
  path: string;
  body: string;
  headers: http.IncomingHttpHeaders;
}

/** An answer of the server. */
export interface Sent {
  status: number;
  headers: Record<string, string>;
  body: string;
}

/** An answer that replaces the one of the server. */
export type Reply =
  | "reset"
  | "hang"
  | {
      status: number;
      headers?: Record<string, string>;
      body?: string;
      /** The answer is signed for its request. */
      signed?: true;
      /** The connection ends before the answer is complete. */
      cut?: true;
      delayMs?: number;
    };

export interface FakeDriver {
  origin: string;
  /** The address of the first host, with `driver+http://`. */
  address: string;
  host: FakeHost;
  bugs: Set<Bug>;
  /** Orders that took effect, for example `one off`. */
  orders: string[];
  requests: Seen[];
  /** The server's own answers. */
  answers: Sent[];
  /** Answers instead of the server; undefined lets the server answer. */
  override: (request: Seen) => Reply | undefined;
  /** Replaces an answer of the server after the effect of the request; undefined keeps it. */
  tamper: (request: Seen, sent: Sent) => Reply | undefined;
  /** A simulated BMC for the first host instead of the server's own host. */
  bmc: Bmc | undefined;
  /** How long a host takes to change its power. */
  transitionMs: number;
  open(options?: {
    key?: string;
    callTimeoutMs?: number;
    address?: string;
    isOrderAllowed?: () => boolean;
    clock?: Clock;
  }): PowerDriver;
  /** Ends every connection and accepts no new one. */
  stop(): void;
  [Symbol.asyncDispose](): Promise<void>;
}

export async function startFakeDriver(...bugs: readonly Bug[]): Promise<FakeDriver> {
  const hosts = new Map<string, FakeHost>(
    ["one", "two"].map((name, index) => [
      name,
      {
        power: "On",
        wanted: undefined,
        systemUUID: `3f8c1d52-6b0a-4e77-9a3e-0d5b8c1f2a4${index}`,
        serialNumber: `SN-${name}`,
      },
    ]),
  );
  const host = hosts.get("one");
  if (host === undefined) throw new Error("no host");
  if (bugs.includes("is off")) host.power = "Off";
  const nonces = new Set<string>();
  const timers = new Set<NodeJS.Timeout>();
  const sockets = new Set<Socket>();
  const opened: PowerDriver[] = [];
  let readings = 0;
  /** Connections on which a part of a request has arrived. */
  const unfinished = new Set<Socket>();
  let isOffRefused = false;
  let getsInARow = 0;
  let cached: string | undefined;
  const sha256 = (text: string): string => createHash("sha256").update(text).digest("hex");
  const sign = (...lines: string[]): string =>
    createHmac("sha256", KEY)
      .update(["ironfence-driver-1", ...lines].join("\n"))
      .digest("hex");
  const has = (bug: Bug): boolean => fake.bugs.has(bug);

  const isSigned = ({ method, path, body, headers }: Seen): boolean => {
    const header = (name: string): string => String(headers[`ironfence-${name}`] ?? "");
    const [time, nonce, signature] = [header("time"), header("nonce"), header("signature")];
    if (has("accepts any key") && signature !== "") return true;
    if (has("accepts orders without a signature") && signature === "") return true;
    if (header("key-id") !== KEY_ID || nonce === "") return false;
    if (!has("accepts any time") && Math.abs(Date.now() / 1_000 - Number(time)) > 60) return false;
    if (nonces.has(nonce) && !has("accepts a nonce twice")) return false;
    if (has("verifies a signature only if there is one") && signature === "") return true;
    const paths = has("ignores the path in the signature")
      ? ["status", "off", "on"].map((end) => path.replace(/\w+$/, end))
      : [path];
    const isRight = paths.some((path) => {
      const right = sign("request", method, path, time, nonce, sha256(body));
      if (has("compares the first digits of a signature")) return right.slice(0, 8) === signature.slice(0, 8);
      if (has("accepts the beginning of a signature")) return signature !== "" && right.startsWith(signature);
      return right === signature;
    });
    const isAnyBody = has("ignores the body in the signature") && signature !== "" && path.endsWith("/off");
    if (!isRight && !isAnyBody) return false;
    nonces.add(nonce);
    return true;
  };

  const power = (name: string, host: FakeHost, wanted: "On" | "Off"): void => {
    fake.orders.push(`${name} ${wanted.toLowerCase()}`);
    if (wanted === "Off" && has("never powers off")) return;
    const isThere = host.power === wanted && host.wanted === undefined;
    if (isThere && !(wanted === "On" && has("restarts a host that is on"))) return;
    host.wanted = wanted;
    const timer = setTimeout(() => {
      timers.delete(timer);
      host.power = wanted;
      host.wanted = undefined;
    }, fake.transitionMs);
    timers.add(timer);
  };

  const bmcOf = (found: FakeHost): Bmc | undefined => (found === host ? fake.bmc : undefined);

  const stateOf = (host: FakeHost): string => {
    const power = bmcOf(host)?.readPower();
    if (power !== undefined) return power === "On" || power === "Off" ? power : "Changing";
    if (has("has no known state")) return "poweredOff";
    if (host.wanted === "Off" && has("shows Off, then On")) return (readings += 1) % 3 === 0 ? "On" : "Off";
    if (host.wanted !== undefined) return "Changing";
    return host.power;
  };

  const answer = ({ method, path, body }: Seen): { status: number; body: unknown } => {
    const form = has("powers a host whose name begins a path")
      ? /^\/hosts\/(one|two)[^/]*\/(\w+)$/
      : has("ignores the end of a path")
        ? /^\/hosts\/([^/]+)\/(\w+)/
        : /^\/hosts\/([^/]+)\/(\w+)$/;
    const [, name = "", action = ""] = form.exec(path) ?? [];
    const found = hosts.get(name) ?? (has("powers a host that does not exist") ? host : undefined);
    if (found === undefined) return { status: 404, body: { error: `no host ${name}` } };
    if (action === "status" && method === "GET") {
      const { systemUUID, serialNumber } = bmcOf(found)?.identity() ?? found;
      const identity = has("has no identity") ? {} : { systemUUID, serialNumber };
      return { status: 200, body: { state: stateOf(found), identity } };
    }
    const isOrder = action === "off" || action === "on";
    if (!isOrder && !has("takes any operation")) return { status: 404, body: { error: "no such request" } };
    if (method !== "POST") return { status: 405, body: { error: "an order is a POST" } };
    let expected: { systemUUID?: string; serialNumber?: string } = {};
    try {
      expected = JSON.parse(body) as typeof expected;
    } catch {
      if (!has("orders without an identity")) return { status: 400, body: { error: "not JSON" } };
    }
    const isNamed = expected.systemUUID !== undefined || expected.serialNumber !== undefined;
    if (!isNamed && !has("orders without an identity")) return { status: 400, body: { error: "no identity" } };
    const { systemUUID, serialNumber } = bmcOf(found)?.identity() ?? found;
    const isOtherUuid = expected.systemUUID !== undefined && expected.systemUUID !== systemUUID;
    const isOtherSerial = expected.serialNumber !== undefined && expected.serialNumber !== serialNumber;
    const isOneOwn = expected.systemUUID === systemUUID || expected.serialNumber === serialNumber;
    const isOther = (isOtherUuid || isOtherSerial) && !(isOneOwn && has("compares one value of an identity"));
    if (isOther && !has("ignores the identity of an order")) return { status: 409, body: { error: "another host" } };
    const wanted = action === "on" ? "On" : "Off";
    const bmc = bmcOf(found);
    if (bmc !== undefined) {
      bmc.order(wanted === "On" ? "On" : "ForceOff");
      return { status: 202, body: {} };
    }
    const isThere = found.power === wanted && found.wanted === undefined;
    if (isThere && wanted === "Off" && has("fails to power off twice"))
      return { status: 409, body: { error: "is off" } };
    if (isThere && wanted === "On" && has("fails to power on twice")) return { status: 409, body: { error: "is on" } };
    power(name, found, wanted);
    return { status: 202, body: {} };
  };

  const server = http.createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      unfinished.delete(request.socket);
      if (has("waits for the slowest client") && unfinished.size > 0) return;
      const { method = "", url: path = "", headers } = request;
      const seen: Seen = { method, path, headers, body: Buffer.concat(chunks).toString() };
      fake.requests.push(seen);
      const signed = (status: number, body: string): Sent => {
        const nonce = has("signs without the nonce") ? "" : String(headers["ironfence-nonce"]);
        const signature = { "ironfence-signature": sign("answer", nonce, String(status), sha256(body)) };
        return { status, headers: has("answers unsigned") ? {} : signature, body };
      };
      const deliver = (reply: Reply): void => {
        if (reply === "hang") return;
        if (reply === "reset") {
          request.socket.destroy();
          return;
        }
        const { status, body = "", cut = false, delayMs = 0 } = reply;
        const go = (): void => {
          const signature = reply.signed === true ? signed(status, body).headers : {};
          response.writeHead(status, { ...signature, ...reply.headers });
          if (!cut) response.end(body);
          else response.write(body, () => request.socket.destroy());
        };
        if (delayMs === 0) go();
        else timers.add(setTimeout(go, delayMs));
      };
      const send = (status: number, body: string, isSigned: boolean): void => {
        const sent = isSigned ? signed(status, body) : { status, headers: {}, body };
        fake.answers.push(sent);
        deliver(fake.tamper(seen, sent) ?? sent);
      };
      getsInARow = seen.method === "GET" ? getsInARow + 1 : 0;
      if (has("carries out refused orders late") && isOffRefused && getsInARow >= LATE_GETS) host.power = "Off";
      const reply = fake.override(seen);
      if (reply !== undefined) return deliver(reply);
      if (!isSigned(seen)) {
        if (seen.path.endsWith("/off")) isOffRefused = true;
        return send(401, "", false);
      }
      const { status, body } = answer(seen);
      const text = JSON.stringify(body);
      if (has("reads a cache") && seen.method === "GET" && status === 200) {
        const isFirst = cached === undefined;
        cached ??= text;
        return send(status, isFirst ? text : cached, true);
      }
      return send(status, text, true);
    });
  });
  server.on("connection", (socket) => {
    sockets.add(socket);
    socket.on("data", () => unfinished.add(socket));
    socket.once("close", () => {
      unfinished.delete(socket);
      sockets.delete(socket);
    });
  });
  if (bugs.includes("serves one connection at a time")) server.maxConnections = 1;
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  const fake: FakeDriver = {
    origin: `http://127.0.0.1:${port}`,
    address: `driver+http://127.0.0.1:${port}${HOST}`,
    host,
    bugs: new Set(bugs),
    orders: [],
    requests: [],
    answers: [],
    override: () => undefined,
    tamper: () => undefined,
    bmc: undefined,
    stop: () => {
      server.close();
      for (const socket of sockets) socket.destroy();
    },
    transitionMs: bugs.includes("shows Off, then On") ? 3_000 : 150,
    open: ({ key = KEY, callTimeoutMs = 20_000, address = fake.address, isOrderAllowed, clock = systemClock } = {}) => {
      const device = openDeviceOn(clock)(
        {
          address,
          username: KEY_ID,
          password: new Secret(key),
          tls: { insecureSkipVerify: false },
          timeouts: { connectTimeoutMs: 10_000, callTimeoutMs },
        },
        { clock, logger: createLogger("silent"), ...(isOrderAllowed !== undefined && { isOrderAllowed }) },
      );
      opened.push(device);
      return device;
    },
    [Symbol.asyncDispose]: async () => {
      await Promise.all(opened.map((device) => device.close()));
      for (const timer of timers) clearTimeout(timer);
      for (const socket of sockets) socket.destroy();
      if (server.listening) await new Promise((resolve) => server.close(resolve));
    },
  };
  return fake;
}
