import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Node } from "../../../../src/api/kubernetes/core.ts";
import { CurrentNodes } from "../../../../src/detector/shared/views/watched-nodes/current-nodes.ts";
import { ViewFreshness } from "../../../../src/detector/shared/views/watched-nodes/view-freshness.ts";
import type { KubeClient, ListOptions } from "../../../../src/kube/client.ts";
import { KubeError } from "../../../../src/kube/errors.ts";
import { VirtualClock } from "../../../lib/virtual-clock.ts";

const WATCHED = nodeOf("watched");
const LIVE = nodeOf("live");

function nodeOf(uid: string): Node {
  const metadata = { name: "n1", uid, resourceVersion: "1" };
  return { apiVersion: "v1", kind: "Node", metadata, spec: {}, status: {} };
}

/** A view of nodes, and an API server that reports its resource version. */
class World {
  readonly clock = new VirtualClock();
  readonly freshness = new ViewFreshness();
  readonly signal = new AbortController().signal;
  /** The requests: `version` for only the version, `list` for all nodes, `node` for a single one. */
  readonly requests: string[] = [];
  readonly view: { size: number; version: string | undefined; get: () => Node | undefined } = {
    size: 5_000,
    version: "100",
    get: () => WATCHED,
  };
  serverVersion = "105";
  listed: Node[] = [];
  answerMs = 5;
  refuses = false;
  readonly nodes: CurrentNodes;

  constructor() {
    const list = async (_type: unknown, options: ListOptions & { trim?: (raw: Node) => Node }) => {
      this.requests.push(options.pagesMax === undefined ? "list" : "version");
      const resourceVersion = this.serverVersion;
      if (this.refuses) throw new KubeError("TooManyRequests", "later");
      await new Promise<void>((resolve) => this.clock.schedule(this.answerMs, resolve));
      return { items: this.listed.map((node) => options.trim?.(node)), resourceVersion };
    };
    const { clock, freshness, view } = this;
    const get = async () => {
      this.requests.push("node");
      return LIVE;
    };
    const client = { list, get } as unknown as KubeClient;
    this.nodes = new CurrentNodes({ client, clock, nodes: view, freshness });
  }

  /** Starts to confirm the view, and lets `forMs` pass. @returns whether the call has ended. */
  async confirmed(forMs = 2_000): Promise<boolean> {
    let isOver = false;
    const confirming = this.nodes.confirm(this.signal).then(() => (isOver = true));
    await this.clock.advance(forMs);
    if (isOver) await confirming;
    return isOver;
  }

  /** Reads `n1` `count` times at once, and lets `forMs` pass. @returns the source of each read. */
  async read({ count = 3, isOneOfMany = true, forMs = 1_000 } = {}): Promise<string[]> {
    const reading = Array.from({ length: count }, () => this.nodes.readNode("n1", isOneOfMany, this.signal));
    await this.clock.advance(forMs);
    return (await Promise.all(reading)).map((node) => node?.metadata.uid ?? "gone");
  }
}

describe("the nodes of a large cluster are current", () => {
  it("the nodes of a large cluster are current when the view has reached the newest version of the API server, without a list", async () => {
    const world = new World();
    world.clock.schedule(20, () => (world.view.version = "105"));
    assert.equal(await world.confirmed(100), true);
    assert.deepEqual([world.requests, world.nodes.isKnown, world.nodes.liveNodes], [["version"], true, undefined]);
  });

  it("the nodes of a large cluster are confirmed by one request for all callers at the same time", async () => {
    const world = new World();
    world.view.version = "105";
    const asking = Array.from({ length: 32 }, () => world.nodes.confirm(world.signal));
    await world.clock.advance(100);
    await Promise.all(asking);
    assert.deepEqual(world.requests, ["version"]);
  });

  it("the nodes of a large cluster stay current for 2 s after the request, not after its answer, while the watch is silent", async () => {
    const world = new World();
    world.view.version = "105";
    world.answerMs = 1_000;
    assert.equal(await world.confirmed(1_010), true);
    await world.clock.advance(980);
    assert.equal(world.nodes.isKnown, true);
    await world.clock.advance(20);
    assert.equal(world.nodes.isKnown, false);
  });

  it("the nodes of a large cluster are no longer current after a change that arrives late, until the version is read again", async () => {
    const world = new World();
    world.view.version = "105";
    await world.confirmed(100);
    world.freshness.observe(world.clock.monotonicMs(), 3_000);
    assert.equal(world.nodes.isKnown, false);
    await world.confirmed(100);
    assert.deepEqual([world.requests, world.nodes.isKnown], [["version", "version"], true]);
  });
});

describe("the nodes of a large cluster are listed", () => {
  const cases: [string, (world: World) => void][] = [
    ["while the view does not reach the newest version, since the watch may be late", () => undefined],
    ["if the view reaches only an earlier version", (world) => (world.view.version = "104")],
    [
      "if the answer took longer than a view may be late",
      (world) => Object.assign(world, { answerMs: 2_001, serverVersion: "100" }),
    ],
    [
      "if the API server has gone back to an earlier version, as after a restore of etcd",
      (world) => (world.view.version = "200"),
    ],
    ["if versions are not numbers and cannot be compared", (world) => (world.serverVersion = "later")],
    ["if the view has no version", (world) => (world.view.version = undefined)],
  ];
  for (const [what, change] of cases) {
    it(`the nodes of a large cluster are listed ${what}`, async () => {
      const world = new World();
      change(world);
      assert.equal(await world.confirmed(5_000), true);
      assert.deepEqual(world.requests, ["version", "list"]);
      assert.equal(world.freshness.isFresh(world.clock.monotonicMs()), false);
    });
  }
});

it("the nodes of a small cluster are listed at once: no report of a kubelet is waited for", async () => {
  const world = new World();
  world.view.size = 1_000;
  const confirming = world.nodes.confirm(world.signal);
  await world.clock.advance(10);
  await confirming;
  assert.deepEqual([world.requests, world.nodes.liveNodes?.size], [["list"], 0]);
});

it("the nodes of a list are as the API server shows them, and share with the view what has not changed", async () => {
  const world = new World();
  const shown = { ...nodeOf("u1"), spec: { taints: [{ key: "a", effect: "NoExecute" }], unschedulable: true } };
  Object.assign(world.view, { size: 2, get: () => shown });
  const live = structuredClone(shown);
  live.spec.unschedulable = false;
  world.listed = [live, { ...nodeOf("u2"), metadata: { name: "n2", uid: "u2", resourceVersion: "2" } }];
  assert.equal(await world.confirmed(10), true);
  const [n1, n2] = [world.nodes.liveNodes?.get("n1"), world.nodes.liveNodes?.get("n2")];
  assert.equal(n1?.spec.taints, shown.spec.taints);
  assert.deepEqual([n1.spec.unschedulable, n2?.metadata.uid], [false, "u2"]);
});

describe("many nodes of a large cluster that are read at once", () => {
  it("many nodes of a large cluster that are read at once are those of the view when it has reached the newest version", async () => {
    const world = new World();
    world.clock.schedule(20, () => (world.view.version = "105"));
    assert.deepEqual(await world.read({ forMs: 100 }), ["watched", "watched", "watched"]);
    assert.deepEqual(world.requests, ["version"]);
  });

  it("many nodes of a large cluster that are read at once are proven current again after 500 ms, counted from the question", async () => {
    const world = new World();
    world.view.version = "105";
    world.answerMs = 150;
    await world.read({ forMs: 150 });
    await world.clock.advance(350);
    await world.read({ forMs: 0 });
    assert.deepEqual(world.requests, ["version"]);
    await world.clock.advance(1);
    assert.deepEqual(await world.read({ forMs: 150 }), ["watched", "watched", "watched"]);
    assert.deepEqual(world.requests, ["version", "version"]);
  });

  it("many nodes of a large cluster that are read at once are read one by one if the proof is older than 500 ms when it comes", async () => {
    const world = new World();
    world.view.version = "105";
    world.answerMs = 501;
    assert.deepEqual(await world.read(), ["live", "live", "live"]);
    assert.deepEqual(world.requests, ["version", "node", "node", "node"]);
  });

  it("many nodes of a large cluster that are read at once are read one by one for 5 s after a watch was late", async () => {
    const world = new World();
    assert.deepEqual(await world.read(), ["live", "live", "live"]);
    world.view.version = "105";
    await world.clock.advance(4_000);
    assert.deepEqual(await world.read({ count: 1, forMs: 0 }), ["live"]);
    await world.clock.advance(1_000);
    assert.deepEqual(await world.read({ count: 1 }), ["watched"]);
    assert.deepEqual(world.requests, ["version", "node", "node", "node", "node", "version"]);
  });

  it("many nodes of a large cluster that are read at once are read one by one if the API server refuses to say its version", async () => {
    const world = new World();
    world.refuses = true;
    assert.deepEqual(await world.read(), ["live", "live", "live"]);
  });

  it("a node is read by itself if few are read at once, or the cluster is small", async () => {
    const world = new World();
    world.view.version = "105";
    assert.deepEqual(await world.read({ isOneOfMany: false }), ["live", "live", "live"]);
    world.view.size = 1_000;
    assert.deepEqual(await world.read(), ["live", "live", "live"]);
    assert.equal(world.requests.includes("version"), false);
  });
});
