import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:net";
import { it } from "node:test";
import { freePorts } from "../../../hack/lib/ports.ts";

it("free ports differ, can be listened on, and are outside the range that Linux gives to connections", async () => {
  const ports = await freePorts(8);
  assert.equal(new Set(ports).size, 8);
  for (const port of ports) {
    assert.ok(port >= 10_000 && port < 32_768, String(port));
    const server = createServer().listen(port, "127.0.0.1");
    await once(server, "listening");
    server.close();
  }
});
