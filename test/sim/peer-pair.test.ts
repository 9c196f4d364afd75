import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { BARE_METAL_REMEDIATIONS } from "../../src/api/ironfence/bare-metal-remediation.ts";
import { OUT_OF_SERVICE } from "../../src/api/kubernetes/taints.ts";
import { bears, NAMESPACE, World } from "./world.ts";

// Mistakes that were observed in the operators that users install today, one test each.

const KEY = { namespace: NAMESPACE, name: "n1" };

describe("unlike the operators of today", () => {
  it("no other machine is fenced if a target leads to it, and no dead node keeps its taint", () =>
    World.run({}, async (world) => {
      world.rack.bmc("n1").rewire(world.rack.host("n2"));
      await world.hang("n1");
      world.remediate("n1");
      await world.phase("n1", "Failed");
      assert.equal(world.condition("n1", "Succeeded"), "False IdentityMismatch");
      assert.deepEqual(world.powerLog, []);
      assert.deepEqual(world.markLog, []);
    }));

  it("a remediation that was created from a stale snapshot does not power a healthy node off", () =>
    World.run({}, async (world) => {
      await world.hang("n1");
      world.remediate("n1");
      // The node comes back before its BMC answers again.
      world.rack.bmc("n1").setReachability("silent");
      await world.phase("n1", "Verifying");
      world.otherClientOrders("n1", "ForceRestart");
      await world.until("n1 is Ready", () => world.isReady("n1"));
      world.rack.bmc("n1").setReachability("up");
      await world.phase("n1", "Succeeded");
      assert.deepEqual(world.powerLog, ["n1 ForceRestart"]);
      world.assertClean();
    }));

  it("the host is powered on only after its pods are gone and the taint is off", () =>
    World.run({}, async (world) => {
      await world.holdPod();
      let atOn: { pods: number; tainted: boolean } | undefined;
      world.rack.subscribe((event) => {
        if (event.type !== "ordered" || event.order !== "On") return;
        const node = world.node("n1");
        atOn ??= { pods: world.pods("n1").length, tainted: node !== undefined && bears(node, OUT_OF_SERVICE) };
      });
      world.remediate("n1");
      await world.phase("n1", "Releasing");
      await world.clock.advance(10_000);
      assert.equal(atOn, undefined, "a pod is left, and the host is off");
      world.freePod();
      await world.phase("n1", "Succeeded");
      assert.deepEqual(atOn, { pods: 0, tainted: false });
    }));

  it("a recovery during a fence leaves no host off: its remediation is deleted, the agent killed, and the On is sent", () =>
    World.run({}, async (world) => {
      await world.hang("n1");
      world.remediate("n1");
      await world.until("it is ordered off", () => world.powerLog.includes("n1 ForceOff"));
      world.server.collection(BARE_METAL_REMEDIATIONS).delete(KEY);
      await world.killAgent();
      world.startAgent();
      await world.until("the remediation is gone", () => world.remediation("n1") === undefined);
      assert.deepEqual(world.powerLog, ["n1 ForceOff", "n1 On"]);
      world.assertClean();
    }));

  it("a restart during a fence does not reboot the host twice", () =>
    World.run({}, async (world) => {
      await world.hang("n1");
      world.remediate("n1");
      for (const phase of ["PoweringOn", "Rejoining"]) {
        await world.phase("n1", phase);
        await world.killAgent();
        world.startAgent();
      }
      await world.phase("n1", "Succeeded");
      assert.equal(world.powerLog.filter((entry) => entry === "n1 ForceOff").length, 1);
      world.assertClean();
    }));

  it("a BMC that does not answer for an hour is waited for, which the status shows, and used when it answers again", () =>
    World.run({}, async (world) => {
      await world.hang("n1");
      world.rack.bmc("n1").setReachability("refused");
      world.remediate("n1", { powerOffTimeout: "2h" });
      await world.clock.advance(3_600_000);
      assert.equal(world.condition("n1", "Processing"), "True BMCUnreachable");
      assert.deepEqual(world.markLog, []);
      world.rack.bmc("n1").setReachability("up");
      await world.phase("n1", "Succeeded");
      assert.deepEqual(world.powerLog, ["n1 ForceOff", "n1 On"]);
      world.assertClean();
    }));

  it("no Event reports a taint that was never set, and nothing is written to its node", () =>
    World.run({}, async (world) => {
      await world.hang("n1");
      world.rack.bmc("n1").setReachability("refused");
      const writes: string[] = [];
      world.server.onRequest(({ client, method, path }) => {
        if (client === "agent" && method !== "GET" && path.startsWith("/api/v1/nodes/"))
          writes.push(`${method} ${path}`);
      });
      world.remediate("n1", { retryLimit: 0, powerOffTimeout: "20s" });
      await world.phase("n1", "Failed");
      assert.deepEqual(writes, []);
      const told = world.notes.map(({ reason, note }) => `${reason}: ${note}`);
      assert.deepEqual(
        told.filter((text) => /taint/i.test(text)),
        [],
      );
    }));

  it("a conflict over the node delays nothing: its taint is removed by the next try, at once", () =>
    World.run({}, async (world) => {
      await world.holdPod();
      world.remediate("n1");
      await world.phase("n1", "Releasing");
      await world.clock.advance(1_000);
      const match = { method: "PATCH", pathPrefix: "/api/v1/nodes/n1", client: "agent" };
      world.server.faults.inject({ match, times: 1, action: { kind: "status", status: 409 } });
      const tries: { status: number | undefined; atMs: number }[] = [];
      world.server.onRequest(({ client, method, path, status }) => {
        if (client === "agent" && method === "PATCH" && path === "/api/v1/nodes/n1")
          tries.push({ status, atMs: world.clock.nowMs() });
      });
      world.freePod();
      await world.phase("n1", "PoweringOn");
      assert.deepEqual(
        tries.map(({ status }) => status),
        [409, 200],
      );
      assert.equal(tries[1]?.atMs, tries[0]?.atMs);
      assert.equal(bears(world.node("n1") ?? assert.fail(), OUT_OF_SERVICE), false);
      await world.phase("n1", "Succeeded");
      world.assertClean();
    }));
});
