import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { BARE_METAL_REMEDIATIONS } from "../../src/api/ironfence/bare-metal-remediation.ts";
import { NODES } from "../../src/api/kubernetes/core-types.ts";
import type { Node } from "../../src/api/kubernetes/core.ts";
import { NAMESPACE, World } from "./world.ts";

describe("a write of another client that comes between our read and our write", () => {
  it("a cordon, a label and a taint that an administrator writes between our read and our write of the node are kept", () =>
    World.run({}, async (world) => {
      await world.hang("n1");
      const nodes = world.server.collection<Node>(NODES);
      let writes = 0;
      // Each time right after the agent has read the node and before it marks it.
      world.server.onRequest(({ client, method, path, status }) => {
        if (client !== "agent" || method !== "GET" || path !== "/api/v1/nodes/n1" || status !== 200) return;
        writes += 1;
        if (writes > 12) return;
        const taints = (world.node("n1")?.spec.taints ?? []).filter(({ key }) => !key.startsWith("example.com/"));
        const own = { key: `example.com/taint-${writes}`, effect: "PreferNoSchedule" };
        nodes.mergePatch({ name: "n1" }, { spec: { unschedulable: true, taints: [...taints, own] } });
      });
      world.remediate("n1");
      await world.phase("n1", "Succeeded");
      const spec = world.node("n1")?.spec;
      assert.equal(spec?.unschedulable, true);
      assert.ok(writes >= 3, "it has been written to in between");
      const last = `example.com/taint-${Math.min(writes, 12)}`;
      assert.deepEqual(
        (spec?.taints ?? []).filter(({ key }) => key.startsWith("example.com/")).map(({ key }) => key),
        [last],
      );
      world.assertClean();
    }));

  it("the status is not stored over a write of another client that came after it was read: the decision was made on another version", () =>
    World.run({}, async (world) => {
      await world.hang("n1");
      const remediations = world.server.collection(BARE_METAL_REMEDIATIONS);
      const key = { namespace: NAMESPACE, name: "n1" };
      const conflicts: string[] = [];
      world.server.onRequest(({ client, method, path, status }) => {
        if (client === "agent" && method === "PATCH" && path.endsWith("/n1/status")) conflicts.push(String(status));
      });
      world.onPhase("n1", "Verifying", () => {
        remediations.mergePatch(key, { status: { provenReboots: 7 } }, "status");
      });
      world.remediate("n1");
      await world.phase("n1", "Succeeded");
      assert.ok(conflicts.includes("409") || conflicts.includes("422"), conflicts.join(", "));
      assert.equal(world.remediation("n1")?.status?.provenReboots, 8);
      world.assertClean();
    }));
});
