import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { request } from "undici";
import { startKubeMock } from "../../hack/kube-mock/kube-mock.ts";
import type { KubeMock } from "../../hack/kube-mock/kube-mock.ts";
import { readCrds } from "../../hack/lib/crds.ts";
import { NODES } from "../../src/api/kubernetes/core-types.ts";
import { systemClock, systemRandom } from "../../src/runtime/system.ts";
import { cli } from "./cli-fixture.ts";

describe("ironfence dashboard", () => {
  let folder: string;
  let kube: KubeMock;
  let kubeconfig: string;

  before(async () => {
    folder = mkdtempSync(join(tmpdir(), "ironfence-dashboard-"));
    kube = await startKubeMock({ clock: systemClock, random: systemRandom, tls: true, token: "let-me-in" });
    for (const crd of await readCrds()) kube.server.load(crd);
    kube.server.collection(NODES).create({ metadata: { name: "worker-1" } });
    kubeconfig = join(folder, "kubeconfig");
    writeFileSync(kubeconfig, kube.kubeconfig);
  });
  after(async () => {
    await kube.close();
    rmSync(folder, { recursive: true });
  });

  it("ironfence dashboard prints the one address that opens the page, serves it with the user's kubeconfig, and stops with Ctrl-C", async () => {
    const stop = new AbortController();
    const printed = Promise.withResolvers<string>();
    const onLine = (text: string): void => {
      const [url] = /http:\/\/127\.0\.0\.1:\d+\/open\?key=\S+/.exec(text) ?? [];
      if (url !== undefined) printed.resolve(url);
    };
    const ended = cli(["dashboard", "--kubeconfig", kubeconfig], { signal: stop.signal, onLine });
    const url = await Promise.race([printed.promise, ended.then(({ err }) => assert.fail(err))]);
    const opened = await request(url);
    await opened.body.dump();
    const cookie = String(opened.headers["set-cookie"]).split(";")[0] ?? "";
    const { origin } = new URL(url);
    const page = await request(`${origin}/nodes/worker-1`, { headers: { cookie } });
    assert.equal(page.statusCode, 200);
    assert.match(await page.body.text(), /no FencingTarget in namespace ironfence-system names the node/);
    const refused = await request(`${origin}/`);
    await refused.body.dump();
    assert.equal(refused.statusCode, 401);
    stop.abort(new Error("Ctrl-C"));
    const { code, err } = await ended;
    assert.equal(err, "");
    assert.equal(code, 0);
    await assert.rejects(request(`${origin}/`), "nothing listens any more");
  });

  it("ironfence dashboard ends with an error that names the port, if that is in use", async () => {
    const other = createServer();
    await new Promise<void>((resolve) => other.listen(0, "127.0.0.1", resolve));
    const { port } = other.address() as AddressInfo;
    try {
      const { code, err } = await cli(["dashboard", "--kubeconfig", kubeconfig, "--port", String(port)]);
      assert.equal(code, 1);
      assert.match(err, new RegExp(`cannot listen on 127\\.0\\.0\\.1:${port}`));
      assert.doesNotMatch(err, /at .*\.ts:/, "no stack");
    } finally {
      other.close();
    }
  });
});
