import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { conditionOf } from "../../hack/e2e/chronicle.ts";
import type { RemediationView } from "../../hack/e2e/chronicle.ts";
import { applyFencingTarget } from "../../hack/e2e/examples.ts";
import {
  configure,
  explain,
  failureOf,
  HEALTH_CHECK,
  marksOf,
  startScenario,
  TARGETS,
  targetsReady,
  REMEDIATION_TIMEOUT_MS,
  remediationEnds,
} from "../../hack/e2e/scenario.ts";
import type { HealthCheckView, NodeMarks, Scenario, TargetView } from "../../hack/e2e/scenario.ts";
import { RESTORED_BY_VELERO } from "../../src/api/names/labels.ts";
import { kstatusOf } from "../lib/kstatus.ts";

/** Time from the corrected Secret to the next remediation: a probe, and the evaluation after it. */
const SOON_MS = 30_000;
const OWN_REMEDIATIONS = "/apis/ironfence.io/v1alpha1/namespaces/ironfence-system/baremetalremediations";

interface EventView {
  regarding: { kind: string; name: string };
  reason: string;
  note: string;
  action: string;
}
interface Table {
  columnDefinitions: { name: string }[];
  rows: { cells: unknown[] }[];
}

void describe("a remediation that fails for a password that was rotated", () => {
  let scenario: Scenario;
  let marks: NodeMarks;
  let failed: RemediationView;
  before(async () => {
    scenario = await startScenario();
    await scenario.startAgent();
    await configure(scenario);
    await targetsReady(scenario);
    await applyFencingTarget(scenario.world, "worker-1", { password: "rotated" });
    await explain(scenario, "the target is not Ready", REMEDIATION_TIMEOUT_MS, async () => {
      const target = await scenario.world.api.get<TargetView>(`${TARGETS}/worker-1`);
      return target.status?.conditions?.some(({ type, status }) => type === "Ready" && status === "False");
    });
    marks = await marksOf(scenario, "worker-1");
    await scenario.world.host("worker-1").hang();
    failed = await explain(scenario, "the remediation has failed", REMEDIATION_TIMEOUT_MS, () => {
      const last = scenario.chronicle.remediations("worker-1").at(-1)?.object;
      return Promise.resolve(failureOf(last) === undefined ? undefined : last);
    });
  });
  after(() => scenario?.stop());

  void test("a remediation that fails because of a rotated password ends each wait of kstatus and of kubectl wait", () => {
    assert.equal(kstatusOf(failed), "Failed");
    assert.equal(conditionOf(failed, "Processing")?.status, "False");
    assert.equal(conditionOf(failed, "Stalled")?.reason, "BMCAuthenticationFailed");
  });

  void test("a health check reports why a remediation failed after a password was rotated, when the next one starts and how to start it now", async () => {
    const { api } = scenario.world;
    const condition = await explain(scenario, "the health check says so", REMEDIATION_TIMEOUT_MS, async () => {
      const { status } = await api.get<HealthCheckView>(HEALTH_CHECK);
      return status?.conditions?.find(({ type, status: is }) => type === "RemediationFailed" && is === "True");
    });
    assert.match(
      condition.message,
      /^worker-1: BareMetalRemediation ironfence-system\/worker-1 has failed \(BMCAuthenticationFailed: .*\. The next try starts at 20.*Z\. To try again now, delete it: kubectl delete baremetalremediation worker-1 -n ironfence-system$/,
    );
    const { status } = await api.get<HealthCheckView>(HEALTH_CHECK);
    assert.equal(status?.phase, "Enabled");
    assert.equal(status.inFlightRemediations, undefined);
  });

  void test("a remediation that fails because of a rotated password shows its verdict in the columns of kubectl get", async () => {
    const table = await tableOf(scenario, OWN_REMEDIATIONS);
    const names = table.columnDefinitions.map(({ name }) => name);
    const [row] = table.rows;
    assert.equal(row?.cells[names.indexOf("Succeeded")], "False");
    assert.match(String(row?.cells[names.indexOf("Message")]), /password|refused/);
  });

  void test("a remediation that failed because of a rotated password is followed by another one as soon as the Secret is corrected, and the node comes back", async () => {
    await applyFencingTarget(scenario.world, "worker-1");
    const correctedMs = performance.now();
    await explain(scenario, "the next remediation", SOON_MS, () => {
      const last = scenario.chronicle.remediations("worker-1").at(-1)?.object;
      return Promise.resolve(last !== undefined && last.metadata.uid !== failed.metadata.uid);
    });
    process.stderr.write(`e2e: the next try came ${Math.round(performance.now() - correctedMs)} ms after the Secret\n`);
    await remediationEnds(scenario, "worker-1", marks);
  });

  void test("a failed remediation and the one that follows it are both kept: by the Node's events, and by the target", async () => {
    const { api } = scenario.world;
    const events = await api.list<EventView>("/apis/events.k8s.io/v1/namespaces/default/events");
    const ofNode = events.filter(({ regarding }) => regarding.kind === "Node" && regarding.name === "worker-1");
    const actions = ofNode.map(({ action }) => action);
    for (const state of ["PoweringOff", "Releasing", "PoweringOn", "Succeeded", "Failed"]) {
      assert.ok(actions.includes(state), `${state} in ${actions.join(", ")}`);
    }
    const target = await api.get<TargetView & { status: { outcomes: { result: string; reason: string }[] } }>(
      `${TARGETS}/worker-1`,
    );
    const results = target.status.outcomes.map(({ result, reason }) => `${result} ${reason}`);
    assert.deepEqual(results, ["Succeeded NodeRestored", "Failed BMCAuthenticationFailed"]);
  });

  void test("a remediation of a healthy node that a backup restores waits until a person confirms it", async () => {
    const { api } = scenario.world;
    const host = scenario.world.host("worker-2");
    const orders = await host.orderCount("ForceOff");
    // The remediation has no owner, like one that a user has created. A health check would delete its own remediation
    // of a healthy node at once.
    await api.create(OWN_REMEDIATIONS, {
      apiVersion: "ironfence.io/v1alpha1",
      kind: "BareMetalRemediation",
      metadata: { name: "worker-2", labels: { [RESTORED_BY_VELERO]: "monday" } },
      spec: {},
    });
    await explain(scenario, "it waits", SOON_MS, () => {
      const all = scenario.chronicle.remediations("worker-2");
      return Promise.resolve(all.some(({ object }) => conditionOf(object, "Processing")?.reason === "StaleRequest"));
    });
    await api.delete(`${OWN_REMEDIATIONS}/worker-2`);
    await explain(scenario, "it is gone", SOON_MS, async () => {
      return (await api.find(`${OWN_REMEDIATIONS}/worker-2`)) === undefined;
    });
    assert.equal(await host.orderCount("ForceOff"), orders);
  });
});

/** What `kubectl get` prints. */
async function tableOf({ world }: Scenario, path: string): Promise<Table> {
  return (await world.api.send(
    "GET",
    path,
    undefined,
    "application/json",
    "application/json;as=Table;v=v1;g=meta.k8s.io",
  )) as Table;
}
