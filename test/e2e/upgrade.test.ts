import assert from "node:assert/strict";
import { join } from "node:path";
import { after, afterEach, before, describe, test } from "node:test";
import type { Agent } from "../../hack/e2e/agent.ts";
import { OUT_OF_SERVICE, conditionOf, readyOf } from "../../hack/e2e/chronicle.ts";
import type { NodeView, RemediationView } from "../../hack/e2e/chronicle.ts";
import { applyFencingTarget } from "../../hack/e2e/examples.ts";
import { installFirstVersion } from "../../hack/e2e/first-version.ts";
import {
  REMEDIATION_TIMEOUT_MS,
  WORKERS,
  assertOrder,
  explain,
  holdFence,
  leaderOf,
  marksOf,
  startScenario,
  targetsReady,
} from "../../hack/e2e/scenario.ts";
import type { NodeMarks, Scenario } from "../../hack/e2e/scenario.ts";
import { NAMESPACE } from "../../hack/e2e/world.ts";
import { ALLOWED_ADDRESSES } from "../../src/api/names/annotations.ts";

/** The taint by which this version recognizes its own out-of-service taint. 0.1.0 does not have it. */
const FENCED_TAINT = "ironfence.io/fenced-by";

/** How an agent ends: like a pod that Kubernetes stops, or like on a machine that fails. */
const ENDS = {
  SIGTERM: async (agent: Agent): Promise<void> => {
    await agent.stop();
    assert.doesNotMatch(await agent.ended, /SIGKILL/, "it ends by itself");
  },
  SIGKILL: (agent: Agent): Promise<void> => agent.kill(),
};

void describe("an agent of another version takes over in the middle of a fence", () => {
  let scenario: Scenario;
  let firstVersion: string;
  before(async () => {
    firstVersion = await installFirstVersion();
    scenario = await startScenario();
    for (const node of WORKERS) await applyFencingTarget(scenario.world, node);
  });
  after(async () => {
    await scenario?.stop();
  });
  // Stops all agents, also after a failure. Otherwise one of them would lead in the next test.
  afterEach(() => Promise.all((scenario?.agents ?? []).map((agent) => agent.stop())));

  const startFirstVersion = (): Promise<Agent> =>
    scenario.startAgent([], { program: join(firstVersion, "src/main.ts") });

  for (const [end, victim] of [
    ["SIGTERM", "worker-1"],
    ["SIGKILL", "worker-2"],
  ] as const) {
    void test(`an upgrade from 0.1.0 after a ${end} brings the node back and leaves nothing on it`, async () => {
      const first = await startFirstVersion();
      const before = await beginFence(scenario, victim);
      assert.equal(stored(scenario, victim)?.status?.stateVersion, undefined, "it is 0.1.0 that has begun");
      await ENDS[end](first);
      // 0.1.0 does not have this annotation. Without it, the upgrade must still not leave the host off.
      await scenario.world.api.mergePatch(`/api/v1/namespaces/${NAMESPACE}/secrets/${victim}-bmc`, {
        metadata: { annotations: { [ALLOWED_ADDRESSES]: null } },
      });

      const next = await scenario.startAgent();
      await fenceEnds(scenario, victim, before, next);
      await explain(scenario, "the node is as before", REMEDIATION_TIMEOUT_MS, async () =>
        isSame(await marksOf(scenario, victim), before.marks),
      );
      await remove(scenario, victim);
      // Creates the target and its Secret again, with the annotation, for the next tests.
      await scenario.world.api.delete(`/apis/ironfence.io/v1alpha1/namespaces/${NAMESPACE}/fencingtargets/${victim}`);
      await applyFencingTarget(scenario.world, victim);
      await targetsReady(scenario);
    });
  }

  for (const [end, victim] of [
    ["SIGTERM", "worker-3"],
    ["SIGKILL", "worker-4"],
  ] as const) {
    void test(`a rollback to 0.1.0 after a ${end} brings the node back, and leaves one taint for the next agent`, async () => {
      const present = await scenario.startAgent();
      const before = await beginFence(scenario, victim);
      assert.equal(stored(scenario, victim)?.status?.stateVersion, 1, "it is this version that has begun");
      await ENDS[end](present);

      const first = await startFirstVersion();
      await fenceEnds(scenario, victim, before, first);
      await explain(scenario, "all but that taint is as before", REMEDIATION_TIMEOUT_MS, async () => {
        const marks = await marksOf(scenario, victim);
        const left = marks.taints.filter(({ key }) => key === FENCED_TAINT).map(({ effect }) => effect);
        const others = marks.taints.filter(({ key }) => key !== FENCED_TAINT);
        return isSame(left, ["PreferNoSchedule"]) && isSame({ ...marks, taints: others }, before.marks);
      });
      await first.stop();

      await scenario.startAgent();
      await explain(scenario, "that taint is off, too", REMEDIATION_TIMEOUT_MS, async () =>
        isSame(await marksOf(scenario, victim), before.marks),
      );
      await remove(scenario, victim);
    });
  }
});

/** The state of a node before its fence. */
interface Before {
  marks: NodeMarks;
  bootID: string | undefined;
  letGo: () => Promise<void>;
}

/** Lets the running agent fence a node until it has the taint. */
async function beginFence(scenario: Scenario, victim: string): Promise<Before> {
  await targetsReady(scenario);
  const marks = await marksOf(scenario, victim);
  const { status } = await nodeOf(scenario, victim);
  return { marks, bootID: status.nodeInfo?.bootID, letGo: await holdFence(scenario, victim) };
}

/** Waits until `agent` has successfully ended a fence that another agent began, in one power cycle. */
async function fenceEnds(scenario: Scenario, victim: string, before: Before, agent: Agent): Promise<void> {
  const { world } = scenario;
  const host = world.host(victim);
  await leaderOf(scenario, [agent]);
  assert.equal(await world.bmc.powerState(host.systemUuid), "Off");
  assert.equal(await host.orderCount("On"), 0, "the fence is held until now");
  await before.letGo();

  await explain(scenario, "the remediation has its verdict", REMEDIATION_TIMEOUT_MS, () => {
    const succeeded = conditionOf(stored(scenario, victim), "Succeeded")?.status;
    return Promise.resolve(succeeded !== undefined && succeeded !== "Unknown");
  });
  assert.equal(conditionOf(stored(scenario, victim), "Succeeded")?.status, "True", agent.log());
  const node = await nodeOf(scenario, victim);
  assert.equal(readyOf(node), "True");
  assert.notEqual(node.status.nodeInfo?.bootID, before.bootID);
  await assertOrder(scenario, victim, OUT_OF_SERVICE);
  assert.equal(await host.orderCount("ForceOff"), 1);
  assert.equal(await host.orderCount("On"), 1);
  assert.equal(await world.bmc.powerState(host.systemUuid), "On");
}

/** Deletes a remediation that has its verdict, and asserts that no finalizer keeps it. */
async function remove(scenario: Scenario, victim: string): Promise<void> {
  const { world } = scenario;
  const path = `/apis/ironfence.io/v1alpha1/namespaces/${NAMESPACE}/baremetalremediations/${victim}`;
  await world.api.delete(path);
  await explain(scenario, "no finalizer keeps the remediation", REMEDIATION_TIMEOUT_MS, async () => {
    return (await world.api.find<RemediationView>(path)) === undefined;
  });
}

function stored(scenario: Scenario, victim: string): RemediationView | undefined {
  return scenario.chronicle.remediations(victim).at(-1)?.object;
}

function nodeOf({ world }: Scenario, name: string): Promise<NodeView> {
  return world.api.get<NodeView>(`/api/v1/nodes/${name}`);
}

function isSame(one: unknown, other: unknown): boolean {
  return JSON.stringify(one) === JSON.stringify(other);
}
