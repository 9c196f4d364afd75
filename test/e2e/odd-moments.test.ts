import assert from "node:assert/strict";
import { after, afterEach, before, describe, test } from "node:test";
import { OUT_OF_SERVICE, QUARANTINE, hasTaint, readyOf } from "../../hack/e2e/chronicle.ts";
import {
  REMEDIATION_TIMEOUT_MS,
  WORKERS,
  configure,
  explain,
  marksOf,
  startScenario,
  targetsReady,
  remediationEnds,
} from "../../hack/e2e/scenario.ts";
import type { Scenario } from "../../hack/e2e/scenario.ts";

/** When the agent is killed. `sinceMs` is the time at which the node stopped. */
type Moment = { name: string; reached: (scenario: Scenario, node: string, sinceMs: number) => Promise<boolean> };

const seenOnNode =
  (taint: string): Moment["reached"] =>
  ({ chronicle }, node, sinceMs) =>
    Promise.resolve(chronicle.nodes(node).some(({ atMs, object }) => atMs > sinceMs && hasTaint(object, taint)));

const ordered =
  (resetType: string): Moment["reached"] =>
  async ({ chronicle }, node, sinceMs) =>
    (await chronicle.bmc(node)).some(
      ({ kind, value, atMs }) => kind === "order" && value === resetType && atMs > sinceMs,
    );

const MOMENTS: readonly Moment[] = [
  {
    name: "as soon as the remediation exists",
    reached: ({ chronicle }, node, sinceMs) =>
      Promise.resolve(chronicle.remediations(node).some(({ atMs }) => atMs > sinceMs)),
  },
  { name: "while the out-of-service taint is on the node", reached: seenOnNode(OUT_OF_SERVICE) },
  { name: "while the quarantine is on the node", reached: seenOnNode(QUARANTINE) },
  { name: "when the host is ordered on", reached: ordered("On") },
];

void describe("an agent is killed at odd moments, and one that starts at once takes over", () => {
  let scenario: Scenario;
  before(async () => {
    scenario = await startScenario();
    await configure(scenario);
  });
  after(() => scenario?.stop());
  // Stops all agents, also after a failure. Otherwise one of them would lead in the next test.
  afterEach(() => Promise.all(scenario.agents.map((agent) => agent.stop())));

  for (const [index, { name, reached }] of MOMENTS.entries()) {
    void test(`an agent that is killed ${name} is followed by one that ends the fence with one power cycle in all`, async () => {
      const { world, chronicle } = scenario;
      const victim = WORKERS[index] ?? "worker-1";
      // Only one agent runs at a time, so without leader election none waits for the lease of a killed one.
      const agent = await scenario.startAgent(["--leader-elect=false"]);
      await targetsReady(scenario);
      const marks = await marksOf(scenario, victim);
      const sinceMs = Date.now();
      await world.host(victim).hang();
      await explain(scenario, `${victim}: ${name}`, REMEDIATION_TIMEOUT_MS, () => reached(scenario, victim, sinceMs));
      await agent.kill();

      await scenario.startAgent(["--leader-elect=false"]);
      await remediationEnds(scenario, victim, marks);
      assert.equal(await world.host(victim).orderCount("ForceOff"), 1, "powered off once");
      assert.ok((await world.host(victim).orderCount("On")) >= 1);
      assert.ok(chronicle.nodes(victim).some(({ object }) => readyOf(object) === "Unknown"));
    });
  }
});
