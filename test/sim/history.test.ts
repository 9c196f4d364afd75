import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { BARE_METAL_REMEDIATIONS } from "../../src/api/ironfence/bare-metal-remediation.ts";
import type { TargetOutcome } from "../../src/api/ironfence/fencing-target.ts";
import { NAMESPACE, World } from "./world.ts";

const outcomes = (world: World): readonly TargetOutcome[] => world.target("n1")?.status?.outcomes ?? [];
const told = (world: World): string[] => outcomes(world).map(({ result, reason }) => `${result} ${reason}`);

function remove(world: World, name: string): void {
  world.server.collection(BARE_METAL_REMEDIATIONS).delete({ namespace: NAMESPACE, name });
}

describe("the FencingTarget of a host", () => {
  it("the FencingTarget of a host keeps what its remediations came to, newest first, after they are gone", () =>
    World.run({}, async (world) => {
      await world.hang("n1");
      world.remediate("n1", {}, "first");
      await world.phase("first", "Succeeded");
      remove(world, "first");
      await world.clock.advance(10_000);
      world.faults.password = "changed";
      await world.hang("n1");
      world.remediate("n1", {}, "second");
      await world.phase("second", "Failed");
      remove(world, "second");
      await world.clock.advance(10_000);
      assert.deepEqual(told(world), ["Failed BMCAuthenticationFailed", "Succeeded NodeRestored"]);
      const [failed] = outcomes(world);
      assert.equal(failed?.remediation.name, "second");
      assert.equal(failed.attempts, 1);
      assert.equal(world.remediation("second"), undefined);
    }));

  it("the FencingTarget of a host says that a remediation was called off", () =>
    World.run({}, async (world) => {
      await world.holdPod();
      world.remediate("n1");
      await world.phase("n1", "Releasing");
      remove(world, "n1");
      await world.until("it is gone", () => world.remediation("n1") === undefined);
      assert.deepEqual(told(world), ["CalledOff RemediationDeleted"]);
    }));

  it("the FencingTarget of a host counts a remediation once whose agent is killed as it gives the host up", () =>
    World.run({}, async (world) => {
      await world.hang("n1");
      world.remediate("n1");
      const stop = world.server.onChange(({ object }) => {
        if (object.kind !== "FencingTarget" || outcomes(world).length === 0) return;
        stop();
        void world.killAgent().then(() => world.startAgent());
      });
      await world.phase("n1", "Succeeded");
      await world.clock.advance(10_000);
      assert.deepEqual(told(world), ["Succeeded NodeRestored"]);
    }));

  it("the FencingTarget of a host keeps ten of them", () =>
    World.run({}, async (world) => {
      await world.hang("n1");
      world.faults.password = "changed";
      for (let number = 1; number <= 12; number += 1) {
        world.remediate("n1", {}, `r${number}`);
        await world.phase(`r${number}`, "Failed");
        remove(world, `r${number}`);
        await world.clock.advance(1_000);
      }
      assert.equal(outcomes(world).length, 10);
      assert.deepEqual([outcomes(world)[0]?.remediation.name, outcomes(world)[9]?.remediation.name], ["r12", "r3"]);
    }));
});

describe("the events of a Node", () => {
  it("the events of a Node report its fence, one for each state", () =>
    World.run({}, async (world) => {
      await world.hang("n1");
      world.remediate("n1");
      await world.phase("n1", "Succeeded");
      const ofNode = world.notes.filter(({ regarding }) => regarding.kind === "Node");
      assert.deepEqual(
        ofNode.map(({ action }) => action),
        ["Verifying", "PoweringOff", "Releasing", "PoweringOn", "Rejoining", "Restoring", "Succeeded"],
      );
      assert.ok(
        ofNode.every(({ regarding, note }) => regarding.metadata.name === "n1" && note.includes("ironfence/n1")),
      );
      assert.match(ofNode[2]?.note ?? "", /^BareMetalRemediation ironfence\/n1, Releasing: /);
    }));
});
