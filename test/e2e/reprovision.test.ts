import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { OUT_OF_SERVICE } from "../../hack/e2e/chronicle.ts";
import {
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
import type { Manifest } from "../../hack/lib/apply.ts";

/** Replaces the ten minutes for which the example waits for a node after its reboot with ten seconds. */
function impatient(manifest: Manifest): Manifest {
  if (manifest.metadata.name !== "reboot") return manifest;
  const text = JSON.stringify(manifest).replace('"timeout":"600s"', '"timeout":"10s"');
  return JSON.parse(text.replace('"retryLimit":1', '"retryLimit":0')) as Manifest;
}

void describe("a reboot does not help a host whose disk died", () => {
  let scenario: Scenario;
  before(async () => {
    scenario = await startScenario();
    await scenario.startAgent();
    await configure(scenario, { healthCheck: impatient, example: "node-health-check-with-reprovision" });
    await targetsReady(scenario);
  });
  after(() => scenario?.stop());

  void test("the second template installs the host from the network, and its node joins again with its labels and annotations", async () => {
    const { world, chronicle } = scenario;
    const victim = "worker-2";
    await decorate(scenario, victim);
    // A node may have many labels and annotations, and all of them must fit into the status of the remediation.
    const labels = Object.fromEntries(
      Array.from({ length: 200 }, (_, index) => [`example.com/label-${index}`, `${index}`]),
    );
    const annotations = { "example.com/large": "x".repeat(100 * 1024) };
    await world.api.mergePatch(`/api/v1/nodes/${victim}`, { metadata: { labels, annotations } });
    const marks = await marksOf(scenario, victim);
    const uidBefore = chronicle.nodes(victim).at(-1)?.object.metadata.uid;
    world.host(victim).broken = true;
    await world.host(victim).hang();

    await explain(scenario, "the node has joined again", 180_000, () =>
      Promise.resolve(chronicle.nodes(victim).at(-1)?.object.metadata.uid !== uidBefore),
    );
    await remediationEnds(scenario, victim, marks);

    await assertOrder(scenario, victim, OUT_OF_SERVICE);
    assert.equal(world.host(victim).broken, false, "it was booted from the network");
    assert.equal(await world.host(victim).orderCount("ForceOff"), 2, "one reboot, one reprovision");
    assert.equal(await world.host(victim).orderCount("On"), 2);
    assert.equal(await world.bmc.takeBootTarget(world.host(victim).systemUuid), "Hdd", "no boot override is left");
    const failed = chronicle.remediations(victim).find(({ object }) => failureOf(object) !== undefined);
    const template = failed?.object.metadata.annotations?.["remediation.medik8s.io/template-name"];
    assert.equal(template, "reboot", "the reboot reported that it did not help");
  });
});
