import assert from "node:assert/strict";
import { test } from "node:test";
import { CONFIG_MAPS } from "../../../src/api/core-types.ts";
import type { ConfigMap } from "../../../src/api/core.ts";
import { watchStopSwitch } from "../../../src/remediator/stop-switch.ts";
import { settle } from "../../lib/virtual-clock.ts";
import { NAMESPACE, World } from "./world.ts";

test("before it has been read the switch stops, and says so", async () => {
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
  assert.equal(calls, 1, "an empty first list is told");
  ending.abort();
  assert.equal(maps.listenerCount, 0);
});

test("the switch stops while it exists, unless it says false in so many letters", () => {
  const world = new World();
  const stopSwitch = watchStopSwitch(world.runtime, NAMESPACE, new AbortController().signal);
  const put = (data: Record<string, string>): string | undefined => {
    world.put<ConfigMap>(CONFIG_MAPS, "ironfence-pause", { data }, NAMESPACE);
    return stopSwitch.stopped?.reason;
  };
  assert.equal(stopSwitch.stopped, undefined);
  assert.match(put({ paused: "true", reason: "rewiring" }) ?? "", /ironfence\/ironfence-pause: rewiring/);
  assert.match(put({ paused: "yes" }) ?? "", /set it to "false"/);
  assert.notEqual(put({}), undefined);
  assert.equal(put({ paused: " False " }), undefined);
  put({ paused: "true" });
  world.collection(CONFIG_MAPS).delete({ namespace: NAMESPACE, name: "ironfence-pause" });
  assert.equal(stopSwitch.stopped, undefined);
});

test("a switch of another namespace or name stops nothing", () => {
  const world = new World();
  const stopSwitch = watchStopSwitch(world.runtime, NAMESPACE, new AbortController().signal);
  world.put<ConfigMap>(CONFIG_MAPS, "ironfence-pause", { data: { paused: "true" } }, "tenant");
  world.put<ConfigMap>(CONFIG_MAPS, "other", { data: { paused: "true" } }, NAMESPACE);
  assert.equal(stopSwitch.stopped, undefined);
});
