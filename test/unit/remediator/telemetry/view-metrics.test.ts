import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { Registry } from "prom-client";
import type { BareMetalRemediation } from "../../../../src/api/ironfence/bare-metal-remediation.ts";
import type { Node } from "../../../../src/api/kubernetes/core.ts";
import type { FencingTarget } from "../../../../src/api/ironfence/fencing-target.ts";
import { HealthCheckCoverage } from "../../../../src/nodes/health-check-coverage.ts";
import type { MetricViews } from "../../../../src/remediator/telemetry/view-metrics.ts";
import { countViews } from "../../../../src/remediator/telemetry/view-metrics.ts";

const NOT_FOUND = { found: false, reason: "NoTarget", message: "" } as const;

function target(nodeName: string, reason?: string, maintenance = false): FencingTarget {
  const conditions = reason === undefined ? [] : [{ type: "Ready", status: "True", reason, message: "" }];
  return { spec: { nodeName, maintenance, devices: [] }, status: { conditions } } as unknown as FencingTarget;
}

function remediation(phase: string, reason: string): BareMetalRemediation {
  return { status: { phase, conditions: [{ type: "Processing", reason }] } } as unknown as BareMetalRemediation;
}

const node = (name: string): Node => ({ metadata: { name } }) as Node;

/** The metrics that are not 0. */
async function shown(views: Partial<MetricViews>): Promise<string[]> {
  const registry = new Registry();
  const none = { values: () => [].values() };
  const directory = { find: () => NOT_FOUND };
  const stopSwitch = { stopped: undefined };
  const coverage = new HealthCheckCoverage();
  countViews(registry, { targets: none, nodes: none, remediations: none, directory, coverage, stopSwitch, ...views });
  return (await registry.metrics()).split("\n").filter((line) => /^ironfence.* [^0]/.test(line));
}

const viewOf = <T>(...objects: T[]) => ({ values: () => objects.values() });

describe("the metrics of the remediator's views", () => {
  it("the metrics of the remediator's views count FencingTargets by the reason of Ready, also those without a reason or of another version", async () => {
    const targets = viewOf(target("a", "Usable"), target("b", "Usable"), target("c", "Timeout"), target("d"));
    assert.deepEqual(await shown({ targets }), [
      'ironfence_fencing_targets{reason="Usable"} 2',
      'ironfence_fencing_targets{reason="Timeout"} 1',
      'ironfence_fencing_targets{reason="NotProbed"} 1',
    ]);
    assert.deepEqual(await shown({ targets: viewOf(target("a", "OfTomorrow")) }), [
      'ironfence_fencing_targets{reason="Other"} 1',
    ]);
  });

  it("the metrics of the remediator's views count nodes that nothing describes: neither a FencingTarget of this cluster nor a BareMetalHost", async () => {
    const elsewhere = target("c", "Usable");
    elsewhere.spec.clusterRef = { namespace: "n", name: "other" };
    const find: MetricViews["directory"]["find"] = ({ nodeName }) =>
      nodeName === "b" ? { found: false, reason: "Ambiguous", message: "" } : NOT_FOUND;
    const views = { targets: viewOf(target("a", "Usable"), elsewhere), directory: { find } };
    const lines = await shown({ ...views, nodes: viewOf(node("a"), node("b"), node("c"), node("d")) });
    assert.deepEqual(
      lines.filter((line) => line.includes("uncovered")),
      ['ironfence_nodes_uncovered{selected="no"} 2'],
    );
  });

  it("the metrics of the remediator's views count nodes without a host by whether a health check covers them, while one does", async () => {
    const coverage = new HealthCheckCoverage();
    const ends = new AbortController();
    coverage.add(() => () => false, new AbortController().signal);
    coverage.add(
      () =>
        ({ metadata }) =>
          metadata.name !== "b",
      ends.signal,
    );
    const views = { nodes: viewOf(node("a"), node("b"), node("c")), targets: viewOf(target("a", "Usable")), coverage };
    const uncovered = async (): Promise<string[]> =>
      (await shown(views)).filter((line) => line.includes("uncovered")).map((line) => line.split("{")[1] ?? "");
    assert.deepEqual(await uncovered(), ['selected="yes"} 1', 'selected="no"} 1']);
    ends.abort();
    assert.deepEqual(await uncovered(), ['selected="no"} 2']);
  });

  it("the metrics of the remediator's views show maintenance, and a pause for as long as it holds power-offs", async () => {
    const targets = viewOf(target("a", "Maintenance", true));
    assert.deepEqual(await shown({ targets, stopSwitch: { stopped: { reason: "patch day" } } }), [
      'ironfence_fencing_targets{reason="Maintenance"} 1',
      "ironfence_maintenance 1",
      "ironfence_paused 1",
    ]);
  });

  it("the metrics of the remediator's views count held remediations by the cause, and no remediation that proceeds or has a verdict", async () => {
    const remediations = viewOf(
      remediation("Resolving", "WaitingForTurn"),
      remediation("Verifying", "Paused"),
      remediation("Verifying", "Verifying"),
      remediation("Failed", "Paused"),
    );
    assert.deepEqual(await shown({ remediations }), [
      'ironfence_remediations_held{reason="WaitingForTurn"} 1',
      'ironfence_remediations_held{reason="Paused"} 1',
    ]);
  });
});
