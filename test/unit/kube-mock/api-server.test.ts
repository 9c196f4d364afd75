import assert from "node:assert/strict";
import { test } from "node:test";
import { createApiServer } from "../../../hack/kube-mock/api-server.ts";
import type { ApiServer, ApiServerOptions } from "../../../hack/kube-mock/api-server.ts";
import { NODES } from "../../../src/api/kubernetes/core-types.ts";
import type { Node } from "../../../src/api/kubernetes/core.ts";
import { isKubeError } from "../../../src/kube/errors.ts";
import type { KubeErrorCode } from "../../../src/kube/errors.ts";
import type { KubeTransport, TransportRequest } from "../../../src/kube/transport.ts";
import { seededRandom } from "../../lib/seeded-random.ts";
import { VirtualClock } from "../../lib/virtual-clock.ts";

const ALWAYS = new AbortController().signal;
const PATH = "/api/v1/nodes";

function world(options: Partial<ApiServerOptions> = {}, seed = 1) {
  const clock = new VirtualClock();
  const server = createApiServer({ clock, random: seededRandom(seed), ...options });
  const transport = server.transport({ client: "agent-1" });
  return { clock, server, transport, nodes: server.collection<Node>(NODES) };
}

function request(path: string, change: Partial<TransportRequest> = {}): TransportRequest {
  return { method: "GET", path, lane: "api", timeoutMs: 5_000, ...change };
}

async function failure(work: Promise<unknown>): Promise<KubeErrorCode | "none"> {
  try {
    await work;
    return "none";
  } catch (error) {
    assert.ok(isKubeError(error), String(error));
    return error.code;
  }
}

/** Collects the events of a watch as `TYPE name`, and how it ended. */
async function watch(transport: KubeTransport, path: string, signal = ALWAYS): Promise<string[]> {
  const { body } = await transport.stream(request(path, { lane: "watch" }), signal);
  const reported: string[] = [];
  void (async () => {
    try {
      for await (const chunk of body) {
        for (const line of chunk.split("\n").filter((text) => text !== "")) {
          const { type, object } = JSON.parse(line) as {
            type: string;
            object: { metadata: { name?: string }; code?: number };
          };
          reported.push(`${type} ${object.metadata.name ?? object.code ?? ""}`.trim());
        }
      }
      reported.push("end");
    } catch (error) {
      reported.push(isKubeError(error) ? error.code : String(error));
    }
  })();
  return reported;
}

async function settle(): Promise<void> {
  for (let turn = 0; turn < 5; turn += 1) await new Promise((resolve) => setImmediate(resolve));
}

function addNode(server: ApiServer, name: string): void {
  server.collection<Node>(NODES).create({ metadata: { name } });
}

test("two runs of one seed give the same bytes, another seed other UIDs", async () => {
  const run = async (seed: number): Promise<string> => {
    const { transport } = world({}, seed);
    await transport.send(
      request(PATH, { method: "POST", body: JSON.stringify({ metadata: { generateName: "n-" } }) }),
      ALWAYS,
    );
    return (await transport.send(request(PATH), ALWAYS)).body;
  };
  assert.equal(await run(7), await run(7));
  assert.notEqual(await run(7), await run(8));
});

test("an injected status answers the given number of matching requests, and no other request", async () => {
  const { server, transport } = world();
  server.faults.inject({
    match: { method: "GET", pathPrefix: PATH, client: "agent" },
    times: 2,
    action: { kind: "status", status: 429, retryAfterSeconds: 3 },
  });
  const status = async (path: string, wire = transport): Promise<number> =>
    (await wire.send(request(path), ALWAYS)).status;
  assert.equal(await status("/api/v1/pods"), 200);
  assert.equal(await status(PATH, server.transport({ client: "kubelet" })), 200);
  const met = await transport.send(request(PATH), ALWAYS);
  assert.deepEqual([met.status, met.headers["retry-after"]], [429, "3"]);
  assert.equal(await status(`${PATH}/a`), 429);
  assert.equal(await status(PATH), 200);
});

test("an injected fault applies only to calls of its kind, and to none after its removal", async () => {
  const { server, transport } = world();
  addNode(server, "a");
  const takeBack = server.faults.inject({
    match: { resource: "nodes/status", verbs: ["patch"] },
    times: Infinity,
    action: { kind: "status", status: 500 },
  });
  server.faults.inject({
    match: { resource: "nodes", verbs: ["list", "watch"] },
    times: Infinity,
    action: { kind: "status", status: 403 },
  });
  const patch = { method: "PATCH", contentType: "application/merge-patch+json", body: "{}" } as const;
  const status = async (path: string, parts: Partial<TransportRequest> = {}): Promise<number> =>
    (await transport.send(request(path, parts), ALWAYS)).status;
  assert.equal(await status(`${PATH}/a/status`, patch), 500);
  assert.deepEqual([await status(PATH), await status(`${PATH}?watch=1`)], [403, 403]);
  assert.deepEqual([await status(`${PATH}/a`), await status(`${PATH}/a`, patch)], [200, 200]);
  assert.deepEqual([await status(`${PATH}/a/status`), await status("/api/v1/pods")], [200, 200]);
  takeBack();
  assert.deepEqual([await status(`${PATH}/a/status`, patch), await status(PATH)], [200, 403]);
});

test("a request that hangs ends at its own deadline and did nothing", async () => {
  const { clock, server, transport, nodes } = world();
  server.faults.inject({ match: {}, times: 1, action: { kind: "hang" } });
  const body = JSON.stringify({ metadata: { name: "a" } });
  const ended = failure(transport.send(request(PATH, { method: "POST", body }), ALWAYS));
  await clock.advance(5_000);
  assert.equal(await ended, "Timeout");
  assert.equal(nodes.get({ name: "a" }), undefined);
  assert.equal(clock.pending, 0);
});

test("a dropped request did nothing; one whose answer is lost took effect", async () => {
  const { server, transport, nodes } = world();
  const create = (name: string) =>
    failure(transport.send(request(PATH, { method: "POST", body: JSON.stringify({ metadata: { name } }) }), ALWAYS));
  server.faults.inject({ match: {}, times: 1, action: { kind: "drop" } });
  server.faults.inject({ match: {}, times: 1, action: { kind: "loseAnswer" } });
  assert.deepEqual([await create("dropped"), await create("lost")], ["Network", "Network"]);
  assert.equal(nodes.get({ name: "dropped" }), undefined);
  assert.notEqual(nodes.get({ name: "lost" }), undefined);
});

test("a delayed request takes effect when its delay is over", async () => {
  const { clock, server, transport, nodes } = world();
  server.faults.inject({ match: {}, times: 1, action: { kind: "delay", delayMs: 1_000 } });
  const body = JSON.stringify({ metadata: { name: "a" } });
  const sent = transport.send(request(PATH, { method: "POST", body }), ALWAYS);
  await clock.advance(999);
  assert.equal(nodes.get({ name: "a" }), undefined);
  await clock.advance(1);
  assert.equal((await sent).status, 201);
});

test("a server restored from a backup has its objects of that time, reuses versions, and sends no events to a watch that asks from a later version", async () => {
  const { clock, server, transport, nodes } = world();
  addNode(server, "a");
  const backup = server.backUp();
  addNode(server, "b");
  const changed = nodes.mergePatch({ name: "a" }, { metadata: { labels: { k: "v" } } });
  const { resourceVersion } = changed.metadata;
  const told: string[] = [];
  server.onChange(({ type, object }) => told.push(`${type} ${object.metadata.name}`));
  const cut = await watch(transport, `${PATH}?watch=1&resourceVersion=${resourceVersion}`);
  server.restore(backup);
  await settle();
  assert.equal(cut.at(-1), "Network");
  assert.deepEqual(told, ["DELETED b", "MODIFIED a"]);
  assert.deepEqual(
    [...nodes.values()].map(({ metadata }) => metadata.name),
    ["a"],
  );
  const silent = await watch(transport, `${PATH}?watch=1&allowWatchBookmarks=1&resourceVersion=${resourceVersion}`);
  addNode(server, "c");
  await clock.advance(120_000);
  assert.deepEqual(silent, []);
  for (const name of ["d", "e"]) addNode(server, name);
  await settle();
  assert.deepEqual(silent.length, 1, "it goes on behind the version that it was asked for");
});

test("a watch that lags forever is open and silent", async () => {
  const { clock, server, transport } = world();
  server.faults.lagWatches({ client: "agent" }, Infinity);
  const silent = await watch(transport, `${PATH}?watch=1&allowWatchBookmarks=1`);
  addNode(server, "a");
  await clock.advance(300_000);
  assert.deepEqual(silent, []);
  server.faults.lagWatches({ client: "agent" }, 0);
  await settle();
  assert.equal(silent.length, 1);
});

test("lagging watches receive events late and in order, and at once when the lag ends", async () => {
  const { clock, server, transport } = world();
  const reported = await watch(transport, `${PATH}?watch=1`);
  const other = await watch(server.transport({ client: "kubelet" }), `${PATH}?watch=1`);
  server.faults.lagWatches({ client: "agent" }, 3_000);
  addNode(server, "a");
  await clock.advance(1_000);
  addNode(server, "b");
  await clock.advance(1_999);
  assert.deepEqual([reported, other], [[], ["ADDED a", "ADDED b"]]);
  await clock.advance(1);
  assert.deepEqual(reported, ["ADDED a"]);
  addNode(server, "c");
  server.faults.lagWatches({ client: "agent" }, 0);
  await settle();
  assert.deepEqual(reported, ["ADDED a", "ADDED b", "ADDED c"]);
});

test("an event stays behind an earlier one that is held back longer", async () => {
  const { clock, server, transport } = world();
  const reported = await watch(transport, `${PATH}?watch=1`);
  server.faults.lagWatches({}, 5_000);
  addNode(server, "a");
  server.faults.lagWatches({}, 1_000);
  addNode(server, "b");
  await clock.advance(4_999);
  assert.deepEqual(reported, []);
  await clock.advance(1);
  assert.deepEqual(reported, ["ADDED a", "ADDED b"]);
});

test("a cut watch is a Network error, and a new one goes on from its version", async () => {
  const { server, transport } = world();
  const reported = await watch(transport, `${PATH}?watch=1`);
  addNode(server, "a");
  await settle();
  const { resourceVersion } = JSON.parse((await transport.send(request(PATH), ALWAYS)).body).metadata;
  assert.equal(server.faults.cutWatches({ client: "agent-1" }), 1);
  addNode(server, "b");
  const resumed = await watch(transport, `${PATH}?watch=1&resourceVersion=${resourceVersion}`);
  await settle();
  assert.deepEqual([reported, resumed], [["ADDED a", "Network"], ["ADDED b"]]);
});

test("older watches and pages are Expired after a compaction", async () => {
  const { server, transport } = world();
  for (const name of ["a", "b", "c"]) addNode(server, name);
  const page = JSON.parse((await transport.send(request(`${PATH}?limit=1`), ALWAYS)).body).metadata;
  addNode(server, "d");
  server.compact();
  const rest = await transport.send(request(`${PATH}?limit=1&continue=${page.continue}`), ALWAYS);
  assert.equal(rest.status, 410);
  const reported = await watch(transport, `${PATH}?watch=1&resourceVersion=${page.resourceVersion}`);
  await settle();
  assert.deepEqual(reported, ["ERROR 410", "end"]);
});

test("history is bounded: a watch from too far back is Expired, one from less far back is not", async () => {
  const { server, transport, nodes } = world({ historyEventsMax: 10 });
  addNode(server, "a");
  const first = nodes.get({ name: "a" })?.metadata.resourceVersion ?? "";
  for (let index = 0; index < 30; index += 1)
    nodes.mergePatch({ name: "a" }, { metadata: { labels: { index: `${index}` } } });
  const old = await watch(transport, `${PATH}?watch=1&resourceVersion=${first}`);
  const recent = await watch(transport, `${PATH}?watch=1&resourceVersion=${Number(first) + 25}`);
  await settle();
  assert.deepEqual(old, ["ERROR 410", "end"]);
  assert.deepEqual(
    recent,
    Array.from({ length: 5 }, () => "MODIFIED a"),
  );
});

test("watches that ask for bookmarks get one a minute, with the newest version", async () => {
  const { clock, server, transport } = world();
  const reported = await watch(transport, `${PATH}?watch=1&allowWatchBookmarks=true`);
  const plain = await watch(transport, `${PATH}?watch=1`);
  await clock.advance(59_999);
  assert.deepEqual(reported, []);
  addNode(server, "a");
  await clock.advance(60_001);
  assert.deepEqual([reported, plain], [["ADDED a", "BOOKMARK", "BOOKMARK"], ["ADDED a"]]);
});

test("a bookmark never overtakes an event that is held back", async () => {
  const { clock, server, transport } = world({ bookmarkPeriodMs: 1_000 });
  const reported = await watch(transport, `${PATH}?watch=1&allowWatchBookmarks=true`);
  server.faults.lagWatches({}, 5_000);
  await clock.advance(500);
  addNode(server, "a");
  await clock.advance(4_900);
  assert.deepEqual(reported, []);
  await clock.advance(1_000);
  assert.deepEqual(reported, ["ADDED a", "BOOKMARK"]);
});

test("aborting a watch, closing the transport and closing the server each end it and leave nothing on the clock", async () => {
  const { clock, server, transport } = world();
  const stop = new AbortController();
  const second = server.transport({ client: "agent-2" });
  const reported = [
    await watch(transport, `${PATH}?watch=1&allowWatchBookmarks=true`, stop.signal),
    await watch(second, `${PATH}?watch=1`),
    await watch(transport, `${PATH}?watch=1`),
  ];
  stop.abort();
  await second.close();
  server.close();
  await settle();
  assert.deepEqual(reported, [["Aborted"], ["Aborted"], ["Network"]]);
  assert.equal(clock.pending, 0);
});

test("every request is counted with its client, and those of the world itself are not", async () => {
  const { server, transport } = world();
  const seen: string[] = [];
  const stop = server.onRequest(({ client, method, path, status, watch: isWatch }) => {
    seen.push(`${client} ${method} ${path} ${status}${isWatch ? " watch" : ""}`);
  });
  addNode(server, "a");
  await transport.send(request(`${PATH}/a`), ALWAYS);
  await transport.send(request(`${PATH}/b`), ALWAYS);
  await watch(transport, `${PATH}?watch=1`);
  stop();
  await transport.send(request(`${PATH}/a`), ALWAYS);
  assert.deepEqual(seen, [
    `agent-1 GET ${PATH}/a 200`,
    `agent-1 GET ${PATH}/b 404`,
    `agent-1 GET ${PATH}?watch=1 200 watch`,
  ]);
});

test("loading an object of a kind that is not served says so", () => {
  const { server } = world();
  assert.throws(
    () => server.load("apiVersion: gadgets.example/v1\nkind: Gadget\nmetadata: {name: a}"),
    /Gadget is not served/,
  );
});
