import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Fault } from "../../hack/kube-mock/faults.ts";
import { NHC_TIMED_OUT } from "../../src/api/names/annotations.ts";
import { BARE_METAL_REMEDIATIONS } from "../../src/api/ironfence/bare-metal-remediation.ts";
import { NAMESPACE, World } from "./world.ts";

// After a restart, the agent knows the owner of a host only from storage. A target that can be listed but not read must
// not keep its host off.

const FAILURES: Readonly<Record<string, Fault["action"]>> = {
  "answers 500": { kind: "status", status: 500 },
  "may not be read": { kind: "status", status: 403 },
  "has no answer": { kind: "hang" },
};
const SHORT = { retryLimit: 0, powerOffTimeout: "30s", drainTimeout: "60s", powerOnTimeout: "30s" };

function remove(world: World): void {
  world.server.collection(BARE_METAL_REMEDIATIONS).delete({ namespace: NAMESPACE, name: "n1" });
}

/** Kills the agent, and starts it later with a target that it cannot read. */
async function restart(world: World, action: Fault["action"], afterMs = 0): Promise<void> {
  await world.killAgent();
  const pathPrefix = `/apis/ironfence.io/v1alpha1/namespaces/${NAMESPACE}/fencingtargets/n1`;
  world.server.faults.inject({ match: { method: "GET", pathPrefix, client: "agent" }, times: Infinity, action });
  await world.clock.advance(afterMs);
  world.startAgent();
}

for (const [how, action] of Object.entries(FAILURES)) {
  describe(`a FencingTarget that ${how} from a restart on`, () => {
    it(`a FencingTarget that ${how} from a restart on keeps its host off no longer than the release may take, and the taint is removed by then`, () =>
      World.run({}, async (world) => {
        await world.holdPod();
        world.remediate("n1", SHORT);
        await world.until("n1 is tainted", () => world.markLog.includes("n1 +taint"));
        await restart(world, action);
        await world.until("n1 is on again", () => world.powerLog.includes("n1 On"), 120_000);
        world.server.faults.clear();
        world.freePod();
        await world.phase("n1", "Succeeded", 120_000);
        world.assertClean();
      }));

    it(`a FencingTarget that ${how} from a restart on keeps its host off no longer than the power-off may take`, () =>
      World.run({}, async (world) => {
        await world.holdPod();
        world.remediate("n1", SHORT);
        await world.until("n1 is off", () => world.rack.host("n1").power === "Off");
        await restart(world, action);
        await world.until("n1 is on again", () => world.powerLog.includes("n1 On"), 180_000);
      }));

    it(`a host whose remediation is being deleted is powered on although its FencingTarget ${how} after a restart`, () =>
      World.run({}, async (world) => {
        await world.holdPod();
        world.remediate("n1", SHORT);
        await world.until("n1 is tainted", () => world.markLog.includes("n1 +taint"));
        remove(world);
        await restart(world, action);
        await world.until("n1 is on again", () => world.powerLog.includes("n1 On"), 60_000);
        world.server.faults.clear();
        await world.until("n1 is released", () => world.remediation("n1") === undefined, 120_000);
      }));

    it(`a FencingTarget that ${how} from a restart on does not have its host powered off`, () =>
      World.run({}, async (world) => {
        await world.hang("n1");
        world.rack.bmc("n1").setReachability("silent");
        world.remediate("n1", { ...SHORT, powerOffTimeout: "5m" });
        await world.phase("n1", "Verifying");
        await restart(world, action);
        world.rack.bmc("n1").setReachability("up");
        await world.clock.advance(240_000);
        assert.deepEqual(world.powerLog, []);
        assert.match(world.condition("n1", "Processing") ?? "", /ApiFailing|PauseUnknown/);
        world.server.faults.clear();
        await world.phase("n1", "Succeeded", 600_000);
      }));
  });
}

describe("a remediation that is undone, and whose agent does not run until that is overdue", () => {
  for (const awayMs of [40_000, 3_600_000]) {
    it(`an undo that the agent could not finish in time powers the host on before the verdict is given (agent away for ${awayMs} ms)`, () =>
      World.run({}, async (world) => {
        await world.holdPod();
        world.remediate("n1", SHORT);
        await world.phase("n1", "Releasing");
        world.onPhase("n1", "Undoing", () => void world.killAgent());
        const annotations = { [NHC_TIMED_OUT]: "2026-01-01T00:00:00Z" };
        const remediations = world.server.collection(BARE_METAL_REMEDIATIONS);
        remediations.mergePatch({ namespace: NAMESPACE, name: "n1" }, { metadata: { annotations } });
        await world.phase("n1", "Undoing");
        await world.clock.advance(awayMs);
        world.startAgent();
        await world.phase("n1", "Failed", 120_000);
        assert.deepEqual(world.powerLog, ["n1 ForceOff", "n1 On"]);
        world.freePod();
      }));
  }
});
