import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { RequestRecord } from "../../hack/kube-mock/api-server.ts";
import { NODES } from "../../src/api/kubernetes/core-types.ts";
import { toTime } from "../../src/runtime/time.ts";
import { beyondRights, readRules } from "../lib/rights.ts";
import type { World } from "./world.ts";
import { Okd, REQUEST } from "./okd-world.ts";

// OKD's MachineHealthCheck with both of its actions. Power fencing uses the whole remediator.

const DETECTOR = { requests: false, healthChecks: true };
const BOTH = { requests: true, healthChecks: true };
const EXTERNAL = { "machine.openshift.io/remediation-strategy": "external-baremetal" };
/** The machine controller keeps this finalizer until the host is deprovisioned. */
const FINALIZER = "machine.machine.openshift.io";

/** Names of the hosts of `count` Machines. */
function hosts(count: number): string[] {
  return Array.from({ length: count }, (_, index) => `n${index + 1}`);
}

/** Records the deletions of Machines in order, with their times. */
function watchDeletions(world: World): { name: string; atMs: number }[] {
  const seen: { name: string; atMs: number }[] = [];
  world.server.onChange(({ type, object }) => {
    const { name, deletionTimestamp } = object.metadata;
    if (object.kind !== "Machine" || seen.some((earlier) => earlier.name === name)) return;
    if (type === "DELETED" || deletionTimestamp !== undefined) seen.push({ name, atMs: world.clock.nowMs() });
  });
  return seen;
}

describe("a MachineHealthCheck of OKD", () => {
  it("a MachineHealthCheck of OKD shows its status as OKD does, and writes nothing while nothing changes", () =>
    Okd.run(DETECTOR, async (okd, world) => {
      okd.createHealthCheck({ maxUnhealthy: "40%" });
      await world.until("it is counted", () => okd.healthCheck?.status?.currentHealthy === 3);
      const { status, metadata } = okd.healthCheck ?? {};
      assert.equal(status?.expectedMachines, 3);
      assert.equal(status.remediationsAllowed, 1);
      assert.deepEqual(
        status.conditions?.map(({ type, status }) => [type, status]),
        [["RemediationAllowed", "True"]],
      );
      assert.equal(await okd.metric("nodes_covered"), 3);
      assert.equal(await okd.metric("short_circuit"), 0);
      await world.clock.advance(300_000);
      assert.equal(okd.healthCheck?.metadata.resourceVersion, metadata?.resourceVersion);
    }));

  it("a MachineHealthCheck of OKD deletes a Machine whose node has failed for its timeout, and no sooner", () =>
    Okd.run(DETECTOR, async (okd, world) => {
      okd.createHealthCheck();
      const deletions = watchDeletions(world);
      await world.hang("n1");
      const failedMs = world.clock.nowMs();
      await world.until("m1 is deleted", () => deletions.length > 0);
      assert.deepEqual(
        deletions.map(({ name }) => name),
        ["m1"],
      );
      const tookMs = (deletions[0]?.atMs ?? 0) - failedMs;
      assert.ok(tookMs >= 59_000 && tookMs < 65_000, `${tookMs} ms`);
      assert.deepEqual(okd.reasons, ["DetectedUnhealthy", "MachineDeleted"]);
      assert.equal(await okd.metric("remediation_success_total"), 1);
      await world.clock.advance(300_000);
      assert.equal(deletions.length, 1);
    }));

  it("a MachineHealthCheck of OKD deletes at once what its provider has given up", () =>
    Okd.run(DETECTOR, async (okd, world) => {
      okd.createHealthCheck();
      const deletions = watchDeletions(world);
      await world.clock.advance(5_000);
      okd.setStatus("m2", { phase: "Failed", errorReason: "CreateError" });
      await world.until("m2 is deleted", () => deletions.length > 0, 5_000);
    }));

  it("a MachineHealthCheck of OKD deletes one Machine after the other, and does not wait for one whose deletion hangs", () => {
    const requests: string[] = [];
    const onRequest = (what: string): void => {
      if (/^(GET|DELETE) machines\//.test(what)) requests.push(what);
    };
    return Okd.run({ ...DETECTOR, onRequest, hosts: hosts(5) }, async (okd, world) => {
      okd.patch("m1", { metadata: { finalizers: [FINALIZER] } });
      okd.createHealthCheck({ maxUnhealthy: 3 });
      const deletions = watchDeletions(world);
      for (const host of hosts(3)) world.rack.host(host).hang();
      await world.until("all three are deleted", () => deletions.length === 3);
      const inTurn = ["m1", "m2", "m3"].flatMap((name) => [`GET machines/${name}`, `DELETE machines/${name}`]);
      assert.deepEqual(requests, inTurn);
    });
  });

  it("a MachineHealthCheck of OKD deletes no Machine while another one is being deleted, if its annotation asks for one at a time", () =>
    Okd.run({ ...DETECTOR, hosts: hosts(4) }, async (okd, world) => {
      okd.patch("m1", { metadata: { finalizers: [FINALIZER] } });
      const annotations = { "ironfence.io/one-machine-at-a-time": "true" };
      okd.createHealthCheck({ maxUnhealthy: 2 }, annotations);
      const deletions = watchDeletions(world);
      for (const host of hosts(2)) world.rack.host(host).hang();
      await world.until("m1 is deleted", () => deletions.length === 1);
      await world.clock.advance(600_000);
      assert.equal(deletions.length, 1, "m1 is still being drained");
      okd.patch("m1", { metadata: { finalizers: null } });
      await world.until("m2 is deleted", () => deletions.length === 2, 30_000);
    }));

  it("a MachineHealthCheck of OKD that is annotated while it runs deletes one Machine at a time from then on", () =>
    Okd.run({ ...DETECTOR, hosts: hosts(4) }, async (okd, world) => {
      okd.patch("m1", { metadata: { finalizers: [FINALIZER] } });
      okd.createHealthCheck({ maxUnhealthy: 2 });
      await world.until("it is counted", () => okd.healthCheck?.status?.currentHealthy === 4);
      okd.annotateHealthCheck({ "ironfence.io/one-machine-at-a-time": "true" });
      const deletions = watchDeletions(world);
      for (const host of hosts(2)) world.rack.host(host).hang();
      await world.until("m1 is deleted", () => deletions.length > 0);
      await world.clock.advance(600_000);
      assert.equal(deletions.length, 1, "m1 is still being drained");
    }));

  it("a MachineHealthCheck of OKD does nothing while too many nodes are unhealthy, reports it once and does not repeat its calls (upstream loops every 1 ms)", () => {
    let requests = 0;
    return Okd.run({ ...DETECTOR, onRequest: () => (requests += 1) }, async (okd, world) => {
      okd.createHealthCheck({ maxUnhealthy: "40%" });
      const deletions = watchDeletions(world);
      for (const host of hosts(2)) world.rack.host(host).hang();
      await world.until("it is restricted", () => okd.reasons.includes("RemediationRestricted"));
      await world.clock.advance(120_000);
      assert.equal(await okd.metric("short_circuit"), 1);
      assert.equal(okd.healthCheck?.status?.remediationsAllowed, 0);
      assert.deepEqual(
        okd.healthCheck.status.conditions?.map(({ type, status, reason, severity }) => [
          type,
          status,
          reason,
          severity,
        ]),
        [["RemediationAllowed", "False", "TooManyUnhealthy", "Warning"]],
      );
      const before = requests;
      await world.clock.advance(600_000);
      assert.ok(requests - before < 100, `${requests - before} requests in ten minutes`);
      assert.deepEqual(deletions, []);
      assert.equal(okd.reasons.filter((reason) => reason === "RemediationRestricted").length, 1);
      world.rack.host("n1").resume();
      world.rack.host("n2").resume();
      await world.until("it is allowed", () => okd.healthCheck?.status?.remediationsAllowed === 1);
      assert.equal(await okd.metric("short_circuit"), 0);
    });
  });

  it("a MachineHealthCheck of OKD never deletes a Machine of the control plane, nor one without a controller, and says so", () =>
    Okd.run(DETECTOR, async (okd, world) => {
      okd.patch("m1", { metadata: { labels: { "machine.openshift.io/cluster-api-machine-role": "master" } } });
      okd.patch("m2", { metadata: { ownerReferences: null } });
      okd.createHealthCheck();
      const deletions = watchDeletions(world);
      for (const host of hosts(2)) world.rack.host(host).hang();
      await world.until("both are skipped", () =>
        ["SkippedMaster", "SkippedNoController"].every((reason) => okd.reasons.includes(reason)),
      );
      okd.setStatus("m1", { phase: "Failed" });
      await world.clock.advance(120_000);
      assert.deepEqual(deletions, []);
    }));

  it("a MachineHealthCheck of OKD does nothing while it is paused, unless it is paused for OKD's own controller alone", () =>
    Okd.run(DETECTOR, async (okd, world) => {
      okd.createHealthCheck({}, { "cluster.x-k8s.io/paused": "" });
      const deletions = watchDeletions(world);
      await world.hang("n1");
      await world.clock.advance(180_000);
      assert.deepEqual(deletions, []);
      assert.deepEqual(okd.reasons, []);
      okd.annotateHealthCheck({ "cluster.x-k8s.io/paused": "ironfence.io" });
      await world.until("m1 is deleted", () => deletions.length > 0, 5_000);
    }));

  it("the metrics of a MachineHealthCheck of OKD are removed with it (upstream leaves the short circuit behind)", () =>
    Okd.run(DETECTOR, async (okd, world) => {
      okd.createHealthCheck();
      await world.until("it is counted", () => okd.healthCheck?.status?.currentHealthy === 3);
      okd.deleteHealthCheck();
      await world.clock.advance(1_000);
      for (const name of ["nodes_covered", "short_circuit", "remediation_success_total"]) {
        assert.equal(await okd.metric(name), undefined, name);
      }
    }));
});

describe("a Machine that a health check of OKD is about to delete", () => {
  /** Changes between the decision and the live read that the view does not show yet. */
  const changes: Record<string, (okd: Okd, world: World) => void> = {
    "now belongs to the control plane": (okd) =>
      okd.patch("m1", { metadata: { labels: { "machine.openshift.io/cluster-api-machine-type": "master" } } }),
    "no longer has a controller": (okd) => okd.patch("m1", { metadata: { ownerReferences: null } }),
    "was replaced by another one with its name": (okd) => {
      okd.delete("m1");
      okd.createMachine("m1", undefined);
    },
    "now has a node that is Ready": (_okd, world) => {
      const conditions = [{ type: "Ready", status: "True", lastTransitionTime: toTime(world.clock.nowMs()) }];
      world.server.collection(NODES).mergePatch({ name: "n1" }, { status: { conditions } }, "status");
    },
  };
  for (const [what, change] of Object.entries(changes)) {
    it(`a Machine that a health check of OKD is about to delete is kept if a live read shows that it ${what}`, () => {
      let act: (() => void) | undefined;
      const onRequest = (request: string): void => {
        if (request !== "GET machines/m1") return;
        act?.();
        act = undefined;
      };
      return Okd.run({ ...DETECTOR, onRequest }, async (okd, world) => {
        okd.createHealthCheck();
        await world.hang("n1");
        let isChanged = false;
        const uids = new Set<string>();
        act = () => {
          change(okd, world);
          isChanged = true;
          uids.add(okd.machine("m1")?.metadata.uid ?? "");
        };
        await world.until("it is looked at", () => isChanged);
        await world.clock.advance(30_000);
        const machine = okd.machine("m1");
        assert.ok(machine !== undefined && machine.metadata.deletionTimestamp === undefined);
        assert.ok(uids.has(machine.metadata.uid));
      });
    });
  }
});

describe("a MachineHealthCheck of OKD with external-baremetal", () => {
  it("a MachineHealthCheck of OKD with external-baremetal asks for power fencing once, and the node comes back: request met, nothing deleted", () =>
    Okd.run(BOTH, async (okd, world) => {
      okd.createHealthCheck({}, EXTERNAL);
      const deletions = watchDeletions(world);
      await world.hang("n1");
      await world.until("it is asked for", () => okd.annotation("m1", REQUEST) !== undefined);
      await world.until("the request is met", () => okd.annotation("m1", REQUEST) === undefined);
      await world.until("all are healthy", () => okd.healthCheck?.status?.currentHealthy === 3);
      await world.clock.advance(180_000);
      assert.deepEqual(world.powerLog, ["n1 ForceOff", "n1 On"]);
      assert.deepEqual(deletions, []);
      assert.equal(okd.reasons.filter((reason) => reason === "ExternalAnnotationAdded").length, 1);
      assert.ok(okd.reasons.includes("RemediationSucceeded"));
      world.assertClean();
    }));

  it("a MachineHealthCheck of OKD with external-baremetal asks for a Machine of the control plane too", () =>
    Okd.run({ ...DETECTOR, hosts: hosts(3) }, async (okd, world) => {
      okd.patch("m1", { metadata: { labels: { "machine.openshift.io/cluster-api-machine-role": "master" } } });
      okd.createHealthCheck({}, EXTERNAL);
      await world.hang("n1");
      await world.until("it is asked for", () => okd.annotation("m1", REQUEST) !== undefined);
    }));

  it("a MachineHealthCheck of OKD with external-baremetal never withdraws a request: its remediator may keep the host off", () =>
    Okd.run(DETECTOR, async (okd, world) => {
      okd.createHealthCheck({}, EXTERNAL);
      const host = await world.hang("n1");
      await world.until("it is asked for", () => okd.annotation("m1", REQUEST) !== undefined);
      host.resume();
      await world.until("all are healthy", () => okd.healthCheck?.status?.currentHealthy === 3);
      await world.clock.advance(120_000);
      assert.equal(okd.annotation("m1", REQUEST), "ready-in-boot=");
    }));

  it("a MachineHealthCheck of OKD with external-baremetal sends no request while too many nodes are unhealthy", () =>
    Okd.run(BOTH, async (okd, world) => {
      okd.createHealthCheck({ maxUnhealthy: "40%" }, EXTERNAL);
      for (const host of hosts(2)) world.rack.host(host).hang();
      await world.until("it is restricted", () => okd.reasons.includes("RemediationRestricted"));
      await world.clock.advance(300_000);
      assert.equal(okd.annotation("m1", REQUEST), undefined);
      assert.equal(okd.annotation("m2", REQUEST), undefined);
      assert.deepEqual(world.powerLog, []);
    }));

  it("a MachineHealthCheck of OKD with external-baremetal has a Machine replaced whose host does not come back, after two power cycles", () =>
    Okd.run({ ...BOTH, hosts: hosts(2) }, async (okd, world) => {
      okd.patch("m1", { metadata: { finalizers: [FINALIZER] } });
      // n2 is a spare host. Its Machine is created when m1 is deleted.
      okd.delete("m2");
      okd.createHealthCheck({}, EXTERNAL);
      const deletions = watchDeletions(world);
      const host = await world.hang("n1");
      host.failDisk();
      await okd.waitOut("n1");
      await world.until("m1 is deleted", () => deletions.some(({ name }) => name === "m1"));
      assert.deepEqual(world.powerLog.slice(0, 4), ["n1 ForceOff", "n1 On", "n1 ForceOff", "n1 On"]);
      await world.clock.advance(60_000);
      okd.createMachine("m2", "n2");
      await world.clock.advance(60_000);
      okd.patch("m1", { metadata: { finalizers: null } });
      await world.until("the child is gone", () => okd.child("m1") === undefined);
      assert.deepEqual([...world.phases.values()].at(-1)?.at(-1), "Succeeded", world.story());
      assert.deepEqual(
        deletions.map(({ name }) => name),
        ["m1"],
      );
      world.assertClean();
    }));
});

describe("the permissions of OKD's families", () => {
  const rulesOf = (family: string) => readRules(`deploy/families/${family}/role-${family}.yaml`);
  /** The ClusterRoles that every agent needs, in addition to its Roles in single namespaces. */
  const base = [
    ...readRules("deploy/kustomize/role-agent.yaml"),
    ...readRules("deploy/kustomize/role-remediators.yaml"),
    ...rulesOf("okd"),
  ];
  const record = (world: World): RequestRecord[] => {
    const records: RequestRecord[] = [];
    world.server.onRequest((request) => {
      if (request.client === "okd" || request.path.includes("/machine.openshift.io/")) records.push(request);
    });
    return records;
  };

  it("the permissions of OKD's families are enough for a health check that deletes", () =>
    Okd.run(DETECTOR, async (okd, world) => {
      const records = record(world);
      await okd.restart();
      okd.createHealthCheck();
      const deletions = watchDeletions(world);
      await world.hang("n1");
      await world.until("m1 is deleted", () => deletions.length > 0);
      await world.clock.advance(1_000);
      const family = rulesOf("okd-machine-health-check");
      assert.deepEqual(beyondRights(records, [...base, ...family]), []);
      assert.notDeepEqual(beyondRights(records, base), []);
    }));

  it("the permissions of OKD's families are enough for power fencing, from the request to the replacement", () =>
    Okd.run({ hosts: hosts(1) }, async (okd, world) => {
      const records = record(world);
      await okd.restart();
      okd.patch("m1", { metadata: { finalizers: [FINALIZER] } });
      okd.createHealthCheck();
      const host = await world.hang("n1");
      host.failDisk();
      okd.ask("m1");
      await okd.waitOut("n1");
      await world.until("m1 is deleted", () => okd.machine("m1")?.metadata.deletionTimestamp !== undefined);
      okd.createMachine("m2", undefined);
      await world.clock.advance(30_000);
      okd.patch("m1", { metadata: { finalizers: null } });
      await world.until("the child is gone", () => okd.child("m1") === undefined);
      const family = rulesOf("okd-machine");
      assert.deepEqual(beyondRights(records, [...base, ...family]), []);
      assert.notDeepEqual(beyondRights(records, base), []);
    }));
});
