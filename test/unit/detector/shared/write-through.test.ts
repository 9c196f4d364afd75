import assert from "node:assert/strict";
import { beforeEach, describe, it } from "node:test";
import { WriteThrough } from "../../../../src/detector/shared/views/write-through.ts";
import type { KubeObject } from "../../../../src/kube/resource.ts";
import type { Change, Watched } from "../../../../src/kube/watched.ts";

/** A view whose changes the test brings. */
class FakeView implements Watched<KubeObject> {
  readonly synced = true;
  readonly lastContactMs = 0;
  readonly problem = undefined;
  readonly #objects = new Map<string, KubeObject>();
  #listener: (change: Change<KubeObject>) => void = () => undefined;

  get size(): number {
    return this.#objects.size;
  }
  get({ name }: { name: string }): KubeObject | undefined {
    return this.#objects.get(name);
  }
  values(): IterableIterator<KubeObject> {
    return this.#objects.values();
  }
  subscribe(listener: (change: Change<KubeObject>) => void): () => void {
    this.#listener = listener;
    return () => undefined;
  }
  whenSynced(): Promise<void> {
    return Promise.resolve();
  }
  show(object: KubeObject): void {
    const previous = this.#objects.get(object.metadata.name);
    this.#objects.set(object.metadata.name, object);
    this.#listener(previous === undefined ? { type: "added", object } : { type: "updated", object, previous });
  }
  drop(object: KubeObject): void {
    this.#objects.delete(object.metadata.name);
    this.#listener({ type: "deleted", object });
  }
}

const version = (resourceVersion: string, uid = "u1"): KubeObject => ({
  apiVersion: "v1",
  kind: "X",
  metadata: { name: "a", uid, resourceVersion },
});

describe("write-through view", () => {
  let view: FakeView;
  let through: WriteThrough<KubeObject>;
  const seen = (): string[] =>
    [...through.values()].map(({ metadata }) => `${metadata.uid}@${metadata.resourceVersion}`);
  beforeEach(() => {
    view = new FakeView();
    through = new WriteThrough(view);
  });

  it("a write-through view shows a created object before the watch does, and once", () => {
    through.wrote(version("1"), undefined, 0);
    assert.deepEqual(seen(), ["u1@1"]);
    view.show(version("1"));
    assert.deepEqual(seen(), ["u1@1"]);
    view.show(version("5"));
    assert.deepEqual(seen(), ["u1@5"]);
  });

  it("a write-through view finds an object by its name, before the watch shows it and after", () => {
    const found = (): string | undefined => through.get({ name: "a" })?.metadata.resourceVersion;
    assert.equal(found(), undefined);
    through.wrote(version("1"), undefined, 0);
    assert.equal(found(), "1");
    view.show(version("1"));
    through.wrote(version("2"), "1", 0);
    assert.equal(found(), "2");
  });

  it("a write-through view shows a patched object while the watch is behind, over several patches", () => {
    view.show(version("1"));
    through.wrote(version("2"), "1", 0);
    through.wrote(version("3"), "2", 0);
    assert.deepEqual(seen(), ["u1@3"]);
    view.show(version("2"));
    assert.deepEqual(seen(), ["u1@3"]);
    view.show(version("3"));
    view.show(version("4"));
    assert.deepEqual(seen(), ["u1@4"]);
  });

  it("a write-through view believes the watch if its news came before the answer", () => {
    view.show(version("3"));
    through.wrote(version("2"), "1", 0);
    assert.deepEqual(seen(), ["u1@3"]);
  });

  it("a write-through view does not bring back what was created and deleted before the answer came", () => {
    view.show(version("1"));
    view.drop(version("1"));
    through.wrote(version("1"), undefined, 0);
    assert.deepEqual(seen(), []);
  });

  it("a write-through view knows for a while that an object has ended", () => {
    view.show(version("1"));
    assert.equal(through.hasEnded("u1"), false);
    view.drop(version("1"));
    assert.equal(through.hasEnded("u1"), true);
    for (let index = 0; index < 1_000; index += 1) view.drop(version("1", `other-${index}`));
    assert.equal(through.hasEnded("u1"), false);
  });

  it("a write-through view keeps a successor of the same name apart", () => {
    view.show(version("1", "old"));
    through.wrote(version("2", "new"), undefined, 0);
    assert.deepEqual(seen().sort(), ["new@2", "old@1"]);
  });

  it("a write-through view names what has not come back for long, and forgets it on request", () => {
    through.wrote(version("1"), undefined, 100);
    assert.deepEqual(through.unreportedSince(100), []);
    assert.equal(through.unreportedSince(101).length, 1);
    through.forget("u1");
    assert.deepEqual(seen(), []);
  });
});
