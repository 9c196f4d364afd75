import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { isDeepStrictEqual } from "node:util";
import { OUT_OF_SERVICE, QUARANTINE, hasTaint } from "../../hack/e2e/chronicle.ts";
import type { RemediationView } from "../../hack/e2e/chronicle.ts";
import { applyFencingTarget } from "../../hack/e2e/examples.ts";
import {
  HEALTH_CHECK,
  TARGETS,
  REMEDIATION_TIMEOUT_MS,
  configure,
  explain,
  failureOf,
  marksOf,
  startScenario,
  targetsReady,
  remediationEnds,
} from "../../hack/e2e/scenario.ts";
import type { HealthCheckView, Scenario, TargetView } from "../../hack/e2e/scenario.ts";
import { NAMESPACE } from "../../hack/e2e/world.ts";
import { applyObject } from "../../hack/lib/apply.ts";
import { ApiStatusError } from "../../hack/lib/kube-api.ts";

void describe("wrong input gets a clear answer, and the agent goes on for everything else", () => {
  let scenario: Scenario;
  before(async () => {
    scenario = await startScenario();
    await scenario.startAgent();
    const example = "node-health-check-with-reprovision";
    await configure(scenario, {
      example,
      target: (node) => (node === "worker-1" ? { password: "not-the-password" } : {}),
    });
    await targetsReady(scenario, ["worker-2", "worker-3", "worker-4"]);
  });
  after(() => scenario?.stop());

  void test("a wrong BMC password is known before it is needed, changes no power and no taint, and the next template follows", async () => {
    const { world, chronicle } = scenario;
    await targetSays(scenario, "worker-1", /password|credential|AuthFailed|refused/i);
    const marks = await marksOf(scenario, "worker-1");
    await world.host("worker-1").hang();
    const failed = await explain(scenario, "both templates were tried and failed", REMEDIATION_TIMEOUT_MS, () => {
      const last = lastVersions(chronicle.remediations("worker-1").map(({ object }) => object));
      return Promise.resolve(last.length === 2 && last.every((object) => failureOf(object)) ? last : undefined);
    });
    const reasons = failed.map((object) => failureOf(object)?.reason);
    // The second template of the example wipes a host only after a proven reboot in the same outage.
    assert.deepEqual(reasons, ["BMCAuthenticationFailed", "RebootRequired"]);
    const templates = failed.map(({ metadata }) => metadata.annotations?.["remediation.medik8s.io/template-name"]);
    assert.deepEqual(templates, ["reboot", "reprovision"]);
    assert.deepEqual(await chronicle.bmc("worker-1"), [], "no order, and no reading of Off");
    for (const taint of [OUT_OF_SERVICE, QUARANTINE]) {
      assert.ok(!chronicle.nodes("worker-1").some(({ object }) => hasTaint(object, taint)), `no taint ${taint}`);
    }
    assert.equal(await world.bmc.powerState(world.host("worker-1").systemUuid), "On");

    await world.host("worker-1").recover();
    await remediationEnds(scenario, "worker-1", marks);
  });

  void test("a FencingTarget without its Secret says so, and is Ready once it is there", async () => {
    const { api } = scenario.world;
    await api.delete(`/api/v1/namespaces/${NAMESPACE}/secrets/worker-1-bmc`);
    await targetSays(scenario, "worker-1", /worker-1-bmc/);
    await applyFencingTarget(scenario.world, "worker-1");
    await targetsReady(scenario, ["worker-1"]);
  });

  void test("a BMC whose certificate no known CA has signed is not trusted", async () => {
    await applyFencingTarget(scenario.world, "worker-2", {
      change: (target) => {
        const spec = structuredClone(target["spec"]) as { devices: { tls?: unknown }[] };
        for (const device of spec.devices) delete device.tls;
        return { ...target, spec };
      },
    });
    await targetSays(scenario, "worker-2", /certificate/i);
    await applyFencingTarget(scenario.world, "worker-2");
    await targetsReady(scenario, ["worker-2"]);
  });

  void test("a node without a target is not fenced, and its remediation says why", async () => {
    const { world, chronicle } = scenario;
    await world.api.delete(`${TARGETS}/worker-3`);
    const marks = await marksOf(scenario, "worker-3");
    await world.host("worker-3").hang();
    await explain(scenario, "the remediation names the missing target", REMEDIATION_TIMEOUT_MS, () => {
      const last = lastVersions(chronicle.remediations("worker-3").map(({ object }) => object));
      return Promise.resolve(last.some((object) => JSON.stringify(object.status ?? {}).includes("NoTarget")));
    });
    assert.ok(!chronicle.nodes("worker-3").some(({ object }) => hasTaint(object, OUT_OF_SERVICE)));
    await world.host("worker-3").recover();
    await explain(scenario, "its remediations are gone", REMEDIATION_TIMEOUT_MS, async () => {
      const { status } = await world.api.get<HealthCheckView>(HEALTH_CHECK);
      return (status?.unhealthyNodes ?? []).length === 0;
    });
    assert.deepEqual(await chronicle.bmc("worker-3"), []);
    await applyFencingTarget(world, "worker-3");
    await targetsReady(scenario, ["worker-3"]);
    // Kubernetes removes its own taint shortly after the node is Ready.
    await explain(scenario, "the node is as it was before", REMEDIATION_TIMEOUT_MS, async () =>
      isDeepStrictEqual(await marksOf(scenario, "worker-3"), marks),
    );
  });

  void test("a template of a kind that does not exist disables that health check alone", async () => {
    const { api } = scenario.world;
    const path = "/apis/remediation.medik8s.io/v1alpha1/nodehealthchecks/widgets";
    await applyObject(api, {
      apiVersion: "remediation.medik8s.io/v1alpha1",
      kind: "NodeHealthCheck",
      metadata: { name: "widgets" },
      spec: {
        selector: { matchLabels: { "example.com/role": "widget" } },
        remediationTemplate: {
          apiVersion: "vendor.example/v1",
          kind: "WidgetRemediationTemplate",
          namespace: NAMESPACE,
          name: "widget",
        },
      },
    });
    const disabled = await explain(scenario, "the health check is disabled", REMEDIATION_TIMEOUT_MS, async () => {
      const { status } = await api.get<HealthCheckView>(path);
      return status?.conditions?.find(({ type, status }) => type === "Disabled" && status === "True");
    });
    assert.equal(disabled.reason, "RemediationTemplateNotFound");
    assert.match(disabled.message, /WidgetRemediationTemplate/);
    assert.equal((await api.get<HealthCheckView>(HEALTH_CHECK)).status?.phase, "Enabled");
    await api.delete(path);
  });

  void test("a malformed template is refused by the server", async () => {
    await assert.rejects(
      applyObject(scenario.world.api, {
        apiVersion: "ironfence.io/v1alpha1",
        kind: "BareMetalRemediationTemplate",
        metadata: { name: "malformed", namespace: NAMESPACE },
        spec: { template: { spec: { strategy: { type: "Reboot", powerOffTimeout: "soon" } } } },
      }),
      (error) => error instanceof ApiStatusError && error.body.includes("powerOffTimeout"),
    );
  });

  void test("a node with everything in order is still fenced while others have wrong input", async () => {
    const marks = await marksOf(scenario, "worker-4");
    await scenario.world.host("worker-4").hang();
    await explain(
      scenario,
      "worker-4 is ordered off and on",
      REMEDIATION_TIMEOUT_MS,
      async () => (await scenario.world.host("worker-4").orderCount("On")) === 1,
    );
    await remediationEnds(scenario, "worker-4", marks);
  });
});

/** Waits until a FencingTarget is not Ready and the reason or message of a condition matches. */
async function targetSays(scenario: Scenario, name: string, pattern: RegExp): Promise<void> {
  await explain(scenario, `FencingTarget ${name} says ${pattern}`, REMEDIATION_TIMEOUT_MS, async () => {
    const { status } = await scenario.world.api.get<TargetView>(`${TARGETS}/${name}`);
    const ready = status?.conditions?.find(({ type }) => type === "Ready");
    return ready?.status === "False" && pattern.test(`${ready.reason} ${ready.message}`);
  });
}

/** The last version of each object, by UID. */
function lastVersions(versions: readonly RemediationView[]): RemediationView[] {
  return [...new Map(versions.map((object) => [object.metadata.uid, object])).values()];
}
