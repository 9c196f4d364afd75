import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { Registry } from "prom-client";
import type { MachineHealthCheck } from "../../../../src/api/cluster-api/machine-health-check.ts";
import type { Condition } from "../../../../src/api/schema/meta.ts";
import { MachineCheckCounts } from "../../../../src/detector/machines/effects/machine-check-counts.ts";

type Status = MachineHealthCheck["status"];

function check(type: string, status: Condition["status"], reason: string, expectedMachines = 3): MachineHealthCheck {
  const condition = { type, status, reason, message: "", lastTransitionTime: "2026-01-01T00:00:00Z" };
  const given = { expectedMachines, conditions: [condition], v1beta1Conditions: [] } as unknown as Status;
  return { metadata: {}, status: given } as never;
}

function annotated(of: MachineHealthCheck, paused: string): MachineHealthCheck {
  return { ...of, metadata: { ...of.metadata, annotations: { "cluster.x-k8s.io/paused": paused } } };
}

/** The reasons with health checks, for each family. */
async function counted(registry: Registry): Promise<Record<string, number>> {
  const [metric] = await registry.getMetricsAsJSON();
  const entries =
    metric?.values.map(({ labels, value }) => [`${labels.family} ${labels.reason}`, value] as const) ?? [];
  return Object.fromEntries(entries.filter(([, value]) => value > 0));
}

describe("the count of MachineHealthChecks", () => {
  it("the count of MachineHealthChecks says of both families why they do not remediate, with a series for each reason from the start", async () => {
    const registry = new Registry();
    const counts = new MachineCheckCounts(registry);
    const unread = { metadata: {}, status: { conditions: [], v1beta1Conditions: [] } } as never;
    const views = [
      check("RemediationAllowed", "True", "RemediationAllowed"),
      check("RemediationAllowed", "True", "RemediationAllowed", 0),
      check("RemediationAllowed", "False", "TooManyUnhealthy"),
      check("RemediationAllowed", "False", "OfAnotherVersion"),
      check("Paused", "True", "Paused"),
      unread,
    ];
    counts.of("machine-health-check").add({ values: () => views.values() });
    const okd = counts.of("okd-machine-health-check");
    okd.add({ values: () => views.slice(2, 3).values() });
    assert.deepEqual(await counted(registry), {
      "machine-health-check None": 1,
      "machine-health-check NoMachines": 1,
      "machine-health-check TooManyUnhealthy": 1,
      "machine-health-check Other": 1,
      "machine-health-check Paused": 1,
      "machine-health-check NotJudged": 1,
      "okd-machine-health-check TooManyUnhealthy": 1,
    });
    okd.remove();
    assert.equal((await counted(registry))["okd-machine-health-check TooManyUnhealthy"], undefined);
  });

  it("the count of MachineHealthChecks includes a pause without a condition, and leaves out a pause of other controllers", async () => {
    const registry = new Registry();
    const allowed = check("RemediationAllowed", "True", "RemediationAllowed");
    const views = [annotated(allowed, ""), annotated(check("Paused", "True", "Paused"), "ironfence.io")];
    new MachineCheckCounts(registry).of("machine-health-check").add({ values: () => views.values() });
    assert.deepEqual(await counted(registry), {
      "machine-health-check Paused": 1,
      "machine-health-check NotJudged": 1,
    });
  });

  it("the count of MachineHealthChecks can be registered again in the next term of leadership", async () => {
    const registry = new Registry();
    for (let term = 0; term < 2; term++) {
      const count = new MachineCheckCounts(registry).of("machine-health-check");
      count.add({ values: () => [check("Paused", "True", "Paused")].values() });
      assert.deepEqual(await counted(registry), { "machine-health-check Paused": 1 });
      count.remove();
      assert.deepEqual(registry.getMetricsAsArray(), []);
    }
  });
});
