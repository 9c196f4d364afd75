import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { OUT_OF_SERVICE, conditionOf, hasTaint } from "../../hack/e2e/chronicle.ts";
import type { RemediationView } from "../../hack/e2e/chronicle.ts";
import { applyFencingTarget } from "../../hack/e2e/examples.ts";
import {
  REMEDIATIONS,
  REMEDIATION_TIMEOUT_MS,
  WORKERS,
  explain,
  marksOf,
  startScenario,
  targetsReady,
} from "../../hack/e2e/scenario.ts";
import type { Scenario } from "../../hack/e2e/scenario.ts";
import { NAMESPACE } from "../../hack/e2e/world.ts";
import { applyObject } from "../../hack/lib/apply.ts";

const VICTIM = "worker-1";
const KILLS_MIN = 12;
/**
 * One run through every state: a reboot that does not help, then a reprovision. The reboot waits for its whole timeout.
 * The timeout of the reprovision must be long enough for three starts of an agent, even on a busy machine.
 */
const STRATEGY = { type: "Escalate", retryLimit: 0, timeout: "30s", drainTimeout: "60s", powerOnTimeout: "60s" };
/** The states that such a run stores, in the order in which they first occur. */
const STATES = ["Verifying", "PoweringOff", "Releasing", "PoweringOn", "Rejoining", "Provisioning", "Restoring"];
const LOOK_EVERY_MS = 5;
/**
 * Time in which a stored intent usually becomes an order. If an order may not have been sent, the next agent waits 20
 * s.
 */
const ORDER_MS = 150;

void describe("an agent that is killed in every state of a remediation", () => {
  let scenario: Scenario;
  before(async () => {
    scenario = await startScenario({ powerDelayMs: 1_000 });
    for (const node of WORKERS) await applyFencingTarget(scenario.world, node);
  });
  after(() => scenario?.stop());

  void test("a run that is killed twelve times or more still reaches its end, with no power order too many", async () => {
    const { world, chronicle } = scenario;
    const host = world.host(VICTIM);
    let agent = await scenario.startAgent(["--leader-elect=false"]);
    await targetsReady(scenario);
    const marks = await marksOf(scenario, VICTIM);
    host.broken = true;
    await host.hang();
    await applyObject(world.api, {
      apiVersion: "ironfence.io/v1alpha1",
      kind: "BareMetalRemediation",
      metadata: { name: VICTIM, namespace: NAMESPACE },
      spec: { strategy: STRATEGY },
    });

    const present = (): RemediationView["status"] => chronicle.remediations(VICTIM).at(-1)?.object.status;
    const isOver = (): boolean => ["Succeeded", "Failed"].includes(present()?.phase ?? "");
    const killedIn: string[] = [];
    let before: string | undefined;
    const deadlineMs = performance.now() + 2 * REMEDIATION_TIMEOUT_MS;
    while (!isOver() && performance.now() < deadlineMs) {
      const place = `${present()?.phase} ${present()?.timeline?.length ?? 0}`;
      // If the step is the same as at the last kill, the agent gets time for the next step.
      if (place === before || present()?.phase === undefined) {
        await pause(LOOK_EVERY_MS);
        continue;
      }
      before = place;
      if (present()?.phase === "PoweringOff") await pause(ORDER_MS);
      await agent.kill();
      killedIn.push(present()?.phase ?? "");
      agent = await scenario.startAgent(["--leader-elect=false"]);
    }
    await explain(scenario, "the remediation is over", 0, () => Promise.resolve(isOver()));

    const [remediation] = await world.api.list<RemediationView>(REMEDIATIONS);
    const story = `killed in ${killedIn.join(", ")}`;
    assert.equal(conditionOf(remediation, "Succeeded")?.status, "True", story);
    assert.ok(killedIn.length >= KILLS_MIN, story);
    assert.deepEqual(
      STATES.filter((state) => !killedIn.includes(state)),
      [],
      story,
    );
    // Two power cycles. If a killed agent has not recorded an order as sent, the next agent sends it again to a host
    // that is off.
    const orders = (await chronicle.bmc(VICTIM)).filter(({ kind }) => kind === "order").map(({ value }) => value);
    const cycles = orders.filter((value, index) => value === "ForceOff" && orders[index - 1] !== "ForceOff").length;
    assert.equal(cycles, 2, `${orders.join(", ")}; ${story}`);
    assert.ok(chronicle.nodes(VICTIM).some(({ object }) => hasTaint(object, OUT_OF_SERVICE)));
    assert.equal(await world.bmc.powerState(host.systemUuid), "On");
    for (const node of WORKERS)
      if (node !== VICTIM) assert.equal(await world.host(node).orderCount("ForceOff"), 0, node);
    await explain(scenario, "the node is as before", REMEDIATION_TIMEOUT_MS, async () => {
      const { taints, labels } = await marksOf(scenario, VICTIM);
      return (
        JSON.stringify(taints) === JSON.stringify(marks.taints) &&
        Object.keys(marks.labels).every((key) => key in labels)
      );
    });
  });
});

function pause(delayMs: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, delayMs));
}
