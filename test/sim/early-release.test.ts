import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { FencingTarget } from "../../src/api/ironfence/fencing-target.ts";
import { FENCING_TARGETS } from "../../src/api/ironfence/fencing-target.ts";
import { NODE_HEALTH_CHECKS } from "../../src/api/ironfence/node-health-check.ts";
import { NAMESPACES } from "../../hack/kube-mock/controllers/cluster-types.ts";
import { LEASES, NODES } from "../../src/api/kubernetes/core-types.ts";
import type { Lease, Node, Pod } from "../../src/api/kubernetes/core.ts";
import type { KubeObject } from "../../src/kube/resource.ts";
import { parseTimeMs, toTime } from "../../src/runtime/time.ts";
import {
  BEFORE_UNKNOWN_MS,
  begun,
  cutPower,
  INSTANT,
  isTainted,
  ordersOfAgent,
  releaseRackOf40,
  runEarly,
  silenceAll,
} from "./early-world.ts";
import type { EarlyOptions } from "./early-world.ts";
import type { World } from "./world.ts";
import { NAMESPACE } from "./world.ts";

// Hosts that lose power while their nodes are still Ready. Kubernetes takes 50 s to notice that, and the health check
// waits for another 300 s.

const gone = (world: World): Promise<void> =>
  world.until("the pod is gone", () => world.pods("n1").length === 0, BEFORE_UNKNOWN_MS);

describe("a host that loses its power", () => {
  it("a host that loses its power has its pods released within 20 s, while its node still says that it is Ready", async () => {
    const tookMs: number[] = [];
    for (let seed = 1; seed <= 6; seed += 1) {
      await runEarly({ seed }, async (world) => {
        world.createPod("n1", "db");
        await world.clock.advance(seed * 1_700);
        cutPower(world, "n1");
        const lostMs = world.clock.nowMs();
        await gone(world);
        tookMs.push(world.clock.nowMs() - lostMs);
        assert.equal(world.isReady("n1"), true);
      });
    }
    assert.ok(Math.max(...tookMs) <= 20_000, `${tookMs.join(", ")} ms`);
    const median = tookMs.toSorted((a, b) => a - b)[2] ?? Infinity;
    assert.ok(median <= 15_000, `${tookMs.join(", ")} ms`);
  });

  for (const [leaseDurationSeconds, worstMs] of [
    [20, 20_000],
    [80, 32_000],
  ] as const) {
    it(`a host that loses its power has its pods released early with leases of ${leaseDurationSeconds} s and node clocks an hour off`, () =>
      runEarly({ kubelets: { leaseDurationSeconds, aheadMs: { n1: 3_600_000, n2: -3_600_000 } } }, async (world) => {
        world.createPod("n1", "db");
        cutPower(world, "n1");
        const lostMs = world.clock.nowMs();
        await gone(world);
        assert.ok(world.clock.nowMs() - lostMs <= worstMs, `${world.clock.nowMs() - lostMs} ms`);
      }));
  }

  it("a host that loses its power is powered on no sooner than without an early release, and its node comes back", () =>
    runEarly({}, async (world) => {
      world.createPod("n1", "db");
      cutPower(world, "n1");
      const lostMs = world.clock.nowMs();
      await gone(world);
      const [remediation] = begun(world);
      const notBeforeMs = parseTimeMs(remediation?.spec.powerOnNotBefore) ?? assert.fail();
      assert.ok(notBeforeMs >= lostMs + 350_000, `${notBeforeMs - lostMs} ms`);
      await world.until("n1 is On", () => world.rack.host("n1").power === "On");
      assert.ok(world.clock.nowMs() >= notBeforeMs, `${world.clock.nowMs() - notBeforeMs} ms`);
      await world.until("n1 is back", () => begun(world).length === 0 && world.isReady("n1"));
      assert.equal(world.powerLog.filter((entry) => entry === "n1 On").length, 1);
      const notes = world.notes.filter(({ reason }) => reason === "DurationSkipped").map(({ note }) => note);
      assert.equal(notes.length, 1);
      assert.match(notes[0] ?? "", /it still says that it is Ready, but has not renewed its lease for 1\d s/);
      assert.match(await world.metrics("ironfence_early_remediations_total"), / 1$/);
      world.assertClean();
    }));

  it("a host that loses its power with three others has the pods of all four ended by no more than 100 writes in a second", () => {
    const hosts = ["n1", "n2", "n3", "n4"].map((name) => ({ name, ...INSTANT }));
    return runEarly({ hosts }, async (world) => {
      for (const { name } of hosts) {
        for (let index = 0; index < 50; index += 1) world.createPod(name, `${name}-${index}`);
      }
      const writesMs: number[] = [];
      const isFailed = (object?: KubeObject): boolean => (object as Pod | undefined)?.status?.phase === "Failed";
      world.server.onChange(({ type, object, previous }) => {
        if (object.kind !== "Pod") return;
        if (type === "DELETED" || isFailed(object) !== isFailed(previous)) writesMs.push(world.clock.monotonicMs());
      });
      for (const { name } of hosts) cutPower(world, name);
      const areGone = (): boolean => hosts.every(({ name }) => world.pods(name).length === 0);
      await world.until("the pods are gone", areGone, BEFORE_UNKNOWN_MS);
      assert.equal(writesMs.length, 400);
      const within = writesMs.map((atMs) => writesMs.filter((other) => other >= atMs && other < atMs + 900).length);
      assert.ok(Math.max(...within) <= 100, `${Math.max(...within)} writes`);
    });
  });

  it("a host that loses its power is ordered off once, although it reads Off already", () =>
    runEarly({}, async (world) => {
      world.createPod("n1", "db");
      cutPower(world, "n1");
      await gone(world);
      assert.deepEqual(ordersOfAgent(world), ["n1 ForceOff"]);
    }));

  it("a rack that loses its power is released before its durations, four nodes at a time, while enough nodes are healthy", () =>
    releaseRackOf40(120));
});

describe("a host that comes back before the duration of its node is over", () => {
  const cases: [string, (world: World) => Promise<void>][] = [
    ["before its silence is long enough", (world) => world.clock.advance(9_000)],
    ["between two readings", (world) => world.until("a reading", () => isRead(world), BEFORE_UNKNOWN_MS)],
    ["right after the taint", (world) => world.until("a taint", () => isTainted(world, "n1"), BEFORE_UNKNOWN_MS)],
    [
      "once its workloads are released",
      async (world) => {
        world.freePod();
        await world.phase("n1", "PoweringOn", BEFORE_UNKNOWN_MS);
      },
    ],
  ];
  const isRead = (world: World): boolean =>
    world.devices.calls.some(
      ({ host, call, atMs }) => host === "n1" && call === "readPower" && atMs > world.clock.nowMs() - 100,
    );
  for (const [[when, arrange], bootMs] of cases.flatMap((each) => [3_000, 60_000].map((ms) => [each, ms] as const))) {
    it(`a host that comes back before the duration of its node is over, ${when}, and boots in ${bootMs / 1_000} s, is untainted soon and not forced off again`, () =>
      runEarly({ hosts: ["n1", "n2"].map((name) => ({ name, ...INSTANT, bootMs })) }, async (world) => {
        world.createPod("n1", "db");
        world.holdPods();
        const booted = world.node("n1")?.status.nodeInfo?.bootID;
        cutPower(world, "n1");
        await world.clock.advance(1_000);
        await arrange(world);
        world.otherClientOrders("n1", "On");
        await world.until("a new boot", () => world.node("n1")?.status.nodeInfo?.bootID !== booted, 120_000);
        const backMs = world.clock.nowMs();
        await world.until("no taint", () => !isTainted(world, "n1"), 10_000);
        if (world.pods("n1").length > 0) world.freePod();
        await world.until("it is over", () => begun(world).length === 0 && world.isReady("n1"), 120_000);
        assert.ok(world.clock.nowMs() - backMs < 120_000);
        const offs = ordersOfAgent(world).filter((order) => order === "n1 ForceOff").length;
        assert.ok(offs <= 1, ordersOfAgent(world).join(", "));
        assert.equal(world.powerLog.filter((entry) => entry === "n1 ForceOff").length, 1, world.powerLog.join(", "));
        world.assertClean();
      }));
  }

  it("a host that is cycled within 5 to 30 s is never powered off by an early release while it boots or runs", async () => {
    for (let seconds = 5; seconds <= 30; seconds += 1) {
      await runEarly({ seed: seconds }, async (world) => {
        world.createPod("n1", "db");
        cutPower(world, "n1");
        await world.clock.advance(seconds * 1_000);
        world.otherClientOrders("n1", "On");
        await world.until("it is back", () => begun(world).length === 0 && world.isReady("n1"), 200_000);
        await world.clock.advance(60_000);
        assert.equal(world.powerLog.filter((entry) => entry === "n1 ForceOff").length, 1, world.powerLog.join(", "));
        assert.equal(isTainted(world, "n1"), false);
      });
    }
  });

  it("a host whose power flaps every 2 s is released at most once before the duration of its node is over", () =>
    runEarly({}, async (world) => {
      world.createPod("n1", "db");
      const stopMs = world.clock.nowMs() + 90_000;
      while (world.clock.nowMs() < stopMs) {
        cutPower(world, "n1");
        await world.clock.advance(2_000);
        world.otherClientOrders("n1", "On");
        await world.clock.advance(2_000);
      }
      const taints = world.markLog.filter((mark) => mark === "n1 +taint").length;
      assert.ok(taints <= 1, world.markLog.join(", "));
    }));
});

describe("a target whose devices power another host", () => {
  it("a target whose devices power another host is barred from early proofs by a remediation that was not early and found that out", () =>
    runEarly({}, async (world) => {
      world.rack.bmc("n1").rewire(world.rack.host("n2"));
      world.rack.bmc("n1").pretendIdentity({ systemUUID: world.rack.host("n1").spec.systemUUID });
      world.remediate("n1");
      await world.phase("n1", "Failed");
      assert.equal(world.condition("n1", "Succeeded"), "False WrongHost");
      const target = world.target("n1");
      assert.equal(target?.status?.wrongHost?.generation, target?.metadata.generation ?? "");
    }));
});

describe("there is no early release", () => {
  const patchTarget = (world: World, content: Record<string, unknown>, subresource?: "status"): void =>
    void world.server
      .collection<FencingTarget>(FENCING_TARGETS)
      .mergePatch({ namespace: NAMESPACE, name: "n1" }, content, subresource);
  const patchNode = (world: World, content: Record<string, unknown>): void =>
    void world.server.collection<Node>(NODES).mergePatch({ name: "n1" }, content);
  const cases: [string, (world: World) => void | Promise<void>][] = [
    ["of a cordoned node", (world) => patchNode(world, { spec: { unschedulable: true } })],
    [
      "of an excluded node",
      (world) =>
        patchNode(world, { metadata: { labels: { "remediation.medik8s.io/exclude-from-remediation": "true" } } }),
    ],
    ["under maintenance", (world) => patchTarget(world, { spec: { maintenance: true } })],
    ["under the stop switch", (world) => world.pause(true)],
    [
      "of a host that was not read On in this boot",
      async (world) => {
        const booted = world.node("n1")?.status.nodeInfo?.bootID;
        world.rack.bmc("n1").pretendPower("PoweringOn", 600_000);
        world.rack.host("n1").order("ForceRestart");
        await world.until("a new boot", () => world.node("n1")?.status.nodeInfo?.bootID !== booted, 60_000);
        await world.clock.advance(12_000);
        world.rack.bmc("n1").pretendPower("Off", 600_000);
      },
    ],
    [
      "of a target whose proof was wrong",
      (world) => patchTarget(world, { status: { wrongHost: { time: toTime(0), generation: 1 } } }, "status"),
    ],
    [
      "of a host with two targets",
      (world) =>
        world.create(
          FENCING_TARGETS,
          { namespace: NAMESPACE, name: "n1-again" },
          { spec: { nodeName: "n1", devices: [{ address: "redfish://n1", credentialsSecretRef: { name: "bmc" } }] } },
        ),
    ],
    [
      "of a node whose lease another tool holds",
      (world) => {
        world.create(NAMESPACES, { name: "medik8s-leases" }, {});
        world.create(
          LEASES,
          { namespace: "medik8s-leases", name: "node-n1" },
          {
            spec: {
              holderIdentity: "node-maintenance",
              leaseDurationSeconds: 3_600,
              renewTime: "2026-01-01T00:00:30.000000Z",
              acquireTime: "2026-01-01T00:00:30.000000Z",
            },
          },
        );
      },
    ],
    [
      "while its BMC answers as another host",
      (world) => world.rack.bmc("n1").pretendIdentity({ systemUUID: "11111111-2222-4333-8444-555555555555" }),
    ],
    ["while its BMC does not answer", (world) => world.rack.bmc("n1").setReachability("silent")],
  ];
  for (const [name, arrange] of cases) {
    it(`there is no early release ${name}`, () =>
      runEarly({}, async (world) => {
        world.createPod("n1", "db");
        await arrange(world);
        await world.clock.advance(1_000);
        cutPower(world, "n1");
        await world.clock.advance(BEFORE_UNKNOWN_MS);
        assert.equal(begun(world).length, 0);
        assert.equal(world.pods("n1").length, 1);
        assert.deepEqual(ordersOfAgent(world), []);
      }));
  }

  for (const strategy of [
    { podRelease: "GarbageCollector" },
    { workloadRelease: "DeleteNode" },
    { type: "Reprovision" },
  ]) {
    it(`there is no early release with a template of ${Object.values(strategy).join()}`, () =>
      runEarly({ strategy }, async (world) => {
        cutPower(world, "n1");
        await world.clock.advance(BEFORE_UNKNOWN_MS);
        assert.equal(begun(world).length, 0);
      }));
  }

  const unwanted: [string, EarlyOptions][] = [
    ["under a health check that does not allow it", { annotations: { "ironfence.io/skip-duration-if-off": "false" } }],
    ["of a node that no health check covers", { selector: { matchLabels: { "kubernetes.io/hostname": "n2" } } }],
    [
      "with a template of another project",
      { template: { apiVersion: "fence.example/v1", kind: "FenceAgentsRemediationTemplate" } },
    ],
  ];
  for (const [name, options] of unwanted) {
    it(`there is no early release ${name}, and no BMC is called for one`, () =>
      runEarly(options, async (world) => {
        const calls = world.devices.calls.length;
        cutPower(world, "n1");
        await world.clock.advance(BEFORE_UNKNOWN_MS);
        assert.equal(begun(world).length, 0);
        assert.equal(world.devices.calls.length, calls);
      }));
  }

  it("there is no early release of a node that no health check covers any more, and no BMC is called for one", () =>
    runEarly({}, async (world) => {
      const selector = { matchLabels: { "kubernetes.io/hostname": "n2" }, matchExpressions: null };
      world.server.collection(NODE_HEALTH_CHECKS).mergePatch({ name: "all" }, { spec: { selector } });
      await world.clock.advance(1_000);
      const calls = world.devices.calls.length;
      cutPower(world, "n1");
      await world.clock.advance(BEFORE_UNKNOWN_MS);
      assert.equal(begun(world).length, 0);
      assert.equal(world.devices.calls.length, calls);
    }));

  it("there is no early release of a host that hangs, whose BMC is called a few times", () =>
    runEarly({}, async (world) => {
      const calls = world.devices.calls.length;
      world.rack.host("n1").hang();
      await world.clock.advance(BEFORE_UNKNOWN_MS);
      assert.equal(begun(world).length, 0);
      assert.ok(world.devices.calls.length - calls <= 8, `${world.devices.calls.length - calls} calls`);
    }));

  it("an early release does not happen for a host that hangs and reads Off only every other time", () =>
    runEarly({}, async (world) => {
      world.rack.bmc("n1").flapPower(600_000);
      world.rack.host("n1").hang();
      await world.clock.advance(BEFORE_UNKNOWN_MS);
      assert.equal(begun(world).length, 0);
    }));

  it("there is no early release before 23 s of silence if one device alone says that the host is off", () =>
    runEarly({}, async (world) => {
      world.faults.alone.add("n1");
      const renewed = (): string | undefined =>
        world.server.collection<Lease>(LEASES).get({ namespace: "kube-node-lease", name: "n1" })?.spec.renewTime;
      cutPower(world, "n1");
      await world.until("a remediation", () => begun(world).length > 0, BEFORE_UNKNOWN_MS);
      const silentMs = world.clock.nowMs() - (parseTimeMs(renewed()) ?? assert.fail());
      assert.ok(silentMs >= 22_900 && silentMs < 26_000, `${silentMs} ms`);
    }));

  for (const leaseDurationSeconds of [20, 40, 80]) {
    it(`there is no early release of a node that lives, with leases of ${leaseDurationSeconds} s and a clock that is an hour off, though its BMC says Off`, () =>
      runEarly({ kubelets: { leaseDurationSeconds, aheadMs: { n1: -3_600_000, n2: 3_600_000 } } }, async (world) => {
        for (const name of ["n1", "n2"]) world.rack.bmc(name).pretendPower("Off", 600_000);
        await world.clock.advance(120_000);
        assert.equal(begun(world).length, 0);
        assert.deepEqual(ordersOfAgent(world), []);
      }));
  }

  it("there is no early release of a node whose BMC leads to another host that is off and reports the UUID of this one", () =>
    runEarly({}, async (world) => {
      world.rack.bmc("n1").rewire(world.rack.host("n2"));
      world.rack.bmc("n1").pretendIdentity({ systemUUID: world.rack.host("n1").spec.systemUUID });
      world.rack.host("n2").order("ForceOff");
      await world.clock.advance(BEFORE_UNKNOWN_MS);
      assert.equal(begun(world).filter(({ metadata }) => metadata.name === "n1").length, 0);
    }));

  it("there is no early release of a node whose lease is deleted and made again", () =>
    runEarly({}, async (world) => {
      world.rack.bmc("n1").pretendPower("Off", 600_000);
      for (let count = 0; count < 4; count += 1) {
        world.server.collection(LEASES).delete({ namespace: "kube-node-lease", name: "n1" });
        await world.clock.advance(12_000);
      }
      assert.equal(begun(world).length, 0);
    }));

  it("there is no early release while half of the nodes that must be healthy are silent, and nothing is ordered", () => {
    const hosts = Array.from({ length: 32 }, (_, index) => ({ name: `n${index + 1}`, ...INSTANT }));
    return runEarly({ hosts, minHealthy: 17 }, async (world) => {
      for (const { name } of hosts.slice(0, 16)) cutPower(world, name);
      await world.clock.advance(BEFORE_UNKNOWN_MS);
      assert.equal(begun(world).length, 0);
      assert.deepEqual(ordersOfAgent(world), []);
    });
  });

  it("there is no early release while many nodes are silent although their hosts are on, and at most 8 of these hosts are read", () =>
    silenceAll(40));

  it("there is no early release within 30 s of a call of the agent that the API server failed", () =>
    runEarly({}, async (world) => {
      cutPower(world, "n1");
      const from = world.devices.calls.length;
      await world.until("a reading", () => world.devices.calls.length > from, BEFORE_UNKNOWN_MS);
      // The write of the first proof fails once.
      const pathPrefix = `/apis/ironfence.io/v1alpha1/namespaces/${NAMESPACE}/fencingtargets`;
      const match = { method: "PATCH", pathPrefix, client: "agent" };
      world.server.faults.inject({ match, times: 1, action: { kind: "status", status: 500 } });
      await world.clock.advance(30_000);
      assert.equal(begun(world).length, 0);
    }));

  it("there is no early release by a watch on leases that lags: each lease is read live before any BMC is called", () =>
    runEarly({}, async (world) => {
      const calls = world.devices.calls.length;
      world.server.faults.lagWatches({ client: "agent", pathPrefix: "/apis/coordination.k8s.io" }, 60_000);
      await world.clock.advance(BEFORE_UNKNOWN_MS);
      assert.equal(world.devices.calls.length, calls);
      assert.equal(begun(world).length, 0);
      world.server.faults.lagWatches({ client: "agent", pathPrefix: "/apis/coordination.k8s.io" }, 0);
    }));

  it("there is no early release of a host that its system shuts down: its node says so before it is off", () =>
    runEarly({}, async (world) => {
      const lastTransitionTime = toTime(world.clock.nowMs());
      const conditions = [
        {
          type: "Ready",
          status: "False",
          reason: "KubeletNotReady",
          message: "node is shutting down",
          lastTransitionTime,
        },
      ];
      world.server.collection<Node>(NODES).mergePatch({ name: "n1" }, { status: { conditions } }, "status");
      cutPower(world, "n1");
      await world.clock.advance(BEFORE_UNKNOWN_MS);
      assert.equal(begun(world).length, 0);
    }));
});
