import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { NHC_TIMED_OUT } from "../../src/api/names/annotations.ts";
import { BARE_METAL_REMEDIATIONS } from "../../src/api/ironfence/bare-metal-remediation.ts";
import { OUT_OF_SERVICE } from "../../src/api/kubernetes/taints.ts";
import { FENCING_TARGETS } from "../../src/api/ironfence/fencing-target.ts";
import { NODES, PODS } from "../../src/api/kubernetes/core-types.ts";
import type { Pod } from "../../src/api/kubernetes/core.ts";
import { bears, NAMESPACE, World } from "./world.ts";

const QUICK = { retryLimit: 0, powerOffTimeout: "30s", powerOnTimeout: "30s", drainTimeout: "20s", timeout: "60s" };

describe("the wrong host", () => {
  it("the wrong host with another identity is never powered, and the remediation fails at once", () =>
    World.run({}, async (world) => {
      await world.hang("n1");
      world.rack.bmc("n1").rewire(world.rack.host("n2"));
      world.rack.bmc("n1").pretendIdentity({ systemUUID: world.rack.host("n2").spec.systemUUID });
      world.remediate("n1");
      await world.phase("n1", "Failed", 5_000);
      assert.equal(world.condition("n1", "Succeeded"), "False IdentityMismatch");
      assert.equal(world.condition("n1", "IdentityVerified"), "False IdentityMismatch");
      assert.deepEqual(world.powerLog, []);
      assert.deepEqual(world.markLog, []);
      world.assertClean();
    }));

  it("the wrong host, behind a BMC that reports a false identity, is powered on again once the node's lease shows that the node lives; no taint, no retry", () =>
    World.run({}, async (world) => {
      // The BMC of n1 powers n2 and reports the identity of n1. Node n1 is alive.
      world.rack.bmc("n1").rewire(world.rack.host("n2"));
      world.rack.bmc("n1").pretendIdentity({ systemUUID: world.rack.host("n1").spec.systemUUID });
      world.remediate("n1");
      await world.phase("n1", "Failed");
      assert.equal(world.condition("n1", "Succeeded"), "False WrongHost");
      assert.equal(world.condition("n1", "IdentityVerified"), "False WrongHost");
      assert.deepEqual(world.powerLog, ["n2 ForceOff", "n2 On"]);
      assert.deepEqual(world.markLog, ["n1 +quarantine", "n1 -quarantine"]);
      assert.equal(
        world.notes.some(({ type, reason }) => type === "Warning" && reason === "WrongHost"),
        true,
      );
      world.assertClean();
    }));
});

describe("a node that may be alive", () => {
  it("a node that may be alive is quarantined before it is powered off, and tainted only 12 s after the proof", () =>
    World.run({}, async (world) => {
      world.createPod("n1", "db");
      await world.clock.advance(3_000);
      world.remediate("n1");
      await world.phase("n1", "PoweringOff");
      assert.deepEqual(world.markLog, ["n1 +quarantine"]);
      await world.until("n1 is off", () => world.rack.host("n1").power === "Off");
      const offAtMs = world.clock.nowMs();
      await world.until("n1 is tainted", () => world.markLog.includes("n1 +taint"));
      assert.ok(world.clock.nowMs() - offAtMs >= 12_000);
      await world.phase("n1", "Succeeded");
      assert.deepEqual(world.powerLog, ["n1 ForceOff", "n1 On"]);
      world.assertClean();
    }));
});

describe("a BMC", () => {
  it("a BMC that does not answer is waited for until the deadline, which the status shows, and no mark is set until then", () =>
    World.run({}, async (world) => {
      await world.hang("n1");
      world.rack.bmc("n1").setReachability("refused");
      world.remediate("n1");
      await world.until("it says so", () => world.condition("n1", "Processing") === "True BMCUnreachable", 5_000);
      await world.clock.advance(60_000);
      assert.deepEqual(world.markLog, []);
      world.rack.bmc("n1").setReachability("up");
      await world.phase("n1", "Succeeded");
      world.assertClean();
    }));

  it("a BMC that never answers fails every attempt, and the verdict reports why", () =>
    World.run({}, async (world) => {
      await world.hang("n1");
      world.rack.bmc("n1").setReachability("silent");
      world.remediate("n1", { ...QUICK, retryLimit: 1 });
      await world.phase("n1", "Failed", 70_000);
      assert.equal(world.condition("n1", "Succeeded"), "False BMCTimeout");
      assert.equal(world.remediation("n1")?.status?.retryCount, 1);
      assert.deepEqual(world.markLog, []);
      world.assertClean();
    }));

  it("a BMC that does not let the account power hosts off is asked once, and the verdict is there as soon as the host reads On", () =>
    World.run({}, async (world) => {
      await world.hang("n1");
      world.faults.denies.add("n1 ForceOff");
      world.remediate("n1");
      const startMs = world.clock.nowMs();
      await world.phase("n1", "Failed");
      assert.equal(world.condition("n1", "Succeeded"), "False BMCPrivilegeTooLow");
      assert.ok(world.clock.nowMs() - startMs < 10_000, `${world.clock.nowMs() - startMs} ms`);
      assert.equal(world.devices.calls.filter(({ call }) => call === "ForceOff").length, 1);
      world.assertClean();
    }));

  it("a BMC that refuses the password is not asked again, and the remediation fails at once", () =>
    World.run({}, async (world) => {
      await world.hang("n1");
      world.faults.password = "changed";
      const calls = world.devices.calls.length;
      world.remediate("n1", { retryLimit: 3 });
      await world.phase("n1", "Failed", 5_000);
      assert.equal(world.condition("n1", "Succeeded"), "False BMCAuthenticationFailed");
      await world.clock.advance(300_000);
      // One call by the remediation, and one by the probe after it has given the host up.
      assert.ok(world.devices.calls.slice(calls).filter(({ host }) => host === "n1").length <= 2);
      assert.deepEqual(world.markLog, []);
      world.assertClean();
    }));

  it("a BMC that loses the answer to the order is believed by its state, without a second order", () =>
    World.run({}, async (world) => {
      await world.hang("n1");
      world.faults.losesAnswer.add("n1 ForceOff");
      world.remediate("n1");
      await world.phase("n1", "Succeeded");
      assert.equal(world.devices.calls.filter(({ call }) => call === "ForceOff").length, 1);
      const lost = world.remediation("n1")?.status?.timeline?.find(({ step }) => step === "PowerOffSent");
      const orderAt = world.devices.calls.findIndex(({ call }) => call === "ForceOff");
      const reading = world.devices.calls
        .slice(orderAt)
        .find(({ host, call }) => host === "n1" && call === "readPower");
      const waitedMs = (reading?.atMs ?? Infinity) - Date.parse(lost?.time ?? "");
      assert.ok(waitedMs < 100, `the power was read ${waitedMs} ms after the answer was lost`);
      world.assertClean();
    }));

  it("a BMC that takes the order and does nothing is never believed", () =>
    World.run({}, async (world) => {
      await world.hang("n1");
      world.rack.bmc("n1").orderDelayMs = 10_000_000;
      world.remediate("n1", QUICK);
      await world.phase("n1", "Failed");
      assert.equal(world.condition("n1", "Succeeded"), "False PowerOffTimeout");
      assert.deepEqual(world.markLog, []);
      world.assertClean();
    }));

  it("a BMC that stops answering while its host is fenced costs the node its taint within seconds; the taint comes back when the host is proven off again", () =>
    World.run({}, async (world) => {
      await world.holdPod();
      world.remediate("n1");
      await world.phase("n1", "Releasing");
      world.rack.bmc("n1").setReachability("silent");
      await world.until("the taint is off", () => world.markLog.includes("n1 -taint"), 7_000);
      world.rack.bmc("n1").setReachability("up");
      await world.phase("n1", "Releasing");
      world.freePod();
      await world.phase("n1", "Succeeded");
      assert.deepEqual(world.powerLog, ["n1 ForceOff", "n1 On"]);
      world.assertClean();
    }));
});

describe("a host that another actor powers on while it is fenced", () => {
  it("a host that another actor powers on while it is fenced loses the taint at once, is forced off and proven again under a new id", () =>
    World.run({}, async (world) => {
      await world.holdPod();
      world.remediate("n1");
      await world.phase("n1", "Releasing");
      const first = world.remediation("n1")?.status?.attempt?.id;
      world.otherClientOrders("n1", "On");
      await world.until("the taint is off", () => world.markLog.at(-1) === "n1 -taint", 5_000);
      await world.phase("n1", "Releasing");
      assert.notEqual(world.remediation("n1")?.status?.attempt?.id, first);
      world.freePod();
      await world.phase("n1", "Succeeded");
      assert.deepEqual(world.powerLog, ["n1 ForceOff", "n1 On", "n1 ForceOff", "n1 On"]);
      world.assertClean();
    }));
});

describe("workloads", () => {
  it("workloads that do not leave in time are named, and the host is powered on anyway", () =>
    World.run({}, async (world) => {
      await world.holdPod();
      world.remediate("n1", QUICK);
      await world.phase("n1", "PoweringOn", 60_000);
      assert.equal(world.condition("n1", "WorkloadsReleased"), "False DrainTimeout");
      assert.equal(bears(world.node("n1") ?? assert.fail(), OUT_OF_SERVICE), false);
      await world.phase("n1", "Succeeded");
      world.assertClean();
    }));

  it("workloads that tolerate the taint stay, and hold nothing up", () =>
    World.run({}, async (world) => {
      world.createPod("n1", "agent", { tolerations: [{ operator: "Exists" }] });
      world.createPod("n1", "db");
      await world.clock.advance(3_000);
      await world.hang("n1");
      world.remediate("n1");
      await world.phase("n1", "PoweringOn");
      assert.deepEqual(
        world.pods("n1").map(({ metadata }) => metadata.name),
        ["agent"],
      );
      await world.phase("n1", "Succeeded");
      world.assertClean();
    }));

  it("workloads are ended as Kubernetes' own sweep ends them: failed as disrupted, then deleted; what had finished stays so", () =>
    World.run({}, async (world) => {
      world.createPod("n1", "db");
      world.createPod("n1", "job");
      await world.clock.advance(3_000);
      await world.hang("n1");
      world.server
        .collection(PODS)
        .mergePatch({ namespace: "default", name: "job" }, { status: { phase: "Succeeded" } }, "status");
      const ends: string[] = [];
      world.server.collection<Pod>(PODS).subscribe(({ type, object }) => {
        if (type !== "DELETED") return;
        const disrupted = object.status?.conditions?.find((condition) => condition.type === "DisruptionTarget");
        ends.push(`${object.metadata.name} ${object.status?.phase} ${disrupted?.status ?? "-"}`);
      });
      world.remediate("n1");
      await world.phase("n1", "Succeeded");
      assert.deepEqual(ends.sort(), ["db Failed True", "job Succeeded -"]);
    }));

  it("workloads are left to Kubernetes' own sweep if that is asked for", () =>
    World.run({}, async (world) => {
      world.createPod("n1", "db");
      await world.clock.advance(3_000);
      await world.hang("n1");
      world.remediate("n1", { podRelease: "GarbageCollector" });
      await world.phase("n1", "Succeeded");
      assert.deepEqual(world.pods("n1"), []);
      world.assertClean();
    }));
});

describe("an out-of-service taint that another client put on the node", () => {
  it("an out-of-service taint that another client put on the node is respected and left", () =>
    World.run({}, async (world) => {
      await world.hang("n1");
      const taints = [...(world.node("n1")?.spec.taints ?? []), OUT_OF_SERVICE];
      world.server.collection(NODES).mergePatch({ name: "n1" }, { spec: { taints } });
      world.remediate("n1");
      await world.phase("n1", "Succeeded");
      assert.equal(bears(world.node("n1") ?? assert.fail(), OUT_OF_SERVICE), true);
      world.assertClean();
    }));
});

describe("what is missing is named, waited for, and used once it is there", () => {
  it("a remediation of a node without a target names that, waits for the target and uses it once it is there", () =>
    World.run({}, async (world) => {
      await world.hang("n1");
      world.server.collection(FENCING_TARGETS).delete({ namespace: NAMESPACE, name: "n1" });
      world.remediate("n1");
      await world.until("it says so", () => world.condition("n1", "Processing") === "True NoTarget", 5_000);
      world.createTarget("n1", world.rack.host("n1").spec.systemUUID);
      await world.phase("n1", "Succeeded");
      world.assertClean();
    }));

  it("a remediation names what is missing, waits for it and uses it once it is there, and fails if it does not come in time", () =>
    World.run({}, async (world) => {
      world.remediate("ghost", QUICK);
      await world.until("it says so", () => world.condition("ghost", "Processing") === "True NodeNotFound", 5_000);
      await world.phase("ghost", "Failed", 40_000);
      assert.equal(world.condition("ghost", "Succeeded"), "False NodeNotFound");
    }));

  it("two targets that claim one node are both refused", () =>
    World.run({}, async (world) => {
      await world.hang("n1");
      world.createTarget("n2b", world.rack.host("n1").spec.systemUUID, "n1");
      world.remediate("n1", QUICK);
      await world.phase("n1", "Failed", 40_000);
      assert.equal(world.condition("n1", "Succeeded"), "False Ambiguous");
      assert.deepEqual(world.powerLog, []);
    }));
});

describe("the stop switch and maintenance", () => {
  it("the stop switch and maintenance keep no node waiting for its power-off that has come back by itself meanwhile", () =>
    World.run({}, async (world) => {
      const targets = world.server.collection(FENCING_TARGETS);
      const maintain = (maintenance: boolean) =>
        targets.mergePatch({ namespace: NAMESPACE, name: "n1" }, { spec: { maintenance } });
      maintain(true);
      const host = await world.hang("n1");
      world.remediate("n1");
      await world.until("it waits", () => world.condition("n1", "Processing") === "True Maintenance");
      host.resume();
      await world.until("n1 is Ready", () => world.isReady("n1"));
      maintain(false);
      await world.phase("n1", "Succeeded");
      assert.deepEqual(world.powerLog, []);
    }));

  it("the stop switch and maintenance keep a host from being powered off, and say so", () =>
    World.run({}, async (world) => {
      await world.hang("n1");
      world.pause(true);
      await world.clock.advance(1_000);
      world.remediate("n1", QUICK);
      await world.until("it says so", () => world.condition("n1", "Processing") === "True Paused", 5_000);
      await world.clock.advance(600_000);
      assert.deepEqual(world.powerLog, []);
      world.pause(false);
      await world.phase("n1", "Succeeded");
      world.assertClean();
    }));

  it("the stop switch and maintenance hold the power-on of a fenced host back until they are lifted, however long that takes", () =>
    World.run({}, async (world) => {
      await world.holdPod();
      world.remediate("n1", { ...QUICK, drainTimeout: "300s" });
      await world.phase("n1", "Releasing");
      world.server
        .collection(FENCING_TARGETS)
        .mergePatch({ namespace: NAMESPACE, name: "n1" }, { spec: { maintenance: true } });
      await world.clock.advance(1_000);
      world.freePod();
      await world.until("it says so", () => world.condition("n1", "Processing") === "True Maintenance", 10_000);
      await world.clock.advance(600_000);
      assert.deepEqual(world.powerLog, ["n1 ForceOff"]);
      world.server
        .collection(FENCING_TARGETS)
        .mergePatch({ namespace: NAMESPACE, name: "n1" }, { spec: { maintenance: false } });
      await world.phase("n1", "Succeeded");
      world.assertClean();
    }));
});

describe("an undo", () => {
  it("an undo that maintenance holds back powers the host on once it is over, however late", () =>
    World.run({}, async (world) => {
      await world.holdPod();
      world.remediate("n1", QUICK);
      await world.phase("n1", "Releasing");
      const key = { namespace: NAMESPACE, name: "n1" };
      world.server.collection(FENCING_TARGETS).mergePatch(key, { spec: { maintenance: true } });
      await world.clock.advance(500);
      const annotations = { [NHC_TIMED_OUT]: "2026-01-01T00:00:00Z" };
      world.server
        .collection(BARE_METAL_REMEDIATIONS)
        .mergePatch({ namespace: NAMESPACE, name: "n1" }, { metadata: { annotations } });
      await world.until("it says so", () => world.condition("n1", "Processing") === "True Maintenance", 5_000);
      await world.clock.advance(600_000);
      assert.equal(world.rack.host("n1").power, "Off");
      world.server.collection(FENCING_TARGETS).mergePatch(key, { spec: { maintenance: false } });
      await world.phase("n1", "Failed", 10_000);
      assert.deepEqual(world.powerLog, ["n1 ForceOff", "n1 On"]);
      world.freePod();
      world.assertClean();
    }));

  it("an undo whose BMC does not answer keeps trying while the remediation is being deleted, and reports why", () =>
    World.run({}, async (world) => {
      await world.holdPod();
      world.remediate("n1", QUICK);
      await world.phase("n1", "Releasing");
      world.rack.bmc("n1").setReachability("refused");
      world.server.collection(BARE_METAL_REMEDIATIONS).delete({ namespace: NAMESPACE, name: "n1" });
      await world.until("it says so", () => world.condition("n1", "Processing") === "True BMCUnreachable", 5_000);
      assert.equal(world.markLog.at(-1), "n1 -taint");
      await world.clock.advance(3_600_000);
      world.rack.bmc("n1").setReachability("up");
      await world.until("it is gone", () => world.remediation("n1") === undefined, 60_000);
      assert.deepEqual(world.powerLog, ["n1 ForceOff", "n1 On"]);
      world.assertClean();
    }));
});

describe("an API server that cannot be reached for a minute", () => {
  for (const phase of ["PoweringOff", "Releasing", "PoweringOn", "Rejoining"]) {
    it(`an API server that cannot be reached for a minute in ${phase} does no harm`, () =>
      World.run({}, async (world) => {
        await world.holdPod();
        if (phase !== "Releasing") world.freePod();
        world.remediate("n1");
        await world.phase("n1", phase);
        world.server.faults.inject({ match: { client: "agent" }, times: Infinity, action: { kind: "drop" } });
        world.server.faults.cutWatches({ client: "agent" });
        await world.clock.advance(60_000);
        world.server.faults.clear();
        if (phase === "Releasing") world.freePod();
        await world.phase("n1", "Succeeded");
        assert.deepEqual(world.powerLog, ["n1 ForceOff", "n1 On"]);
        world.assertClean();
      }));
  }
});
