import assert from "node:assert/strict";
import { test } from "node:test";
import type { TestContext } from "node:test";
import { Registry } from "prom-client";
import type { FencingTarget } from "../../../../src/api/ironfence/fencing-target.ts";
import { FENCING_TARGETS } from "../../../../src/api/ironfence/fencing-target.ts";
import { BmcError } from "../../../../src/bmc/interface/errors.ts";
import { vendorOf } from "../../../../src/bmc/identity/vendor.ts";
import { countProbes } from "../../../../src/remediator/telemetry/probe-metrics.ts";
import { toTime } from "../../../../src/runtime/time.ts";
import { NAMESPACE, startController, uuid, World } from "../hosts/targets-fixture.ts";

const MINUTE_MS = 60_000;
const DAY_MS = 86_400_000;

/** Runs the controller. @returns the metrics that are not 0. */
async function start(t: TestContext, world: World): Promise<() => Promise<string[]>> {
  const { records } = await startController(t, world);
  const registry = new Registry();
  countProbes(registry, { targets: world.view<FencingTarget>(FENCING_TARGETS), records, clock: world.clock });
  return async () => (await registry.metrics()).split("\n").filter((line) => /^ironfence.* [^0]/.test(line));
}

test("devices are counted by vendor, and one that fails counts for the vendor that it has reported before", async (t) => {
  const world = new World();
  const dell = world.host("n1", uuid(1));
  dell.identity.manufacturer = "Dell Inc.";
  world.host("n2", uuid(2)).identity.manufacturer = "DELL";
  world.host("n3", uuid(3)).failure = new BmcError("Unreachable", "no route");
  const shown = await start(t, world);
  assert.deepEqual(await shown(), [
    'ironfence_bmcs{vendor="Dell",state="healthy"} 2',
    'ironfence_bmcs{vendor="unknown",state="failing"} 1',
  ]);
  dell.failure = new BmcError("Timeout", "no answer");
  await world.clock.advance(15 * MINUTE_MS);
  const bmcs = (await shown()).filter((line) => line.startsWith("ironfence_bmcs"));
  assert.deepEqual(bmcs, [
    'ironfence_bmcs{vendor="Dell",state="healthy"} 1',
    'ironfence_bmcs{vendor="Dell",state="failing"} 1',
    'ironfence_bmcs{vendor="unknown",state="failing"} 1',
  ]);
});

test("objects that are deleted are not counted any more", async (t) => {
  const world = new World();
  world.host("n1", uuid(1)).certificateUntilMs = world.clock.nowMs() + 90 * DAY_MS;
  const shown = await start(t, world);
  assert.equal((await shown()).length, 2);
  world.collection(FENCING_TARGETS).delete({ namespace: NAMESPACE, name: "n1" });
  assert.deepEqual(await shown(), []);
});

test("certificates are counted by the time until they expire, also that of a device that refuses the probe", async (t) => {
  const world = new World();
  for (const [name, days] of [
    ["n1", -1],
    ["n2", 6],
    ["n3", 20],
    ["n4", 22],
    ["n5", 5],
  ] as const) {
    const bmc = world.host(name, uuid(Number(name.slice(1))));
    bmc.certificateUntilMs = world.clock.nowMs() + days * DAY_MS;
    if (name === "n5") bmc.failure = new BmcError("TlsUntrusted", "not trusted");
  }
  world.host("n6", uuid(6));
  const shown = await start(t, world);
  const certificates = (await shown()).filter((line) => line.startsWith("ironfence_bmc_certificates"));
  assert.deepEqual(certificates, [
    'ironfence_bmc_certificates{expires="expired"} 1',
    'ironfence_bmc_certificates{expires="within_7d"} 2',
    'ironfence_bmc_certificates{expires="within_21d"} 1',
    'ironfence_bmc_certificates{expires="later"} 1',
  ]);
});

test("the oldest probe ages while a target is not probed, even if the agent before made that probe", async (t) => {
  const world = new World();
  world.host("n1", uuid(1));
  const node = world.host("n2", uuid(2));
  const shown = await start(t, world);
  const age = async (): Promise<number> => {
    const line = (await shown()).find((line) => line.startsWith("ironfence_probe_age_seconds"));
    return Number(line?.split(" ")[1] ?? 0);
  };
  assert.equal(await age(), 0);
  await world.clock.advance(9 * MINUTE_MS);
  assert.equal(await age(), 540);
  await world.clock.advance(3 * MINUTE_MS);
  assert.ok((await age()) < 400, "both were probed again");
  assert.ok(node.logins === 0);
  const probed = { lastProbeTime: toTime(world.clock.nowMs() - 3 * 3_600_000) };
  world.host("n9", uuid(9)).failure = undefined;
  // The host is owned, so it is not probed.
  const owner = { uid: "r", kind: "BareMetalRemediation", namespace: "default", name: "r", since: toTime(0) };
  world.target("n9", {}, { ...probed, owner });
  assert.ok((await age()) < 400);
  world.collection(FENCING_TARGETS).put({ ...world.liveTarget("n9"), status: probed } as FencingTarget);
  assert.ok((await age()) >= 10_800);
});

test("a manufacturer is one of a bounded set of vendors", () => {
  assert.equal(vendorOf("Super Micro Computer, Inc."), "Supermicro");
  assert.equal(vendorOf("Hewlett Packard Enterprise"), "HPE");
  assert.equal(vendorOf("HP"), "HPE");
  assert.equal(vendorOf("Contoso"), "other");
  assert.equal(vendorOf("  "), "unknown");
  assert.equal(vendorOf(undefined), "unknown");
});
