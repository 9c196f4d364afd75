import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { LEASES } from "../../src/api/kubernetes/core-types.ts";
import type { Lease } from "../../src/api/kubernetes/core.ts";
import { begun, cutPower, isTainted, ordersOfAgent, runEarly } from "./early-world.ts";
import type { World } from "./world.ts";

// A kubelet keeps the duration of an existing lease (newLease of the lease controller of component-helpers). If
// nodeLeaseDurationSeconds was raised from 40 to 120, the kubelet renews every 30 s although the lease says 40.
const TAKEN_OVER = { kubelets: { leaseDurationSeconds: 40, leasePeriodMs: 30_000 } };
const leaseVersion = (world: World, name: string): string | undefined =>
  world.server.collection<Lease>(LEASES).get({ namespace: "kube-node-lease", name })?.metadata.resourceVersion;
/** Time for two renewals. */
const SEEN_MS = 65_000;

describe("leases that are older than the configuration of their kubelets", () => {
  it("there is no early release of a node that lives and renews every 30 s, though its BMC says Off for 40 s", () =>
    runEarly(TAKEN_OVER, async (world) => {
      world.rack.bmc("n1").pretendPower("Off", 45_000);
      await world.clock.advance(120_000);
      assert.deepEqual(ordersOfAgent(world), []);
    }));

  it("there is no early release of a node that lives and renews every 30 s, whose lease another client changes, though its BMC says Off for 45 s", () =>
    runEarly(TAKEN_OVER, async (world) => {
      await world.clock.advance(SEEN_MS);
      const version = leaseVersion(world, "n1");
      await world.until("a renewal", () => leaseVersion(world, "n1") !== version, 60_000);
      const key = { namespace: "kube-node-lease", name: "n1" };
      for (let change = 0; change < 5; change += 1) {
        await world.clock.advance(1_000);
        const labels = { change: String(change) };
        world.server.collection<Lease>(LEASES).mergePatch(key, { metadata: { labels } });
      }
      world.rack.bmc("n1").pretendPower("Off", 45_000);
      await world.clock.advance(60_000);
      assert.deepEqual(ordersOfAgent(world), []);
    }));

  it("there is no early release of a node that lives and renews every 30 s, whose BMC leads to another host that is off", () =>
    runEarly(TAKEN_OVER, async (world) => {
      await world.clock.advance(SEEN_MS);
      world.createPod("n1", "db");
      world.rack.bmc("n1").rewire(world.rack.host("n2"));
      world.rack.bmc("n1").pretendIdentity({ systemUUID: world.rack.host("n1").spec.systemUUID });
      await world.clock.advance(5_000);
      world.rack.host("n2").order("ForceOff");
      for (let step = 0; step < 240; step += 1) {
        await world.clock.advance(500);
        assert.equal(isTainted(world, "n1"), false);
      }
    }));

  it("there is no early release of a node that lives and renews every 30 s, whose BMC leads to another host that is off, by an agent that takes over after the renewal", () =>
    runEarly(TAKEN_OVER, async (world) => {
      await world.clock.advance(2 * SEEN_MS);
      world.createPod("n1", "db");
      world.rack.bmc("n1").rewire(world.rack.host("n2"));
      world.rack.bmc("n1").pretendIdentity({ systemUUID: world.rack.host("n1").spec.systemUUID });
      world.rack.host("n2").order("ForceOff");
      world.network.cut.add("n1");
      await world.until("a remediation", () => begun(world).some(({ metadata }) => metadata.name === "n1"), 120_000);
      await world.killAgent();
      world.network.cut.delete("n1");
      const version = leaseVersion(world, "n1");
      await world.until("a renewal", () => leaseVersion(world, "n1") !== version, 60_000);
      await world.clock.advance(1_000);
      world.startAgent();
      for (let step = 0; step < 80; step += 1) {
        await world.clock.advance(500);
        assert.equal(isTainted(world, "n1"), false);
      }
      assert.equal(world.pods("n1").length, 1);
    }));

  it("no BMC is called at rest but for the usual probe of nodes that renew every 30 s", () =>
    runEarly(TAKEN_OVER, async (world) => {
      await world.clock.advance(SEEN_MS);
      const from = world.devices.calls.length;
      await world.clock.advance(600_000);
      const logins = world.devices.calls.slice(from).filter(({ call }) => call === "identify");
      assert.ok(logins.length <= world.rack.hosts.length, `${logins.length} calls`);
    }));

  it("a host that loses its power is remediated early although its kubelet renewed every 30 s", () =>
    runEarly(TAKEN_OVER, async (world) => {
      await world.clock.advance(SEEN_MS);
      cutPower(world, "n1");
      await world.until("a remediation", () => begun(world).length > 0, 45_000);
      assert.equal(world.isReady("n1"), true);
    }));
});
