import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { startKubeMock } from "../../../hack/kube-mock/kube-mock.ts";
import type { KubeMock } from "../../../hack/kube-mock/kube-mock.ts";
import { NODES } from "../../../src/api/kubernetes/core-types.ts";
import { loadCluster } from "../../../src/kube/connection/credentials/credentials.ts";
import { isKubeError } from "../../../src/kube/errors.ts";
import { createHttpTransport } from "../../../src/kube/connection/transport/http-transport.ts";
import type { KubeTransport, TransportRequest } from "../../../src/kube/transport.ts";
import { systemClock } from "../../../src/runtime/system.ts";
import { seededRandom } from "../../lib/seeded-random.ts";

const ALWAYS = new AbortController().signal;
const TOKEN = "let-me-in";

let folder: string;
let mock: KubeMock;
let transport: KubeTransport;

before(async () => {
  folder = await mkdtemp(join(tmpdir(), "kube-mock-"));
  mock = await startKubeMock({ clock: systemClock, random: seededRandom(1), tls: true, token: TOKEN });
  transport = await connect(mock.kubeconfig, "right");
});
after(async () => {
  await transport.close();
  await mock.close();
  await rm(folder, { recursive: true, force: true });
});

async function connect(kubeconfig: string, name: string): Promise<KubeTransport> {
  const path = join(folder, name);
  await writeFile(path, kubeconfig, { mode: 0o600 });
  return createHttpTransport(await loadCluster({ kubeconfig: path }), { clock: systemClock });
}

function request(path: string, change: Partial<TransportRequest> = {}): TransportRequest {
  return { method: "GET", path, lane: "api", timeoutMs: 20_000, ...change };
}

async function command(content: object): Promise<{ status: number; body: string }> {
  return transport.send(request("/kube-mock/control", { method: "POST", body: JSON.stringify(content) }), ALWAYS);
}

test("the kubeconfig leads to the server over verified TLS", async () => {
  assert.match(mock.url, /^https:\/\/127\.0\.0\.1:\d+$/);
  assert.match((await transport.send(request("/version"), ALWAYS)).body, /"gitVersion":"v1\.36\.3"/);
});

test("every request without the token is answered with 401", async () => {
  const stranger = await connect(mock.kubeconfig.replace(TOKEN, "wrong"), "wrong");
  const { status, body } = await stranger.send(request("/api/v1/nodes"), ALWAYS);
  await stranger.close();
  assert.equal(status, 401);
  assert.equal(JSON.parse(body).reason, "Unauthorized");
});

test("a watch over HTTP hears of what happens, and breaks when it is cut on command", async () => {
  const { body } = await transport.stream(request("/api/v1/nodes?watch=1", { lane: "watch" }), ALWAYS);
  const chunks = body[Symbol.asyncIterator]();
  mock.server.collection(NODES).create({ metadata: { name: "a" } });
  const { value } = await chunks.next();
  assert.match(String(value), /^\{"type":"ADDED".*"name":"a"/);
  assert.deepEqual(
    await command({ command: "cutWatches", match: { pathPrefix: "/api/v1/nodes" } }).then(({ body }) =>
      JSON.parse(body),
    ),
    { cut: 1 },
  );
  await assert.rejects(
    async () => chunks.next(),
    (error) => isKubeError(error, "Network"),
  );
});

test("faults are injected on command, and commands that make no sense are refused", async () => {
  await command({ command: "inject", match: { method: "GET" }, action: { kind: "status", status: 503 } });
  assert.equal((await transport.send(request("/api/v1/nodes"), ALWAYS)).status, 503);
  assert.equal((await transport.send(request("/api/v1/nodes"), ALWAYS)).status, 200);
  assert.equal((await command({ command: "explode" })).status, 400);
  assert.equal((await command({ command: "inject", action: { kind: "status", status: 200 } })).status, 400);
  assert.equal((await command({ command: "clear" })).status, 200);
});

test("a dropped connection is a Network error to the client", async () => {
  await command({
    command: "inject",
    match: { method: "POST", pathPrefix: "/api/v1/nodes" },
    action: { kind: "loseAnswer" },
  });
  const sent = transport.send(
    request("/api/v1/nodes", { method: "POST", body: JSON.stringify({ metadata: { name: "lost" } }) }),
    ALWAYS,
  );
  await assert.rejects(sent, (error) => isKubeError(error, "Network"));
  assert.equal((await transport.send(request("/api/v1/nodes/lost"), ALWAYS)).status, 200);
});

test("a body above the bound is refused", async () => {
  const body = JSON.stringify({ metadata: { name: "big" }, data: { k: "x".repeat(4 * 1024 * 1024) } });
  const path = "/api/v1/namespaces/default/configmaps";
  const { status } = await transport.send(request(path, { method: "POST", body }), ALWAYS);
  assert.equal(status, 413);
});

test("closing ends open watches and frees the port", async () => {
  const other = await startKubeMock({ clock: systemClock, random: seededRandom(2) });
  const client = await connect(other.kubeconfig, "other");
  const { body } = await client.stream(request("/api/v1/nodes?watch=1", { lane: "watch" }), ALWAYS);
  await other.close();
  await assert.rejects(async () => {
    for await (const _chunk of body) continue;
  });
  await client.close();
  const port = Number(new URL(other.url).port);
  const again = await startKubeMock({ clock: systemClock, random: seededRandom(3), port });
  await again.close();
});
