import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { BareMetalRemediation } from "../../../src/api/ironfence/bare-metal-remediation.ts";
import { OUT_OF_SERVICE } from "../../../src/api/kubernetes/taints.ts";
import type { StateName } from "../../../src/remediator/machine/model/decision/state.ts";
import { bears } from "../world.ts";
import { WorkloadWorld } from "./world.ts";

const REBOOT = { retryLimit: 0, powerOffTimeout: "60s", drainTimeout: "60s", powerOnTimeout: "60s", timeout: "120s" };
const REPROVISION = { ...REBOOT, type: "Reprovision", requireReboot: false, timeout: "10m" };

/** Strategies with which a remediation reaches each state, in which the cluster is then cut off. */
const STATES: Readonly<Record<Exclude<StateName, "Succeeded" | "Failed">, Record<string, unknown>>> = {
  Resolving: REBOOT,
  Verifying: REBOOT,
  PoweringOff: REBOOT,
  Releasing: REBOOT,
  Provisioning: REPROVISION,
  PoweringOn: REBOOT,
  Rejoining: REBOOT,
  Restoring: REBOOT,
  Undoing: REBOOT,
};
/** In these states the host may be off: its taint may be on the node, or its Node is still to be deleted. */
const MAY_STAY_OFF: readonly string[] = ["PoweringOff", "Releasing", "Provisioning", "Undoing"];

for (const [phase, strategy] of Object.entries(STATES)) {
  const begin = async (world: WorkloadWorld): Promise<void> => {
    const uid = world.machine("m1", "n1");
    world.workload.createPod("n1", "db");
    await world.hang("workload", "n1");
    cutAt(world, phase);
    world.remediateMachine("m1", uid, { podRelease: "GarbageCollector", ...strategy });
    if (phase === "Undoing") {
      await world.phase("Releasing", "m1");
      world.delete("m1");
    }
    await world.until(`it is cut off in ${phase}`, () => world.isAway);
  };

  describe(`a workload cluster that is cut off in ${phase}`, () => {
    it(`a workload cluster that is cut off in ${phase} and comes back has no host left off and no taint left`, () =>
      WorkloadWorld.run({}, async (world) => {
        await begin(world);
        await world.clock.advance(40_000);
        world.mend();
        await world.until("it has ended", () => hasEnded(world.remediation("m1")));
        await world.until("the host is on", () => world.workload.rack.host("n1").power === "On");
        const node = world.workload.node("n1");
        assert.ok(node === undefined || !bears(node, OUT_OF_SERVICE));
      }));

    it(`a workload cluster that is cut off in ${phase} delays no other cluster, and its remediation reports what it waits for`, () =>
      WorkloadWorld.run({ limits: { hosts: 1 } }, async (world) => {
        await begin(world);
        await world.hang("management", "n2");
        world.management.remediate("n2");
        await world.until(
          "n2 is back",
          () => world.management.remediation("n2")?.status?.phase === "Succeeded",
          300_000,
        );
        await world.clock.advance(600_000);
        const left = world.remediation("m1");
        if (!hasEnded(left)) assert.equal(world.condition("Processing", "m1"), "True ClusterUnreachable");
        if (!MAY_STAY_OFF.includes(phase)) assert.equal(world.workload.rack.host("n1").power, "On");
      }));
  });
}

describe("a remediation that comes back without status while its workload cluster is cut off", () => {
  it("a remediation that comes back without status while its workload cluster is cut off fences no Ready node once that is reached again", () =>
    WorkloadWorld.run({}, async (world) => {
      const uid = world.machine("m1", "n1");
      await world.killAgent();
      world.remediateMachine("m1", uid);
      await world.clock.advance(601_000);
      world.cut();
      await world.clock.advance(4_000);
      world.startAgent();
      const processing = (): string | undefined => world.condition("Processing", "m1");
      await world.until("it waits for its cluster", () => processing() === "True ClusterUnreachable", 60_000);
      world.mend();
      await world.until("it waits to be confirmed", () => processing() === "True StaleRequest", 60_000);
      await world.clock.advance(300_000);
      assert.deepEqual(world.powerLog, []);
    }));
});

/** Cuts the workload cluster off as soon as the remediation is stored in that state. */
function cutAt(world: WorkloadWorld, phase: string): void {
  const stop = world.management.server.onChange(({ object }) => {
    if (object.kind !== "BareMetalRemediation" || object.metadata.name !== "m1") return;
    if (((object as BareMetalRemediation).status?.phase ?? "Resolving") !== phase) return;
    stop();
    queueMicrotask(() => world.cut());
  });
}

function hasEnded(remediation: BareMetalRemediation | undefined): boolean {
  return remediation === undefined || ["Succeeded", "Failed"].includes(remediation.status?.phase ?? "");
}
