import assert from "node:assert/strict";
import { beforeEach, describe, it } from "node:test";
import { createApiServer } from "../../../../hack/kube-mock/api-server.ts";
import type { ApiServer } from "../../../../hack/kube-mock/api-server.ts";
import { createKubeRuntime } from "../../../../src/kube/connection/create-runtime.ts";
import { isKubeError } from "../../../../src/kube/errors.ts";
import type { KubeErrorCode } from "../../../../src/kube/errors.ts";
import type { KubeObject } from "../../../../src/kube/resource.ts";
import type { KubeRuntime } from "../../../../src/kube/runtime.ts";
import { keepWrites } from "../../../../src/kube/unsent/keep-writes.ts";
import { shareWatches } from "../../../../src/kube/watch/shared-watches.ts";
import type { Change, Watched } from "../../../../src/kube/watched.ts";
import { createLogger } from "../../../../src/telemetry/logger.ts";
import { seededRandom } from "../../../lib/seeded-random.ts";
import { VirtualClock } from "../../../lib/virtual-clock.ts";
import { CONFIG_MAP as MAPS } from "../support.ts";

type Map = KubeObject & { data?: Record<string, string>; status?: unknown };

const KEY = { namespace: "default", name: "map" };

describe("a runtime that keeps its writes", () => {
  let clock: VirtualClock;
  let server: ApiServer;
  let kept: KubeRuntime;
  let writes: string[];
  let stop: AbortController;
  let view: Watched<Map>;
  let changes: string[];

  beforeEach(async () => {
    clock = new VirtualClock();
    server = createApiServer({ clock, random: seededRandom(1) });
    writes = [];
    changes = [];
    stop = new AbortController();
    server.onRequest(({ method, path }) => {
      if (method !== "GET") writes.push(`${method} ${path}`);
    });
    const runtime = createKubeRuntime({
      transport: server.transport({ client: "test" }),
      clock,
      random: seededRandom(2),
      logger: createLogger("silent"),
      controllerName: "test",
      instance: "test",
    });
    kept = keepWrites(runtime, (raw) => (raw.metadata.labels?.["hidden"] === undefined ? raw : undefined));
    view = kept.watch<Map>({ type: MAPS, trim: (raw) => raw }, stop.signal);
    view.subscribe((change) => changes.push(describeChange(change)));
    await clock.advance(1_000);
  });

  /** Awaits a call while the virtual clock advances. */
  async function call<T>(work: Promise<T>): Promise<T> {
    work.catch(() => undefined);
    await clock.advance(100);
    return work;
  }
  const get = (key = KEY): Promise<Map> => call(kept.client.get<Map>(MAPS, key, stop.signal));
  const create = (data: Record<string, string>, metadata: object = KEY): Promise<Map> => {
    const object = { apiVersion: "v1", kind: "ConfigMap", metadata, data };
    return call(kept.client.create<Map>(MAPS, object, {}, stop.signal));
  };
  const fails = (work: Promise<unknown>, code: KubeErrorCode): Promise<void> =>
    assert.rejects(work, (error) => isKubeError(error, code));
  const setTo = (value: string, { metadata }: Map): Promise<Map> => {
    const { uid, resourceVersion } = metadata;
    const operations = [{ op: "add", path: "/data/a", value }] as const;
    return call(kept.client.patch<Map>(MAPS, KEY, { uid, resourceVersion }, operations, {}, stop.signal));
  };
  const remove = (uid: string): Promise<void> => call(kept.client.delete(MAPS, KEY, { guard: { uid } }, stop.signal));

  it("a runtime that keeps its writes finds them in later reads and watches, and sends none of them", async () => {
    const created = await create({ a: "1" });
    assert.deepEqual((await get()).data, { a: "1" });
    assert.deepEqual(view.get(KEY)?.data, { a: "1" });
    const patched = await setTo("2", created);
    assert.deepEqual([(await get()).data, view.size], [{ a: "2" }, 1]);
    await fails(setTo("3", created), "Conflict");
    await fails(create({}), "AlreadyExists");
    await remove(patched.metadata.uid);
    await fails(get(), "NotFound");
    assert.deepEqual(changes, ["added 1", "updated 2", "updated 2", "deleted 2"]);
    assert.deepEqual(writes, []);
    assert.equal(server.collection(MAPS).get(KEY), undefined);
  });

  it("a runtime that keeps its writes shows a part that joins a shared watch late what the API server has now", async () => {
    const shared = shareWatches(kept, [{ type: MAPS, trim: (raw) => raw }]);
    shared.watch<Map>({ type: MAPS, trim: (raw) => raw }, stop.signal);
    await clock.advance(10_000);
    server.faults.lagWatches({ client: "test" }, Infinity);
    server.collection(MAPS).create({ metadata: KEY, data: { a: "0" } });
    const late = shared.watch<Map>({ type: MAPS, trim: (raw) => raw }, stop.signal);
    await call(late.whenSynced(stop.signal));
    assert.deepEqual(late.get(KEY)?.data, { a: "0" });
    server.faults.clear();
  });

  it("a runtime that keeps its writes forgets those to an object of the API server as soon as another writer changes it", async () => {
    server.collection(MAPS).create({ metadata: KEY, data: { a: "0" } });
    await clock.advance(1_000);
    await setTo("1", await get());
    await setTo("2", await get());
    assert.deepEqual([(await get()).data, view.get(KEY)?.data], [{ a: "2" }, { a: "2" }]);
    server.collection(MAPS).mergePatch(KEY, { data: { b: "theirs" } });
    await clock.advance(1_000);
    assert.deepEqual((await get()).data, { a: "0", b: "theirs" });
    assert.deepEqual(view.get(KEY)?.data, { a: "0", b: "theirs" });
    assert.deepEqual(writes, []);
  });

  it("a runtime that keeps its writes keeps a status that no other writer has set", async () => {
    server.collection(MAPS).create({ metadata: KEY, data: { a: "0" } });
    await clock.advance(1_000);
    const { uid, resourceVersion } = (await get()).metadata;
    const content = { status: { phase: "Enabled", old: null } };
    await call(kept.client.mergePatch<Map>(MAPS, KEY, { uid, resourceVersion }, content, {}, stop.signal));
    server.collection(MAPS).mergePatch(KEY, { data: { a: "1" } });
    await clock.advance(1_000);
    const { data, status } = view.get(KEY) ?? {};
    assert.deepEqual([data, status], [{ a: "1" }, { phase: "Enabled" }]);
    server.collection(MAPS).mergePatch(KEY, { status: { phase: "theirs" } });
    await clock.advance(1_000);
    assert.deepEqual((await get()).status, { phase: "theirs" });
    server.collection(MAPS).delete(KEY);
    server.collection(MAPS).create({ metadata: KEY, data: {} });
    await clock.advance(1_000);
    assert.equal((await get()).status, undefined, "another object of the same name");
  });

  it("a runtime that keeps its writes marks an object of the API server as being deleted", async () => {
    server.collection(MAPS).create({ metadata: KEY, data: {} });
    await clock.advance(1_000);
    await fails(remove("another"), "Conflict");
    await remove((await get()).metadata.uid);
    assert.notEqual((await get()).metadata.deletionTimestamp, undefined);
    assert.notEqual(server.collection(MAPS).get(KEY), undefined);
  });

  it("a runtime that keeps its writes may use the name of an object that it does not read", async () => {
    server.collection(MAPS).create({ metadata: { ...KEY, labels: { hidden: "yes" } }, data: { a: "theirs" } });
    await clock.advance(1_000);
    assert.equal(view.size, 0);
    await fails(get(), "NotFound");
    await create({ a: "ours" });
    assert.deepEqual([view.get(KEY)?.data, (await get()).data], [{ a: "ours" }, { a: "ours" }]);
    await create({ a: "another" }, { namespace: "default", generateName: "map-" });
    assert.equal(view.size, 2);
    assert.deepEqual(writes, []);
  });
});

function describeChange({ type, object }: Change<Map>): string {
  return `${type} ${object.data?.["a"] ?? ""}`;
}
