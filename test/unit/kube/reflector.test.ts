import assert from "node:assert/strict";
import { afterEach, beforeEach, test } from "node:test";
import { startReflector } from "../../../src/kube/watch/reflector.ts";
import type { KubeObject } from "../../../src/kube/resource.ts";
import type { Watched } from "../../../src/kube/watched.ts";
import { failure } from "./api-stub.ts";
import { KubeError } from "../../../src/kube/errors.ts";
import { settle, VirtualClock } from "../../lib/virtual-clock.ts";
import { answer, listAnswer, ScriptedTransport } from "./scripted-transport.ts";
import { evenRandom, NODE, nodeObject, recordingLogger } from "./support.ts";

let clock: VirtualClock;
let transport: ScriptedTransport;
let stop: AbortController;
let log: ReturnType<typeof recordingLogger>;
let changes: string[];

beforeEach(() => {
  clock = new VirtualClock();
  transport = new ScriptedTransport();
  stop = new AbortController();
  log = recordingLogger();
  changes = [];
});

afterEach(async () => {
  stop.abort();
  await settle();
  assert.equal(clock.pending, 0, "no timer is left behind");
});

function start(trim: (raw: KubeObject) => KubeObject | undefined = (raw) => raw): Watched<KubeObject> {
  const deps = { transport, clock, random: evenRandom, logger: log.logger };
  const watched = startReflector<KubeObject>(deps, { type: NODE, trim }, stop.signal);
  watched.subscribe(({ type, object }) => {
    changes.push(`${type} ${object.metadata.name} ${object.metadata.uid}@${object.metadata.resourceVersion}`);
  });
  return watched;
}

function took(): string[] {
  return changes.splice(0);
}

const messages = (): unknown[] => log.lines.map((line) => line["msg"]);

test("a reflector lists in pages, trims each, and watches from the list's revision with bookmarks", async () => {
  const keptRaw: KubeObject[] = [];
  transport.onList = (query) =>
    query.has("continue")
      ? listAnswer(10, [nodeObject("b", "ub", 2)])
      : listAnswer(10, [nodeObject("a", "ua", 1), nodeObject("skip", "us", 1)], "more");
  const watched = start((raw) => {
    keptRaw.push(raw);
    return raw.metadata.name === "skip" ? undefined : raw;
  });
  assert.equal(watched.synced, false);
  assert.equal(watched.lastContactMs, Number.NEGATIVE_INFINITY);
  await settle();
  await watched.whenSynced(stop.signal);
  assert.equal(watched.synced, true);
  assert.equal(watched.lastContactMs, 0);
  assert.deepEqual(took(), ["added a ua@1", "added b ub@2"]);
  assert.ok(keptRaw.every((raw) => raw.kind === "Node"));
  assert.equal(transport.lists[0]?.get("limit"), "100");
  const { query } = transport.watch;
  assert.equal(query.get("resourceVersion"), "10");
  assert.equal(query.get("allowWatchBookmarks"), "true");
  assert.equal(query.get("timeoutSeconds"), "450");
});

test("the view is whole and synced before the first listener hears of it", async () => {
  transport.onList = () => listAnswer(10, [nodeObject("a", "ua", 1), nodeObject("b", "ub", 2)]);
  const watched = start();
  const seen: [boolean, number][] = [];
  watched.subscribe(() => seen.push([watched.synced, watched.size]));
  await settle();
  assert.deepEqual(seen, [
    [true, 2],
    [true, 2],
  ]);
  const late: string[] = [];
  watched.subscribe(({ type, object }) => late.push(`${type} ${object.metadata.name}`));
  assert.deepEqual(late, ["added a", "added b"], "a later listener gets what is there");
});

test("a listener that subscribes while others hear of a list hears of nothing twice, one that ends of nothing more", async () => {
  transport.onList = () => listAnswer(10, [nodeObject("a", "ua", 1), nodeObject("b", "ub", 2)]);
  const watched = start();
  const [early, late]: [string[], string[]] = [[], []];
  let subscribeOnce = (): void => {
    subscribeOnce = () => undefined;
    watched.subscribe(({ type, object }) => late.push(`${type} ${object.metadata.name}`));
    unsubscribe();
  };
  watched.subscribe(() => subscribeOnce());
  const unsubscribe = watched.subscribe(({ type, object }) => early.push(`${type} ${object.metadata.name}`));
  await settle();
  assert.deepEqual([early, late], [[], ["added a", "added b"]]);
});

test("events change the view; older versions and the past of another object do not", async () => {
  transport.onList = () => listAnswer(10, [nodeObject("a", "ua", 5)]);
  const watched = start();
  await settle();
  took();
  const { watch } = transport;
  watch.event("MODIFIED", nodeObject("a", "ua", 11));
  watch.event("MODIFIED", nodeObject("a", "ua", 9));
  watch.event("MODIFIED", nodeObject("a", "ua", 11));
  watch.event("ADDED", nodeObject("a", "older", 10));
  watch.event("DELETED", nodeObject("a", "older", 10));
  await settle();
  assert.deepEqual(took(), ["updated a ua@11"]);
  watch.event("DELETED", nodeObject("a", "ua", 12));
  watch.event("ADDED", nodeObject("a", "ub", 13));
  await settle();
  assert.deepEqual(took(), ["deleted a ua@11", "added a ub@13"]);
  assert.equal(watched.get({ name: "a" })?.metadata.uid, "ub");
});

test("a view says up to which version it shows everything: that of its list, then of each event and bookmark", async () => {
  transport.onList = () => listAnswer(10, [nodeObject("a", "ua", 5)]);
  const watched = start();
  const versions = [watched.version];
  await settle();
  versions.push(watched.version);
  const { watch } = transport;
  for (const version of [11, 9, 12]) {
    watch.event(version === 12 ? "BOOKMARK" : "MODIFIED", nodeObject("a", "ua", version));
    await settle();
    versions.push(watched.version);
  }
  assert.deepEqual(versions, [undefined, "10", "11", "11", "12"]);
});

test("an object that was deleted and created again unseen is a deletion and an addition", async () => {
  transport.onList = () => listAnswer(10, [nodeObject("a", "ua", 5), nodeObject("b", "ub", 5)]);
  start();
  await settle();
  took();
  transport.watch.event("MODIFIED", nodeObject("a", "other", 11));
  await settle();
  assert.deepEqual(took(), ["deleted a ua@5", "added a other@11"]);

  transport.onList = () => listAnswer(20, [nodeObject("a", "other", 11), nodeObject("b", "third", 15)]);
  transport.watch.event("ERROR", failure(410, "Expired", "too old"));
  await clock.advance(1_000);
  assert.deepEqual(took(), ["deleted b ub@5", "added b third@15"]);
});

test("an object that trim now rejects leaves the view", async () => {
  transport.onList = () => listAnswer(10, [nodeObject("a", "ua", 5)]);
  const watched = start((raw) => (raw.metadata.resourceVersion === "11" ? undefined : raw));
  await settle();
  transport.watch.event("MODIFIED", nodeObject("a", "ua", 11));
  await settle();
  assert.deepEqual(took(), ["added a ua@5", "deleted a ua@5"]);
  assert.equal(watched.size, 0);
});

test("a revision that is gone is listed again, and what has vanished is deleted", async () => {
  for (const how of ["event", "status"] as const) {
    transport.onWatch = () => undefined;
    transport.onList = () => listAnswer(10, [nodeObject("a", "ua", 5), nodeObject("b", "ub", 6)]);
    const watched = start();
    await settle();
    took();
    transport.onList = () => listAnswer(30, [nodeObject("b", "ub", 21)]);
    if (how === "event") transport.watch.event("ERROR", failure(410, "Expired", "too old"));
    else {
      await clock.advance(60_000);
      let refusals = 1;
      transport.onWatch = () => (refusals-- > 0 ? answer(410, failure(410, "Expired", "too old")) : undefined);
      transport.watch.end();
    }
    await clock.advance(5_001);
    assert.deepEqual(took(), ["deleted a ua@5", "updated b ub@21"], how);
    assert.equal(transport.watch.query.get("resourceVersion"), "30");
    assert.equal(watched.problem, undefined);
    stop.abort();
    await settle();
    stop = new AbortController();
  }
  assert.deepEqual(messages(), [], "daily life is not logged");
});

test("a watch continues at its revision after its end, a broken connection, and half a line", async () => {
  transport.onList = () => listAnswer(10, []);
  start();
  await settle();
  transport.watch.event("BOOKMARK", { kind: "Node", metadata: { resourceVersion: "40" } });
  await clock.advance(60_000);
  transport.watch.end();
  await clock.advance(0);
  assert.equal(transport.watch.query.get("resourceVersion"), "40", "reconnected without a wait");

  transport.watch.event("ADDED", nodeObject("a", "ua", 41));
  transport.watch.send(`{"type":"ADDED","object":{"metadata":{"name":"half`);
  await settle();
  transport.watch.end(new Error("connection reset"));
  await clock.advance(200);
  assert.equal(transport.watch.query.get("resourceVersion"), "41");
  assert.deepEqual(took(), ["added a ua@41"]);
  assert.equal(transport.lists.length, 1, "nothing was listed again");
});

test("a watch without any event counts as dead, and a watch with bookmarks alone does not", async () => {
  transport.onList = () => listAnswer(10, []);
  const watched = start();
  await settle();
  const first = transport.watch;
  for (let minute = 1; minute <= 5; minute++) {
    await clock.advance(61_000);
    first.event("BOOKMARK", { metadata: { resourceVersion: String(10 + minute) } });
    await settle();
  }
  assert.equal(transport.watches.length, 1);
  assert.equal(watched.lastContactMs, 5 * 61_000);
  await clock.advance(89_999);
  assert.equal(first.aborted, false);
  await clock.advance(1);
  assert.equal(first.aborted, true);
  assert.match(watched.problem ?? "", /nothing received/);
  await clock.advance(1_000);
  assert.equal(transport.watches.length, 2);
  assert.equal(transport.watch.query.get("resourceVersion"), "15");
  assert.equal(watched.problem, undefined);
  assert.equal(watched.lastContactMs, 5 * 61_000, "a new connection is not yet a word from the server");
});

test("two watches in a row that are open and silent end in a list, and so does every one after them", async () => {
  transport.onList = () => listAnswer(10, [nodeObject("a", "ua", 5)]);
  const watched = start();
  await settle();
  await clock.advance(91_000);
  assert.deepEqual(
    [transport.lists.length, transport.watches.length],
    [1, 2],
    "the first may have been the connection",
  );
  assert.deepEqual(messages(), ["a watch was silent, watching again"], "which is only of use for debugging");
  transport.onList = () => listAnswer(30, [nodeObject("a", "ua", 21)]);
  await clock.advance(91_000);
  assert.deepEqual([transport.lists.length, transport.watches.length], [2, 3]);
  assert.equal(watched.get({ name: "a" })?.metadata.resourceVersion, "21");
  assert.match(watched.problem ?? "", /nothing received/, "an open connection is not an answer of the server");
  await clock.advance(92_000);
  assert.equal(transport.lists.length, 3);
  transport.watch.event("MODIFIED", nodeObject("a", "ua", 31));
  await settle();
  assert.equal(watched.problem, undefined);
  await clock.advance(91_000);
  assert.equal(transport.lists.length, 3, "one that has spoken is opened again from where it was");
  assert.equal(watched.rewinds, 0);
});

test("a list of a server that was restored from a backup replaces the view although its versions are lower", async () => {
  transport.onList = () => listAnswer(40, [nodeObject("a", "ua", 39), nodeObject("b", "ub", 30)]);
  const watched = start();
  await settle();
  took();
  // Version 39 was used again, for something else.
  const again = {
    ...nodeObject("a", "ua", 39),
    metadata: { ...nodeObject("a", "ua", 39).metadata, labels: { x: "y" } },
  };
  transport.onList = () => listAnswer(39, [again, nodeObject("b", "ub", 20)]);
  await clock.advance(182_000);
  assert.deepEqual(took(), ["updated a ua@39", "updated b ub@20"]);
  assert.equal(watched.rewinds, 1);
  transport.watch.event("MODIFIED", nodeObject("b", "ub", 40));
  await settle();
  assert.deepEqual(took(), ["updated b ub@40"]);
});

test("a server that is started again from a backup is noticed as soon as it answers", async () => {
  transport.onList = () => listAnswer(40, [nodeObject("a", "ua", 39)]);
  const watched = start();
  await settle();
  took();
  transport.onList = () => listAnswer(20, [nodeObject("a", "ua", 19)]);
  transport.watch.end(new KubeError("Network", "connection reset"));
  await clock.advance(1_000);
  assert.deepEqual([transport.looks, transport.lists.length, transport.watches.length], [1, 2, 2]);
  assert.equal(transport.watch.query.get("resourceVersion"), "20");
  assert.deepEqual([took(), watched.rewinds], [["updated a ua@19"], 1]);
});

test("a watch goes on after its connection broke, also if nothing can be listed", async () => {
  transport.onList = () => listAnswer(40, []);
  start();
  await settle();
  transport.onList = () => answer(500, failure(500, "InternalError", "no lists today"));
  transport.watch.end(new KubeError("Network", "connection reset"));
  await clock.advance(1_000);
  assert.deepEqual([transport.looks, transport.lists.length], [1, 1]);
  assert.equal(transport.watch.query.get("resourceVersion"), "40");
});

test("a bookmark of an earlier version is a server that has gone back: all is listed again", async () => {
  transport.onList = () => listAnswer(40, []);
  const watched = start();
  await settle();
  transport.onList = () => listAnswer(21, [nodeObject("a", "ua", 21)]);
  transport.watch.event("BOOKMARK", { metadata: { resourceVersion: "20" } });
  await clock.advance(1_000);
  assert.deepEqual([transport.lists.length, watched.rewinds, watched.size], [2, 1, 1]);
});

test("bytes that never become an event do not keep a watch alive", async () => {
  transport.onList = () => listAnswer(10, []);
  start();
  await settle();
  const first = transport.watch;
  for (let second = 0; second < 90; second += 10) {
    first.send(" ");
    await clock.advance(10_000);
  }
  assert.equal(first.aborted, true);
});

test("a collection that cannot be listed is tried forever, and logged once for each state", async () => {
  transport.onList = () => answer(404, failure(404, "NotFound", "no such kind"));
  const watched = start();
  await clock.advance(120_000);
  assert.equal(watched.synced, false);
  assert.match(watched.problem ?? "", /^list nodes: 404 NotFound: no such kind/);
  assert.ok(
    transport.lists.length > 12 && transport.lists.length < 30,
    `${transport.lists.length} lists in two minutes`,
  );
  transport.onList = () => answer(403, failure(403, "Forbidden", "may not list"));
  await clock.advance(60_000);
  assert.match(watched.problem ?? "", /may not list/);
  transport.onList = () => listAnswer(10, []);
  await clock.advance(10_000);
  assert.equal(watched.synced, true);
  assert.equal(watched.problem, undefined);
  assert.deepEqual(messages(), [
    "cannot list or watch, trying again",
    "cannot list or watch, trying again",
    "watching again",
  ]);
});

test("the wait that the server asks for is kept", async () => {
  transport.onList = () => answer(429, failure(429, "TooManyRequests", "slow"), { "retry-after": "25" });
  start();
  await clock.advance(24_999);
  assert.equal(transport.lists.length, 1);
  await clock.advance(1);
  assert.equal(transport.lists.length, 2);
});

test("a server that ends every watch at once is not asked without a pause", async () => {
  transport.onList = () => listAnswer(10, []);
  let watches = 0;
  transport.onWatch = () => {
    watches += 1;
    return { status: 200, headers: {}, body: "" };
  };
  start();
  await clock.advance(60_000);
  assert.ok(watches < 20, `${watches} watches in a minute`);
});

test("a server that refuses to watch what it lists is neither listed nor watched without a pause", async () => {
  transport.onList = () => listAnswer(10, []);
  let refused = 0;
  transport.onWatch = () => {
    refused += 1;
    return answer(403, failure(403, "Forbidden", "may not watch"));
  };
  const watched = start();
  await clock.advance(60_000);
  assert.ok(
    refused < 20 && transport.lists.length < 10,
    `${refused} watches, ${transport.lists.length} lists in a minute`,
  );
  assert.match(watched.problem ?? "", /may not watch/);
});

test("a server that does not know the revision of the agent is listed again after a few tries", async () => {
  transport.onList = () => listAnswer(900, [nodeObject("a", "ua", 800)]);
  start();
  await settle();
  // After a restore of etcd from a backup, revisions are behind ours.
  transport.onWatch = (query) =>
    query.get("resourceVersion") === "900"
      ? answer(504, failure(504, "Timeout", "Too large resource version"))
      : undefined;
  transport.onList = () => listAnswer(500, [nodeObject("a", "ua", 400)]);
  transport.watch.end(new Error("reset"));
  await clock.advance(10_000);
  assert.deepEqual(took(), ["added a ua@800", "updated a ua@400"], "the list is the truth, whatever its number");
  assert.equal(transport.watch.query.get("resourceVersion"), "500");
});

test("rubbish on the watch is not believed: it is opened again", async () => {
  transport.onList = () => listAnswer(10, []);
  start();
  await settle();
  const rubbish = [
    "not json",
    "[]",
    '{"type":"ADDED"}',
    '{"type":"PAINTED","object":{"metadata":{"name":"a","uid":"u","resourceVersion":"1"}}}',
    '{"type":"ADDED","object":{"metadata":{"name":"a","resourceVersion":"1"}}}',
    '{"type":"BOOKMARK","object":{}}',
    "x".repeat(8 * 1024 * 1024 + 1),
  ];
  for (const line of rubbish) {
    const before = transport.watches.length;
    transport.watch.send(`${line}\n`);
    await clock.advance(10_000);
    assert.ok(transport.watches.length > before, `opened again after ${line.slice(0, 40)}`);
  }
  assert.deepEqual(took(), []);
});

test("a line that does not end is cut off at its bound", async () => {
  transport.onList = () => listAnswer(10, []);
  start();
  await settle();
  const first = transport.watch;
  for (let mib = 0; mib < 9; mib++) first.send("x".repeat(1024 * 1024));
  await clock.advance(1_000);
  assert.equal(first.aborted, true);
});

test("a listener that throws stops neither the other listeners nor the watch; a trim that throws loses one object", async () => {
  transport.onList = () => listAnswer(10, [nodeObject("bad", "ux", 1), nodeObject("a", "ua", 5)]);
  const watched = start((raw) => {
    if (raw.metadata.name === "bad") throw new Error("cannot read this");
    return raw;
  });
  watched.subscribe(() => {
    throw new Error("listener's fault");
  });
  await settle();
  transport.watch.event("MODIFIED", nodeObject("a", "ua", 11));
  await settle();
  assert.deepEqual(took(), ["added a ua@5", "updated a ua@11"]);
  assert.deepEqual(messages(), [
    "object cannot be read, left out of the view",
    "a listener failed on a change",
    "a listener failed on a change",
  ]);
});

test("a listener that unsubscribes receives no more, and waiting for the sync ends with its signal", async () => {
  transport.onList = () => answer(503, failure(503, "ServiceUnavailable", "down"));
  const watched = start();
  const impatient = new AbortController();
  const waiting = watched.whenSynced(impatient.signal);
  impatient.abort(new Error("enough"));
  await assert.rejects(waiting, /enough/);
  const heard: string[] = [];
  const unsubscribe = watched.subscribe(({ type }) => heard.push(type));
  unsubscribe();
  transport.onList = () => listAnswer(10, [nodeObject("a", "ua", 5)]);
  await clock.advance(1_000);
  assert.deepEqual(heard, []);
  assert.equal(took().length, 1);
});
