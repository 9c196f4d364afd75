import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Fault } from "../../hack/kube-mock/faults.ts";
import { NODES } from "../../src/api/kubernetes/core-types.ts";
import { createHealthCheck } from "./health-check.ts";
import { NAMESPACE, World } from "./world.ts";

/** Permanent failures of writes to Nodes: a dead fail-closed webhook, a missing permission, and timeouts. */
const FAILURES: Readonly<Record<string, Fault["action"]>> = {
  "a dead webhook": { kind: "status", status: 500 },
  "a missing permission": { kind: "status", status: 403 },
  "no answer": { kind: "hang" },
  "an admission policy": { kind: "status", status: 422 },
};

const SHORT = { retryLimit: 0, powerOffTimeout: "30s", drainTimeout: "60s", powerOnTimeout: "30s" };

/** What follows the lost answer: nothing, or the API server does not answer a few attempts. */
const AWAY: Readonly<Record<string, Fault["action"] | undefined>> = {
  "as soon as it is known to be stored": undefined,
  "although the next tries get no connection": { kind: "drop" },
  "although the next tries are answered with 503": { kind: "status", status: 503 },
};

describe("a step whose write loses its answer", () => {
  for (const [when, action] of Object.entries(AWAY))
    it(`a step whose write loses its answer is reported once, ${when}`, () =>
      World.run({}, async (world) => {
        const { faults } = world.server;
        const pathPrefix = `/apis/ironfence.io/v1alpha1/namespaces/${NAMESPACE}/baremetalremediations/n1/status`;
        const match = { method: "PATCH", pathPrefix, client: "agent" };
        const watches = { watch: true, client: "agent", resource: "baremetalremediations" };
        for (const phase of ["PoweringOff", "Releasing", "Rejoining", "Restoring"]) {
          world.onPhase("n1", phase, () => {
            faults.inject({ match, times: 1, action: { kind: "loseAnswer" } });
            if (action === undefined) return;
            faults.inject({ match, times: 2, action });
            faults.lagWatches(watches, 3_000);
            world.clock.schedule(3_000, () => faults.lagWatches(watches, 0));
          });
        }
        await world.hang("n1");
        world.remediate("n1", SHORT);
        await world.phase("n1", "Succeeded");
        await world.clock.advance(5_000);
        const steps = world.remediation("n1")?.status?.timeline?.map(({ step }) => step) ?? [];
        const reported = world.notes.filter(({ regarding }) => regarding.kind === "BareMetalRemediation");
        for (const step of steps) {
          assert.equal(reported.filter(({ reason }) => reason === step).length, 1, step);
        }
        assert.match(await world.metrics("ironfence_remediations_total"), /result="Succeeded".* 1$/m);
      }));
});

for (const [cause, action] of Object.entries(FAILURES)) {
  const refuse = (world: World, node = "n1"): void => {
    const match = { method: "PATCH", pathPrefix: `/api/v1/nodes/${node}`, client: "agent" };
    world.server.faults.inject({ match, times: Infinity, action });
  };

  describe(`a Node that can never be written because of ${cause}`, () => {
    it(`a Node that can never be written because of ${cause} leaves its host off no longer than the power-off may take, since it has no taint`, () =>
      World.run({}, async (world) => {
        await world.hang("n1");
        refuse(world);
        world.remediate("n1", SHORT);
        await world.until("n1 is on again", () => world.powerLog.includes("n1 On"), 180_000);
        await world.phase("n1", "Failed", 60_000);
        assert.match(message(world, "Succeeded"), /could not be tainted in time: /);
        assert.ok(!world.markLog.includes("n1 +taint"));
      }));

    it(`a host whose taint cannot be removed because of ${cause} stays off, and that is reported within a minute; the next step follows as soon as it can`, () =>
      World.run({}, async (world) => {
        await world.holdPod();
        world.remediate("n1", SHORT);
        await world.phase("n1", "Releasing");
        refuse(world);
        await world.clock.advance(60_000 + 60_000);
        assert.equal(world.condition("n1", "Processing"), "True ApiFailing");
        assert.match(message(world, "Processing"), /Node n1.*the host stays OFF.*remove the taint by hand/);
        assert.ok(world.notes.some(({ type, reason }) => type === "Warning" && reason === "ApiFailing"));
        await world.clock.advance(3_600_000);
        assert.deepEqual(world.powerLog, ["n1 ForceOff"], "its node is tainted");
        assert.equal(await world.metric("ironfence_remediations_overdue"), "1");
        world.freePod();
        world.server.faults.clear();
        await world.phase("n1", "Succeeded", 120_000);
        await world.clock.advance(1_000);
        assert.equal(await world.metric("ironfence_remediations_overdue"), "0");
        world.assertClean();
      }));

    it(`a Node that can never be written because of ${cause} no longer keeps a host off once a user has removed the taint by hand`, () =>
      World.run({}, async (world) => {
        await world.holdPod();
        world.remediate("n1", SHORT);
        await world.phase("n1", "Releasing");
        refuse(world);
        await world.clock.advance(120_000);
        world.server.collection(NODES).mergePatch({ name: "n1" }, { spec: { taints: null } });
        await world.until("n1 is on again", () => world.powerLog.includes("n1 On"), 60_000);
      }));

    it(`a Node that can never be written because of ${cause} has no further power cycle if it has rejoined and its quarantine cannot be removed`, () =>
      World.run({}, async (world) => {
        await world.hang("n1");
        world.remediate("n1", { ...SHORT, retryLimit: 2, timeout: "60s" });
        await world.phase("n1", "Rejoining");
        refuse(world);
        await world.clock.advance(600_000);
        assert.deepEqual(world.powerLog, ["n1 ForceOff", "n1 On"]);
        assert.equal(world.condition("n1", "Processing"), "True ApiFailing");
        world.server.faults.clear();
        await world.phase("n1", "Succeeded", 60_000);
        world.assertClean();
      }));
  });
}

for (const cause of Object.keys(FAILURES)) {
  describe(`a Node that cannot be tainted because of ${cause}`, () => {
    it(`a Node that cannot be tainted because of ${cause} is reported within a minute, with few requests`, () =>
      World.run({}, async (world) => {
        await world.hang("n1");
        const match = { method: "PATCH", pathPrefix: "/api/v1/nodes/n1", client: "agent" };
        const action = FAILURES[cause] ?? assert.fail(cause);
        world.server.faults.inject({ match, times: Infinity, action });
        let patches = 0;
        world.server.onRequest(({ method, path }) => {
          if (method === "PATCH" && path.startsWith("/api/v1/nodes/n1")) patches += 1;
        });
        world.remediate("n1", { powerOffTimeout: "120s" });
        await world.until("n1 is off", () => world.powerLog.includes("n1 ForceOff"), 60_000);
        await world.clock.advance(60_000);
        assert.equal(world.condition("n1", "Processing"), "True ApiFailing");
        assert.ok(world.notes.some(({ type, reason }) => type === "Warning" && reason === "ApiFailing"));
        assert.ok(patches < 200, `${patches} requests`);
      }));
  });
}

describe("a Node that cannot be tainted while its BMC no longer answers", () => {
  it("a Node that cannot be tainted while its BMC no longer answers costs few writes of the status", () =>
    World.run({}, async (world) => {
      await world.hang("n1");
      const match = { method: "PATCH", pathPrefix: "/api/v1/nodes/n1", client: "agent" };
      world.server.faults.inject({ match, times: Infinity, action: { kind: "hang" } });
      world.remediate("n1", { powerOffTimeout: "300s" });
      await world.until("it is reported", () => world.condition("n1", "Processing") === "True ApiFailing", 60_000);
      world.rack.bmc("n1").setReachability("refused");
      const writes = countWrites(world, "/baremetalremediations/n1/status");
      await world.clock.advance(120_000);
      assert.ok(writes() < 20, `${writes()} writes`);
    }));
});

/** An admission webhook may answer this to every write, and an API server if another client writes constantly. */
const CONFLICT: Fault["action"] = { kind: "status", status: 409 };

describe("a write that always ends in a conflict", () => {
  it("a health check whose status can never be written because of conflicts costs few requests, and its nodes are fenced", () =>
    World.run({ detector: true }, async (world) => {
      const match = { resource: "nodehealthchecks/status", client: "agent" };
      world.server.faults.inject({ match, times: Infinity, action: CONFLICT });
      const writes = countWrites(world, "/nodehealthchecks/all/status");
      const unhealthyConditions = [{ type: "Ready", status: "Unknown", duration: "10s" }];
      createHealthCheck(world, { strategy: SHORT }, { spec: { unhealthyConditions, minHealthy: 1 } });
      await world.clock.advance(60_000);
      assert.ok(writes() < 40, `${writes()} writes`);
      await world.hang("n1");
      await world.until("n1 is on again", () => world.powerLog.includes("n1 On"), 180_000);
    }));

  it("a Node that can never be deleted because of conflicts costs few requests, and that is reported", () =>
    World.run({}, async (world) => {
      await world.hang("n1");
      const match = { verbs: ["delete"] as const, resource: "nodes", client: "agent" };
      world.server.faults.inject({ match, times: Infinity, action: CONFLICT });
      const writes = countWrites(world, "/api/v1/nodes/n1");
      world.remediate("n1", { ...SHORT, workloadRelease: "DeleteNode", drainTimeout: "300s" });
      await world.phase("n1", "Releasing");
      await world.clock.advance(60_000);
      assert.ok(writes() < 60, `${writes()} writes`);
      assert.equal(world.condition("n1", "Processing"), "True ApiFailing");
      world.server.faults.clear();
      await world.phase("n1", "Succeeded", 120_000);
    }));
});

describe("a node's lease that can never be read", () => {
  it("a node whose lease can never be read has its host off no longer than the power-off may take, since it has no taint", () =>
    World.run({}, async (world) => {
      await world.hang("n1");
      world.remediate("n1", SHORT);
      await world.phase("n1", "PoweringOff");
      const pathPrefix = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease";
      const match = { method: "GET", watch: false, pathPrefix, client: "agent" };
      world.server.faults.inject({ match, times: Infinity, action: { kind: "status", status: 500 } });
      await world.until("n1 is on again", () => world.powerLog.includes("n1 On"), 180_000);
      await world.phase("n1", "Failed", 60_000);
      assert.match(message(world, "Succeeded"), /could not be released in time: .*lease/i);
      assert.ok(!world.markLog.includes("n1 +taint"));
    }));
});

/** Counts the agent's writes to a path. */
function countWrites(world: World, path: string): () => number {
  let writes = 0;
  world.server.onRequest((request) => {
    if (request.client !== "agent" || request.method === "GET" || !request.path.endsWith(path)) return;
    writes += 1;
    // Otherwise, an agent that writes without end would run until no memory is left.
    if (writes === 1_000) void world.killAgent();
  });
  return () => writes;
}

function message(world: World, type: string): string {
  return world.remediation("n1")?.status?.conditions?.find((condition) => condition.type === type)?.message ?? "";
}
