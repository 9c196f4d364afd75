import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { StartedRemediation } from "../../src/detector/shared/model/started-remediation.ts";
import { AgentProcess } from "./agent-process.ts";
import { play } from "./explore/play.ts";
import type { Run } from "./explore/run.ts";
import { scenario } from "./explore/scenarios.ts";
import { walkOf } from "./explore/walk.ts";
import { createHealthCheck } from "./health-check.ts";
import type { WorldOptions } from "./world.ts";
import { NAMESPACE, World } from "./world.ts";
import { NODE_HEALTH_CHECKS } from "../../src/api/ironfence/node-health-check.ts";

// An agent with --observe. In every world, AgentProcess enforces the safety rule that it changes nothing.

/** The run with an additional agent that only observes. */
function observed(run: Run): Run {
  const { agents = [{}] } = run.shape;
  return { ...run, shape: { ...run.shape, agents: [...agents, { observes: true }] } };
}

class Watcher {
  readonly started: StartedRemediation[] = [];
  readonly startedMs: number[] = [];
  readonly ended: string[] = [];
  readonly agent: AgentProcess;

  constructor(world: World) {
    this.agent = new AgentProcess(world, {
      name: "watcher",
      seed: 7,
      observes: true,
      families: ["node-health-check"],
      listener: {
        started: (remediation) => {
          this.started.push(remediation);
          this.startedMs.push(world.clock.nowMs());
        },
        ended: ({ subject }) => this.ended.push(subject),
      },
    });
  }
}

function createCheck(world: World): void {
  const unhealthyConditions = ["False", "Unknown"].map((status) => ({ type: "Ready", status, duration: "10s" }));
  createHealthCheck(world, { strategy: { type: "Reboot" } }, { spec: { minHealthy: 1, unhealthyConditions } });
}

const HOSTS: WorldOptions = { hosts: ["n1", "n2", "n3"] };

/** Runs `test` in a world with an agent that observes and no agent that acts. */
async function observing(test: (world: World, watcher: Watcher) => Promise<void>): Promise<void> {
  await World.run(HOSTS, async (world) => {
    await world.killAgent();
    createCheck(world);
    const watcher = new Watcher(world);
    await world.clock.advance(5_000);
    await test(world, watcher);
    await watcher.agent.stop();
  });
}

describe("an agent that only observes", () => {
  it("an agent that only observes decides to remediate a node once in an outage, when its duration is over, and leaves all as it is", () =>
    observing(async (world, { started, ended }) => {
      const before = world.node("n1")?.metadata.annotations;
      await world.hang("n1");
      await world.until("it would remediate n1", () => started.length > 0, 60_000);
      assert.deepEqual(
        started.map(({ about: _about, ...rest }) => rest),
        [
          {
            healthCheck: "NodeHealthCheck all",
            subject: "n1",
            remedy: `BareMetalRemediation ${NAMESPACE}/n1`,
            because: "its condition Ready is Unknown (the health check waits 10s for this)",
          },
        ],
      );
      await world.clock.advance(600_000);
      assert.equal(started.length, 1, "the outage goes on");
      assert.deepEqual([world.remediation("n1"), world.powerLog, world.markLog], [undefined, [], []]);
      assert.deepEqual(world.node("n1")?.metadata.annotations, before);
      world.otherClientOrders("n1", "PowerCycle");
      await world.until("n1 is Ready", () => world.isReady("n1"));
      await world.until("the outage is over for it, too", () => ended.length > 0, 30_000);
      assert.deepEqual(ended, ["n1"]);
      await world.hang("n1");
      await world.until("it would remediate n1 again", () => started.length === 2, 120_000);
    }));

  it("an agent that only observes counts what it would have started: the threshold holds a second node back", () =>
    observing(async (world, { started }) => {
      const checks = world.server.collection(NODE_HEALTH_CHECKS);
      checks.mergePatch({ name: "all" }, { spec: { minHealthy: 2 } });
      await world.hang("n1");
      await world.until("it would remediate n1", () => started.length > 0, 60_000);
      await world.hang("n2");
      await world.clock.advance(120_000);
      assert.deepEqual(
        started.map(({ subject }) => subject),
        ["n1"],
      );
    }));

  it("an agent that only observes decides as if it were alone, next to an agent that fences, and neither blocks the other", () =>
    World.run({ ...HOSTS, detector: true, installation: "ironfence" }, async (world) => {
      createCheck(world);
      const { agent, started, startedMs, ended } = new Watcher(world);
      await world.clock.advance(5_000);
      await world.hang("n1");
      await world.phase("n1", "PoweringOff");
      const createdMs = Date.parse(world.remediation("n1")?.metadata.creationTimestamp ?? "");
      await world.until("n1 is back", () => world.remediation("n1") === undefined && world.isReady("n1"));
      await world.until("the outage is over for both", () => ended.includes("n1"), 60_000);
      assert.deepEqual(
        started.map(({ subject }) => subject),
        ["n1"],
      );
      assert.ok(Math.abs((startedMs[0] ?? 0) - createdMs) <= 2_000, `${startedMs[0]} and ${createdMs}`);
      assert.ok(world.powerLog.includes("n1 ForceOff"), world.powerLog.join());
      await agent.stop();
    }));

  it("an agent that only observes changes nothing in scenarios and random runs, and changes none of their outcomes", async () => {
    for (const name of ["detected", "early", "massOutage", "okdChecked", "paused"]) {
      const { violations, verdicts } = await play(observed(scenario(name)));
      assert.deepEqual(violations, [], name);
      assert.deepEqual(verdicts, (await play(scenario(name))).verdicts, name);
    }
    for (let seed = 1; seed <= 12; seed += 1) {
      const { violations } = await play(observed(walkOf(seed)));
      assert.deepEqual(violations, [], `run ${seed}`);
    }
  });
});
