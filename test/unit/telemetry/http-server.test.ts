import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
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

  it("serves the pages that there are, with or without a query", async () => {
    for (const path of ["/healthz", "/healthz?verbose"]) {
      const response = await get(path);
      assert.equal(response.statusCode, 200);
      assert.equal(await response.body.text(), "ok\n");
    }
  });

  it("answers 404 for others, also for names that every object has, and says what there is", async () => {
    for (const path of ["/nothing", "/toString", "/__proto__"]) {
      const response = await get(path);
      assert.equal(response.statusCode, 404);
      assert.match(await response.body.text(), /\/healthz/);
    }
  });

  it("takes no writes", async () => {
    const response = await get("/healthz", "POST");
    await response.body.dump();
    assert.equal(response.statusCode, 405);
  });

  it("names the address that it cannot bind", async () => {
    await assert.rejects(servePages({ host: "127.0.0.1", port: server.port }, {}), /cannot listen on 127\.0\.0\.1:\d+/);
  });
});
