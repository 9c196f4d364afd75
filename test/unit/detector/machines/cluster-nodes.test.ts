import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Node } from "../../../../src/api/kubernetes/core.ts";
import type { ClusterConnection } from "../../../../src/clusters/workload-clusters.ts";
import { ClusterNodes } from "../../../../src/detector/machines/snapshot/cluster-nodes.ts";
import { MonotonicTimes } from "../../../../src/detector/shared/views/watched-nodes/condition-times.ts";
import type { KubeRuntime } from "../../../../src/kube/runtime.ts";
import type { Change, Watched } from "../../../../src/kube/watched.ts";
import { VirtualClock } from "../../../lib/virtual-clock.ts";
import { nodeOf, T0 } from "./builders.ts";

/** A view of nodes that the test fills. */
class Nodes implements Watched<Node> {
  readonly #nodes = new Map<string, Node>();
  readonly #listeners = new Set<(change: Change<Node>) => void>();
  readonly synced = true;
  readonly lastContactMs = 0;
  readonly problem = undefined;
  get size(): number {
    return this.#nodes.size;
  }
  get listeners(): number {
    return this.#listeners.size;
  }
  get({ name }: { name: string }): Node | undefined {
    return this.#nodes.get(name);
  }
  values(): IterableIterator<Node> {
    return this.#nodes.values();
  }
  subscribe(listener: (change: Change<Node>) => void): () => void {
    this.#listeners.add(listener);
    for (const object of this.#nodes.values()) listener({ type: "added", object });
    return () => void this.#listeners.delete(listener);
  }
  whenSynced(): Promise<void> {
    return Promise.resolve();
  }
  put(object: Node): void {
    const previous = this.#nodes.get(object.metadata.name);
    this.#nodes.set(object.metadata.name, object);
    for (const listener of this.#listeners) {
      listener(previous === undefined ? { type: "added", object } : { type: "updated", object, previous });
    }
  }
}

function worldOf(first: ClusterConnection) {
  const clock = new VirtualClock(T0);
  const times = new MonotonicTimes(clock, undefined);
  const heard: (string | undefined)[] = [];
  let connection = first;
  let onConnection = (): void => undefined;
  let released = 0;
  const nodes = new ClusterNodes(
    {
      clock,
      times,
      onChange: (nodeName) => void heard.push(nodeName),
      clusters: {
        hold: (ref, onChange) => {
          onConnection = onChange;
          return {
            ref,
            get connection() {
              return connection;
            },
            release: () => void (released += 1),
          };
        },
      },
    },
    { namespace: "tenant", name: "prod" },
  );
  const become = (next: ClusterConnection): void => {
    connection = next;
    onConnection();
  };
  return { nodes, clock, heard, become, released: () => released };
}

const ready = (name: string, status: string, sinceMs = T0 - 60_000) => nodeOf(name, { Ready: { status, sinceMs } });
const connectedTo = (nodes: Nodes): ClusterConnection => ({ state: "connected", runtime: {} as KubeRuntime, nodes });
const DISCONNECTED: ClusterConnection = {
  state: "disconnected",
  reason: "Unreachable",
  message: "refused",
  sinceMs: T0,
};

describe("the nodes of a workload cluster", () => {
  it("the nodes of a workload cluster are there, or gone, while the cluster is connected", () => {
    const view = new Nodes();
    view.put(ready("a", "True"));
    const { nodes } = worldOf(connectedTo(view));
    assert.equal(nodes.nodeNamed("a").state, "there");
    assert.equal(nodes.nodeNamed("b").state, "gone");
    assert.equal(nodes.unreachable, undefined);
  });

  it("the nodes of a workload cluster are unknown while it is unreachable, and its API server is not asked for them", async () => {
    const view = new Nodes();
    view.put(ready("a", "True"));
    const { nodes, become, heard } = worldOf(connectedTo(view));
    become(DISCONNECTED);
    for (const name of ["a", "b"]) {
      const wanted = { state: "unknown", reason: "cluster tenant/prod: refused" };
      assert.deepEqual(nodes.nodeNamed(name), wanted);
      assert.deepEqual(await nodes.readNode(name, new AbortController().signal), wanted);
    }
    assert.equal(nodes.isPending, false);
    assert.deepEqual(heard, [undefined]);
  });

  it("the nodes of a workload cluster report only changes that concern their health", () => {
    const view = new Nodes();
    view.put(ready("a", "True"));
    const { heard } = worldOf(connectedTo(view));
    assert.deepEqual(heard, []);
    view.put(ready("a", "True"));
    assert.deepEqual(heard, []);
    view.put(ready("a", "Unknown", T0));
    assert.deepEqual(heard, ["a"]);
  });

  it("the nodes of a workload cluster are subscribed to again if another connection takes over, and no more when they are released", () => {
    const [old, next] = [new Nodes(), new Nodes()];
    const { nodes, become, released } = worldOf(connectedTo(old));
    become(connectedTo(next));
    assert.deepEqual([old.listeners, next.listeners], [0, 1]);
    nodes.close();
    assert.deepEqual([next.listeners, released()], [0, 1]);
  });

  it("a condition of a node in a workload cluster lasts from the time at which its change was received, whatever the clock of that cluster shows", async () => {
    const view = new Nodes();
    view.put(ready("a", "True"));
    const { nodes, clock } = worldOf(connectedTo(view));
    const failed = ready("a", "Unknown", T0 - 3_600_000);
    view.put(failed);
    const [condition] = failed.status.conditions ?? [];
    assert.ok(condition);
    assert.equal(nodes.sinceMs("a", condition), T0 - 5_000);
    await clock.advance(60_000);
    assert.equal(nodes.sinceMs("a", condition), T0 - 5_000);
  });
});
