import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { repositoryPath } from "../../../hack/e2e/world.ts";
import { run } from "../../../hack/lib/run.ts";

// Builds the image in a network in which everything goes through a proxy.

const BUILD_TIMEOUT_MS = 120_000;

/**
 * For the architecture of this machine, apt downloads the libraries first. For the other one, npm downloads Node before
 * that.
 */
for (const [architecture, program] of [
  ["amd64", "apt-get"],
  ["arm64", "npm pack"],
] as const) {
  void test(`${program} fetches its parts of the image through the proxy of the environment, and reports why the proxy fails`, async () => {
    const folder = await mkdtemp(join(tmpdir(), "ironfence-image-proxy-"));
    const asked: string[] = [];
    const proxy = createServer(({ method, url }, response) => {
      asked.push(`${method} ${url}`);
      response.writeHead(403).end();
    });
    proxy.on("connect", ({ url }, socket) => {
      asked.push(`CONNECT ${url}`);
      socket.end("HTTP/1.1 403 Forbidden\r\n\r\n");
    });
    await once(proxy.listen(0, "127.0.0.1"), "listening");
    const address = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`;
    const proxies = { http_proxy: address, https_proxy: address, no_proxy: "", NO_PROXY: "" };
    // The caches are empty. Without this setting, npm would retry for minutes.
    const caches = { XDG_CACHE_HOME: folder, npm_config_cache: folder, npm_config_fetch_retries: "0" };
    const image = repositoryPath("hack/image/main.ts");
    const args = [image, "--arch", architecture, "--output", join(folder, "image.tar")];
    const options = {
      env: { ...proxies, ...caches },
      timeoutMs: BUILD_TIMEOUT_MS,
      signal: new AbortController().signal,
    };
    const fails = (because: RegExp): Promise<void> =>
      assert.rejects(run(process.execPath, args, options), ({ message }: Error) => {
        assert.ok(message.includes(program), message);
        assert.match(message, because);
        // --pin is the advice for a version that Debian has replaced.
        assert.doesNotMatch(message, /--pin/);
        return true;
      });
    try {
      await fails(/403/);
      assert.notEqual(asked.length, 0);
      proxy.close();
      await fails(/ECONNREFUSED|Connection refused/i);
    } finally {
      proxy.closeAllConnections();
      proxy.close();
      await rm(folder, { recursive: true });
    }
  });
}
