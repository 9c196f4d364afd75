import assert from "node:assert/strict";
import { after, afterEach, before, describe, test } from "node:test";
import { startApiProxy } from "../../hack/e2e/api-proxy.ts";
import { OUT_OF_SERVICE, conditionOf } from "../../hack/e2e/chronicle.ts";
import { applyFencingTarget } from "../../hack/e2e/examples.ts";
import {
  REMEDIATION_TIMEOUT_MS,
  WORKERS,
  assertOrder,
  explain,
  holdFence,
  marksOf,
  startScenario,
  targetsReady,
  workersSettle,
} from "../../hack/e2e/scenario.ts";
import type { NodeMarks, Scenario } from "../../hack/e2e/scenario.ts";
import { createCertificateAuthority } from "../../hack/lib/pki.ts";
import { systemClock } from "../../src/runtime/system.ts";

const AWAY_MS = 60_000;
const CUTS = 5;
const CUT_EVERY_MS = 400;
const WATCH_DELAY_MS = 1_500;

void describe("in the middle of a fence", () => {
  let scenario: Scenario;
  before(async () => {
    scenario = await startScenario();
    for (const node of WORKERS) await applyFencingTarget(scenario.world, node);
  });
  after(() => scenario?.stop());
  // Stops all agents, also after a failure. Otherwise one of them would lead in the next test.
  afterEach(() => Promise.all(scenario.agents.map((agent) => agent.stop())));

  /** Waits for the success of the fence. It must have power-cycled the victim's host once, and no other host. */
  async function fenceEnds(victim: string, marks: NodeMarks, ordersBefore: ReadonlyMap<string, number>): Promise<void> {
    const { world, chronicle } = scenario;
    const remediation = () => chronicle.remediations(victim).at(-1)?.object;
    await explain(scenario, "the remediation has succeeded", REMEDIATION_TIMEOUT_MS, () =>
      Promise.resolve(conditionOf(remediation(), "Succeeded")?.status === "True"),
    );
    await assertOrder(scenario, victim, OUT_OF_SERVICE);
    for (const node of WORKERS) {
      const added = (await ordersOf(node)) - (ordersBefore.get(node) ?? 0);
      assert.equal(added, node === victim ? 2 : 0, `power orders of ${node}`);
    }
    assert.equal(await world.bmc.powerState(world.host(victim).systemUuid), "On");
    const steps = (remediation()?.status?.timeline ?? []).map(({ step }) => step);
    assert.deepEqual(steps, [...new Set(steps)], "no step is taken twice");
    await explain(
      scenario,
      `${victim} has the taints ${JSON.stringify(marks.taints)} again`,
      REMEDIATION_TIMEOUT_MS,
      async () => {
        const present = await marksOf(scenario, victim);
        return JSON.stringify(present.taints) === JSON.stringify(marks.taints);
      },
    );
  }

  const ordersOf = async (node: string): Promise<number> =>
    (await scenario.chronicle.bmc(node)).filter(({ kind }) => kind === "order").length;
  const allOrders = async (): Promise<Map<string, number>> =>
    new Map(await Promise.all(WORKERS.map(async (node) => [node, await ordersOf(node)] as const)));

  void test("an API server that is killed for a minute delays a fence: nothing is powered meanwhile, and one power cycle brings the node back", async () => {
    const { world } = scenario;
    const victim = "worker-1";
    const host = world.host(victim);
    const agents = [await scenario.startAgent(), await scenario.startAgent()];
    await targetsReady(scenario);
    await workersSettle(scenario);
    const [marks, orders] = [await marksOf(scenario, victim), await allOrders()];
    const letGo = await holdFence(scenario, victim);

    await world.controlPlane.killApiServer();
    await new Promise((resolve) => setTimeout(resolve, AWAY_MS));
    assert.equal(await world.bmc.powerState(host.systemUuid), "Off", "no agent has powered it on");
    assert.equal(await host.orderCount("On"), 0);
    await world.controlPlane.restartApiServer();
    // Kubernetes would restart the pod of an agent that has lost its lease.
    for (const agent of agents) if (!agent.running) await scenario.startAgent();

    await letGo();
    await fenceEnds(victim, marks, orders);
  });

  void test("a fence is only delayed by a proxy that cuts the agent's connections and swallows or delays its watches", async (t) => {
    const { world } = scenario;
    const victim = "worker-2";
    const authority = await createCertificateAuthority(systemClock, "a proxy");
    const proxy = await startApiProxy(world.controlPlane.address, authority);
    t.after(() => proxy.close());
    const agent = await scenario.startAgent(["--leader-elect=false"], { via: proxy.address });
    await workersSettle(scenario);
    const [marks, orders] = [await marksOf(scenario, victim), await allOrders()];
    const letGo = await holdFence(scenario, victim);

    for (let count = 0; count < CUTS; count += 1) {
      proxy.cut();
      await new Promise((resolve) => setTimeout(resolve, CUT_EVERY_MS));
    }
    await explain(scenario, "the agent opens its watches again", REMEDIATION_TIMEOUT_MS, () =>
      Promise.resolve(proxy.watches > 0),
    );
    assert.equal(await world.bmc.powerState(world.host(victim).systemUuid), "Off");

    proxy.darken();
    await letGo();
    await explain(
      scenario,
      "live reads bring the fence to power-on, since no watch reports anything",
      REMEDIATION_TIMEOUT_MS,
      async () => {
        return (await world.host(victim).orderCount("On")) > 0;
      },
    );
    proxy.lighten();
    proxy.watchDelayMs = WATCH_DELAY_MS;
    proxy.cut();

    await fenceEnds(victim, marks, orders);
    assert.ok(agent.running, agent.log());
  });
});
