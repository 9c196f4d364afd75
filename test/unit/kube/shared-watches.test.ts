import assert from "node:assert/strict";
import { afterEach, beforeEach, describe, it } from "node:test";
import { createKubeRuntime } from "../../../src/kube/connection/create-runtime.ts";
import type { KubeObject } from "../../../src/kube/resource.ts";
import type { KubeRuntime } from "../../../src/kube/runtime.ts";
import { shareWatches } from "../../../src/kube/watch/shared-watches.ts";
import type { Change, Watched } from "../../../src/kube/watched.ts";
import { settle, VirtualClock } from "../../lib/virtual-clock.ts";
import { failure } from "./api-stub.ts";
import { answer, listAnswer, ScriptedTransport } from "./scripted-transport.ts";
import { CONFIG_MAP, evenRandom, NODE, nodeObject, recordingLogger } from "./support.ts";

/** What a part keeps of an object. */
interface Name extends KubeObject {
  called: string;
}

let clock: VirtualClock;
let transport: ScriptedTransport;
let runtime: KubeRuntime;
let log: ReturnType<typeof recordingLogger>;
let parts: AbortController[];
let trimmed: string[];

const keepAll = (raw: KubeObject): KubeObject => raw;
const nameOnly = ({ apiVersion, kind, metadata }: KubeObject): Name => {
  trimmed.push(`${metadata.name}@${metadata.resourceVersion}`);
  return { apiVersion, kind, metadata, called: metadata.name };
};

beforeEach(() => {
  clock = new VirtualClock();
  transport = new ScriptedTransport();
  transport.onList = () => listAnswer(10, [nodeObject("a", "ua", 5), nodeObject("b", "ub", 6)]);
  log = recordingLogger();
  const names = { controllerName: "ironfence.io/test", instance: "test" };
  const kube = createKubeRuntime({ transport, clock, random: evenRandom, logger: log.logger, ...names });
  runtime = shareWatches(kube, [{ type: NODE, trim: keepAll }]);
  parts = [];
  trimmed = [];
});

afterEach(async () => {
  for (const part of parts) part.abort(new Error("the test is over"));
  await settle();
  assert.equal(clock.pending, 0, "no timer is left behind");
});

/** Watches as a part of the agent of its own. */
function join<T extends KubeObject>(trim: (raw: KubeObject) => T | undefined): [Watched<T>, AbortController] {
  const part = new AbortController();
  parts.push(part);
  return [runtime.watch({ type: NODE, trim }, part.signal), part];
}

function changesOf(view: Watched<KubeObject>): string[] {
  const changes: string[] = [];
  view.subscribe(({ type, object }) => void changes.push(`${type} ${object.metadata.uid}`));
  return changes;
}

const uids = (view: Watched<KubeObject>): string[] => [...view.values()].map(({ metadata }) => metadata.uid);

describe("parts that share a watch", () => {
  it("parts that share a watch have one list and one connection, and each keeps what its trim leaves", async () => {
    const [whole] = join(keepAll);
    const [named] = join(nameOnly);
    const changes = changesOf(named);
    assert.deepEqual([named.synced, named.size, named.lastContactMs], [false, 0, Number.NEGATIVE_INFINITY]);
    await settle();
    assert.deepEqual([transport.lists.length, transport.watches.length], [1, 1]);
    assert.deepEqual([whole.size, named.size, named.synced, named.version], [2, 2, true, "10"]);
    assert.equal(named.get({ name: "a" })?.called, "a");
    assert.equal(named.get({ name: "c" }), undefined);
    transport.watch.event("MODIFIED", nodeObject("a", "ua", 11));
    transport.watch.event("DELETED", nodeObject("b", "ub", 12));
    await settle();
    assert.deepEqual(changes, ["added ua", "added ub", "updated ua", "deleted ub"]);
    assert.deepEqual([uids(whole), uids(named), named.version], [["ua"], ["ua"], "12"]);
  });

  it("parts that share a watch may begin late: the view is read already, and shows what is there", async () => {
    join(keepAll);
    await settle();
    const [late, part] = join(nameOnly);
    await late.whenSynced(part.signal);
    assert.deepEqual(changesOf(late), ["added ua", "added ub"]);
    assert.equal(transport.lists.length, 1);
  });

  it("parts that share a watch may end: it goes on for the others, and ends with the last of them", async () => {
    const [, first] = join(keepAll);
    const [named, second] = join(nameOnly);
    await settle();
    const { watch } = transport;
    first.abort();
    await settle();
    assert.equal(watch.aborted, false);
    watch.event("DELETED", nodeObject("a", "ua", 11));
    await settle();
    assert.deepEqual(uids(named), ["ub"]);
    second.abort();
    await settle();
    assert.equal(watch.aborted, true);
    const [again] = join(nameOnly);
    await settle();
    assert.deepEqual([transport.lists.length, transport.watches.length, again.size], [2, 2, 2]);
  });

  it("a part that has ended hears of no further change, although the watch goes on for others", async () => {
    join(keepAll);
    const [named, part] = join(nameOnly);
    await settle();
    const changes = changesOf(named);
    part.abort();
    transport.watch.event("MODIFIED", nodeObject("a", "ua", 11));
    await settle();
    assert.deepEqual(changes, ["added ua", "added ub"]);
    const late = changesOf(named);
    transport.watch.event("MODIFIED", nodeObject("a", "ua", 12));
    await settle();
    assert.deepEqual(late, ["added ua", "added ub"], "a listener that subscribes after the end");
  });

  it("a part that has ended before it watches asks the API server nothing and learns nothing", async () => {
    const ended = AbortSignal.abort(new Error("over"));
    const alone = runtime.watch({ type: NODE, trim: keepAll }, ended);
    await settle();
    assert.equal(transport.lists.length, 0);
    join(keepAll);
    await settle();
    const beside = runtime.watch({ type: NODE, trim: nameOnly }, ended);
    assert.deepEqual([alone.synced, beside.synced, beside.size], [false, false, 0]);
    assert.equal(transport.watch.aborted, false, "the watch of the others goes on");
  });

  it("parts that select objects, or watch another kind or namespace, have a watch of their own", async () => {
    join(keepAll);
    const part = new AbortController();
    parts.push(part);
    runtime.watch({ type: NODE, labelSelector: "a=b", trim: keepAll }, part.signal);
    runtime.watch({ type: NODE, fieldSelector: "metadata.name=a", trim: keepAll }, part.signal);
    runtime.watch({ type: NODE, namespace: "ns", trim: keepAll }, part.signal);
    runtime.watch({ type: CONFIG_MAP, trim: keepAll }, part.signal);
    runtime.watch({ type: { ...NODE, version: "v2" }, trim: keepAll }, part.signal);
    runtime.watch({ type: { ...NODE, group: "example.com" }, trim: keepAll }, part.signal);
    await settle();
    assert.equal(transport.lists.length, 7);
  });

  it("parts that share a watch all see that it is refused, and that it is not any more", async () => {
    transport.onList = () => answer(403, failure(403, "Forbidden", "may not list"));
    join(keepAll);
    const [named, part] = join(nameOnly);
    await settle();
    assert.deepEqual([named.synced, named.problemCode], [false, "Forbidden"]);
    assert.match(named.problem ?? "", /may not list/);
    let isSynced = false;
    void named.whenSynced(part.signal).then(() => (isSynced = true));
    transport.onList = () => listAnswer(10, [nodeObject("a", "ua", 5)]);
    await clock.advance(10_000);
    assert.deepEqual([isSynced, named.problem, named.problemCode, uids(named)], [true, undefined, undefined, ["ua"]]);
  });

  it("parts that share a watch all see that the API server has gone back to an earlier state", async () => {
    const [whole] = join(keepAll);
    const [named] = join(nameOnly);
    await settle();
    const changes = changesOf(named);
    transport.onList = () => listAnswer(4, [nodeObject("a", "ua", 3), nodeObject("b", "later", 4)]);
    transport.watch.event("BOOKMARK", { metadata: { resourceVersion: "4" } });
    await clock.advance(1_000);
    assert.deepEqual([whole.rewinds, named.rewinds, named.version], [1, 1, "4"]);
    assert.deepEqual(changes, ["added ua", "added ub", "deleted ub", "updated ua", "added later"]);
    assert.deepEqual(uids(named), ["ua", "later"]);
  });
});

describe("a part that joins a shared watch late", () => {
  /** A list with an object that the watch does not report. */
  const listMore = (): void => {
    transport.onList = () => listAnswer(20, [nodeObject("a", "ua", 5), nodeObject("c", "uc", 15)]);
  };

  /** Begins a shared watch that has been silent for 10 s. */
  async function fallSilent(): Promise<[Watched<KubeObject>, AbortController]> {
    const [whole, part] = join(keepAll);
    await settle();
    await clock.advance(10_000);
    listMore();
    return [whole, part];
  }

  /** Lets the next list wait until the returned function answers it. */
  function holdList(): () => void {
    const send = transport.send.bind(transport);
    let release = (): void => undefined;
    const held = new Promise<void>((resolve) => (release = resolve));
    transport.send = async (request) => {
      transport.send = send;
      const list = await send(request);
      await held;
      return list;
    };
    return release;
  }

  /** Joins a part late. Its list, which `answer` lets arrive, is earlier than a deletion that the watch shows. */
  async function deleteDuringList() {
    const [whole] = await fallSilent();
    transport.onList = () => listAnswer(10, [nodeObject("a", "ua", 5), nodeObject("b", "ub", 6)]);
    const answer = holdList();
    const [late, part] = join(nameOnly);
    await settle();
    transport.watch.event("DELETED", nodeObject("b", "ub", 11));
    return { whole, late, part, answer };
  }

  for (const [how, trim] of [
    ["with another trim", nameOnly],
    ["with the same trim", keepAll],
  ] as const) {
    it(`a part that joins a silent watch late ${how} sees what a list shows, and so do the others then`, async () => {
      const [whole] = await fallSilent();
      const silent = transport.watch;
      const [late, part] = join<KubeObject>(trim);
      assert.equal(late.synced, false);
      await late.whenSynced(part.signal);
      assert.deepEqual([late.synced, uids(late), uids(whole)], [true, ["ua", "uc"], ["ua", "uc"]]);
      await settle();
      assert.deepEqual([silent.aborted, transport.watches.length], [true, 2]);
      assert.equal(transport.watch.query.get("resourceVersion"), "20");
      transport.watch.event("DELETED", nodeObject("a", "ua", 21));
      await settle();
      assert.deepEqual([uids(late), uids(whole), whole.problem, log.lines], [["uc"], ["uc"], undefined, []]);
    });
  }

  it("parts that join a shared watch late at the same time are all synced, and the watch is opened again once", async () => {
    await fallSilent();
    const late = [join(nameOnly), join(keepAll), join(nameOnly)];
    await Promise.all(late.map(([view, part]) => view.whenSynced(part.signal)));
    await settle();
    assert.deepEqual(
      late.map(([view]) => uids(view)),
      late.map(() => ["ua", "uc"]),
    );
    assert.equal(transport.watches.length, 2);
  });

  it("a part that joins a shared watch amid a list of another part shows what was stored before it joined", async () => {
    await fallSilent();
    const answer = holdList();
    const [early] = join(nameOnly);
    await settle();
    transport.onList = () => listAnswer(30, [nodeObject("d", "ud", 25)]);
    const [late, part] = join(nameOnly);
    await late.whenSynced(part.signal);
    assert.deepEqual([uids(late), early.synced], [["ud"], false]);
    answer();
    await settle();
    assert.deepEqual([early.synced, uids(early), uids(late)], [true, ["ud"], ["ud"]], "the later list counts");
    assert.deepEqual([transport.watches.length, transport.watch.query.get("resourceVersion")], [2, "30"]);
  });

  it("a part that joins a shared watch while it is listed again after an error shows what was stored before it joined", async () => {
    const [whole] = await fallSilent();
    const answer = holdList();
    transport.watch.event("ERROR", failure(410, "Expired", "too old"));
    await clock.advance(3_000);
    transport.onList = () => listAnswer(30, [nodeObject("d", "ud", 25)]);
    const [late, part] = join(nameOnly);
    await late.whenSynced(part.signal);
    answer();
    await settle();
    assert.deepEqual([uids(late), uids(whole), transport.watches.length], [["ud"], ["ud"], 2]);
    assert.equal(transport.watch.query.get("resourceVersion"), "30");
  });

  it("a part that joins a shared watch late is not synced while the list fails, and the watch goes on for the others", async () => {
    const [whole] = await fallSilent();
    transport.onList = () => answer(503, failure(503, "ServiceUnavailable", "no etcd"));
    const [late] = join(nameOnly);
    await clock.advance(30_000);
    transport.watch.event("ADDED", nodeObject("d", "ud", 11));
    await clock.advance(30_000);
    assert.deepEqual([late.synced, uids(whole), whole.problem], [false, ["ua", "ub", "ud"], undefined]);
    assert.deepEqual([transport.lists.length < 15, transport.watches.length], [true, 1]);
    assert.deepEqual(
      log.lines.map(({ msg }) => msg),
      ["cannot list for a part that begins, trying again"],
    );
    listMore();
    await clock.advance(20_000);
    assert.deepEqual([late.synced, uids(late)], [true, ["ua", "uc"]]);
  });

  it("a part that joins a shared watch late and whose list takes long lists once", async () => {
    await fallSilent();
    const answer = holdList();
    const [late] = join(nameOnly);
    await clock.advance(5_000);
    answer();
    await settle();
    assert.deepEqual([late.synced, transport.lists.length], [true, 2]);
  });

  it("a part that joins a shared watch late does not set back what the watch shows before the list is read", async () => {
    const { whole, late, part, answer } = await deleteDuringList();
    await settle();
    answer();
    await late.whenSynced(part.signal);
    assert.deepEqual([uids(late), uids(whole), whole.version, whole.rewinds], [["ua"], ["ua"], "11", 0]);
    await settle();
    assert.equal(transport.watches.length, 1, "the watch works");
  });

  it("a part that joins a shared watch late does not set back what a watch showed that has ended since", async () => {
    const { whole, late, part, answer } = await deleteDuringList();
    transport.watch.event("ERROR", failure(410, "Expired", "too old"));
    await settle();
    answer();
    await late.whenSynced(part.signal);
    assert.deepEqual([uids(late), uids(whole), whole.version, whole.rewinds], [["ua"], ["ua"], "11", 0]);
    transport.onList = () => listAnswer(20, [nodeObject("a", "ua", 5)]);
    await clock.advance(5_000);
    assert.deepEqual([uids(whole), whole.version, transport.watches.length], [["ua"], "20", 2]);
  });

  it("a part that joins a shared watch late is not shown what the old watch still delivers after the list", async () => {
    await fallSilent();
    const old = transport.watch;
    const [late] = join(nameOnly);
    late.subscribe(({ object }) => {
      if (object.metadata.uid === "uc") old.event("MODIFIED", nodeObject("b", "ub", 12));
    });
    await settle();
    assert.deepEqual([uids(late), late.version], [["ua", "uc"], "20"]);
  });

  it("a part that joins a shared watch late may end while it waits for the list: the watch goes on for the others", async () => {
    const [whole] = await fallSilent();
    const answer = holdList();
    const [late, part] = join(nameOnly);
    const waiting = assert.rejects(late.whenSynced(part.signal), /enough/);
    await settle();
    part.abort(new Error("enough"));
    await waiting;
    answer();
    await settle();
    transport.watch.event("ADDED", nodeObject("d", "ud", 21));
    await settle();
    assert.deepEqual([whole.get({ name: "d" })?.metadata.uid, transport.watch.aborted], ["ud", false]);
  });

  it("a part that joins a shared watch late gets its list although all others end meanwhile", async () => {
    const [, first] = await fallSilent();
    const answer = holdList();
    const [late] = join(nameOnly);
    await settle();
    first.abort(new Error("over"));
    answer();
    await settle();
    assert.deepEqual([late.synced, uids(late), transport.watch.aborted], [true, ["ua", "uc"], false]);
  });

  it("a part that joins a shared watch within 2 s after its list began needs no other list", async () => {
    join(keepAll);
    await settle();
    await clock.advance(2_000);
    const [late] = join(nameOnly);
    await settle();
    assert.deepEqual([late.synced, uids(late), transport.lists.length], [true, ["ua", "ub"], 1]);
    await clock.advance(1);
    const [later] = join(nameOnly);
    assert.equal(later.synced, false);
    await settle();
    assert.deepEqual([later.synced, transport.lists.length], [true, 2]);
  });

  it("a part that joins a shared watch late may show that the API server has gone back: all parts notice it", async () => {
    const [whole] = await fallSilent();
    transport.onList = () => listAnswer(4, [nodeObject("a", "ua", 3)]);
    const [late, part] = join(nameOnly);
    await late.whenSynced(part.signal);
    assert.deepEqual([whole.rewinds, late.rewinds, uids(whole), uids(late)], [1, 1, ["ua"], ["ua"]]);
  });
});

describe("a view that is derived from a shared watch", () => {
  it("a view that is derived from a shared watch is whole before its first listener hears of a list", async () => {
    const [named] = join(nameOnly);
    const seen: [boolean, string[]][] = [];
    named.subscribe(() => seen.push([named.synced, uids(named)]));
    await settle();
    const whole = [true, ["ua", "ub"]];
    assert.deepEqual(seen, [whole, whole]);
  });

  it("a view that is derived from a shared watch shows each version as one object, to every listener", async () => {
    const [named] = join(nameOnly);
    await settle();
    const first = named.get({ name: "a" });
    const changes: Change<Name>[] = [];
    named.subscribe((change) => void (change.type === "updated" && named.get({ name: "a" })));
    named.subscribe((change) => void changes.push(change));
    named.subscribe((change) => void changes.push(change));
    changes.length = 0;
    trimmed.length = 0;
    transport.watch.event("MODIFIED", nodeObject("a", "ua", 11));
    await settle();
    const [one, other] = changes;
    assert.ok(one?.type === "updated" && other?.type === "updated");
    assert.equal(one.object, other.object);
    assert.deepEqual([one.previous === first, other.previous === first], [true, true]);
    assert.equal(named.get({ name: "a" }), one.object);
    assert.equal([...named.values()].includes(one.object), true);
    assert.deepEqual(trimmed, ["a@11"]);
  });

  it("a view that is derived from a shared watch shows an object while its trim keeps it", async () => {
    const [even] = join((raw) => (Number(raw.metadata.resourceVersion) % 2 === 0 ? nameOnly(raw) : undefined));
    const changes = changesOf(even);
    await settle();
    assert.deepEqual([uids(even), even.size, even.get({ name: "a" })], [["ub"], 1, undefined]);
    for (const version of [12, 14, 15, 17]) transport.watch.event("MODIFIED", nodeObject("a", "ua", version));
    transport.watch.event("DELETED", nodeObject("a", "ua", 18));
    transport.watch.event("DELETED", nodeObject("b", "ub", 19));
    await settle();
    assert.deepEqual(changes, ["added ub", "added ua", "updated ua", "deleted ua", "deleted ub"]);
  });

  it("a view that is derived from a shared watch shows a successor of the same name as another object", async () => {
    const [named] = join(nameOnly);
    await settle();
    const changes = changesOf(named);
    transport.watch.event("ADDED", nodeObject("a", "successor", 11));
    await settle();
    assert.deepEqual(changes.slice(2), ["deleted ua", "added successor"]);
    assert.equal(named.get({ name: "a" })?.metadata.uid, "successor");
  });

  it("a view that is derived from a shared watch leaves out an object that its trim cannot read, and logs it", async () => {
    const [whole] = join(keepAll);
    const [named] = join((raw) => {
      if (raw.metadata.name === "a") throw new TypeError("no such field");
      return nameOnly(raw);
    });
    await settle();
    const changes = changesOf(named);
    assert.deepEqual([uids(named), named.size, named.get({ name: "a" }), whole.size], [["ub"], 1, undefined, 2]);
    transport.watch.event("DELETED", nodeObject("a", "ua", 11));
    await settle();
    assert.deepEqual(changes, ["added ub"]);
    const messages = log.lines.map(({ msg, object }) => `${msg as string}: ${object as string}`);
    assert.deepEqual(messages, ["object cannot be read, left out of the view: a"]);
  });

  it("a listener that unsubscribes hears of no further change", async () => {
    const [named] = join(nameOnly);
    await settle();
    let count = 0;
    const unsubscribe = named.subscribe(() => (count += 1));
    unsubscribe();
    transport.watch.event("DELETED", nodeObject("a", "ua", 11));
    await settle();
    assert.equal(count, 2);
  });
});
