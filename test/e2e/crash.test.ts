import assert from "node:assert/strict";
import { after, afterEach, before, describe, test } from "node:test";
import { OUT_OF_SERVICE, hasTaint } from "../../hack/e2e/chronicle.ts";
import {
  REMEDIATION_TIMEOUT_MS,
  assertOrder,
  configure,
  decorate,
  explain,
  leaderOf,
  marksOf,
  powerOffIsSent,
  startScenario,
  targetsReady,
  remediationEnds,
} from "../../hack/e2e/scenario.ts";
import type { Scenario } from "../../hack/e2e/scenario.ts";
import { deployDatabase } from "../../hack/e2e/workload.ts";

/** Long enough to kill an agent while it waits for the power-off, even on a busy machine. */
const POWER_DELAY_MS = 5_000;

void describe("an agent is killed, or suspended, in the middle of a fence", () => {
  let scenario: Scenario;
  before(async () => {
    scenario = await startScenario({ powerDelayMs: POWER_DELAY_MS });
    await configure(scenario);
  });
  after(() => scenario?.stop());
  // Stops all agents, also after a failure. Otherwise one of them would lead in the next test.
  afterEach(() => Promise.all(scenario.agents.map((agent) => agent.stop())));

  void test("an agent that is killed between power-off and taint finishes after its restart without a second power-off", async () => {
    const { world, chronicle } = scenario;
    const agent = await scenario.startAgent();
    await targetsReady(scenario);
    const victim = "worker-1";
    await decorate(scenario, victim);
    const marks = await marksOf(scenario, victim);
    await world.host(victim).hang();
    await powerOffIsSent(scenario, victim);
    await agent.kill();
    assert.ok(
      !chronicle.nodes(victim).some(({ object }) => hasTaint(object, OUT_OF_SERVICE)),
      "killed before the taint",
    );

    await scenario.startAgent();
    await remediationEnds(scenario, victim, marks);
    await assertOrder(scenario, victim, OUT_OF_SERVICE);
    assert.equal(await world.host(victim).orderCount("ForceOff"), 1);
    assert.equal(await world.host(victim).orderCount("On"), 1);
  });

  void test("one of two agents leads, and the other one finishes its work when the leader is killed", async () => {
    const { world } = scenario;
    const database = await deployDatabase(world.api, "ledger");
    const victim = await database.runningNode();
    const offsBefore = await world.host(victim).orderCount("ForceOff");
    const marks = await marksOf(scenario, victim);
    const pod = await database.pod();
    const pair = [await scenario.startAgent(), await scenario.startAgent()];
    const leader = await leaderOf(scenario, pair);

    await world.host(victim).hang();
    await powerOffIsSent(scenario, victim, offsBefore);
    await leader.kill();

    const successor = await explain(scenario, "the pod runs elsewhere", REMEDIATION_TIMEOUT_MS, () =>
      database.successorNode(pod?.metadata.uid),
    );
    assert.notEqual(successor, victim);
    await remediationEnds(scenario, victim, marks);
    assert.notEqual((await leaderOf(scenario, pair)).instance, leader.instance);
    assert.equal((await world.host(victim).orderCount("ForceOff")) - offsBefore, 1);
    await database.remove();
  });

  void test("an agent that is frozen until another one has its lease changes nothing when it wakes, and ends; its successor finishes with one power-off in all", async () => {
    const { world } = scenario;
    const pair = [await scenario.startAgent(), await scenario.startAgent()];
    await targetsReady(scenario);
    const leader = await leaderOf(scenario, pair);
    const victim = "worker-4";
    const marks = await marksOf(scenario, victim);
    const [offs, ons] = [await world.host(victim).orderCount("ForceOff"), await world.host(victim).orderCount("On")];
    await world.host(victim).hang();
    await powerOffIsSent(scenario, victim, offs);
    leader.freeze();

    const other = pair.find((agent) => agent !== leader);
    await explain(
      scenario,
      "the other agent leads",
      REMEDIATION_TIMEOUT_MS,
      async () => (await leaderOf(scenario, pair)) === other,
    );
    // Exactly when the other agent begins to act.
    leader.thaw();
    assert.match(await leader.ended, /ended with 1/);

    await remediationEnds(scenario, victim, marks);
    assert.equal((await world.host(victim).orderCount("ForceOff")) - offs, 1);
    assert.equal((await world.host(victim).orderCount("On")) - ons, 1);
    assert.equal(other?.running, true);
  });
});
