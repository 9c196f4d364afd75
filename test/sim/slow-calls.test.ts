import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Fault, RequestMatch } from "../../hack/kube-mock/faults.ts";
import { NAMESPACE, World } from "./world.ts";

/** Calls that are or may be made while our out-of-service taint is on the node. */
const CALLS: Readonly<Record<string, RequestMatch>> = {
  "lists of pods": { method: "GET", pathPrefix: "/api/v1/pods" },
  "lists of volume attachments": { method: "GET", pathPrefix: "/apis/storage.k8s.io/v1/volumeattachments" },
  "reads of its node": { method: "GET", pathPrefix: "/api/v1/nodes/n1" },
  "reads of leases": { method: "GET", pathPrefix: "/apis/coordination.k8s.io" },
  "status patches of pods": { method: "PATCH", pathPrefix: "/api/v1/namespaces/default/pods" },
  "deletions of pods": { method: "DELETE", pathPrefix: "/api/v1/namespaces/default/pods" },
  "status patches of remediations": {
    method: "PATCH",
    pathPrefix: `/apis/ironfence.io/v1alpha1/namespaces/${NAMESPACE}/baremetalremediations`,
  },
};

const FAULTS: Readonly<Record<string, Fault["action"]>> = {
  hang: { kind: "hang" },
  "take 10 s": { kind: "delay", delayMs: 10_000 },
  "take 60 s": { kind: "delay", delayMs: 60_000 },
  "get 429 with Retry-After 60 s": { kind: "status", status: 429, retryAfterSeconds: 60 },
};

/** How long the taint may stay when the host is no longer off: a reading every 1.5 s, then one patch. */
const UNTAINTED_WITHIN_MS = 4_000;

describe("a host that comes on by itself while it is fenced", () => {
  for (const [calls, match] of Object.entries(CALLS)) {
    for (const [how, action] of Object.entries(FAULTS)) {
      it(`a host that comes on by itself while it is fenced has its taint removed in time although ${calls} ${how}`, () =>
        World.run({}, async (world) => {
          const fault = { match: { ...match, client: "agent", watch: false }, times: Infinity, action };
          world.onPhase("n1", "Releasing", () => world.server.faults.inject(fault));
          await fence(world);
          await world.clock.advance(4_000);
          world.otherClientOrders("n1", "On");
          await untainted(world, UNTAINTED_WITHIN_MS);
          world.server.faults.clear();
          world.freePod();
          await world.phase("n1", "Succeeded");
          world.assertClean();
        }));
    }
  }

  for (const method of ["GET", "PATCH"]) {
    for (const [how, action] of Object.entries(FAULTS)) {
      it(`a host that comes on by itself while it is fenced has its taint removed by a second try if the first ${method} of its node would ${how}`, () =>
        World.run({}, async (world) => {
          await fence(world);
          const match = { method, pathPrefix: "/api/v1/nodes/n1", client: "agent", watch: false };
          world.server.faults.inject({ match, times: 1, action });
          world.otherClientOrders("n1", "On");
          await untainted(world, 9_000);
          world.freePod();
          await world.phase("n1", "Succeeded");
          world.assertClean();
        }));
    }
  }
});

describe("a host that stays off", () => {
  it("a host that stays off is drained by lists that take 8 s each: its power is read meanwhile, and the proof holds", () =>
    World.run({}, async (world) => {
      await fence(world);
      const match = { method: "GET", pathPrefix: "/api/v1/pods", client: "agent", watch: false };
      world.server.faults.inject({ match, times: Infinity, action: { kind: "delay", delayMs: 8_000 } });
      world.freePod();
      await world.phase("n1", "Succeeded");
      assert.deepEqual(world.powerLog, ["n1 ForceOff", "n1 On"]);
      assert.equal(world.condition("n1", "WorkloadsReleased"), "True Drained");
      assert.ok(!world.notes.some(({ reason }) => reason === "PowerOffLost"));
    }));

  it("a host that stays off is powered on at the end of the drain timeout though the list of its pods hangs", () =>
    World.run({}, async (world) => {
      await fence(world, { drainTimeout: "30s" });
      const match = { method: "GET", pathPrefix: "/api/v1/pods", client: "agent", watch: false };
      world.server.faults.inject({ match, times: Infinity, action: { kind: "hang" } });
      await world.phase("n1", "PoweringOn", 32_000);
      world.freePod();
      await world.phase("n1", "Succeeded");
    }));
});

describe("a patch that puts the taint on and has no answer", () => {
  it("a patch that puts the taint on and has no answer takes no effect any more once its host is on: the next write overtakes it", () =>
    World.run({}, async (world) => {
      await world.hang("n1");
      const match = { method: "PATCH", pathPrefix: "/api/v1/nodes/n1", client: "agent" };
      world.server.faults.inject({ match, times: 1, action: { kind: "late", delayMs: 5_000 } });
      // All later calls are lost until the host comes on.
      world.server.faults.inject({ match, times: Infinity, action: { kind: "drop" } });
      let isSent = false;
      const stop = world.server.onRequest(({ method, path }) => {
        isSent ||= method === "PATCH" && path.startsWith(match.pathPrefix);
      });
      world.remediate("n1", { retryLimit: 0 });
      await world.until("the patch is sent", () => isSent);
      stop();
      world.pause(true);
      world.otherClientOrders("n1", "On");
      await world.clock.advance(2_500);
      // From here on, only the patch in transit could add the taint.
      world.server.faults.clear();
      await world.clock.advance(4_000);
      assert.ok(!world.markLog.includes("n1 +taint"), world.story());
      world.pause(false);
      await world.phase("n1", "Succeeded");
      world.assertClean();
    }));
});

/** Fences n1 until it has the taint. A pod stays. */
async function fence(world: World, strategy: Record<string, unknown> = { drainTimeout: "30m" }): Promise<void> {
  await world.holdPod();
  world.remediate("n1", { retryLimit: 1, ...strategy });
  await world.phase("n1", "Releasing");
}

async function untainted(world: World, withinMs: number): Promise<void> {
  await world.until("the taint is off", () => world.markLog.includes("n1 -taint"), withinMs);
}

describe("a host that is to be powered on", () => {
  for (const delayMs of [2_700, 4_900]) {
    it(`a host is powered on although each call to the API takes ${delayMs} ms: its identity is checked again, without a further write`, () =>
      World.run({}, async (world) => {
        await world.hang("n1");
        const fault = {
          match: { client: "agent", watch: false },
          times: Infinity,
          action: { kind: "delay", delayMs },
        } as const;
        world.onPhase("n1", "PoweringOn", () => world.server.faults.inject(fault));
        world.remediate("n1", { retryLimit: 0, drainTimeout: "60s" });
        await world.until("n1 is ordered on", () => world.powerLog.includes("n1 On"), 40_000);
        world.server.faults.clear();
        await world.phase("n1", "Succeeded");
        world.assertClean();
      }));
  }
});
