import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, Socket } from "node:net";
import type { AddressInfo, Server } from "node:net";
import { describe, it } from "node:test";
import type { TestContext } from "node:test";
import { createServer as createTlsServer, Server as TlsServer } from "node:tls";
import { createCertificateAuthority } from "../../hack/lib/pki.ts";
import { WorkAllowance } from "../../src/kube/answers/read-budget.ts";
import { countReading } from "../../src/kube/connection/transport/count-reading.ts";
import { createHttpTransport, WORKLOAD_BODY_BYTES_MAX } from "../../src/kube/connection/transport/http-transport.ts";
import { isKubeError } from "../../src/kube/errors.ts";
import type { KubeTransport } from "../../src/kube/transport.ts";
import { systemClock } from "../../src/runtime/system.ts";
import { accessTo } from "../unit/kube/api-stub.ts";

const never = new AbortController().signal;
const REQUEST = { method: "GET", path: "/api/v1/nodes", lane: "api", timeoutMs: 60_000 } as const;
const HEAD = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n";

const isOver = (error: unknown): boolean => {
  assert.ok(isKubeError(error, "OverBudget"), String(error));
  assert.match(error.message, /reading its answers took more than \d+ ms within a minute/);
  return true;
};

/** A server that sends `pieces` after the first bytes of each connection, as long as the client reads. */
function answering(pieces: () => Iterable<string>, made = createServer()): { server: Server; sentBytes: () => number } {
  let sentBytes = 0;
  const send = async (socket: Socket): Promise<void> => {
    for (const piece of pieces()) {
      if (socket.destroyed) return;
      // Waits until a piece is sent before it writes the next one, so that each is a TLS record.
      await new Promise((resolve) => socket.write(piece, resolve));
      sentBytes += piece.length;
    }
  };
  const server = made.on(made instanceof TlsServer ? "secureConnection" : "connection", (socket: Socket) => {
    socket.on("error", () => undefined);
    socket.once("data", () => void send(socket));
  });
  return { server, sentBytes: () => sentBytes };
}

async function connectTo(t: TestContext, server: Server, busyMs: number, ca?: string): Promise<KubeTransport> {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const url = `${ca === undefined ? "http" : "https"}://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const tls = { insecureSkipVerify: false, ...(ca !== undefined && { ca }) };
  const transport = createHttpTransport(
    accessTo(url, () => ({ headers: {}, tls })),
    { clock: systemClock },
    { bodyBytesMax: WORKLOAD_BODY_BYTES_MAX, allowLocal: true, work: new WorkAllowance(systemClock, { busyMs }) },
  );
  t.after(async () => {
    await transport.close();
    server.close();
  });
  return transport;
}

function* endless(first: string, then: string): Iterable<string> {
  yield first;
  for (;;) yield then;
}

describe("an answer of an untrusted API server", () => {
  it("an answer of an untrusted API server is cut off if its chunks of one byte take too long to read", async (t) => {
    const chunked = `${HEAD}transfer-encoding: chunked\r\n\r\n`;
    const { server, sentBytes } = answering(() => endless(chunked, "1\r\n \r\n".repeat(10_000)));
    const transport = await connectTo(t, server, 50);
    await assert.rejects(transport.send(REQUEST, never), isOver);
    // In 50 ms the client reads 2.5 MB, which contain 400 KB of the answer: far below the size limit of an answer.
    assert.ok(sentBytes() < 8_000_000, `${sentBytes()} bytes were taken`);
  });

  it("an answer of an untrusted API server is cut off if its TLS records of one byte take too long to read", async (t) => {
    const authority = await createCertificateAuthority(systemClock, "workload");
    const host = { commonName: "api", ipAddresses: ["127.0.0.1"], usage: "server" } as const;
    const { certPem: cert, keyPem: key } = await authority.issue(host);
    const long = `${HEAD}content-length: 1000000\r\n\r\n`;
    const { server, sentBytes } = answering(() => endless(long, " "), createTlsServer({ cert, key }));
    const transport = await connectTo(t, server, 10, authority.certPem);
    await assert.rejects(transport.send(REQUEST, never), isOver);
    assert.ok(sentBytes() < 100_000, `${sentBytes()} bytes were taken`);
  });

  it("an answer of an untrusted API server that never begins after any number of interim answers is aborted", async (t) => {
    const { server } = answering(() => endless("", "HTTP/1.1 103 Early Hints\r\n\r\n".repeat(1_000)));
    const transport = await connectTo(t, server, 50);
    await assert.rejects(transport.send(REQUEST, never), isOver);
  });

  it("an answer of an untrusted API server ends a watch whose reading takes too long", async (t) => {
    const chunked = `${HEAD}transfer-encoding: chunked\r\n\r\n`;
    const { server } = answering(() => endless(chunked, "1\r\n \r\n".repeat(10_000)));
    const transport = await connectTo(t, server, 50);
    const { body } = await transport.stream({ ...REQUEST, lane: "watch" }, never);
    await assert.rejects(async () => {
      for await (const _ of body);
    }, isOver);
  });

  it("an answer of an untrusted API server is read if it is as long as an answer may be, for a tenth of a second of the budget", async (t) => {
    const length = 4_000_000;
    const whole = `${HEAD}content-length: ${length}\r\n\r\n${" ".repeat(length)}`;
    const { server } = answering(() => [whole]);
    const transport = await connectTo(t, server, 120);
    assert.equal((await transport.send(REQUEST, never)).body.length, length);
  });

  it("an API server that cannot be reached ends the call and nothing else, although its answers are charged", async (t) => {
    const { server } = answering(() => []);
    const transport = await connectTo(t, server, 50);
    await new Promise((resolve) => server.close(resolve));
    await assert.rejects(transport.send(REQUEST, never), (error: unknown) => isKubeError(error, "Network"));
  });

  it("an answer of an untrusted API server ends with its connection if session tickets never end", () => {
    const socket = new Socket();
    socket.on("error", () => undefined);
    const work = new WorkAllowance(systemClock, { busyMs: 10 });
    const connect = countReading((_options, callback) => callback(null, socket), "answers", work);
    connect({ hostname: "h", protocol: "https:", port: "1" }, () => undefined);
    for (let ticket = 0; ticket < 100; ticket++) socket.emit("session", Buffer.alloc(0));
    assert.equal(socket.destroyed, false);
    for (let ticket = 0; ticket < 10_000; ticket++) socket.emit("session", Buffer.alloc(0));
    assert.equal(socket.destroyed, true);
  });
});
