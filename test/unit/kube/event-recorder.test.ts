import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";
import { createKubeClient } from "../../../src/kube/api-client/api-client.ts";
import { createEventRecorder } from "../../../src/kube/reconcile/event-recorder.ts";
import type { RunnableEventRecorder } from "../../../src/kube/reconcile/event-recorder.ts";
import type { EventNote } from "../../../src/kube/events.ts";
import type { KubeTransport, TransportRequest, TransportResponse } from "../../../src/kube/transport.ts";
import type { Random } from "../../../src/runtime/random.ts";
import { failure } from "./api-stub.ts";
import { settle, VirtualClock } from "../../lib/virtual-clock.ts";
import { answer } from "./scripted-transport.ts";
import { evenRandom, nodeObject, recordingLogger } from "./support.ts";

let clock: VirtualClock;
let sent: TransportRequest[];
let respond: (request: TransportRequest) => TransportResponse;
let log: ReturnType<typeof recordingLogger>;

const stored = (request: TransportRequest): TransportResponse => {
  const body: unknown = JSON.parse(request.body ?? "{}");
  const name = Array.isArray(body) ? "patched" : (body as { metadata: { name: string } }).metadata.name;
  const metadata = { name, namespace: "default", uid: `uid-of-${name}`, resourceVersion: "1" };
  return answer(200, { apiVersion: "events.k8s.io/v1", kind: "Event", metadata });
};

beforeEach(() => {
  clock = new VirtualClock();
  sent = [];
  respond = stored;
  log = recordingLogger();
});

function recorder(): RunnableEventRecorder {
  const transport: KubeTransport = {
    send: async (request) => {
      sent.push(request);
      return respond(request);
    },
    stream: () => Promise.reject(new Error("no watch here")),
    close: async () => undefined,
  };
  let drawn = 0;
  const random: Random = { ...evenRandom, bytes: (size) => new Uint8Array(size).fill(++drawn) };
  const client = createKubeClient({ transport, clock, random });
  return createEventRecorder(
    { client, clock, random, logger: log.logger },
    { controller: "ironfence.io/remediator", instance: "pod-1" },
  );
}

const note = (text: string, extra: Partial<EventNote> = {}): EventNote => ({
  regarding: nodeObject("worker-1", "node-uid", 7),
  type: "Normal",
  reason: "PoweredOff",
  action: "Fence",
  note: text,
  ...extra,
});

const bodies = (): Record<string, unknown>[] =>
  sent.map(({ body }) => JSON.parse(body ?? "{}") as Record<string, unknown>);

async function running(events: RunnableEventRecorder, work: () => Promise<void>): Promise<void> {
  const stop = new AbortController();
  const run = events.run(stop.signal);
  await work();
  stop.abort();
  await run;
}

test("an event has the form that events.k8s.io asks for", async () => {
  const events = recorder();
  const claim = {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name: "p", namespace: "shop", uid: "pu", resourceVersion: "1" },
  };
  events.record(note("Host is off.", { related: claim }));
  events.record(note("Deleted.", { regarding: claim }));
  await running(events, () => clock.advance(0));
  assert.equal(sent[0]?.path, "/apis/events.k8s.io/v1/namespaces/default/events", "about a cluster-scoped object");
  assert.equal(sent[1]?.path, "/apis/events.k8s.io/v1/namespaces/shop/events");
  assert.deepEqual(bodies()[0], {
    apiVersion: "events.k8s.io/v1",
    kind: "Event",
    metadata: { name: "worker-1.0101010101010101", namespace: "default" },
    eventTime: "2026-01-01T00:00:00.000000Z",
    type: "Normal",
    reason: "PoweredOff",
    action: "Fence",
    note: "Host is off.",
    regarding: { apiVersion: "v1", kind: "Node", name: "worker-1", uid: "node-uid", resourceVersion: "7" },
    related: { apiVersion: "v1", kind: "Pod", name: "p", namespace: "shop", uid: "pu", resourceVersion: "1" },
    reportingController: "ironfence.io/remediator",
    reportingInstance: "pod-1",
  });
});

test("repeated Events become a series, written now and then", async () => {
  const events = recorder();
  await running(events, async () => {
    events.record(note("again"));
    await clock.advance(1);
    for (let second = 0; second < 25; second++) {
      events.record(note("again"));
      await clock.advance(1_000);
    }
    await clock.advance(10_000);
  });
  const [created, ...patches] = bodies();
  assert.equal(created?.["series"], undefined);
  assert.equal(patches.length, 3, "25 repeats in 25 s, one write in ten");
  assert.deepEqual(patches.at(-1), [
    { op: "test", path: "/metadata/uid", value: "uid-of-worker-1.0101010101010101" },
    { op: "add", path: "/series", value: { count: 26, lastObservedTime: "2026-01-01T00:00:24.001000Z" } },
  ]);
});

test("an event that comes again after a long pause is a new one", async () => {
  const events = recorder();
  await running(events, async () => {
    events.record(note("again"));
    await clock.advance(6 * 60_000 + 1);
    events.record(note("again"));
    await clock.advance(1);
  });
  assert.deepEqual(
    sent.map(({ method }) => method),
    ["POST", "POST"],
  );
});

test("a series whose event the server has forgotten begins again", async () => {
  const events = recorder();
  await running(events, async () => {
    events.record(note("again"));
    await clock.advance(1);
    respond = (request) =>
      request.method === "PATCH" ? answer(404, failure(404, "NotFound", "gone")) : stored(request);
    events.record(note("again"));
    await clock.advance(10_000);
  });
  assert.deepEqual(
    sent.map(({ method }) => method),
    ["POST", "PATCH", "POST"],
  );
  assert.deepEqual(bodies()[2]?.["series"], { count: 2, lastObservedTime: "2026-01-01T00:00:00.001000Z" });
});

test("an Event is sent again while the API server cannot be reached, and a lost answer does not create it twice", async () => {
  const events = recorder();
  let tries = 0;
  respond = (request) => {
    tries += 1;
    if (tries < 3) return answer(503, failure(503, "ServiceUnavailable", "down"));
    return tries === 3 ? answer(409, failure(409, "AlreadyExists", "the first one took effect")) : stored(request);
  };
  await running(events, async () => {
    events.record(note("once"));
    await clock.advance(60_000);
  });
  assert.equal(sent.length, 3);
  assert.equal(new Set(bodies().map((body) => JSON.stringify(body["metadata"]))).size, 1, "the same name each time");
  assert.equal(events.droppedCount, 0);
});

test("an event that is refused, or that no server takes, is dropped and counted", async () => {
  const events = recorder();
  respond = () => answer(403, failure(403, "Forbidden", "may not"));
  await running(events, async () => {
    events.record(note("refused"));
    await clock.advance(60_000);
    assert.equal(sent.length, 1);
    respond = () => answer(503, failure(503, "ServiceUnavailable", "down"));
    events.record(note("nobody"));
    await clock.advance(600_000);
  });
  assert.equal(sent.length, 6, "five tries");
  assert.equal(events.droppedCount, 2);
  assert.equal(log.lines.length, 2);
});

test("a flood drops the oldest, and goes out no faster than the bound", async () => {
  const events = recorder();
  for (let index = 0; index < 1_500; index++) events.record(note(`note ${index}`));
  assert.equal(events.droppedCount, 500);
  await running(events, async () => {
    await clock.advance(1_000);
    assert.ok(sent.length <= 105, `${sent.length} in the first second: a burst of 50, then 50 a second`);
    // Dropped Events take no time.
    await clock.advance(19_000);
  });
  const notes = bodies().map((body) => body["note"]);
  assert.equal(notes.length, 1_000);
  assert.equal(notes[0], "note 500");
  assert.equal(notes.at(-1), "note 1499");
});

test("texts are cut to what the API takes, and never inside a character", async () => {
  const events = recorder();
  const long = nodeObject(`n${"a".repeat(228)}-${"b".repeat(20)}`, "u", 1);
  events.record(note("é".repeat(800), { regarding: long, reason: "R".repeat(200) }));
  await running(events, () => clock.advance(0));
  const [body] = bodies();
  const text = String(body?.["note"]);
  assert.ok(Buffer.byteLength(text) <= 1_024 && Buffer.byteLength(text) > 1_015);
  assert.match(text, /^é+…$/);
  assert.equal(String(body?.["reason"]).length, 128);
  assert.match(JSON.stringify(body?.["metadata"]), /"name":"na{228}\.[0-9a-f]{16}"/);
});

test("nothing is left running after the stop", async () => {
  const events = recorder();
  await running(events, async () => {
    events.record(note("again"));
    await settle();
    events.record(note("again"));
  });
  assert.equal(clock.pending, 0);
});
