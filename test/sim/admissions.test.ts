import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { NODES } from "../../src/api/kubernetes/core-types.ts";
import { BARE_METAL_REMEDIATIONS } from "../../src/api/ironfence/bare-metal-remediation.ts";
import type { BareMetalRemediation } from "../../src/api/ironfence/bare-metal-remediation.ts";
import { NAMESPACE, World } from "./world.ts";

const HOSTS = ["n1", "n2", "n3", "n4", "n5", "n6"];
/** The hosts of a row of racks. */
const MANY = Array.from({ length: 50 }, (_, index) => `n${index + 1}`);
const PLANE = { hosts: ["n1", "n2", "n3"], labels: { "node-role.kubernetes.io/control-plane": "" } };

const all = (world: World): BareMetalRemediation[] => [
  ...world.server.collection<BareMetalRemediation>(BARE_METAL_REMEDIATIONS).values(),
];

/** In these states the remediation has no slot, because its host reads On or has no order yet. */
const IDLE = ["Resolving", "Rejoining", "Restoring", "Succeeded", "Failed"];
const hasBegun = (phase = "Resolving"): boolean => !IDLE.includes(phase);

/** Counts the hosts that are being remediated by the stored states, after every change. */
function countUnderWay(world: World, inZone: (node: string) => boolean = () => true): () => number {
  let most = 0;
  world.server.onChange(({ object }) => {
    if (object.kind !== "BareMetalRemediation") return;
    const count = all(world).filter(({ metadata, status }) => hasBegun(status?.phase) && inZone(metadata.name)).length;
    most = Math.max(most, count);
  });
  return () => most;
}

const done = (world: World): boolean => all(world).every(({ status }) => status?.phase === "Succeeded");

async function hangAll(world: World, hosts: readonly string[]): Promise<void> {
  for (const name of hosts) world.rack.host(name).hang();
  await world.until("all are down", () => hosts.every((name) => !world.isReady(name)));
}

describe("many hosts that fail at once", () => {
  it("hosts that fail at the same time are remediated up to the limit, and each other one waits for admission and reports its position", () =>
    World.run({ hosts: MANY, limits: { hosts: 8, perZone: Infinity } }, async (world) => {
      const most = countUnderWay(world);
      await hangAll(world, MANY);
      for (const name of MANY) world.remediate(name);
      await world.until("the others wait", () => MANY.filter((name) => waits(world, name)).length === 42, 20_000);
      const said = MANY.flatMap((name) => processingOf(world, name)?.message ?? []).filter((text) =>
        /position/.test(text),
      );
      assert.match(said.join("\n"), /8 of 8 hosts are being remediated: .*, …; position \d+ of 42 in the queue/);
      assert.ok(world.notes.some(({ reason, type }) => reason === "WaitingForTurn" && type === "Normal"));
      await world.until("all are back", () => done(world));
      assert.equal(most(), 8);
      assert.equal(world.powerLog.filter((entry) => entry.endsWith("ForceOff")).length, MANY.length);
      world.assertClean();
    }));

  it("no more hosts than the limit are remediated although the agent is killed eight times, because the stored status counts", () =>
    World.run({ hosts: HOSTS, limits: { hosts: 2, perZone: Infinity } }, async (world) => {
      const most = countUnderWay(world);
      await hangAll(world, HOSTS);
      for (const name of HOSTS) world.remediate(name);
      for (let kills = 0; kills < 8; kills += 1) {
        await world.clock.advance(1_700);
        await world.killAgent();
        world.startAgent();
      }
      await world.until("all are back", () => done(world));
      assert.equal(most(), 2);
      for (const name of HOSTS) {
        assert.ok(world.powerLog.filter((entry) => entry === `${name} ForceOff`).length >= 1);
      }
      world.assertClean();
    }));

  it("no more hosts than the limit are remediated while the watch lags, because what the agent has stored itself counts at once", () =>
    World.run({ hosts: HOSTS, limits: { hosts: 2, perZone: Infinity } }, async (world) => {
      const most = countUnderWay(world);
      await hangAll(world, HOSTS);
      for (const name of HOSTS) world.remediate(name);
      await world.clock.advance(100);
      const match = { client: "agent", pathPrefix: "/apis/ironfence.io" };
      world.server.faults.lagWatches(match, 8_000);
      await world.clock.advance(20_000);
      world.server.faults.lagWatches(match, 0);
      await world.until("all are back", () => done(world));
      assert.equal(most(), 2);
      world.assertClean();
    }));

  it("many hosts that fail at once of one failure zone have a limit of their own, also if the Node with the zone's label is deleted", () =>
    World.run({ hosts: HOSTS, limits: { hosts: Infinity, perZone: 1 } }, async (world) => {
      const rack = ["n1", "n2", "n3"];
      for (const name of rack) {
        const labels = { "topology.kubernetes.io/zone": "rack-1" };
        world.server.collection(NODES).mergePatch({ name }, { metadata: { labels } });
      }
      const most = countUnderWay(world, (node) => rack.includes(node));
      await hangAll(world, HOSTS);
      for (const name of HOSTS) world.remediate(name, { workloadRelease: "DeleteNode" });
      await world.until("the others go on", () => ["n4", "n5", "n6"].every((name) => !waits(world, name)), 20_000);
      const first = rack.find((name) => !waits(world, name)) ?? "";
      await world.until("its Node is deleted", () => world.node(first) === undefined, 60_000);
      await world.killAgent();
      world.startAgent();
      await world.until("all are back", () => done(world));
      assert.equal(most(), 1);
      world.assertClean();
    }));
});

describe("a slot of the limit on concurrent hosts", () => {
  const ONE = { hosts: ["n1", "n2"], limits: { hosts: 1 } };

  it("a slot is given to the next host once the first host reads On, although its node does not come back", () =>
    World.run(ONE, async (world) => {
      world.rack.host("n1").failDisk();
      await hangAll(world, ["n1", "n2"]);
      world.remediate("n1", { retryLimit: 0, timeout: "10m" });
      await world.phase("n1", "PoweringOff");
      world.remediate("n2");
      await world.phase("n1", "Rejoining");
      await world.phase("n2", "Succeeded", 120_000);
      assert.equal(world.remediation("n1")?.status?.phase, "Rejoining");
    }));

  it("a remediation waits for admission again before a further power cycle, unless its node comes back meanwhile", () =>
    World.run(ONE, async (world) => {
      world.rack.host("n1").failDisk();
      await hangAll(world, ["n1", "n2"]);
      world.remediate("n1", { retryLimit: 3, timeout: "60s" });
      await world.phase("n1", "Rejoining");
      world.rack.bmc("n2").setReachability("silent");
      world.remediate("n2", { retryLimit: 0, powerOffTimeout: "10m" });
      await world.phase("n2", "Verifying");
      await world.until("n1 waits for admission", () => waits(world, "n1"), 90_000);
      await world.clock.advance(60_000);
      assert.equal(world.powerLog.filter((entry) => entry === "n1 ForceOff").length, 1);
      world.rack.host("n1").replaceDisk();
      world.otherClientOrders("n1", "ForceRestart");
      await world.phase("n1", "Succeeded");
      assert.equal(world.powerLog.filter((entry) => entry === "n1 ForceOff").length, 1);
    }));

  it("a host that is being powered off keeps its slot when the agent's wall clock jumps past every deadline", () =>
    World.run(ONE, async (world) => {
      await hangAll(world, ["n1", "n2"]);
      world.remediate("n1", { retryLimit: 0 });
      await world.until("n1 is ordered off", () => world.powerLog.includes("n1 ForceOff"));
      world.rack.bmc("n1").setReachability("silent");
      await world.clock.advance(2_000);
      world.remediate("n2");
      await world.until("n2 waits", () => waits(world, "n2"), 20_000);
      world.jumpAgentClock(600_000);
      await world.clock.advance(20_000);
      assert.equal(waits(world, "n2"), true, "n1 may still be on its way to Off");
      await world.phase("n2", "Succeeded", 180_000);
    }));

  it("a slot is given to a host that was not power cycled yet before a host that needs a further power cycle", () =>
    World.run({ hosts: ["n1", "n2", "n3"], limits: { hosts: 1 } }, async (world) => {
      world.rack.host("n1").failDisk();
      await hangAll(world, ["n1", "n2", "n3"]);
      world.remediate("n1", { retryLimit: 3, timeout: "20s" });
      await world.phase("n1", "Rejoining");
      world.rack.bmc("n2").setReachability("silent");
      world.remediate("n2", { retryLimit: 0, powerOffTimeout: "10m" });
      await world.until("n1 waits for admission", () => waits(world, "n1"), 90_000);
      world.remediate("n3");
      await world.until("n3 waits for admission", () => waits(world, "n3"), 20_000);
      world.rack.bmc("n2").setReachability("up");
      await world.until("n3 is ordered off", () => world.powerLog.includes("n3 ForceOff"), 60_000);
      assert.equal(world.powerLog.filter((entry) => entry === "n1 ForceOff").length, 1);
    }));

  it("a slot of the limit on concurrent hosts is not kept by a host that stays off because its taint cannot be removed", () =>
    World.run(ONE, async (world) => {
      await world.holdPod();
      world.remediate("n1", { retryLimit: 0, drainTimeout: "30s" });
      await world.phase("n1", "Releasing");
      const match = { method: "PATCH", pathPrefix: "/api/v1/nodes/n1", client: "agent" };
      const mend = world.server.faults.inject({ match, times: Infinity, action: { kind: "status", status: 500 } });
      await world.hang("n2");
      world.remediate("n2");
      await world.phase("n2", "Succeeded", 300_000);
      assert.equal(world.rack.host("n1").power, "Off");
      mend();
      world.freePod();
      await world.phase("n1", "Succeeded");
    }));

  it("a slot of the limit on concurrent hosts is not kept forever by a status of a version to come, which nothing wakes", () =>
    World.run({ hosts: ["n1", "n2", "n3"], limits: { hosts: 1 } }, async (world) => {
      await world.holdPod();
      world.remediate("n1", { retryLimit: 0, drainTimeout: "5m" });
      await world.until("n1 is tainted", () => world.markLog.includes("n1 +taint"));
      await world.killAgent();
      const status = { writtenBy: "9.9.9", phase: "Draining" };
      world.server
        .collection(BARE_METAL_REMEDIATIONS)
        .mergePatch({ namespace: NAMESPACE, name: "n1" }, { status }, "status");
      world.startAgent();
      await world.clock.advance(20_000);
      await world.hang("n2");
      world.remediate("n2");
      await world.phase("n2", "Succeeded", 600_000);
    }));

  it("the slot of a control plane host is released, and etcd still counts its member as down until the node is Ready", () =>
    World.run({ ...PLANE, limits: { hosts: 1 } }, async (world) => {
      world.rack.host("n1").failDisk();
      await world.hang("n1");
      world.remediate("n1", { retryLimit: 0, timeout: "10m" });
      await world.phase("n1", "Rejoining");
      world.remediate("n2");
      await world.clock.advance(60_000);
      assert.equal(waits(world, "n2"), true, "etcd needs n2 while n1 is not up");
      assert.ok(!world.powerLog.includes("n2 ForceOff"));
    }));
});

describe("a host whose BMC never comes back", () => {
  it("a host whose BMC never comes back does not block others forever, although its deleted remediation keeps trying", () =>
    World.run({ limits: { hosts: 1, perZone: Infinity } }, async (world) => {
      await hangAll(world, ["n1", "n2"]);
      world.remediate("n1");
      await world.until("n1 is ordered off", () => world.powerLog.includes("n1 ForceOff"));
      world.rack.bmc("n1").setReachability("silent");
      world.server.collection(BARE_METAL_REMEDIATIONS).delete({ namespace: NAMESPACE, name: "n1" });
      world.remediate("n2");
      await world.until("n2 waits", () => waits(world, "n2"), 60_000);
      await world.clock.advance(120_000);
      assert.equal(waits(world, "n2"), true);
      await world.phase("n2", "Succeeded");
      assert.equal(world.remediation("n1")?.status?.phase, "Undoing");
      world.rack.bmc("n1").setReachability("up");
      await world.until("n1 is released", () => world.remediation("n1") === undefined);
      world.assertClean();
    }));
});

describe("the control plane", () => {
  it("a control plane keeps its quorum: two nodes that fail at once are not powered off, and that is reported", () =>
    World.run(PLANE, async (world) => {
      await hangAll(world, ["n1", "n2"]);
      for (const name of ["n1", "n2"]) world.remediate(name, { powerOffTimeout: "30s" });
      await world.phase("n1", "Failed");
      await world.phase("n2", "Failed");
      assert.equal(world.condition("n1", "Succeeded"), "False ControlPlaneQuorum");
      assert.deepEqual(world.powerLog, []);
      world.assertClean();
    }));

  it("the control plane is remediated one node after the other if two are ailing, though Ready", () =>
    World.run(PLANE, async (world) => {
      const most = countUnderWay(world);
      world.remediate("n1");
      world.remediate("n2");
      await world.until("both are back", () => done(world));
      assert.equal(most(), 1);
      assert.equal(world.powerLog.filter((entry) => entry.endsWith("ForceOff")).length, 2);
      world.assertClean();
    }));

  it("the control plane is read live right before the power-off: a member that went down meanwhile counts", () =>
    World.run(PLANE, async (world) => {
      await world.hang("n1");
      world.rack.bmc("n1").setReachability("refused");
      world.remediate("n1", { powerOffTimeout: "300s" });
      await world.until("it waits", () => world.condition("n1", "Processing") === "True BMCUnreachable", 20_000);
      await world.hang("n2");
      world.rack.bmc("n1").setReachability("up");
      await world.until("it says so", () => world.condition("n1", "Processing") === "True ControlPlaneQuorum", 60_000);
      assert.deepEqual(world.powerLog, []);
      world.otherClientOrders("n2", "ForceRestart");
      await world.phase("n1", "Succeeded");
      assert.deepEqual(world.powerLog, ["n2 ForceRestart", "n1 ForceOff", "n1 On"]);
      world.assertClean();
    }));
});

describe("a control plane of two nodes", () => {
  const TWO = { ...PLANE, hosts: ["n1", "n2"] };

  it("a control plane of two nodes keeps both, because etcd on two nodes needs both", () =>
    World.run(TWO, async (world) => {
      await hangAll(world, ["n1"]);
      world.remediate("n1", { powerOffTimeout: "30s" });
      await world.phase("n1", "Failed");
      assert.equal(world.condition("n1", "Succeeded"), "False ControlPlaneQuorum");
      assert.deepEqual(world.powerLog, []);
    }));

  it("a control plane of two nodes is fenced one node after the other, if etcd runs outside the cluster", () =>
    World.run({ ...TWO, externalEtcd: new Set([""]) }, async (world) => {
      const most = countUnderWay(world);
      world.remediate("n1");
      world.remediate("n2");
      await world.until("both are back", () => done(world));
      assert.equal(most(), 1);
      assert.deepEqual(world.powerLog.filter((entry) => entry.endsWith("ForceOff")).toSorted(), [
        "n1 ForceOff",
        "n2 ForceOff",
      ]);
      world.assertClean();
    }));

  it("a control plane of two nodes keeps the node that is left, if etcd runs outside the cluster, and says so", () =>
    World.run({ ...TWO, externalEtcd: new Set([""]) }, async (world) => {
      await hangAll(world, ["n1", "n2"]);
      world.remediate("n1", { powerOffTimeout: "30s" });
      await world.phase("n1", "Failed");
      assert.equal(world.condition("n1", "Succeeded"), "False ControlPlaneQuorum");
      assert.match(processingOf(world, "n1")?.message ?? "", /no control plane node without node n1 \(not Ready: n2\)/);
      assert.deepEqual(world.powerLog, []);
    }));
});

describe("the node that the agent runs on", () => {
  it("the node that the agent runs on is not powered off: the lease is handed over first, once", () =>
    World.run({ agentOn: "n1" }, async (world) => {
      world.remediate("n1", { powerOffTimeout: "60s" });
      await world.until("the lease is handed over", () => world.handedOver.length > 0, 5_000);
      // No other agent takes the lease, so the same agent leads again.
      await world.killAgent();
      world.startAgent();
      await world.phase("n1", "Failed");
      assert.equal(world.handedOver.length, 1);
      assert.equal(world.condition("n1", "Succeeded"), "False OwnNode");
      assert.deepEqual(world.powerLog, []);
      world.assertClean();
    }));
});

function processingOf(world: World, name: string): { reason: string; message: string } | undefined {
  return world.remediation(name)?.status?.conditions?.find(({ type }) => type === "Processing");
}

function waits(world: World, name: string): boolean {
  return processingOf(world, name)?.reason === "WaitingForTurn";
}
