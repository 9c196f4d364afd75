import assert from "node:assert/strict";
import { afterEach, beforeEach, describe, it } from "node:test";
import { createKubeClient } from "../../../src/kube/api-client/api-client.ts";
import { isKubeError } from "../../../src/kube/errors.ts";
import type { ReadBudget } from "../../../src/kube/answers/read-budget.ts";
import { EventAllowance } from "../../../src/kube/answers/read-budget.ts";
import { startReflector } from "../../../src/kube/watch/reflector.ts";
import type { KubeObject } from "../../../src/kube/resource.ts";
import type { Watched } from "../../../src/kube/watched.ts";
import { WatchedStore } from "../../../src/kube/watch/watched-store.ts";
import { createKubeRuntime } from "../../../src/kube/connection/create-runtime.ts";
import type { Clock } from "../../../src/runtime/clock.ts";
import { sleep } from "../../../src/runtime/clock.ts";
import { settle, VirtualClock } from "../../lib/virtual-clock.ts";
import { answer, listAnswer, ScriptedTransport } from "./scripted-transport.ts";
import { evenRandom, NODE, nodeObject, recordingLogger } from "./support.ts";

const BUDGET: ReadBudget = {
  pageSize: 10,
  objects: 100,
  listObjects: 200,
  textLength: 20_000,
  listTextLength: 40_000,
  listMs: 60_000,
  lineLength: 5_000,
  answerValues: 2_000,
  eventValues: 400,
  busyMs: 3_000,
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

/** Infinitely many pages of `count` objects. */
function endless(count: number, grow: (object: KubeObject) => KubeObject = (object) => object): void {
  let made = 0;
  transport.onList = () => listAnswer(1, page((made += count), count).map(grow), "more");
}

function assertOver(watched: Watched<KubeObject>, why: RegExp): void {
  assert.equal(watched.problemCode, "OverBudget");
  assert.match(watched.problem ?? "", why);
}

describe("a list of an untrusted API server", () => {
  it("a list of an untrusted API server is asked for in small pages", async () => {
    transport.onList = () => listAnswer(1, page(0, 3));
    start();
    await settle();
    assert.equal(transport.lists[0]?.get("limit"), "10");
  });

  it("a list of an untrusted API server ends if it has more objects than may be kept, and is asked for again after a minute", async () => {
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

  it("a list of an untrusted API server ends if its objects are too large to be kept", async () => {
    endless(1, (object) => ({ ...object, metadata: { ...object.metadata, labels: { a: "x".repeat(4_000) } } }));
    const watched = start();
    await settle();
    assertOver(watched, /more than 20000 characters/);
    assert.equal(transport.lists.length, 5);
  });

  it("a list of an untrusted API server ends if objects that are not kept have no end", async () => {
    endless(10);
    const watched = start(BUDGET, () => {
      throw new Error("cannot be read");
    });
    await settle();
    assertOver(watched, /more than 100 objects/);
  });

  it("a list of an untrusted API server ends if a page has more objects than it was asked for", async () => {
    transport.onList = () => listAnswer(1, page(0, 11));
    const watched = start();
    await settle();
    assertOver(watched, /11 objects in a page with a limit of 10/);
  });

  it("a list of an untrusted API server ends if its pages take too long", async () => {
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
    assertOver(watched, /its pages took more than 60000 ms/);
    const asked = transport.lists.length;
    await clock.advance(REST_MS - 1_000);
    assert.equal(transport.lists.length, asked, "it is not asked again before a minute has passed");
  });

  it("a list of an untrusted API server ends if pages without objects have no end, and is read if an object follows in time", async () => {
    let listed = 0;
    transport.onList = () => listAnswer(1, (listed += 1) % 20 === 0 ? page(listed, 1) : [], "more");
    const many = start();
    await settle();
    assertOver(many, /more than 100 objects/);
    transport.onList = () => listAnswer(1, [], "more");
    transport.lists.length = 0;
    const watched = start();
    await settle();
    assertOver(watched, /20 empty pages in a row, and the list continues/);
    assert.equal(transport.lists.length, 20);
  });

  it("a list of an untrusted API server has no bounds if the server is the agent's own", async () => {
    let pages = 0;
    transport.onList = () => listAnswer(1, page(pages * 100, 100), (pages += 1) < 5 ? "more" : undefined);
    const deps = { transport, clock, random: evenRandom, logger: log.logger };
    const watched = startReflector<KubeObject>(deps, { type: NODE, trim: (raw) => raw }, stop.signal);
    await settle();
    assert.equal(watched.size, 500);
  });

  it("a list of an untrusted API server ends at its bounds even if a caller reads it as a whole", async () => {
    endless(10, (object) => ({ ...object, metadata: { ...object.metadata, labels: { a: "x".repeat(1_000) } } }));
    const client = createKubeClient({ transport, clock, random: evenRandom, budget: BUDGET });
    await assert.rejects(client.list(NODE, {}, stop.signal), (error: unknown) => isKubeError(error, "OverBudget"));
    assert.equal(transport.lists.length, 4);
    transport.lists.length = 0;
    endless(10);
    const isOverObjects = (error: unknown): boolean =>
      error instanceof Error && /more than 200 objects/.test(error.message);
    await assert.rejects(client.list(NODE, {}, stop.signal), isOverObjects);
    assert.equal(transport.lists.length, 21);
  });
});

describe("a watch of an untrusted API server", () => {
  const event = (name: string, version: number): void =>
    transport.watch.event("ADDED", nodeObject(name, `u-${name}`, version));

  it("a watch of an untrusted API server ends if ever new names would fill the memory", async () => {
    transport.onList = () => listAnswer(1, []);
    const watched = start();
    await settle();
    for (let index = 0; index < 150; index++) event(`n${index}`, index + 2);
    await settle();
    assertOver(watched, /more than 100 objects/);
    assert.ok(transport.watch.aborted);
  });

  it("a watch of an untrusted API server ends if objects grow without end, and counts what they were no more", async () => {
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

  it("a watch of an untrusted API server ends if it sends more than its objects account for, and is followed while it does not", async () => {
    transport.onList = () => listAnswer(1, page(0, 10));
    const watched = start();
    await settle();
    let version = 2;
    // All nodes change twice at the same time, as in an outage, several times.
    for (let outage = 0; outage < 5; outage++) {
      for (let index = 0; index < 400; index++) {
        transport.watch.event("MODIFIED", nodeObject(`n${index % 10}`, `u${index % 10}`, (version += 1)));
      }
      await clock.advance(10_000);
    }
    assert.equal(watched.problem, undefined);
    for (let index = 0; index < 700; index++) transport.watch.event("MODIFIED", nodeObject("n1", "u1", (version += 1)));
    await settle();
    assertOver(watched, /more events than the number of its objects allows/);
  });

  it("a watch of an untrusted API server ends if it sends empty lines without end", async () => {
    transport.onList = () => listAnswer(1, []);
    const watched = start();
    await settle();
    for (let index = 0; index < 20; index++) transport.watch.send("\n".repeat(1024 * 1024));
    await settle();
    assertOver(watched, /longer events/);
  });

  it("a watch of an untrusted API server ends if a line is too long", async () => {
    transport.onList = () => listAnswer(1, []);
    const watched = start();
    await settle();
    transport.watch.send("x".repeat(6_000));
    await settle();
    assert.equal(watched.problemCode, "BadResponse");
  });
});

describe("an answer of an untrusted API server", () => {
  const fields = (count: number): object =>
    Object.fromEntries(Array.from({ length: count }, (_, index) => [`k${index}`, 0]));

  function bounded(budget: ReadBudget = BUDGET) {
    const deps = { transport, clock, random: evenRandom, logger: log.logger, controllerName: "test", instance: "test" };
    return createKubeRuntime({ ...deps, budget });
  }

  it("an answer of an untrusted API server is not parsed if it has more values than its length lets expect", async () => {
    transport.onList = () => listAnswer(1, [{ ...nodeObject("n1", "u1", 1), ...fields(2_100) }]);
    const runtime = bounded();
    const { client } = runtime;
    const watched = runtime.watch<KubeObject>({ type: NODE, trim: (raw) => raw }, stop.signal);
    await settle();
    assertOver(watched, /more than 2000 values/);
    const isOver = (error: unknown): boolean => isKubeError(error, "OverBudget");
    await assert.rejects(client.list(NODE, {}, stop.signal), isOver);
    await assert.rejects(client.get(NODE, { name: "n1" }, stop.signal), isOver);
  });

  it("an answer of an untrusted API server is not parsed either if it is an error", async () => {
    transport.onList = () => answer(500, { kind: "Status", ...fields(2_100) });
    const watched = bounded().watch<KubeObject>({ type: NODE, trim: (raw) => raw }, stop.signal);
    await settle();
    assertOver(watched, /more than 2000 values/);
  });

  it("an answer of an untrusted API server is not parsed if it is nested more deeply than any object", async () => {
    const deep = (levels: number): KubeObject => ({
      ...nodeObject("n1", "u1", 1),
      ...(JSON.parse(`${'{"a":'.repeat(levels)}0${"}".repeat(levels)}`) as object),
    });
    transport.onList = () => listAnswer(1, [deep(100)]);
    assertOver(await started(), /more than 64 levels/);
    transport.onList = () => listAnswer(1, [deep(50)]);
    assert.equal((await started()).size, 1);
  });

  async function started(): Promise<Watched<KubeObject>> {
    const watched = bounded().watch<KubeObject>({ type: NODE, trim: (raw) => raw }, stop.signal);
    await settle();
    return watched;
  }

  it("an answer of an untrusted API server is read if its length is text, whatever the text is", async () => {
    const text = `,[{"\\`.repeat(600);
    const object = nodeObject("n1", "u1", 1);
    const labels = { a: text };
    transport.onList = () => listAnswer(1, [{ ...object, metadata: { ...object.metadata, labels } }]);
    assert.equal((await started()).size, 1);
  });

  it("an untrusted API server may not send a watch event with more values than one object has", async () => {
    transport.onList = () => listAnswer(1, []);
    const watched = start();
    await settle();
    transport.watch.event("ADDED", { ...nodeObject("n1", "u1", 2), ...fields(350) });
    await settle();
    assert.equal(watched.problem, undefined);
    transport.watch.event("ADDED", { ...nodeObject("n2", "u2", 3), ...fields(450) });
    await settle();
    assertOver(watched, /more than 400 values/);
  });

  it("an answer of an untrusted API server ends a watch whose text comes in pieces of a character", () => {
    const allowance = new EventAllowance(clock, () => 0);
    assert.throws(
      () => {
        for (let index = 0; index < 300_000; index++) allowance.take("watch", 0, 1);
      },
      (error: unknown) => isKubeError(error, "OverBudget"),
    );
  });
});

describe("the main thread", () => {
  /** A reader that takes this long for each object. */
  function slowly(ms: number): { read: (raw: KubeObject) => KubeObject; slow: Clock } {
    let workedMs = 0;
    const slow: Clock = {
      nowMs: () => clock.nowMs(),
      monotonicMs: () => clock.monotonicMs() + workedMs,
      schedule: (delayMs, callback) => clock.schedule(delayMs, callback),
    };
    const read = (raw: KubeObject): KubeObject => {
      workedMs += ms;
      return raw;
    };
    return { read, slow };
  }

  it("the main thread is not kept busy for longer than the budget by pages that are within all other bounds", async () => {
    endless(5);
    const { read, slow } = slowly(250);
    const deps = { transport, clock: slow, random: evenRandom, logger: log.logger, budget: BUDGET };
    const watched = startReflector<KubeObject>(deps, { type: NODE, trim: read }, stop.signal);
    await settle();
    assertOver(watched, /took more than 3000 ms within a minute/);
    assert.equal(transport.lists.length, 4);
    const client = createKubeClient({ transport, clock: slow, random: evenRandom, budget: BUDGET });
    const listed = client.list<KubeObject>(NODE, { trim: read }, stop.signal);
    await assert.rejects(listed, (error: unknown) => isKubeError(error, "OverBudget"));
    assert.equal(transport.lists.length, 8);
  });

  it("the main thread is not kept busy for longer than the budget by answers that take long to check, for any number of callers", async () => {
    let workedMs = 0;
    let readMs = 50;
    const slow: Clock = {
      nowMs: () => clock.nowMs(),
      monotonicMs: () => clock.monotonicMs() + (workedMs += readMs),
      schedule: (delayMs, callback) => clock.schedule(delayMs, callback),
    };
    const deps = { transport, clock: slow, random: evenRandom, logger: log.logger };
    const runtime = createKubeRuntime({ ...deps, controllerName: "test", instance: "test", budget: BUDGET });
    transport.onList = () => answer(200, nodeObject("n1", "u1", 1));
    let read = 0;
    await assert.rejects(
      async () => {
        for (; read < 1_000; read++) await runtime.client.get(NODE, { name: "n1" }, stop.signal);
      },
      (error: unknown) => isKubeError(error, "OverBudget"),
    );
    assert.ok(read < 100, `${read} answers were checked`);
    readMs = 0;
    const asked = transport.lists.length;
    await assert.rejects(runtime.client.get(NODE, { name: "n1" }, stop.signal), /took more than 3000 ms/);
    assert.equal(transport.lists.length, asked, "a server that is over its budget is asked for nothing");
    const watched = runtime.watch<KubeObject>({ type: NODE, trim: (raw) => raw }, stop.signal);
    await settle();
    assertOver(watched, /took more than 3000 ms within a minute/);
    assert.equal(transport.lists.length, asked, "one budget holds for all that is read from a server");
  });

  it("the main thread is not kept busy by requests alone, however small their answers are", async () => {
    const deps = { transport, clock, random: evenRandom, logger: log.logger };
    const runtime = createKubeRuntime({ ...deps, controllerName: "test", instance: "test", budget: BUDGET });
    transport.onList = () => answer(200, nodeObject("n1", "u1", 1));
    await assert.rejects(
      async () => {
        for (let read = 0; read < 20_000; read++) await runtime.client.get(NODE, { name: "n1" }, stop.signal);
      },
      (error: unknown) => isKubeError(error, "OverBudget"),
    );
  });

  it("the main thread is not kept busy by events for longer than the budget, which fills up with time", async () => {
    transport.onList = () => listAnswer(1, []);
    const { read, slow } = slowly(500);
    const deps = { transport, clock: slow, random: evenRandom, logger: log.logger, budget: BUDGET };
    const watched = startReflector<KubeObject>(deps, { type: NODE, trim: read }, stop.signal);
    await settle();
    let version = 1;
    const event = async (): Promise<void> => {
      version += 1;
      transport.watch.event("ADDED", nodeObject("n1", "u1", version));
      await settle();
    };
    for (let index = 0; index < 12; index++) {
      await event();
      await clock.advance(10_000);
    }
    assert.equal(watched.problem, undefined);
    for (let index = 0; index < 8; index++) await event();
    assertOver(watched, /took more than 3000 ms within a minute/);
  });
});

describe("the memory of a view", () => {
  /** The API server may send JSON that can be parsed but not serialized again. */
  const nested = (name: string, version: number): KubeObject => {
    const object = nodeObject(name, `u-${name}`, version);
    const deep: unknown = JSON.parse(`${"[".repeat(20_000)}${"]".repeat(20_000)}`);
    return { ...object, metadata: { ...object.metadata, deep } as KubeObject["metadata"] };
  };
  const large = (name: string, version: number): KubeObject => {
    const object = nodeObject(name, `u-${name}`, version);
    return { ...object, metadata: { ...object.metadata, labels: { a: "x".repeat(15_000) } } };
  };

  it("the memory of a view counts an object until it is gone, also if what would replace it cannot be counted", () => {
    const store = new WatchedStore((raw) => raw, log.logger, BUDGET);
    store.upsert(large("a", 1));
    store.checkBudget("watch");
    assert.throws(
      () => store.upsert(nested("a", 2)),
      (error: unknown) => isKubeError(error, "OverBudget"),
    );
    store.upsert(large("b", 3));
    assert.throws(() => store.checkBudget("watch"), /more than 20000 characters to be kept/);
  });

  it("the memory of a view keeps what it had if an object of a list cannot be counted", () => {
    const store = new WatchedStore((raw) => raw, log.logger, BUDGET);
    store.replace([large("a", 1)]);
    assert.throws(
      () => store.replace([nested("b", 2)]),
      (error: unknown) => isKubeError(error, "OverBudget"),
    );
    assert.deepEqual(
      [...store.values()].map(({ metadata }) => metadata.name),
      ["a"],
    );
    store.upsert(large("c", 3));
    assert.throws(() => store.checkBudget("watch"), /more than 20000 characters to be kept/);
  });
});

describe("objects that cannot be read", () => {
  it("objects that cannot be read take two lines of the log for each list, however many they are", async () => {
    transport.onList = () => listAnswer(1, page(0, 9));
    start(BUDGET, () => {
      throw new Error("status.conditions is not a list");
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
