import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { OUT_OF_SERVICE, QUARANTINE, hasTaint } from "../../hack/e2e/chronicle.ts";
import {
  HEALTH_CHECK,
  REMEDIATION_TIMEOUT_MS,
  assertOrder,
  configure,
  decorate,
  explain,
  failureOf,
  marksOf,
  startScenario,
  targetsReady,
  remediationEnds,
} from "../../hack/e2e/scenario.ts";
import type { Scenario } from "../../hack/e2e/scenario.ts";
import { deployDatabase } from "../../hack/e2e/workload.ts";
import { SKIP_DURATION_IF_OFF } from "../../src/api/names/annotations.ts";

void describe("a node dies under a health check with escalation", () => {
  let scenario: Scenario;
  before(async () => {
    scenario = await startScenario();
    await scenario.startAgent();
    await configure(scenario);
    await targetsReady(scenario);
  });
  after(() => scenario?.stop());

  void test("the host is fenced, its pod runs elsewhere, and the node comes back as it was", async () => {
    const { world, chronicle } = scenario;
    const database = await deployDatabase(world.api, "orders");
    const victim = await database.runningNode();
    await decorate(scenario, victim);
    const marks = await marksOf(scenario, victim);
    const pod = await database.pod();
    assert.ok(pod);

    await world.host(victim).hang();
    await explain(
      scenario,
      "the emulator itself says that the host is off",
      REMEDIATION_TIMEOUT_MS,
      async () => (await world.bmc.powerState(world.host(victim).systemUuid)) === "Off",
    );
    const successor = await explain(scenario, "the pod runs elsewhere", REMEDIATION_TIMEOUT_MS, () =>
      database.successorNode(pod.metadata.uid),
    );
    assert.notEqual(successor, victim);
    assert.deepEqual(await database.attachedNodes(), [successor], "the volume is attached to one node");
    await remediationEnds(scenario, victim, marks);

    await assertOrder(scenario, victim, OUT_OF_SERVICE);
    assert.equal(await world.host(victim).orderCount("ForceOff"), 1);
    assert.equal(await world.host(victim).orderCount("On"), 1);
    const versions = chronicle.nodes(victim);
    assert.ok(
      versions.some(({ object }) => hasTaint(object, QUARANTINE)),
      "the quarantine was on the node between release and return",
    );
    const remediations = chronicle.remediations(victim);
    assert.equal(new Set(remediations.map(({ object }) => object.metadata.uid)).size, 1, "one remediation was enough");
    assert.ok(
      remediations.every(({ object }) => failureOf(object) === undefined),
      "no version of it reported a failure",
    );
    for (const other of ["worker-1", "worker-2", "worker-3", "worker-4"].filter((name) => name !== victim)) {
      assert.deepEqual(await chronicle.bmc(other).then((records) => records.filter((r) => r.kind === "order")), []);
    }
    await database.remove();
  });

  void test("a node whose host is switched off does not wait its duration if the health check asks for that", async () => {
    const { world } = scenario;
    const unhealthyConditions = [{ type: "Ready", status: "Unknown", duration: "10m" }];
    const annotations = { [SKIP_DURATION_IF_OFF]: "true" };
    await world.api.mergePatch(HEALTH_CHECK, { metadata: { annotations }, spec: { unhealthyConditions } });
    await world.bmc.order(world.host("worker-2").systemUuid, "ForceOff");
    await explain(scenario, "a remediation has been created, and why so soon", REMEDIATION_TIMEOUT_MS, async () => {
      const events = await world.api.list<{ reason: string; note: string }>("/apis/events.k8s.io/v1/events");
      const told = events.filter(({ reason }) => reason === "DurationSkipped").map(({ note }) => note);
      return told.length === 1 && told[0]?.includes("worker-2 read its host Off twice in a row");
    });
  });
});
