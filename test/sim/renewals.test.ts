import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { KubeletOptions } from "../../hack/rack/kubelet.ts";
import { LEASES } from "../../src/api/kubernetes/core-types.ts";
import type { Lease } from "../../src/api/kubernetes/core.ts";
import { seededRandom } from "../lib/seeded-random.ts";
import { World } from "./world.ts";

// How long the taint waits for a renewal by a live kubelet: when hosts are dead, and when the wrong host is powered
// off.

/** A control plane with a shorter grace period. */
const TUNED = { nodeLifecycle: { monitorPeriodMs: 5_000, monitorGracePeriodMs: 20_000 } };
/** The BMC of n1 powers n2 and reports the identity of n1. Only a renewal shows the difference. */
const lie = (world: World): void => {
  world.rack.bmc("n1").rewire(world.rack.host("n2"));
  world.rack.bmc("n1").pretendIdentity({ systemUUID: world.rack.host("n1").spec.systemUUID });
};
const jitter = (seed: number): KubeletOptions => ({ random: seededRandom(seed) });

/** Fences n1. @returns the time from the power-off until its node was tainted. */
async function waitOf(world: World): Promise<number> {
  world.remediate("n1");
  await world.until("n1 is off", () => world.rack.host("n1").power === "Off");
  const offAtMs = world.clock.nowMs();
  await world.until("n1 is tainted", () => world.markLog.includes("n1 +taint"));
  return world.clock.nowMs() - offAtMs;
}

/** Asserts that the remediation finds the wrong host before it adds a taint. */
async function findsOut(world: World): Promise<void> {
  await world.phase("n1", "Failed");
  assert.equal(world.condition("n1", "Succeeded"), "False WrongHost");
  assert.equal(world.markLog.includes("n1 +taint"), false, world.story());
}

describe("a host that is dead", () => {
  for (const [name, controllers, kubelets] of [
    ["according to the default grace period of 50 s of Kubernetes", {}, {}],
    ["according to a grace period of 20 s", TUNED, {}],
    ["according to a grace period of 20 s, with leases of 20 s,", TUNED, { leaseDurationSeconds: 20 }],
    ["according to the default grace period, with leases of 80 s,", {}, { leaseDurationSeconds: 80 }],
  ] as const) {
    it(`a host that is dead ${name} has its node tainted as soon as it is proven off`, async () => {
      for (let seed = 1; seed <= 5; seed += 1) {
        await World.run({ controllers, kubelets: { ...kubelets, ...jitter(seed) }, seed }, async (world) => {
          await world.clock.advance(seed * 1_700);
          await world.hang("n1");
          const waitedMs = await waitOf(world);
          assert.ok(waitedMs < 1_000, `seed ${seed}: ${waitedMs} ms`);
        });
      }
    });
  }

  it("a host that is dead waits for its kubelet if it may have had no chance to renew: the API server could not be reached, by this agent either", () =>
    World.run({ controllers: TUNED }, async (world) => {
      await world.hang("n1");
      world.server.faults.inject({ match: { client: "agent" }, times: Infinity, action: { kind: "drop" } });
      world.server.faults.cutWatches({ client: "agent" });
      await world.clock.advance(20_000);
      world.server.faults.clear();
      world.remediate("n1");
      const backAtMs = world.clock.nowMs();
      await world.until("n1 is tainted", () => world.markLog.includes("n1 +taint"));
      const waitedMs = world.clock.nowMs() - backAtMs;
      assert.ok(waitedMs >= 22_000 && waitedMs < 34_000, `${waitedMs} ms`);
    }));
});

/** Cuts n1 off until it is not Ready, and then until it has renewed its lease. Its status stays as it was. */
async function seemDead(world: World): Promise<void> {
  world.network.cut.add("n1");
  await world.until("n1 is not Ready", () => !world.isReady("n1"));
  world.network.cut.delete("n1");
  await renewed(world, 30_000);
}

describe("a node whose BMC powers another host", () => {
  for (const leaseDurationSeconds of [20, 40, 80]) {
    it(`a node whose BMC powers another host is never tainted with leases of ${leaseDurationSeconds} s, whatever the jitter and latency of its renewals`, async () => {
      for (let seed = 1; seed <= 12; seed += 1) {
        const options = { kubelets: { leaseDurationSeconds, ...jitter(seed) }, controllers: TUNED, seed };
        // With longer leases Kubernetes needs a longer grace period.
        if (leaseDurationSeconds === 80) Object.assign(options, { controllers: {} });
        await World.run(options, async (world) => {
          const random = seededRandom(seed + 100);
          world.network.latencyMs = () => 1_000 * random.next();
          lie(world);
          await world.clock.advance(seed * 900);
          world.remediate("n1");
          await findsOut(world);
        });
      }
    });
  }

  it("a node whose BMC powers another host is not tainted when it counts as dead and is back at any moment before the proof", async () => {
    for (let backMs = -12_000; backMs <= 2_000; backMs += 500) {
      await World.run({ controllers: TUNED, kubelets: jitter(backMs + 20_000) }, async (world) => {
        lie(world);
        const host = await world.hang("n1");
        if (backMs < 0) host.resume();
        if (backMs < 0) await world.clock.advance(-backMs);
        world.remediate("n1");
        if (backMs >= 0) await world.clock.advance(backMs);
        host.resume();
        const over = (): boolean => ["Failed", "Succeeded"].includes(world.remediation("n1")?.status?.phase ?? "");
        await world.until("it is over", over);
        assert.equal(world.markLog.includes("n1 +taint"), false, `back ${backMs} ms after the order: ${world.story()}`);
      });
    }
  });

  it("a node whose BMC powers another host is not tainted if its clock is minutes behind: the API server's clock dates the last renewal of its lease", async () => {
    for (let seed = 1; seed <= 6; seed += 1) {
      // Its status is posted rarely, so that it counts as dead for a while after it is back.
      const kubelets = { aheadMs: { n1: -300_000 }, statusPeriodMs: 60_000, ...jitter(seed) };
      await World.run({ controllers: TUNED, kubelets }, async (world) => {
        lie(world);
        await seemDead(world);
        world.remediate("n1");
        await findsOut(world);
      });
    }
  });

  for (const byMs of [60_000, 600_000]) {
    it(`a node whose BMC powers another host is not tainted if the API server's clock is set forward by ${byMs / 60_000} minutes: earlier time stamps do not count`, async () => {
      for (let seed = 1; seed <= 6; seed += 1) {
        const kubelets = { statusPeriodMs: 60_000, ...jitter(seed) };
        await World.run({ controllers: TUNED, kubelets }, async (world) => {
          lie(world);
          await seemDead(world);
          world.jumpServerClock(byMs);
          world.remediate("n1");
          await findsOut(world);
        });
      }
    });
  }

  it("a node whose BMC powers another host is not tainted if three API servers have clocks 90 s apart", async () => {
    for (let seed = 1; seed <= 6; seed += 1) {
      // Each connection stays with one API server. The first watches have already shown three clocks.
      let watches = 0;
      const serverAheadMs = (isStream: boolean): number => (isStream ? ([-90_000, 0][watches++] ?? 90_000) : 90_000);
      const kubelets = { statusPeriodMs: 60_000, ...jitter(seed) };
      await World.run({ controllers: TUNED, kubelets, interference: { serverAheadMs } }, async (world) => {
        lie(world);
        world.network.serverAheadMs = -90_000;
        await seemDead(world);
        world.remediate("n1");
        await findsOut(world);
      });
    }
  });

  it("a node whose BMC powers another host is not tainted after an outage of the API server, in which no kubelet could renew", async () => {
    for (let seed = 1; seed <= 6; seed += 1) {
      await World.run({ kubelets: jitter(seed), seed }, async (world) => {
        lie(world);
        for (const host of ["n1", "n2"]) world.network.cut.add(host);
        world.server.faults.inject({ match: { client: "agent" }, times: Infinity, action: { kind: "drop" } });
        await world.until("n1 is not Ready", () => !world.isReady("n1"));
        world.remediate("n1");
        await world.clock.advance(seed * 700);
        for (const host of ["n1", "n2"]) world.network.cut.delete(host);
        world.server.faults.clear();
        await world.until("it is over", () =>
          ["Failed", "Succeeded"].includes(world.remediation("n1")?.status?.phase ?? ""),
        );
        assert.equal(world.markLog.includes("n1 +taint"), false, world.story());
      });
    }
  });

  it("a node whose BMC powers another host is not tainted after an outage in which no call was made, between the proof and the end of the wait", async () => {
    for (let seed = 1; seed <= 6; seed += 1) {
      await World.run({ kubelets: jitter(seed), seed }, async (world) => {
        lie(world);
        await world.clock.advance(seed * 1_300);
        world.remediate("n1");
        await world.until("n2 is off", () => world.rack.host("n2").power === "Off");
        await world.clock.advance(500);
        world.network.cut.add("n1");
        // Watches stay open, as they do while etcd has no leader.
        const action = { kind: "status", status: 500 } as const;
        world.server.faults.inject({ match: { client: "agent", watch: false }, times: Infinity, action });
        await world.clock.advance(11_000);
        world.network.cut.delete("n1");
        world.server.faults.clear();
        await findsOut(world);
      });
    }
  });

  it("a node whose BMC powers another host is not tainted after a time in which etcd was full: it was read, and no client could write", async () => {
    for (let seed = 1; seed <= 12; seed += 1) {
      await World.run({ kubelets: jitter(seed), seed, installation: "ironfence" }, async (world) => {
        lie(world);
        await world.clock.advance(seed * 1_300);
        world.remediate("n1");
        await world.until("n2 is off", () => world.rack.host("n2").power === "Off");
        await world.clock.advance(7_000);
        // Shorter than the time for which the agent continues without a renewal of its own lease.
        world.network.cut.add("n1");
        const verbs = ["create", "patch", "update", "delete"] as const;
        const action = { kind: "status", status: 500, message: "etcdserver: mvcc: database space exceeded" } as const;
        world.server.faults.inject({ match: { client: "agent", verbs }, times: Infinity, action });
        await world.clock.advance(5_000);
        world.network.cut.delete("n1");
        world.server.faults.clear();
        await findsOut(world);
      });
    }
  });
});

/** Waits until the lease of n1 is renewed, or for `withinMs`. */
async function renewed(world: World, withinMs: number): Promise<void> {
  const lease = (): string | undefined =>
    world.server.collection<Lease>(LEASES).get({ namespace: "kube-node-lease", name: "n1" })?.spec.renewTime;
  const before = lease();
  const endMs = world.clock.nowMs() + withinMs;
  while (lease() === before && world.clock.nowMs() < endMs) await world.clock.advance(50);
}
