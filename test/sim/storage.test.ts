import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { STATEFUL_SETS } from "../../hack/kube-mock/controllers/cluster-types.ts";
import { NODES, PODS } from "../../src/api/kubernetes/core-types.ts";
import { OUT_OF_SERVICE } from "../../src/api/kubernetes/taints.ts";
import { CsiDriver } from "./csi-driver.ts";
import { bears, World } from "./world.ts";

// Whether storage that fences by the out-of-service taint (ceph-csi) loses data because of our order of steps: we
// remove the taint after the drain and before the power-on.

const QUICK = { retryLimit: 0, drainTimeout: "20s", timeout: "120s" };

/** Starts a database with a single-writer volume. `host` is its host. */
async function startDatabase(driver: CsiDriver): Promise<{ world: World; host: string }> {
  const volumes = { attachLagMs: 500, detachLagMs: 500, forceDetachMs: 360_000, unpublish: driver.unpublish };
  const world = new World({
    hosts: ["n1", "n2", "n3"],
    kubelets: { areAttached: driver.areAttached },
    controllers: { statefulSets: { lagMs: 20 }, scheduler: { lagMs: 20 }, volumes },
  });
  driver.watch(world);
  world.startAgent();
  const spec = {
    replicas: 1,
    serviceName: "db",
    selector: { matchLabels: { app: "db" } },
    template: {
      metadata: { labels: { app: "db" } },
      spec: {
        containers: [{ name: "db", image: "none" }],
      },
    },
    volumeClaimTemplates: [
      {
        metadata: { name: "data" },
        spec: { accessModes: ["ReadWriteOnce"], resources: { requests: { storage: "1Gi" } } },
      },
    ],
  };
  world.create(STATEFUL_SETS, { namespace: "default", name: "db" }, { spec });
  await world.until("the database runs", () => runsOn(world) !== undefined, 60_000);
  await world.clock.advance(15_000);
  return { world, host: runsOn(world) ?? assert.fail("it runs") };
}

/** The host on which the database runs; undefined if it runs nowhere. */
function runsOn(world: World): string | undefined {
  return world.rack.hosts.find((host) => host.os === "running" && host.workloads.size > 0)?.name;
}

async function play(
  by: "client" | "address",
  test: (world: World, driver: CsiDriver, host: string) => Promise<void>,
): Promise<CsiDriver> {
  const driver = new CsiDriver(by);
  const { world, host } = await startDatabase(driver);
  try {
    await test(world, driver, host);
    assert.deepEqual(world.violations, [], "safety rules");
  } finally {
    await world.stop();
  }
  return driver;
}

async function isBack(world: World, host: string): Promise<void> {
  await world.phase(host, "Succeeded");
  await world.until("the database runs", () => runsOn(world) !== undefined);
  await world.clock.advance(600_000);
}

function otherClientTaints(world: World, name: string, on: boolean): void {
  const taints = (world.node(name)?.spec.taints ?? []).filter(({ key }) => key !== OUT_OF_SERVICE.key);
  const next = on ? [...taints, OUT_OF_SERVICE] : taints;
  world.server.collection(NODES).mergePatch({ name }, { spec: { taints: next } });
}

for (const by of ["client", "address"] as const)
  describe(`storage that fences each ${by} by the out-of-service taint`, () => {
    it(`storage that fences each ${by} by the taint has blocked the client of the host before the taint is removed, and loses nothing`, async () => {
      const driver = await play(by, async (world, _driver, host) => {
        await world.hang(host);
        world.remediate(host, QUICK);
        await isBack(world, host);
      });
      assert.deepEqual(driver.losses, []);
      assert.ok(driver.unpublished.length > 0);
      assert.ok(driver.unpublished.every(({ sawTaint, blocked }) => sawTaint && blocked !== undefined));
    });

    for (const [name, backAt] of [
      ["when the host is powered on", "PoweringOn"],
      ["when the node joins", "Rejoining"],
      ["long after the fence", undefined],
    ] as const) {
      it(`storage that fences each ${by} by the taint loses nothing if it detaches only ${name}, after the drain timeout: its client ended with the power`, async () => {
        const driver = await play(by, async (world, csi, host) => {
          csi.isAway = true;
          await world.hang(host);
          world.remediate(host, QUICK);
          if (backAt !== undefined) {
            await world.phase(host, backAt);
          } else {
            await world.phase(host, "Succeeded");
            await world.clock.advance(300_000);
          }
          assert.equal(world.condition(host, "WorkloadsReleased"), "False DrainTimeout");
          assert.equal(bears(world.node(host) ?? assert.fail("there is the node"), OUT_OF_SERVICE), false);
          csi.isAway = false;
          await isBack(world, host);
        });
        assert.deepEqual(driver.losses, []);
        assert.deepEqual(
          driver.unpublished.map(({ sawTaint }) => sawTaint),
          driver.unpublished.map(() => false),
        );
      });
    }

    it(`storage that fences each ${by} by the taint loses nothing if it never detaches: the volume stays with its host`, async () => {
      const driver = await play(by, async (world, csi, host) => {
        csi.isAway = true;
        await world.hang(host);
        world.remediate(host, QUICK);
        await world.phase(host, "Succeeded");
        await world.clock.advance(900_000);
        assert.equal(runsOn(world), undefined);
      });
      assert.deepEqual(driver.losses, []);
      assert.deepEqual(driver.unpublished, []);
    });

    it(`storage that fences each ${by} by the taint loses nothing if a user powers the host on while its volumes are still to be detached`, async () => {
      const driver = await play(by, async (world, csi, host) => {
        csi.isAway = true;
        await world.hang(host);
        world.remediate(host, { ...QUICK, drainTimeout: "120s" });
        await world.phase(host, "Releasing");
        world.otherClientOrders(host, "On");
        await world.clock.advance(20_000);
        csi.isAway = false;
        await isBack(world, host);
      });
      assert.deepEqual(driver.losses, []);
    });

    it(`storage that fences each ${by} by the taint keeps the host off for the drain timeout, and detaches within that time while the taint is on the node`, async () => {
      const driver = await play(by, async (world, csi, host) => {
        csi.isAway = true;
        await world.hang(host);
        world.remediate(host, { ...QUICK, drainTimeout: "30m" });
        await world.phase(host, "Releasing");
        await world.clock.advance(1_200_000);
        assert.equal(world.rack.host(host).power, "Off");
        csi.isAway = false;
        await isBack(world, host);
        assert.equal(world.condition(host, "WorkloadsReleased"), "True Drained");
      });
      assert.deepEqual(driver.losses, []);
      assert.ok(driver.unpublished.every(({ sawTaint }) => sawTaint));
    });
  });

describe("the same storage without a fence, by which the model is seen to lose data", () => {
  for (const early of [false, true]) {
    const way = early ? ", and untaints it before the driver reads" : ": its client is blocked";
    it(`storage that fences by the taint ${early ? "loses" : "keeps"} data if a user taints a running host${way}`, async () => {
      const driver = new CsiDriver("client");
      const { world, host } = await startDatabase(driver);
      driver.isAway = early;
      await world.hang(host);
      otherClientTaints(world, host, true);
      for (const pod of world.pods(host))
        world.server.collection(PODS).delete({ ...pod.metadata }, { gracePeriodSeconds: 0 });
      await world.clock.advance(10_000);
      if (early) otherClientTaints(world, host, false);
      driver.isAway = false;
      await world.clock.advance(60_000);
      assert.equal(driver.losses.length > 0, early, JSON.stringify(driver.unpublished));
      await world.stop();
    });
  }
});
