import assert from "node:assert/strict";
import { once } from "node:events";
import { connect } from "node:net";
import { after, before, describe, it } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { request } from "undici";
import { servePages } from "../../../src/telemetry/http-server.ts";

describe("the page server", () => {
  let server: Awaited<ReturnType<typeof servePages>>;
  const page = () => Promise.resolve({ status: 200, contentType: "text/plain", body: "ok\n" });
  before(async () => {
    server = await servePages({ host: "127.0.0.1", port: 0 }, { "/healthz": page });
  });
  after(() => server.close());
  const get = (path: string, method: "GET" | "POST" = "GET") =>
    request(`http://127.0.0.1:${server.port}${path}`, { method });

  it("the page server serves each of its pages, with or without a query", async () => {
    for (const path of ["/healthz", "/healthz?verbose"]) {
      const response = await get(path);
      assert.equal(response.statusCode, 200);
      assert.equal(await response.body.text(), "ok\n");
    }
  });

  it("the page server answers 404 for others, also for names that every object has, and says what there is", async () => {
    for (const path of ["/nothing", "/toString", "/__proto__"]) {
      const response = await get(path);
      assert.equal(response.statusCode, 404);
      assert.match(await response.body.text(), /\/healthz/);
    }
  });

  it("the page server takes no writes", async () => {
    const response = await get("/healthz", "POST");
    await response.body.dump();
    assert.equal(response.statusCode, 405);
  });

  for (const [what, sent] of [
    ["which send nothing", ""],
    ["whose headers never end", "GET /healthz HTTP/1.1\r\nhost: x\r\n"],
    ["which are kept alive and busy", "GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n"],
    ["which send a hundred requests at once", "GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n".repeat(100)],
  ] as const) {
    it(`the page server answers a probe although one address has opened more connections than it accepts, ${what}`, async () => {
      const { port } = server;
      const sockets = Array.from({ length: 200 }, () =>
        connect({ port, host: "127.0.0.1", localAddress: "127.0.0.2" }),
      );
      try {
        for (const socket of sockets) socket.on("error", () => undefined).on("data", () => undefined);
        await Promise.all(sockets.map((socket) => once(socket, "connect").catch(() => undefined)));
        for (const socket of sockets) socket.write(sent);
        for (let probe = 0; probe < 5; probe++) {
          const { statusCode, body } = await get("/healthz");
          await body.dump();
          assert.equal(statusCode, 200);
        }
        const left = (): number => sockets.filter(({ closed }) => !closed).length;
        for (let waits = 0; left() > 64 && waits < 100; waits++) await delay(50);
        assert.ok(left() <= 64, `${left()} connections are left`);
      } finally {
        for (const socket of sockets) socket.destroy();
      }
    });
  }

  it("the page server ends a connection whose request is not there after 5 s", async () => {
    const socket = connect(server.port, "127.0.0.1");
    let text = "";
    // If a header arrives while the server closes, it is answered with a reset. The connection has ended in both cases.
    socket.on("data", (chunk) => (text += String(chunk))).on("error", () => undefined);
    await once(socket, "connect");
    socket.write("GET /healthz HTTP/1.1\r\nhost: x\r\n");
    const startedMs = performance.now();
    const drip = setInterval(() => socket.write("x: y\r\n"), 500);
    const closed = new Promise((resolve) => socket.once("close", resolve));
    try {
      await closed;
    } finally {
      clearInterval(drip);
    }
    assert.ok(performance.now() - startedMs >= 4_500);
    assert.match(text, /^HTTP\/1\.1 408 /);
  });

  it("the page server names the address that it cannot bind", async () => {
    await assert.rejects(servePages({ host: "127.0.0.1", port: server.port }, {}), /cannot listen on 127\.0\.0\.1:\d+/);
  });
});
