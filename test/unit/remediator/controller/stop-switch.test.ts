import assert from "node:assert/strict";
import { test } from "node:test";
import { CONFIG_MAPS } from "../../../../src/api/kubernetes/core-types.ts";
import type { ConfigMap } from "../../../../src/api/kubernetes/core.ts";
import { watchStopSwitch } from "../../../../src/remediator/controller/stop-switch.ts";
import { IN_CONTACT } from "../../../lib/contact.ts";
import { settle } from "../../../lib/virtual-clock.ts";
import { NAMESPACE, World } from "../hosts/targets-fixture.ts";

test("the stop switch holds power-offs before it has been read, and reports that", async () => {
  const world = new World();
  const maps = world.collection(CONFIG_MAPS);
  maps.synced = false;
  maps.problem = "forbidden";
  const ending = new AbortController();
  const stopSwitch = watchStopSwitch(world.runtime, NAMESPACE, ending.signal);
  let calls = 0;
  stopSwitch.subscribe(() => calls++);
  assert.equal(stopSwitch.known, false);
  assert.match(stopSwitch.stopped?.reason ?? "", /not read yet: forbidden/);
  maps.sync();
  await settle();
  assert.equal(stopSwitch.known, true);
  assert.equal(stopSwitch.stopped, undefined);
  assert.equal(calls, 1, "listeners are called for an empty first list");
  ending.abort();
  assert.equal(maps.listenerCount, 0);
});

test("the stop switch holds power-offs while it exists, unless its value is false", () => {
  const world = new World();
  const stopSwitch = watchStopSwitch(world.runtime, NAMESPACE, new AbortController().signal);
  const put = (data: Record<string, string>): string | undefined => {
    world.put<ConfigMap>(CONFIG_MAPS, "ironfence-pause", { data }, NAMESPACE);
    return stopSwitch.stopped?.reason;
  };
  assert.equal(stopSwitch.stopped, undefined);
  assert.match(put({ paused: "true", reason: "rewiring" }) ?? "", /ironfence\/ironfence-pause\): rewiring/);
  assert.match(put({ paused: "yes" }) ?? "", /set it to "false"/);
  assert.notEqual(put({}), undefined);
  assert.equal(put({ paused: " False " }), undefined);
  put({ paused: "true" });
  world.collection(CONFIG_MAPS).delete({ namespace: NAMESPACE, name: "ironfence-pause" });
  assert.equal(stopSwitch.stopped, undefined);
});

test("a pause says who began it and when, and ends by itself at its time, which is reported", async () => {
  const world = new World();
  const ending = new AbortController();
  const stopSwitch = watchStopSwitch(world.runtime, NAMESPACE, ending.signal);
  let calls = 0;
  stopSwitch.subscribe(() => calls++);
  const until = new Date(world.clock.nowMs() + 7_200_000).toISOString();
  const data = { paused: "true", reason: "rewiring", by: "ann", since: "2026-01-01T00:00:00Z", until };
  world.put<ConfigMap>(CONFIG_MAPS, "ironfence-pause", { data }, NAMESPACE);
  assert.equal(
    stopSwitch.stopped?.reason,
    `paused by ann since 2026-01-01T00:00:00Z until ${until} (ConfigMap ${NAMESPACE}/ironfence-pause): rewiring`,
  );
  await world.clock.advance(7_199_000);
  assert.notEqual(stopSwitch.stopped, undefined);
  calls = 0;
  await world.clock.advance(2_000);
  assert.equal(stopSwitch.stopped, undefined);
  assert.equal(calls, 1, "listeners that wait are called");
  ending.abort();
});

test("the end of a pause is noticed within a minute of the API server's clock being set over it", async () => {
  const world = new World();
  const server = { aheadMs: 0 };
  const contact = () => ({ ...IN_CONTACT, earliestServerTimeMs: world.clock.nowMs() + server.aheadMs });
  const ending = new AbortController();
  const stopSwitch = watchStopSwitch({ ...world.runtime, contact }, NAMESPACE, ending.signal);
  const until = new Date(world.clock.nowMs() + 7_200_000).toISOString();
  world.put<ConfigMap>(CONFIG_MAPS, "ironfence-pause", { data: { paused: "true", until } }, NAMESPACE);
  let calls = 0;
  await settle();
  stopSwitch.subscribe(() => calls++);
  await world.clock.advance(600_000);
  assert.equal(calls, 0);
  server.aheadMs = 7_200_000;
  await world.clock.advance(60_000);
  assert.equal(calls, 1, "listeners that wait are called");
  assert.equal(stopSwitch.stopped, undefined);
  ending.abort();
});

test("a pause whose end cannot be read as a time lasts until a user ends it", () => {
  const world = new World();
  const stopSwitch = watchStopSwitch(world.runtime, NAMESPACE, new AbortController().signal);
  for (const until of ["2h", "1", "2020", "yesterday", ""]) {
    world.put<ConfigMap>(CONFIG_MAPS, "ironfence-pause", { data: { paused: "true", until } }, NAMESPACE);
    assert.notEqual(stopSwitch.stopped, undefined, until);
  }
});

test("a stop switch in another namespace or with another name holds nothing", () => {
  const world = new World();
  const stopSwitch = watchStopSwitch(world.runtime, NAMESPACE, new AbortController().signal);
  world.put<ConfigMap>(CONFIG_MAPS, "ironfence-pause", { data: { paused: "true" } }, "tenant");
  world.put<ConfigMap>(CONFIG_MAPS, "other", { data: { paused: "true" } }, NAMESPACE);
  assert.equal(stopSwitch.stopped, undefined);
});
