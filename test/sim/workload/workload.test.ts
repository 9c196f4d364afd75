import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { FENCED_BY } from "../../../src/api/names/annotations.ts";
import { FENCED as FENCED_TAINT, OUT_OF_SERVICE } from "../../../src/api/kubernetes/taints.ts";
import { bears } from "../world.ts";
import { providerID, WORKLOAD, WorkloadWorld } from "./world.ts";

const FENCED = ["workload n1 ForceOff", "workload n1 On"];

/** The remediation of m1 fails for this reason, and no power order was sent. */
async function endsUnfenced(world: WorkloadWorld, reason: string): Promise<void> {
  await world.phase("Failed", "m1");
  assert.equal(world.condition("Succeeded", "m1"), `False ${reason}`);
  assert.deepEqual(world.powerLog, []);
}

describe("the remediation of a Machine", () => {
  it("the remediation of a Machine fences the node of its workload cluster and leaves the node of that name in the management cluster alone", () =>
    WorkloadWorld.run({}, async (world) => {
      world.management.createPod("n1", "db");
      world.workload.createPod("n1", "db");
      const uid = world.machine("m1", "n1");
      await world.hang("workload", "n1");
      world.remediateMachine("m1", uid);
      await world.phase("Succeeded", "m1");
      assert.deepEqual(world.powerLog, FENCED);
      const { node, machine } = world.remediation("m1")?.status ?? {};
      const cluster = { ...WORKLOAD, uid: world.clusterUid("workload") };
      assert.deepEqual([node?.name, node?.cluster, machine?.uid], ["n1", cluster, uid]);
      assert.equal(world.workload.pods("n1").length, 0, "the pod of the fenced host is gone");
      assert.equal(world.management.pods("n1").length, 1, "the other one runs on");
      assert.equal(world.workload.isReady("n1"), true);
      world.assertUntouched("management");
    }));

  it("the remediation of a Machine is never taken for one of the node that has the Machine's name", () =>
    WorkloadWorld.run({}, async (world) => {
      const uid = world.machine("n2", "n1");
      await world.hang("workload", "n1");
      await world.hang("management", "n2");
      world.remediateMachine("n2", uid);
      await world.phase("Succeeded", "n2");
      assert.deepEqual(world.powerLog, FENCED);
    }));

  it("the remediation of a Machine of another Machine with the same name does nothing", () =>
    WorkloadWorld.run({}, async (world) => {
      world.machine("m1", "n1");
      await world.hang("workload", "n1");
      world.remediateMachine("m1", "uid-of-the-one-before");
      await endsUnfenced(world, "MachineNotFound");
    }));

  it("the remediation of a Machine runs at the same time as that of the namesake: they are no siblings, and neither waits for the other", () =>
    WorkloadWorld.run({}, async (world) => {
      const uid = world.machine("m1", "n1");
      await Promise.all([world.hang("workload", "n1"), world.hang("management", "n1")]);
      world.remediateMachine("m1", uid);
      world.management.remediate("n1");
      await world.phase("Succeeded", "m1");
      await world.until("both are done", () => world.management.remediation("n1")?.status?.phase === "Succeeded");
      assert.deepEqual(world.powerLog.toSorted(), ["management n1 ForceOff", "management n1 On", ...FENCED]);
      const steps = world.remediation("m1")?.status?.timeline?.map(({ step }) => step) ?? [];
      assert.ok(!steps.includes("HostBusy") && !steps.includes("WaitingForTurn"), steps.join());
    }));

  it("the remediation of a Machine needs a target of that cluster: one for the namesake is another host's", () =>
    WorkloadWorld.run({ targets: false }, async (world) => {
      const uid = world.machine("m1", "n1");
      await world.hang("workload", "n1");
      world.remediateMachine("m1", uid);
      await endsUnfenced(world, "NoTarget");
    }));

  it("the remediation of a Machine does not make the agent hand its lease over for the namesake of the node that it runs on", () =>
    WorkloadWorld.run({ ownNode: "n1" }, async (world) => {
      const uid = world.machine("m1", "n1");
      await world.hang("workload", "n1");
      world.remediateMachine("m1", uid);
      await world.phase("Succeeded", "m1");
    }));

  it("the remediation of a Machine asks only for the quorum of its own cluster's etcd", () =>
    WorkloadWorld.run({ labels: { "node-role.kubernetes.io/control-plane": "" } }, async (world) => {
      const uid = world.machine("m1", "n1");
      await Promise.all([world.hang("management", "n2"), world.hang("workload", "n1")]);
      world.remediateMachine("m1", uid);
      await world.phase("Succeeded", "m1");
      const second = world.machine("m2", "n2");
      await Promise.all([world.hang("workload", "n2"), world.hang("workload", "n3")]);
      world.remediateMachine("m2", second);
      await world.phase("Failed", "m2");
      assert.equal(world.condition("Succeeded", "m2"), "False ControlPlaneQuorum");
    }));

  it("the remediation of a Machine signs its marks with the cluster, so that an agent that lives there does not take them for orphans", () =>
    WorkloadWorld.run({}, async (world) => {
      const uid = world.machine("m1", "n1");
      world.workload.createPod("n1", "db", { volumes: [] });
      await world.hang("workload", "n1");
      world.remediateMachine("m1", uid, { podRelease: "GarbageCollector" });
      await world.until("the node is tainted", () => bears(world.workload.node("n1") ?? assert.fail(), OUT_OF_SERVICE));
      const signature = world.workload.node("n1")?.metadata.annotations?.[FENCED_BY];
      assert.match(signature ?? "", /^[^/@]+\/[^/@]+@caps\/w1$/);
      await world.phase("Succeeded", "m1");
    }));

  it("the remediation of a Machine is undone when it is deleted during a fence", () =>
    WorkloadWorld.run({}, async (world) => {
      const uid = world.machine("m1", "n1");
      await world.hang("workload", "n1");
      world.remediateMachine("m1", uid);
      await world.phase("PoweringOff", "m1");
      await world.until("the host is off", () => world.workload.rack.host("n1").power === "Off");
      world.delete("m1");
      await world.until("it is gone", () => world.remediation("m1") === undefined);
      assert.deepEqual(world.powerLog, FENCED);
      world.assertUntouched("management");
    }));
});

describe("the end of a remediation that a Machine asked for", () => {
  const ownerRemediated = (world: WorkloadWorld, name: string): string[] =>
    world
      .machineConditions(name)
      .flatMap(({ type, status, reason }) => (type === "OwnerRemediated" ? [`${status} ${reason}`] : []));
  const QUICK = { retryLimit: 1, timeout: "60s" };

  it("the end of a remediation that a Machine asked for is reported to its owner on the Machine if it did not help", () =>
    WorkloadWorld.run({}, async (world) => {
      const uid = world.machine("m1", "n1");
      world.workload.rack.host("n1").failDisk();
      await world.hang("workload", "n1");
      world.remediateMachine("m1", uid, QUICK);
      await world.phase("Failed", "m1");
      assert.equal(world.condition("Succeeded", "m1"), "False RejoinTimeout");
      assert.deepEqual(ownerRemediated(world, "m1"), ["False WaitingForRemediation"]);
    }));

  it("the end of a remediation that a Machine asked for is not reported if no power-off was proven", () =>
    WorkloadWorld.run({}, async (world) => {
      const uid = world.machine("m1", "n1");
      await world.hang("workload", "n1");
      world.workload.rack.bmc("n1").setReachability("silent");
      world.remediateMachine("m1", uid, { retryLimit: 0, powerOffTimeout: "30s" });
      await world.phase("Failed", "m1");
      assert.deepEqual(ownerRemediated(world, "m1"), []);
    }));

  it("the end of a remediation that a Machine asked for is not reported if it was called off", () =>
    WorkloadWorld.run({}, async (world) => {
      const uid = world.machine("m1", "n1");
      await world.hang("workload", "n1");
      world.remediateMachine("m1", uid, QUICK);
      await world.phase("PoweringOn", "m1");
      world.delete("m1");
      await world.until("it is gone", () => world.remediation("m1") === undefined);
      assert.deepEqual(ownerRemediated(world, "m1"), []);
    }));
});

/** Remediates m1 5 s after its cluster was cut off. */
async function cutOffBeforePowerOff(world: WorkloadWorld): Promise<void> {
  const uid = world.machine("m1", "n1");
  await world.hang("workload", "n1");
  world.cut();
  await world.clock.advance(5_000);
  world.remediateMachine("m1", uid);
}

describe("a workload cluster that cannot be reached", () => {
  it("a workload cluster that cannot be reached before the power-off is waited for, and no longer than that may take", () =>
    WorkloadWorld.run({}, async (world) => {
      await cutOffBeforePowerOff(world);
      await world.until("it is reported", () => world.condition("Processing", "m1") === "True ClusterUnreachable");
      await endsUnfenced(world, "ClusterUnreachable");
    }));

  it("a workload cluster that comes back in time is used again", () =>
    WorkloadWorld.run({}, async (world) => {
      await cutOffBeforePowerOff(world);
      await world.clock.advance(30_000);
      world.mend();
      await world.phase("Succeeded", "m1");
      assert.deepEqual(world.powerLog, FENCED);
    }));

  const SHORT = { powerOffTimeout: "30s", drainTimeout: "30s", powerOnTimeout: "30s", timeout: "60s" };
  for (const phase of ["PoweringOff", "Releasing", "PoweringOn", "Rejoining"]) {
    for (const restarts of [false, true]) {
      const how = restarts ? ", even if the agent was restarted" : "";
      it(`a workload cluster that cannot be reached from ${phase} on is waited for, and no host is left off when it is back${how}`, () =>
        WorkloadWorld.run({}, async (world) => {
          const uid = world.machine("m1", "n1");
          world.workload.createPod("n1", "db");
          await world.hang("workload", "n1");
          world.remediateMachine("m1", uid, { podRelease: "GarbageCollector", ...SHORT });
          await world.phase(phase, "m1");
          world.cut();
          if (restarts) {
            await world.killAgent();
            await world.clock.advance(5_000);
            world.startAgent();
          }
          await world.clock.advance(120_000);
          assert.equal(world.remediation("m1")?.status?.retryCount ?? 0, 0, "it does not count as an attempt");
          world.mend();
          await world.phase("Succeeded", "m1");
          assert.deepEqual(world.powerLog, FENCED);
          assert.equal(bears(world.workload.node("n1") ?? assert.fail(), OUT_OF_SERVICE), false);
        }));
    }
  }

  it("a workload cluster that cannot be reached during a fence shows in the remediation", () =>
    WorkloadWorld.run({}, async (world) => {
      const uid = world.machine("m1", "n1");
      await world.hang("workload", "n1");
      world.remediateMachine("m1", uid);
      await world.phase("PoweringOn", "m1");
      world.cut();
      await world.until("it is reported", () => world.condition("Processing", "m1") === "True ClusterUnreachable");
      world.mend();
      await world.phase("Succeeded", "m1");
    }));

  it("a workload cluster that cannot be reached does not let a fence be aborted before the taint is off", () =>
    WorkloadWorld.run({}, async (world) => {
      const uid = world.machine("m1", "n1");
      world.workload.createPod("n1", "db");
      await world.hang("workload", "n1");
      world.remediateMachine("m1", uid, { podRelease: "GarbageCollector" });
      await world.phase("Releasing", "m1");
      world.cut();
      await world.clock.advance(5_000);
      world.delete("m1");
      await world.clock.advance(60_000);
      assert.deepEqual(world.powerLog, ["workload n1 ForceOff"], "the node may be tainted");
      world.mend();
      await world.until("it is gone", () => world.remediation("m1") === undefined);
      assert.deepEqual(world.powerLog, FENCED);
    }));
});

describe("a kubeconfig that leads to another cluster", () => {
  const told = (world: WorkloadWorld): string => {
    const found = world.remediation("m1")?.status?.conditions?.find(({ type }) => type === "Processing");
    return found?.reason === "ClusterExchanged" ? found.message : "";
  };

  for (const phase of ["PoweringOff", "Releasing", "PoweringOn", "Rejoining"]) {
    for (const restarts of [false, true]) {
      const how = restarts ? ", even if the agent was restarted" : "";
      it(`a kubeconfig that leads to another cluster from ${phase} on is reported, no node of that cluster is changed${how}, and no host stays off when it is corrected`, () =>
        WorkloadWorld.run({}, async (world) => {
          const uid = world.machine("m1", "n1");
          world.workload.createPod("n1", "db");
          world.stranger.createPod("n1", "db");
          await Promise.all([world.hang("workload", "n1"), world.hang("stranger", "n1")]);
          world.remediateMachine("m1", uid, { podRelease: "GarbageCollector" });
          await world.phase(phase, "m1");
          world.leadTo("stranger");
          if (restarts) {
            await world.killAgent();
            world.startAgent();
          }
          await world.until("it is reported", () => told(world) !== "");
          assert.match(told(world), /Secret caps\/w1-kubeconfig /);
          for (const place of ["workload", "stranger"] as const) {
            assert.ok(told(world).includes(world.clusterUid(place)), told(world));
          }
          await world.clock.advance(300_000);
          assert.equal(world.stranger.pods("n1").length, 1);
          world.assertUntouched("stranger");
          world.leadTo("workload");
          await world.phase("Succeeded", "m1");
          assert.deepEqual(world.powerLog, FENCED);
          assert.equal(bears(world.workload.node("n1") ?? assert.fail(), OUT_OF_SERVICE), false);
          world.assertUntouched("stranger");
        }));
    }
  }

  it("a kubeconfig that leads to another cluster is seen before the power-off, which is not ordered then", () =>
    WorkloadWorld.run({}, async (world) => {
      const uid = world.machine("m1", "n1");
      await Promise.all([world.hang("workload", "n1"), world.hang("stranger", "n1")]);
      world.management.pause(true);
      world.remediateMachine("m1", uid);
      await world.until("it waits", () => world.condition("Processing", "m1") === "True Paused");
      world.leadTo("stranger");
      world.management.pause(false);
      await endsUnfenced(world, "ClusterExchanged");
      world.assertUntouched("stranger");
    }));

  it("a kubeconfig that leads to another cluster does not let an abort during a fence power the host on before the taint is off", () =>
    WorkloadWorld.run({}, async (world) => {
      const uid = world.machine("m1", "n1");
      world.workload.createPod("n1", "db");
      await Promise.all([world.hang("workload", "n1"), world.hang("stranger", "n1")]);
      world.remediateMachine("m1", uid, { podRelease: "GarbageCollector" });
      await world.until("the node is tainted", () => bears(world.workload.node("n1") ?? assert.fail(), OUT_OF_SERVICE));
      world.leadTo("stranger");
      world.delete("m1");
      await world.clock.advance(300_000);
      assert.deepEqual(world.powerLog, ["workload n1 ForceOff"], "the node is tainted");
      world.leadTo("workload");
      await world.until("it is gone", () => world.remediation("m1") === undefined);
      assert.deepEqual(world.powerLog, FENCED);
      world.assertUntouched("stranger");
    }));
});

describe("a Cluster that is deleted during a fence", () => {
  const ends = async (world: WorkloadWorld): Promise<void> => {
    await world.phase("Failed", "m1");
    assert.equal(world.condition("Succeeded", "m1"), "False ClusterGone");
    world.delete("m1");
    await world.until("it is gone", () => world.remediation("m1") === undefined);
  };
  const fenced = async (world: WorkloadWorld, phase: string): Promise<void> => {
    const uid = world.machine("m1", "n1");
    world.workload.createPod("n1", "db");
    await world.hang("workload", "n1");
    world.remediateMachine("m1", uid, { podRelease: "GarbageCollector" });
    await world.phase(phase, "m1");
  };

  for (const phase of ["PoweringOn", "Rejoining"]) {
    it(`a Cluster that is deleted during a fence in ${phase} has its remediation end with the host on, because the taint is removed`, () =>
      WorkloadWorld.run({}, async (world) => {
        await fenced(world, phase);
        world.deleteCluster();
        await ends(world);
        assert.deepEqual(world.powerLog, FENCED);
      }));
  }

  it("a Cluster that is deleted during a fence ends its remediation, and the host stays off while the node may be tainted, since the cluster may live on elsewhere", () =>
    WorkloadWorld.run({}, async (world) => {
      await fenced(world, "Releasing");
      await world.until("the node is tainted", () => bears(world.workload.node("n1") ?? assert.fail(), OUT_OF_SERVICE));
      world.deleteCluster();
      await world.phase("Failed", "m1");
      const verdict = world.remediation("m1")?.status?.conditions?.find(({ type }) => type === "Succeeded");
      assert.match(
        verdict?.message ?? "",
        /may still be OFF: remove the out-of-service taint from .* power it on by hand/,
      );
      await ends(world);
      assert.deepEqual(world.powerLog, ["workload n1 ForceOff"]);
      assert.equal(world.management.target("w1-n1")?.status?.owner, undefined, "the host is given up");
    }));

  it("a Cluster that is deleted during a fence has its remediation end also if another one has been made under its name", () =>
    WorkloadWorld.run({}, async (world) => {
      await fenced(world, "Releasing");
      await world.until("the node is tainted", () => bears(world.workload.node("n1") ?? assert.fail(), OUT_OF_SERVICE));
      world.replaceCluster();
      await ends(world);
      assert.deepEqual(world.powerLog, ["workload n1 ForceOff"]);
      assert.equal(world.management.target("w1-n1")?.status?.owner, undefined, "the host is given up");
      world.assertUntouched("stranger");
    }));

  it("a Cluster that is deleted during a fence does not keep a remediation that is being deleted with its Machine", () =>
    WorkloadWorld.run({}, async (world) => {
      await fenced(world, "PoweringOff");
      world.cut();
      await world.clock.advance(5_000);
      world.delete("m1");
      await world.clock.advance(60_000);
      assert.notEqual(world.remediation("m1"), undefined, "the Cluster is there still");
      world.deleteCluster();
      await world.until("it is gone", () => world.remediation("m1") === undefined);
    }));
});

describe("an API server that claims to be the agent's own cluster", () => {
  const STRATEGIES: Record<string, object> = {
    "a reboot": { podRelease: "GarbageCollector" },
    "a reboot that deletes the Node": { workloadRelease: "DeleteNode" },
    "an installation": { type: "Reprovision", requireReboot: false },
  };
  for (const [what, strategy] of Object.entries(STRATEGIES)) {
    it(`an API server that claims to be the agent's own cluster is not believed, and ${what} reaches no node of the agent's own cluster`, () =>
      WorkloadWorld.run({ targets: false }, async (world) => {
        world.claimToBe("management");
        world.management.createPod("n1", "db");
        const uid = world.machine("m1", "n1", { named: providerID("management", "n1") });
        await world.hang("workload", "n1");
        world.remediateMachine("m1", uid, { ...strategy });
        await world.phase("Failed", "m1");
        assert.equal(world.condition("Succeeded", "m1"), "False ClusterExchanged");
        assert.deepEqual(world.powerLog, []);
        assert.equal(world.management.pods("n1").length, 1);
        assert.equal(world.remediation("m1")?.status?.node?.cluster?.own, undefined);
        world.assertUntouched("management");
      }));
  }

  it("an API server that claims to be the agent's own cluster is not believed during a fence either: the remediation waits until the right one answers", () =>
    WorkloadWorld.run({}, async (world) => {
      const uid = world.machine("m1", "n1");
      world.workload.createPod("n1", "db");
      await world.hang("workload", "n1");
      world.remediateMachine("m1", uid, { podRelease: "GarbageCollector" });
      await world.phase("PoweringOff", "m1");
      world.claimToBe("management");
      await world.clock.advance(300_000);
      assert.deepEqual(world.powerLog, ["workload n1 ForceOff"]);
      world.assertUntouched("management");
      world.claimToBe("workload");
      await world.phase("Succeeded", "m1");
      assert.deepEqual(world.powerLog, FENCED);
    }));

  it("an API server that claims to be the agent's own cluster does not have the agent hand its lease over for a namesake of the node that it runs on", () =>
    WorkloadWorld.run({ ownNode: "n1" }, async (world) => {
      world.claimToBe("management");
      const uid = world.machine("m1", "n1");
      await world.hang("workload", "n1");
      world.remediateMachine("m1", uid);
      await world.phase("Failed", "m1");
      assert.equal(world.condition("Succeeded", "m1"), "False ClusterExchanged");
    }));
});

describe("a Node that does not prove to be its Machine's", () => {
  const untouched = (world: WorkloadWorld, message: RegExp): void => {
    const verdict = world.remediation("m1")?.status?.conditions?.find(({ type }) => type === "Succeeded");
    assert.equal(verdict?.reason, "SubjectMismatch");
    assert.match(verdict.message, message);
    assert.deepEqual(world.powerLog, []);
  };

  for (const [what, named, message] of [
    ["no providerID", "", /^Machine caps\/m1 has no spec\.providerID/],
    ["another providerID", "metal3://others/n1/n1-machine", /^node n1 has another providerID than Machine caps\/m1/],
  ] as const) {
    it(`a Node is not fenced if its Machine does not prove that the Node is its own: it has ${what}`, () =>
      WorkloadWorld.run({}, async (world) => {
        const uid = world.machine("m1", "n1", { named });
        await world.hang("workload", "n1");
        world.remediateMachine("m1", uid);
        await world.phase("Failed", "m1");
        untouched(world, message);
      }));
  }

  it("a Node that does not prove to be its Machine's is not fenced: a Node without a providerID", () =>
    WorkloadWorld.run({}, async (world) => {
      const uid = world.machine("m1", "n1");
      world.anonymous("n1");
      world.remediateMachine("m1", uid);
      await world.phase("Failed", "m1");
      untouched(world, /^node n1 has no spec\.providerID/);
    }));
});

describe("a management cluster that manages itself", () => {
  it("a management cluster that manages itself has one host for a node that is named directly and by its Machine: the second remediation waits", () =>
    WorkloadWorld.run({ ownCluster: true, targets: false }, async (world) => {
      world.leadTo("management");
      const uid = world.machine("m1", "n1");
      await world.hang("management", "n1");
      world.management.remediate("n1");
      world.remediateMachine("m1", uid);
      await world.phase("Succeeded", "m1");
      await world.until("both are done", () => world.management.remediation("n1")?.status?.phase === "Succeeded");
      assert.deepEqual(world.powerLog, ["management n1 ForceOff", "management n1 On"]);
      assert.equal(world.remediation("m1")?.status?.node?.cluster?.own, true);
      world.assertUntouched("workload");
    }));

  it("a management cluster that manages itself has its control plane counted once: two of three members are not off at a time", () =>
    WorkloadWorld.run(
      { ownCluster: true, targets: false, labels: { "node-role.kubernetes.io/control-plane": "" } },
      async (world) => {
        world.leadTo("management");
        const off = (): string[] =>
          world.management.rack.hosts.flatMap(({ name, power }) => (power === "Off" ? [name] : []));
        let most = 0;
        world.management.rack.subscribe(() => (most = Math.max(most, off().length)));
        const uid = world.machine("m1", "n1");
        await world.hang("management", "n1");
        world.remediateMachine("m1", uid);
        await world.phase("PoweringOff", "m1");
        world.management.remediate("n2");
        await world.until("it waits", () =>
          (world.management.remediation("n2")?.status?.conditions ?? []).some(
            ({ reason }) => reason === "WaitingForTurn",
          ),
        );
        await world.phase("Succeeded", "m1");
        await world.until("n2 is done", () => world.management.remediation("n2")?.status?.phase === "Succeeded");
        assert.equal(most, 1);
      },
    ));

  it("a management cluster that manages itself has its nodes' hosts named by FencingTargets with the Cluster, too, also for an agent that has just begun", () =>
    WorkloadWorld.run({ ownCluster: true }, async (world) => {
      world.leadTo("management");
      world.aimAtOwn("n1");
      const uid = world.machine("m1", "n1");
      await world.hang("management", "n1");
      world.remediateMachine("m1", uid);
      await world.phase("PoweringOff", "m1");
      await world.killAgent();
      world.startAgent();
      await world.phase("Succeeded", "m1");
      assert.equal(world.remediation("m1")?.status?.target?.name, "own-n1");
      assert.deepEqual(world.powerLog, ["management n1 ForceOff", "management n1 On"]);
    }));
});

describe("a Machine without a node", () => {
  it("a Machine without a node is fenced by the host that it has taken, and is back when the node that it names then lives in a new boot", () =>
    WorkloadWorld.run({ targets: false }, async (world) => {
      await world.neverJoined("n3");
      const uid = world.machine("m3", undefined);
      world.takeHost("n3", "m3", uid);
      world.remediateMachine("m3", uid);
      await world.phase("Rejoining", "m3");
      await world.until("the node is Ready", () => world.workload.isReady("n3"));
      await world.clock.advance(20_000);
      assert.equal(world.remediation("m3")?.status?.phase, "Rejoining", "the Machine has not named it yet");
      world.nameNode("m3", "n3");
      await world.phase("Succeeded", "m3");
      assert.equal(world.remediation("m3")?.status?.node?.name, "n3");
      assert.deepEqual(world.powerLog, ["workload n3 ForceOff", "workload n3 On"]);
      world.assertUntouched("management");
    }));

  it("a Machine without a node that becomes one before the power-off needs none", () =>
    WorkloadWorld.run({ targets: false }, async (world) => {
      const uid = world.machine("m3", undefined);
      world.takeHost("n3", "m3", uid);
      world.management.pause(true);
      world.remediateMachine("m3", uid);
      await world.until("it waits", () => world.condition("Processing", "m3") === "True Paused");
      world.nameNode("m3", "n3");
      world.management.pause(false);
      await world.phase("Succeeded", "m3");
      assert.deepEqual(world.powerLog, []);
    }));

  it("a Machine without a node has no FencingTarget that could name it", () =>
    WorkloadWorld.run({}, async (world) => {
      const uid = world.machine("m1", undefined);
      world.remediateMachine("m1", uid);
      await endsUnfenced(world, "NoTarget");
    }));
});

describe("a remediation of a workload cluster's node that is gone without an undo", () => {
  const warnings = (world: WorkloadWorld): string[] =>
    world.notes.flatMap(({ reason, regarding }) => (reason === "RemediationLost" ? [regarding.kind] : []));

  it("a lost remediation of a workload cluster's node leaves no taint there, is reported at its target, and belongs to no node with the same name here", () =>
    WorkloadWorld.run({}, async (world) => {
      const uid = world.machine("m1", "n1");
      world.workload.createPod("n1", "db");
      await world.hang("workload", "n1");
      world.remediateMachine("m1", uid, { podRelease: "GarbageCollector" });
      await world.until("the node is tainted", () => bears(world.workload.node("n1") ?? assert.fail(), OUT_OF_SERVICE));
      world.forget("m1");
      await world.until("the taint is off", () => !bears(world.workload.node("n1") ?? assert.fail(), OUT_OF_SERVICE));
      assert.deepEqual(warnings(world), ["FencingTarget"]);
      world.workload.otherClientOrders("n1", "On");
      await world.until("n1 is Ready", () => world.workload.isReady("n1"));
      await world.clock.advance(10_000);
      assert.equal(world.management.target("w1-n1")?.status?.owner, undefined);
      world.assertUntouched("management");
    }));

  it("a remediation of a workload cluster's node that is gone without an undo is not one that another cluster's agent has signed", () =>
    WorkloadWorld.run({}, async (world) => {
      // The workload cluster's own agent fences its n1. Our agent has fenced a node of the management cluster, which is
      // itself a Cluster.
      world.sign("workload", "n1", "uid-of-its-own/a1");
      world.sign("management", "n1", "uid-of-another/a1@caps/w9");
      await world.clock.advance(60_000);
      assert.deepEqual(warnings(world), []);
      for (const place of ["workload", "management"] as const) {
        assert.equal(bears(world[place].node("n1") ?? assert.fail(), FENCED_TAINT), true, place);
      }
    }));
});
