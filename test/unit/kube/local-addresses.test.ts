import assert from "node:assert/strict";
import { createServer } from "node:http";
import { once } from "node:events";
import { describe, it } from "node:test";
import { createHttpTransport } from "../../../src/kube/connection/transport/http-transport.ts";
import { isLocalAddress } from "../../../src/kube/connection/transport/local-addresses.ts";
import { systemClock } from "../../../src/runtime/system.ts";

describe("a local address", () => {
  for (const address of [
    "127.0.0.1",
    "127.255.255.254",
    "0.0.0.0",
    "169.254.169.254",
    "::1",
    "::",
    "fe80::1",
    "fe80::1%eth0",
    "febf::1",
    "::ffff:127.0.0.1",
    "::ffff:169.254.169.254",
    "::ffff:a9fe:a9fe",
    "::127.0.0.1",
    "64:ff9b::169.254.169.254",
    "fd00:ec2::254",
  ]) {
    it(`the address ${address} is local`, () => assert.equal(isLocalAddress(address), true));
  }
  for (const address of [
    "10.0.0.7",
    "192.168.1.1",
    "172.16.0.1",
    "8.8.8.8",
    "fd00::7",
    "2001:db8::1",
    "::ffff:10.0.0.7",
  ]) {
    it(`the address ${address} is not local`, () => assert.equal(isLocalAddress(address), false));
  }
});

describe("the transport to a workload cluster", () => {
  it("the transport to a workload cluster connects neither to a local address, in whatever form, nor to a name that resolves to one", async () => {
    let connections = 0;
    const server = createServer((_request, response) => response.end("{}")).on("connection", () => (connections += 1));
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    const bound = server.address();
    const port = typeof bound === "object" ? bound?.port : 0;
    const hosts = ["127.0.0.1", "2130706433", "0x7f.1", "127.1", "0", "localhost", "[::1]", "[::ffff:127.0.0.1]"];
    const ask = async (host: string, allowLocal: boolean): Promise<string> => {
      const access = {
        server: `http://${host}:${port}`,
        namespace: undefined,
        source: "test",
        loadCredentials: () => Promise.resolve({ headers: {}, tls: { insecureSkipVerify: false } }),
      };
      const transport = createHttpTransport(access, { clock: systemClock }, { bodyBytesMax: 1_000, allowLocal });
      const request = { method: "GET", path: "/x", lane: "api", timeoutMs: 5_000 } as const;
      try {
        return (await transport.send(request, new AbortController().signal)).body;
      } catch (error) {
        return error instanceof Error ? error.message : "";
      } finally {
        await transport.close();
      }
    };
    try {
      for (const host of hosts) assert.match(await ask(host, false), /loopback or link-local/, host);
      assert.equal(connections, 0);
      assert.equal(await ask("127.0.0.1", true), "{}");
    } finally {
      server.closeAllConnections();
      server.close();
    }
  });
});
