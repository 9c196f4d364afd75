import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { BARE_METAL_REMEDIATIONS } from "../../src/api/ironfence/bare-metal-remediation.ts";
import { NODES } from "../../src/api/kubernetes/core-types.ts";
import { readCreationRecord } from "../../src/nodes/creation-record.ts";
import { ANNOTATIONS_BACKUP, LABELS_BACKUP, Okd, REQUEST } from "./okd-world.ts";

// The remediator's half of OKD's external-baremetal: a health check annotates a Machine that it finds unhealthy.

describe("external remediation of an OKD Machine", () => {
  it("external remediation of an OKD Machine powers the host off, deletes the Node, powers it on, and gives the Node its labels and annotations back", () =>
    Okd.run({}, async (okd, world) => {
      const metadata = { labels: { rack: "r1" }, annotations: { "example.com/note": "mine" } };
      world.server.collection(NODES).mergePatch({ name: "n1" }, { metadata });
      const uid = world.node("n1")?.metadata.uid;
      const backups = new Set<string | undefined>();
      world.server.onChange(({ object }) => {
        if (object.kind === "Machine") backups.add(object.metadata.annotations?.[LABELS_BACKUP]);
      });
      await world.hang("n1");
      okd.ask("m1");
      await world.until("the request is met", () => okd.annotation("m1", REQUEST) === undefined);
      assert.deepEqual(world.powerLog, ["n1 ForceOff", "n1 On"]);
      const node = world.node("n1");
      assert.notEqual(node?.metadata.uid, uid, "the Node was deleted");
      assert.equal(node?.metadata.labels?.["rack"], "r1");
      assert.equal(node?.metadata.annotations?.["example.com/note"], "mine");
      assert.ok(
        [...backups].some((backup) => backup?.includes('"rack":"r1"')),
        "the Machine had the backup",
      );
      assert.equal(okd.annotation("m1", LABELS_BACKUP), undefined);
      assert.equal(okd.annotation("m1", ANNOTATIONS_BACKUP), undefined);
      await world.until("the child is gone", () => okd.child("m1") === undefined);
      assert.deepEqual(okd.reasons, ["RemediationStarted", "RemediationSucceeded"]);
      world.assertClean();
    }));

  it("external remediation of an OKD Machine tries again if the first power cycle did not help", () =>
    Okd.run({ hosts: ["n1"] }, async (okd, world) => {
      okd.createHealthCheck();
      const host = await world.hang("n1");
      // The first boot hangs as well.
      const stop = world.rack.subscribe((event) => {
        if (event.type !== "booted") return;
        stop();
        queueMicrotask(() => host.hang());
      });
      okd.ask("m1");
      await world.until("the request is met", () => okd.annotation("m1", REQUEST) === undefined);
      assert.deepEqual(world.powerLog, ["n1 ForceOff", "n1 On", "n1 ForceOff", "n1 On"]);
      world.assertClean();
    }));

  it("external remediation of an OKD Machine does not power off a node that is back before the power-off, as upstream does", () =>
    Okd.run({}, async (okd, world) => {
      const host = await world.hang("n1");
      world.rack.bmc("n1").setReachability("refused");
      okd.ask("m1");
      await world.until("it is looked at", () => okd.child("m1")?.status?.phase === "Verifying");
      host.resume();
      await world.until("n1 is Ready", () => world.isReady("n1"));
      world.rack.bmc("n1").setReachability("up");
      await world.until("the request is met", () => okd.annotation("m1", REQUEST) === undefined);
      assert.deepEqual(world.powerLog, []);
      world.assertClean();
    }));

  it("external remediation of an OKD Machine does not power off a node that comes back before the next agent begins the fence", () =>
    Okd.run({}, async (okd, world) => {
      const host = await world.hang("n1");
      await world.killAgent();
      okd.ask("m1");
      await world.until("a remediation is created", () => okd.child("m1") !== undefined);
      assert.equal(okd.child("m1")?.status, undefined);
      const record = readCreationRecord(okd.child("m1")?.metadata.annotations);
      assert.equal(record?.uid, world.node("n1")?.metadata.uid);
      host.resume();
      await world.until("n1 is Ready", () => world.isReady("n1"));
      world.startAgent();
      await world.until("the request is met", () => okd.annotation("m1", REQUEST) === undefined);
      assert.deepEqual(world.powerLog, []);
      world.assertClean();
    }));

  it("external remediation of an OKD Machine does not power off a node that comes back while no agent runs after the request", () =>
    Okd.run({ requests: true, healthChecks: true }, async (okd, world) => {
      okd.createHealthCheck({}, { "machine.openshift.io/remediation-strategy": "external-baremetal" });
      let stopped: Promise<unknown> | undefined;
      const stop = world.server.onChange(({ object }) => {
        if (object.kind !== "Machine" || object.metadata.annotations?.[REQUEST] === undefined) return;
        stop();
        queueMicrotask(() => void (stopped = Promise.all([world.killAgent(), okd.stop()])));
      });
      const host = await world.hang("n1");
      await world.until("the agent has requested the fence", () => stopped !== undefined);
      await stopped;
      assert.equal(okd.child("m1"), undefined);
      host.resume();
      await world.until("n1 is Ready", () => world.isReady("n1"));
      const recorded = new Set<string | undefined>();
      world.server.onChange(({ object: { kind, metadata } }) => {
        if (kind === BARE_METAL_REMEDIATIONS.kind) recorded.add(readCreationRecord(metadata.annotations)?.uid);
      });
      world.startAgent();
      okd.start();
      await world.until("the request is met", () => okd.annotation("m1", REQUEST) === undefined);
      assert.deepEqual(world.powerLog, []);
      assert.deepEqual([...recorded], [world.node("n1")?.metadata.uid]);
      world.assertClean();
    }));

  it("external remediation of an OKD Machine ends if the BMC is dead (upstream waits forever), reports why, and is over once the node is back", () =>
    Okd.run({}, async (okd, world) => {
      const host = await world.hang("n1");
      world.rack.bmc("n1").setReachability("refused");
      okd.ask("m1");
      await world.until("it is reported", () => okd.reasons.includes("RemediationFailed"), 3_600_000);
      assert.notEqual(okd.annotation("m1", REQUEST), undefined);
      host.resume();
      await world.until("the request is met", () => okd.annotation("m1", REQUEST) === undefined);
      await world.until("the child is gone", () => okd.child("m1") === undefined);
      assert.deepEqual(world.powerLog, []);
      assert.deepEqual(okd.reasons, ["RemediationStarted", "RemediationFailed", "RemediationSucceeded"]);
      world.assertClean();
    }));

  it("external remediation of an OKD Machine is tried again once the BMC is back, without a new request", () =>
    Okd.run({ hosts: ["n1"] }, async (okd, world) => {
      await world.hang("n1");
      world.rack.bmc("n1").setReachability("refused");
      okd.ask("m1");
      await world.until("it has failed", () => okd.reasons.includes("RemediationFailed"));
      world.rack.bmc("n1").setReachability("up");
      await world.clock.advance(590_000);
      assert.equal(okd.reasons.at(-1), "RemediationFailed");
      await world.until("the request is met", () => okd.annotation("m1", REQUEST) === undefined);
      assert.deepEqual(world.powerLog, ["n1 ForceOff", "n1 On"]);
      assert.deepEqual(okd.reasons, [
        "RemediationStarted",
        "RemediationFailed",
        "TriedAgain",
        "RemediationStarted",
        "RemediationSucceeded",
      ]);
      world.assertClean();
    }));

  it("external remediation of an OKD Machine makes one child however often the remediator's half begins again", () =>
    Okd.run({}, async (okd, world) => {
      const made = new Set<string>();
      world.server.onChange(({ object }) => {
        if (object.kind === "BareMetalRemediation") made.add(object.metadata.uid);
      });
      await world.hang("n1");
      okd.ask("m1");
      for (let restarts = 0; restarts < 20; restarts += 1) {
        await world.clock.advance(2_500);
        await okd.restart();
      }
      await world.until("the request is met", () => okd.annotation("m1", REQUEST) === undefined);
      assert.equal(made.size, 1);
      assert.deepEqual(world.powerLog, ["n1 ForceOff", "n1 On"]);
    }));

  it("external remediation of an OKD Machine is not begun again on a view that still shows what was met: no node is power-cycled for that", () =>
    Okd.run({ lagMs: 30_000 }, async (okd, world) => {
      await world.hang("n1");
      okd.ask("m1");
      await world.until("the request is met", () => okd.annotation("m1", REQUEST) === undefined);
      okd.deleteChild("m1");
      await world.until("the child is gone", () => okd.child("m1") === undefined);
      await world.clock.advance(120_000);
      assert.equal(okd.child("m1"), undefined);
      assert.deepEqual(world.powerLog, ["n1 ForceOff", "n1 On"]);
    }));

  it("external remediation of two OKD Machines goes on at the same time", () =>
    Okd.run({}, async (okd, world) => {
      await world.hang("n1");
      await world.hang("n2");
      okd.ask("m1");
      okd.ask("m2");
      await world.until("both are met", () =>
        ["m1", "m2"].every((name) => okd.annotation(name, REQUEST) === undefined),
      );
      assert.deepEqual([...world.powerLog].sort(), ["n1 ForceOff", "n1 On", "n2 ForceOff", "n2 On"]);
      world.assertClean();
    }));
});

describe("a request of an OKD Machine that is withdrawn", () => {
  for (const phase of ["PoweringOff", "PoweringOn", "Rejoining"]) {
    it(`a request of an OKD Machine that is withdrawn in ${phase} is undone: the host is on, and nothing of ironfence is left`, () =>
      Okd.run({}, async (okd, world) => {
        world.server.collection(NODES).mergePatch({ name: "n1" }, { metadata: { labels: { rack: "r1" } } });
        await world.hang("n1");
        okd.ask("m1");
        await world.until(`it is in ${phase}`, () => okd.child("m1")?.status?.phase === phase);
        okd.annotate("m1", { [REQUEST]: null });
        await world.until("the child is gone", () => okd.child("m1") === undefined);
        await world.until("n1 is Ready", () => world.isReady("n1"));
        assert.equal(world.rack.host("n1").power, "On");
        assert.equal(world.node("n1")?.metadata.labels?.["rack"], "r1");
        assert.equal(okd.annotation("m1", LABELS_BACKUP), undefined);
        world.assertClean();
      }));
  }
});

describe("an OKD Machine", () => {
  it("an OKD Machine that is deleted ends its remediation", () =>
    Okd.run({}, async (okd, world) => {
      okd.patch("m1", { metadata: { finalizers: ["machine.machine.openshift.io"] } });
      await world.hang("n1");
      okd.ask("m1");
      await world.until("it is under way", () => okd.child("m1")?.status?.phase === "PoweringOn");
      okd.delete("m1");
      await world.until("the child is gone", () => okd.child("m1") === undefined);
      assert.ok(okd.reasons.includes("MachineDeleted"));
      world.assertClean();
    }));

  it("an OKD Machine that OKD's own machine controller remediates is left to it, with a message", () =>
    Okd.run({}, async (okd, world) => {
      await world.hang("n1");
      okd.annotate("m1", { [REQUEST]: "", "remediation.metal3.io/powered-off-for-remediation": "" });
      await world.until("it is reported", () => okd.reasons.includes("ConflictingController"));
      await world.clock.advance(60_000);
      assert.equal(okd.child("m1"), undefined);
      assert.deepEqual(world.powerLog, []);
      assert.deepEqual(okd.reasons, ["ConflictingController"]);
    }));
});

describe("an OKD Machine whose host does not come back is never deleted", () => {
  const kept: Record<string, (okd: Okd) => void> = {
    "of the control plane": (okd) =>
      okd.patch("m1", { metadata: { labels: { "machine.openshift.io/cluster-api-machine-role": "master" } } }),
    "without a controller": (okd) => okd.patch("m1", { metadata: { ownerReferences: null } }),
  };
  for (const [which, prepare] of Object.entries(kept)) {
    it(`an OKD Machine whose host does not come back is never deleted if it is ${which}, and an Event says so`, () =>
      Okd.run({ hosts: ["n1"] }, async (okd, world) => {
        prepare(okd);
        okd.createHealthCheck();
        const host = await world.hang("n1");
        host.failDisk();
        okd.ask("m1");
        await okd.waitOut("n1");
        await world.until("it is reported", () => okd.reasons.includes("RemediationFailed"));
        await world.clock.advance(60_000);
        assert.equal(okd.machine("m1")?.metadata.deletionTimestamp, undefined);
        assert.notEqual(okd.annotation("m1", REQUEST), undefined);
        assert.equal(host.power, "On");
      }));
  }

  it("an OKD Machine of another host gets the reason, and no condition of Cluster API", () =>
    Okd.run({ hosts: ["n1"] }, async (okd, world) => {
      okd.createHost("m1", "host-1", { externallyProvisioned: true });
      okd.createHealthCheck();
      const host = await world.hang("n1");
      host.failDisk();
      okd.ask("m1");
      await okd.waitOut("n1");
      await world.until("it is reported", () => okd.reasons.includes("RemediationFailed"));
      assert.match(okd.notes.at(-1)?.note ?? "", /externally provisioned.*Machine m1 is not deleted/);
      assert.doesNotMatch(JSON.stringify([okd.machine("m1"), okd.notes]), /OwnerRemediated/);
    }));
});
