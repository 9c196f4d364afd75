import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Node } from "../../../../src/api/kubernetes/core.ts";
import { CurrentNodes } from "../../../../src/detector/shared/views/current-nodes.ts";
import { ViewFreshness } from "../../../../src/detector/shared/views/view-freshness.ts";
import type { KubeClient, ListOptions } from "../../../../src/kube/client.ts";
import { VirtualClock } from "../../../lib/virtual-clock.ts";

/** A view of nodes, and an API server that says how far it has come. */
class World {
  readonly clock = new VirtualClock();
  readonly freshness = new ViewFreshness();
  readonly signal = new AbortController().signal;
  /** The requests: `version` for the version alone, `list` for all nodes. */
  readonly requests: string[] = [];
  readonly view: { size: number; version: string | undefined } = { size: 5_000, version: "100" };
  serverVersion = "105";
  answerMs = 5;
  readonly nodes: CurrentNodes;

  constructor() {
    const list = async (_type: unknown, options: ListOptions) => {
      this.requests.push(options.pagesMax === undefined ? "list" : "version");
      const resourceVersion = this.serverVersion;
      await new Promise<void>((resolve) => this.clock.schedule(this.answerMs, resolve));
      return { items: [] as Node[], resourceVersion };
    };
    const { clock, freshness, view } = this;
    const client = { list } as unknown as KubeClient;
    this.nodes = new CurrentNodes({ client, clock, nodes: view, freshness });
  }

  /** Confirms, and lets `forMs` pass meanwhile. @returns whether that has ended. */
  async confirmed(forMs = 2_000): Promise<boolean> {
    let isOver = false;
    const confirming = this.nodes.confirm(this.signal).then(() => (isOver = true));
    await this.clock.advance(forMs);
    if (isOver) await confirming;
    return isOver;
  }
}

describe("the nodes of a large cluster are current", () => {
  it("when the view has reached the newest version of the API server, without a list of all", async () => {
    const world = new World();
    world.clock.schedule(20, () => (world.view.version = "105"));
    assert.equal(await world.confirmed(100), true);
    assert.deepEqual([world.requests, world.nodes.isKnown, world.nodes.liveNodes], [["version"], true, undefined]);
  });

  it("for all that ask at the same time, by one request", async () => {
    const world = new World();
    world.view.version = "105";
    const asking = Array.from({ length: 32 }, () => world.nodes.confirm(world.signal));
    await world.clock.advance(100);
    await Promise.all(asking);
    assert.deepEqual(world.requests, ["version"]);
  });

  it("for 2 s from the question on, and not from the answer on, while the watch is silent", async () => {
    const world = new World();
    world.view.version = "105";
    world.answerMs = 1_000;
    assert.equal(await world.confirmed(1_010), true);
    await world.clock.advance(980);
    assert.equal(world.nodes.isKnown, true);
    await world.clock.advance(20);
    assert.equal(world.nodes.isKnown, false);
  });

  it("no more once a change is observed late, until the version is asked for again", async () => {
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
    ["while the view does not reach that version: the watch may be late", () => undefined],
    ["if the view reaches only an earlier one", (world) => (world.view.version = "104")],
    [
      "if the answer took longer than a view may be late",
      (world) => Object.assign(world, { answerMs: 2_001, serverVersion: "100" }),
    ],
    [
      "if the API server has gone back to an earlier version: etcd was restored, and the view shows what is no more",
      (world) => (world.view.version = "200"),
    ],
    ["if versions are no numbers, since they cannot be compared", (world) => (world.serverVersion = "later")],
    ["if the view has no version", (world) => (world.view.version = undefined)],
  ];
  for (const [what, change] of cases) {
    it(what, async () => {
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
