import { createServer as createHttpServer } from "node:http";
import type { IncomingMessage, ServerResponse } from "node:http";
import { createServer as createHttpsServer, Server as HttpsServer } from "node:https";
import { createServer as createNetServer } from "node:net";
import type { AddressInfo, Socket } from "node:net";
import type { Duplex } from "node:stream";
import { sleep } from "../../src/runtime/clock.ts";
import type { Clock } from "../../src/runtime/clock.ts";
import type { Random } from "../../src/runtime/random.ts";
import { Secret } from "../../src/runtime/secret.ts";
import type { Bmc, Reachability } from "../rack/bmc.ts";
import type { Rack } from "../rack/rack.ts";
import { failure } from "./answer.ts";
import type { Answer } from "./answer.ts";
import type { BootIn, OrderStyle, ResetTypesIn } from "./endpoint.ts";
import type { MockCertificates } from "./certificates.ts";
import { FaultBook, faultRuleSchema } from "./faults.ts";
import type { FaultAction, FaultRule, TlsFault } from "./faults.ts";
import { ROOT } from "./resource.ts";
import { tableFull } from "./session-service.ts";
import { RedfishService } from "./service.ts";
import type { ServiceRequest } from "./service.ts";
import { toWire } from "./wire.ts";

export interface RedfishMockOptions {
  rack: Rack;
  clock: Clock;
  random: Random;
  /**
   * The hosts that this server serves; all of the rack by default. If there is only one, its System has the id `1`.
   * Otherwise the id is the name of the host.
   */
  hosts?: readonly string[];
  /** 0, any free port, by default. It listens on 127.0.0.1. */
  port?: number;
  /** Plain HTTP by default. */
  tls?: { certPem: string; keyPem: string };
  /** Certificates for faults that use one. Without them, these faults cannot be added. */
  spoilt?: MockCertificates["spoilt"];
  /** `admin` by default. */
  username?: string;
  /** `password` by default. */
  password?: Secret;
  /** Size of the session table: 8 by default. */
  sessionsMax?: number;
  /** How a System reports its reset types: `AllowableValues` by default. */
  resetTypesIn?: ResetTypesIn;
  /** Where the boot override is changed: in the `System` by default. */
  bootIn?: BootIn;
}

/** One request as the mock received it. */
export interface LoggedRequest {
  /** Wall-clock time of its arrival, milliseconds since the epoch. */
  readonly atMs: number;
  readonly method: string;
  readonly path: string;
  readonly body: string;
  /** Undefined until the answer is sent. */
  status: number | undefined;
}

export interface RedfishMock {
  /** For example, `https://127.0.0.1:40123`. */
  readonly url: string;
  /** The path of a host's System, for example `/redfish/v1/Systems/1`. */
  systemPath(hostName: string): string;
  /**
   * Adds a fault, and returns a function that removes it. If several faults match a request, the newest one applies.
   */
  addFault(rule: FaultRule): () => void;
  clearFaults(): void;
  /** Requests received, oldest first. Passwords in login bodies are left out. */
  readonly requests: readonly LoggedRequest[];
  /** Sessions open now. */
  readonly sessionCount: number;
  /** TCP connections accepted since the start. */
  readonly connectionCount: number;
  close(): Promise<void>;
}

const BODY_BYTES_MAX = 64 * 1024;
const NO_PROTOCOL = "\u0000\u0001 neither TLS nor HTTP \u00ff\r\n\r\n";
/** The cipher setting that TLS 1.0 and 1.1 need. */
const WEAK_CIPHERS = "DEFAULT@SECLEVEL=0";
/** The log keeps at most this many requests, and drops the oldest. */
const REQUESTS_MAX = 10_000;

/**
 * Starts one simulated BMC that serves Redfish for hosts of a rack. Faults of the protocol are injected here, and wrong
 * states in `Bmc`.
 */
export async function startRedfishMock(options: RedfishMockOptions): Promise<RedfishMock> {
  const mock = new MockServer(options);
  await mock.listen(options.port ?? 0);
  return mock;
}

class MockServer implements RedfishMock {
  readonly requests: LoggedRequest[] = [];
  connectionCount = 0;
  readonly #clock: Clock;
  readonly #systemIds: ReadonlyMap<string, string>;
  readonly #bmcs: ReadonlyMap<string, Bmc>;
  readonly #service: RedfishService;
  readonly #faults = new FaultBook();
  readonly #sockets = new Set<Socket>();
  readonly #closing = new AbortController();
  readonly #web: ReturnType<typeof createHttpServer> | HttpsServer;
  readonly #net: ReturnType<typeof createNetServer>;
  readonly #tls: RedfishMockOptions["tls"];
  readonly #spoilt: RedfishMockOptions["spoilt"];
  readonly #unsubscribe: () => void;

  constructor(options: RedfishMockOptions) {
    const { rack, clock, random, tls } = options;
    const names = options.hosts ?? rack.hosts.map(({ name }) => name);
    this.#clock = clock;
    this.#systemIds = new Map(names.map((name) => [name, names.length === 1 ? "1" : name]));
    this.#bmcs = new Map([...this.#systemIds].map(([name, id]) => [id, rack.bmc(name)]));
    this.#service = new RedfishService({
      clock,
      random,
      bmcs: this.#bmcs,
      username: options.username ?? "admin",
      password: options.password ?? new Secret("password"),
      sessionsMax: options.sessionsMax ?? 8,
      resetTypesIn: options.resetTypesIn ?? "AllowableValues",
      bootIn: options.bootIn ?? "System",
    });
    this.#unsubscribe = rack.subscribe((event) => {
      if (event.type === "bmcRestarted" && names.includes(event.host)) this.#service.sessions.clear();
    });
    const onRequest = (request: IncomingMessage, response: ServerResponse): void => {
      this.#serve(request, response).catch(() => response.destroy());
    };
    this.#tls = tls;
    this.#spoilt = options.spoilt;
    this.#web =
      tls === undefined
        ? createHttpServer(onRequest)
        : createHttpsServer({ cert: tls.certPem, key: tls.keyPem }, onRequest);
    this.#web.on("clientError", (error: NodeJS.ErrnoException, socket: Duplex) => {
      const status = error.code === "HPE_INVALID_METHOD" ? "501 Not Implemented" : "400 Bad Request";
      if (socket.writable) socket.end(`HTTP/1.1 ${status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n`);
    });
    // A plain TCP server accepts connections before HTTP and TLS, so that an unreachable BMC does not even complete a
    // TLS handshake.
    this.#net = createNetServer((socket) => this.#accept(socket));
  }

  get url(): string {
    const { port } = this.#net.address() as AddressInfo;
    return `${this.#tls === undefined ? "http" : "https"}://127.0.0.1:${port}`;
  }

  get sessionCount(): number {
    return this.#service.sessions.values().length;
  }

  systemPath(hostName: string): string {
    const id = this.#systemIds.get(hostName);
    if (id === undefined) throw new Error(`this server does not front a host named ${hostName}`);
    return `${ROOT}/Systems/${encodeURIComponent(id)}`;
  }

  addFault(rule: FaultRule): () => void {
    const { action } = faultRuleSchema.parse(rule);
    const needsTls = action.type === "badTls" && action.how !== "garbage" && action.how !== "silent";
    if (needsTls && (this.#tls === undefined || this.#spoilt === undefined)) {
      throw new Error("a mock without TLS, or without spoilt certificates, cannot show bad ones");
    }
    return this.#faults.add(rule);
  }

  clearFaults(): void {
    this.#faults.clear();
  }

  listen(port: number): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#net.once("error", reject);
      this.#net.listen(port, "127.0.0.1", () => resolve());
    });
  }

  async close(): Promise<void> {
    this.#unsubscribe();
    this.#closing.abort(new Error("the mock is closed"));
    const closed = new Promise<void>((resolve) => this.#net.close(() => resolve()));
    for (const socket of this.#sockets) socket.destroy();
    this.#web.close();
    await closed;
  }

  #accept(socket: Socket): void {
    this.connectionCount += 1;
    this.#sockets.add(socket);
    socket.on("close", () => this.#sockets.delete(socket));
    // A client that breaks its connection is not an error of the mock.
    socket.on("error", () => socket.destroy());
    const [first, ...others] = [...this.#bmcs.values()].map((bmc) => bmc.reachability);
    const reachability = first !== undefined && others.every((other) => other === first) ? first : "up";
    if (reachability === "refused") socket.resetAndDestroy();
    else if (reachability === "up") this.#shakeHands(socket, this.#faults.takeForConnection());
  }

  #shakeHands(socket: Socket, fault: TlsFault | undefined): void {
    if (fault?.how === "silent") return;
    if (fault?.how === "garbage") {
      socket.end(NO_PROTOCOL);
      return;
    }
    const web = this.#web;
    const normal = this.#tls;
    if (fault === undefined || !(web instanceof HttpsServer) || normal === undefined) {
      web.emit("connection", socket);
      return;
    }
    // The server uses the certificate that its context has when the connection arrives.
    const shown = fault.how === "oldVersion" ? normal : (this.#spoilt?.[fault.how] ?? normal);
    const old =
      fault.how === "oldVersion" && ({ maxVersion: "TLSv1.1", minVersion: "TLSv1", ciphers: WEAK_CIPHERS } as const);
    web.setSecureContext({ cert: shown.certPem, key: shown.keyPem, ...old });
    web.emit("connection", socket);
    web.setSecureContext({ cert: normal.certPem, key: normal.keyPem });
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { method = "GET", url: path = "/" } = request;
    const atMs = this.#clock.nowMs();
    const body = await readBody(request);
    const shown = isLogin({ method, path }) ? "" : (body ?? "");
    const logged: LoggedRequest = { atMs, method, path, body: shown, status: undefined };
    this.requests.push(logged);
    if (this.requests.length > REQUESTS_MAX) this.requests.shift();

    const reachability = this.#reachabilityOf(path);
    if (reachability === "refused") request.socket.resetAndDestroy();
    if (reachability !== "up") return;

    const fault = this.#faults.take(method, path);
    if (fault?.type === "delay") await sleep(this.#clock, fault.delayMs, this.#closing.signal);
    if (isSilenced(fault, "none")) return this.#cutOff(request.socket, fault);
    const answer =
      body === undefined
        ? failure(413, "MalformedJSON", "The request body is too large.")
        : this.#answer({ method, path, headers: singleHeaders(request), body }, fault);
    if (isSilenced(fault, "done")) return this.#cutOff(request.socket, fault);
    if (fault?.type === "garbage") {
      request.socket.end(NO_PROTOCOL);
      return;
    }

    logged.status = answer.status;
    const wire = toWire(answer, fault);
    response.writeHead(answer.status, wire.headers);
    if (method === "HEAD") response.end();
    else if (wire.truncated) response.write(wire.body, () => request.socket.destroy());
    else if (fault?.type === "trickle") await this.#trickle(response, wire.body, fault.everyMs);
    else response.end(wire.body);
  }

  #answer(request: ServiceRequest, fault: FaultAction | undefined): Answer {
    if (fault?.type === "status") {
      const { status, headers, body } = fault;
      const answer = failure(status, "GeneralError", `The fault of status ${status} is switched on.`, { headers });
      return body === undefined ? answer : { status, headers, body };
    }
    if (fault?.type === "sessionsFull" && isLogin(request)) return tableFull();
    return this.#service.handle(request, orderStyle(fault));
  }

  async #trickle(response: ServerResponse, body: Buffer, everyMs: number): Promise<void> {
    for (const byte of body) {
      if (response.destroyed) return;
      response.write(Buffer.of(byte));
      await sleep(this.#clock, everyMs, this.#closing.signal);
    }
    response.end();
  }

  #cutOff(socket: Socket, fault: SilencingFault): void {
    if (fault.type === "drop") socket.resetAndDestroy();
    if (fault.type === "restartBmc") for (const bmc of this.#bmcs.values()) bmc.restart(fault.downMs);
  }

  /** A server of several hosts can be reachable for one of them and not for another. */
  #reachabilityOf(path: string): Reachability {
    const id = /^\/redfish\/v1\/Systems\/([^/?]+)/.exec(path)?.[1];
    const bmc = id === undefined ? undefined : this.#bmcs.get(decodeURIComponent(id));
    const lone = this.#bmcs.size === 1 ? [...this.#bmcs.values()][0] : undefined;
    return (bmc ?? lone)?.reachability ?? "up";
  }
}

/** Faults after which there is no answer. */
type SilencingFault = Extract<FaultAction, { effect: unknown }>;

function isSilenced(fault: FaultAction | undefined, effect: "none" | "done"): fault is SilencingFault {
  return fault !== undefined && "effect" in fault && fault.effect === effect;
}

function isLogin({ method, path }: Pick<ServiceRequest, "method" | "path">): boolean {
  return method === "POST" && path.includes("/SessionService/Sessions");
}

function orderStyle(fault: FaultAction | undefined): OrderStyle {
  if (fault?.type === "task") {
    return { task: { retryAfterSeconds: fault.retryAfterSeconds, endless: fault.endless } };
  }
  return fault?.type === "refuseNoChange" ? { refuseNoChangeStatus: fault.status } : {};
}

function singleHeaders(request: IncomingMessage): Record<string, string | undefined> {
  return Object.fromEntries(
    Object.entries(request.headers).map(([name, value]) => [name, Array.isArray(value) ? value[0] : value]),
  );
}

/** @returns undefined if the body is larger than the mock accepts. */
async function readBody(request: IncomingMessage): Promise<string | undefined> {
  const chunks: Buffer[] = [];
  let sizeBytes = 0;
  for await (const chunk of request) {
    const bytes = Buffer.from(chunk as Buffer);
    sizeBytes += bytes.length;
    if (sizeBytes <= BODY_BYTES_MAX) chunks.push(bytes);
  }
  return sizeBytes > BODY_BYTES_MAX ? undefined : Buffer.concat(chunks).toString();
}
