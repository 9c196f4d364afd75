import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { FENCING_TARGETS } from "../../src/api/ironfence/fencing-target.ts";
import { NODES } from "../../src/api/kubernetes/core-types.ts";
import { BARE_METAL_REMEDIATIONS } from "../../src/api/ironfence/bare-metal-remediation.ts";
import { NODE_NAME } from "../../src/api/names/annotations.ts";
import { creationRecord } from "../../src/nodes/creation-record.ts";
import { ZONE_LABEL } from "./cluster.ts";
import type { WorldOptions } from "./world.ts";
import { NAMESPACE, World } from "./world.ts";

// Nodes that are deleted while no agent runs, when their remediations exist and have no status yet.

const RACK = ["n1", "n2"];
const WORKING = ["Verifying", "PoweringOff", "Releasing", "PoweringOn"];

const OTHER_UUID = "a1b2c3d4-0001-4000-8000-00000000abcd";

/**
 * Runs `test` after the Nodes of the rack were deleted. Each has a remediation without a status, and no agent runs.
 *
 * @param given.pinned whether the FencingTargets take the identities of the hosts from their nodes before that.
 */
function runDeleted(given: WorldOptions & { pinned?: boolean }, test: (world: World) => Promise<void>): Promise<void> {
  const { pinned = false, ...options } = given;
  return World.run({ hosts: RACK, ...options }, async (world) => {
    if (pinned) {
      for (const name of RACK) {
        const spec = { identity: { systemUUID: null } };
        world.server.collection(FENCING_TARGETS).mergePatch({ namespace: NAMESPACE, name }, { spec });
      }
      const isPinned = (name: string): boolean => world.target(name)?.status?.identity !== undefined;
      await world.until("all are pinned", () => RACK.every(isPinned), 1_200_000);
    }
    for (const name of RACK) {
      world.server.collection(NODES).mergePatch({ name }, { metadata: { labels: { [ZONE_LABEL]: "rack-1" } } });
      world.rack.host(name).hang();
    }
    await world.until("all are down", () => RACK.every((name) => !world.isReady(name)));
    await world.killAgent();
    for (const name of RACK) {
      const annotations = { [NODE_NAME]: name, ...creationRecord(world.node(name), ZONE_LABEL) };
      world.create(BARE_METAL_REMEDIATIONS, { namespace: NAMESPACE, name, annotations }, { spec: {} });
      world.server.collection(NODES).delete({ name });
    }
    await test(world);
  });
}

describe("a Node that is deleted before its remediation has stored anything", () => {
  it("a Node that is deleted before its remediation has stored anything counts in its failure zone", () =>
    runDeleted({ limits: { hosts: Infinity, perZone: 1 } }, async (world) => {
      let most = 0;
      const phases = (): (string | undefined)[] => RACK.map((name) => world.remediation(name)?.status?.phase);
      world.server.onChange(({ object }) => {
        if (object.kind !== BARE_METAL_REMEDIATIONS.kind) return;
        most = Math.max(most, phases().filter((phase) => WORKING.includes(phase ?? "")).length);
      });
      world.startAgent();
      await world.until("both are back", () => phases().every((phase) => phase === "Succeeded"));
      assert.equal(most, 1, world.story());
    }));

  it("a Node that is deleted before its remediation has stored anything, and joins again after the power-off, is not powered off again", () =>
    runDeleted({}, async (world) => {
      world.server.collection(BARE_METAL_REMEDIATIONS).delete({ namespace: NAMESPACE, name: "n2" });
      world.startAgent();
      await world.until("the order is sent", () => world.remediation("n1")?.status?.attempt?.sent === true);
      await world.killAgent();
      await world.clock.advance(10_000);
      world.otherClientOrders("n1", "On");
      await world.until("n1 is Ready", () => world.isReady("n1"));
      await world.clock.advance(60_000);
      world.startAgent();
      await world.phase("n1", "Succeeded");
      assert.deepEqual(
        world.powerLog.filter((order) => order === "n1 ForceOff"),
        ["n1 ForceOff"],
        world.story(),
      );
    }));

  it("a Node that is deleted before its remediation has stored anything, and whose name a Node on other hardware takes, leads to no power order", () =>
    runDeleted({ pinned: true }, async (world) => {
      const metadata = { name: "n1", labels: { "kubernetes.io/hostname": "n1" } };
      world.create(NODES, metadata, { spec: {}, status: { nodeInfo: { systemUUID: OTHER_UUID, bootID: "other" } } });
      world.startAgent();
      await world.phase("n1", "Failed");
      assert.equal(world.condition("n1", "Succeeded"), "False IdentityMismatch");
      assert.deepEqual(
        world.powerLog.filter((order) => order.startsWith("n1 ")),
        [],
      );
    }));
});
