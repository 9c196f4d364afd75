import assert from "node:assert/strict";
import { afterEach, beforeEach, describe, it } from "node:test";
import { createKubeClient } from "../../../src/kube/api-client.ts";
import { isKubeError } from "../../../src/kube/errors.ts";
import type { ReadBudget } from "../../../src/kube/read-budget.ts";
import { startReflector } from "../../../src/kube/reflector.ts";
import type { KubeObject } from "../../../src/kube/resource.ts";
import type { Watched } from "../../../src/kube/watched.ts";
import { sleep } from "../../../src/runtime/clock.ts";
import { settle, VirtualClock } from "../../lib/virtual-clock.ts";
import { listAnswer, ScriptedTransport } from "./scripted-transport.ts";
import { evenRandom, NODE, nodeObject, recordingLogger } from "./support.ts";

const BUDGET: ReadBudget = {
  pageSize: 10,
  objects: 100,
  textLength: 20_000,
  listTextLength: 40_000,
  listMs: 60_000,
  lineLength: 5_000,
};
const REST_MS = 60_000;

let clock: VirtualClock;
let transport: ScriptedTransport;
let stop: AbortController;
let log: ReturnType<typeof recordingLogger>;

beforeEach(() => {
  clock = new VirtualClock();
  transport = new ScriptedTransport();
  stop = new AbortController();
  log = recordingLogger();
});

afterEach(async () => {
  stop.abort();
  await settle();
  assert.equal(clock.pending, 0, "no timer is left behind");
});

function start(budget: ReadBudget | undefined = BUDGET, trim = (raw: KubeObject) => raw): Watched<KubeObject> {
  const deps = { transport, clock, random: evenRandom, logger: log.logger, budget };
  return startReflector<KubeObject>(deps, { type: NODE, trim }, stop.signal);
}

const page = (from: number, count: number): KubeObject[] =>
  Array.from({ length: count }, (_, index) => nodeObject(`n${from + index}`, `u${from + index}`, 1));

/** Pages of `count` objects without end. */
function endless(count: number, grow: (object: KubeObject) => KubeObject = (object) => object): void {
  let made = 0;
  transport.onList = () => listAnswer(1, page((made += count), count).map(grow), "more");
}

function assertOver(watched: Watched<KubeObject>, why: RegExp): void {
  assert.equal(watched.problemCode, "OverBudget");
  assert.match(watched.problem ?? "", why);
}

describe("a list of an API server that anybody may run", () => {
  it("is asked for in small pages", async () => {
    transport.onList = () => listAnswer(1, page(0, 3));
    start();
    await settle();
    assert.equal(transport.lists[0]?.get("limit"), "10");
  });

  it("ends where it has more objects than may be kept, and is asked for again after a minute", async () => {
    endless(10);
    const watched = start();
    await settle();
    assertOver(watched, /more than 100 objects/);
    assert.equal(watched.synced, false);
    assert.equal(transport.lists.length, 11);
    await clock.advance(REST_MS - 1_000);
    assert.equal(transport.lists.length, 11);
    await clock.advance(1_000);
    await settle();
    assert.equal(transport.lists.length, 22);
  });

  it("ends where its objects are too large to be kept", async () => {
    endless(1, (object) => ({ ...object, metadata: { ...object.metadata, labels: { a: "x".repeat(4_000) } } }));
    const watched = start();
    await settle();
    assertOver(watched, /more than 20000 characters/);
    assert.equal(transport.lists.length, 5);
  });

  it("ends where objects that are not kept have no end", async () => {
    endless(10);
    const watched = start(BUDGET, () => {
      throw new Error("cannot be read");
    });
    await settle();
    assertOver(watched, /more than 100 objects/);
  });

  it("ends where a page has more objects than it was asked for", async () => {
    transport.onList = () => listAnswer(1, page(0, 11));
    const watched = start();
    await settle();
    assertOver(watched, /11 objects in a page that was asked for 10/);
  });

  it("ends where its pages take too long", async () => {
    let listed = 0;
    transport.onList = () => listAnswer(1, page((listed += 1), 1), "more");
    const send = transport.send.bind(transport);
    transport.send = async (request, signal?: AbortSignal) => {
      await sleep(clock, 20_000, signal ?? stop.signal);
      return send(request);
    };
    const watched = start();
    await clock.advance(59_000);
    assert.equal(watched.problem, undefined);
    await clock.advance(1_000);
    assert.equal(watched.problemCode, "Timeout");
  });

  it("has no bounds where the server is the agent's own", async () => {
    let pages = 0;
    transport.onList = () => listAnswer(1, page(pages * 100, 100), (pages += 1) < 5 ? "more" : undefined);
    const deps = { transport, clock, random: evenRandom, logger: log.logger };
    const watched = startReflector<KubeObject>(deps, { type: NODE, trim: (raw) => raw }, stop.signal);
    await settle();
    assert.equal(watched.size, 500);
  });

  it("is cut off for a caller that looks at it whole, too", async () => {
    endless(10, (object) => ({ ...object, metadata: { ...object.metadata, labels: { a: "x".repeat(1_000) } } }));
    const client = createKubeClient({ transport, clock, random: evenRandom, budget: BUDGET });
    await assert.rejects(client.list(NODE, {}, stop.signal), (error: unknown) => isKubeError(error, "OverBudget"));
    assert.equal(transport.lists.length, 4);
  });
});

describe("a watch of an API server that anybody may run", () => {
  const event = (name: string, version: number): void =>
    transport.watch.event("ADDED", nodeObject(name, `u-${name}`, version));

  it("ends where ever new names would fill the memory", async () => {
    transport.onList = () => listAnswer(1, []);
    const watched = start();
    await settle();
    for (let index = 0; index < 150; index++) event(`n${index}`, index + 2);
    await settle();
    assertOver(watched, /more than 100 objects/);
    assert.ok(transport.watch.aborted);
  });

  it("ends where objects grow without end, and counts what they were no more", async () => {
    transport.onList = () => listAnswer(1, page(0, 2));
    const watched = start();
    await settle();
    const grown = (length: number, version: number): void => {
      const object = nodeObject("n0", "u0", version);
      const labels = { a: "x".repeat(length) };
      transport.watch.event("MODIFIED", { ...object, metadata: { ...object.metadata, labels } });
    };
    for (let version = 2; version < 30; version++) grown(4_000, version);
    await settle();
    assert.equal(watched.problem, undefined);
    for (let index = 0; index < 6; index++) {
      const object = nodeObject(`g${index}`, `g${index}`, 100 + index);
      const labels = { a: "x".repeat(4_000) };
      transport.watch.event("ADDED", { ...object, metadata: { ...object.metadata, labels } });
    }
    await settle();
    assertOver(watched, /more than 20000 characters/);
  });

  it("ends where it sends more than its objects account for, and is followed while it does not", async () => {
    transport.onList = () => listAnswer(1, page(0, 10));
    const watched = start();
    await settle();
    let version = 2;
    // All nodes change twice at once, as in an outage, again and again.
    for (let outage = 0; outage < 5; outage++) {
      for (let index = 0; index < 400; index++) {
        transport.watch.event("MODIFIED", nodeObject(`n${index % 10}`, `u${index % 10}`, (version += 1)));
      }
      await clock.advance(10_000);
    }
    assert.equal(watched.problem, undefined);
    for (let index = 0; index < 700; index++) transport.watch.event("MODIFIED", nodeObject("n1", "u1", (version += 1)));
    await settle();
    assertOver(watched, /more events than its objects account for/);
  });

  it("ends where it sends empty lines without end", async () => {
    transport.onList = () => listAnswer(1, []);
    const watched = start();
    await settle();
    for (let index = 0; index < 20; index++) transport.watch.send("\n".repeat(1024 * 1024));
    await settle();
    assertOver(watched, /longer events/);
  });

  it("ends where a line is too long", async () => {
    transport.onList = () => listAnswer(1, []);
    const watched = start();
    await settle();
    transport.watch.send("x".repeat(6_000));
    await settle();
    assert.equal(watched.problemCode, "BadResponse");
  });
});

describe("objects that cannot be read", () => {
  it("take two lines of the log for each list, however many they are", async () => {
    transport.onList = () => listAnswer(1, page(0, 9));
    start(BUDGET, () => {
      throw new Error("status.conditions is no list");
    });
    await settle();
    for (let index = 0; index < 20; index++)
      transport.watch.event("ADDED", nodeObject(`x${index}`, `x${index}`, index + 2));
    await settle();
    const lines = log.lines.filter(({ msg }) => /cannot be read/.test(String(msg)));
    assert.deepEqual(
      lines.map(({ msg, count }) => [msg, count]),
      [
        ["object cannot be read, left out of the view", undefined],
        ["objects cannot be read, left out of the view", 9],
        ["object cannot be read, left out of the view", undefined],
      ],
    );
  });
});
