import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Node } from "../../../../src/api/kubernetes/core.ts";
import { CLUSTER_API_CHECKS } from "../../../../src/detector/machines/vendors/cluster-api.ts";
import { OKD_CHECKS } from "../../../../src/detector/machines/vendors/okd.ts";
import { machineCoverage } from "../../../../src/detector/machines/snapshot/coverage.ts";
import { nodeCoverage } from "../../../../src/detector/nodes/snapshot/coverage.ts";
import type { HealthCheckObject } from "../../../../src/detector/nodes/snapshot/health-check.ts";
import { checkOf, machineOf } from "../machines/builders.ts";

// Tests which nodes without a FencingTarget the metric counts as selected.

const OURS = "ironfence.io/v1alpha1";

function nodeOf(name: string, labels: Record<string, string> = { pool: "a" }): Node {
  return { metadata: { name, labels } } as unknown as Node;
}

function healthCheck(spec: object = {}, status: HealthCheckObject["status"] = {}): HealthCheckObject {
  const remediationTemplate = { apiVersion: OURS, kind: "BareMetalRemediationTemplate", namespace: "n", name: "t" };
  return {
    apiVersion: "remediation.medik8s.io/v1alpha1",
    kind: "NodeHealthCheck",
    metadata: { name: "workers", uid: "u", resourceVersion: "1" },
    spec: {
      selector: { matchLabels: { pool: "a" } },
      minHealthy: 1,
      unhealthyConditions: [{ type: "Ready", status: "Unknown", duration: "300s" }],
      remediationTemplate,
      ...spec,
    },
    status,
  };
}

describe("the coverage of health checks", () => {
  it("the coverage of NodeHealthChecks has the nodes that one selects, a paused one included, but no excluded node", () => {
    const covers = nodeCoverage([healthCheck({}, { phase: "Paused" })]);
    assert.equal(covers(nodeOf("n1")), true);
    assert.equal(covers(nodeOf("n2", { pool: "b" })), false);
    assert.equal(covers(nodeOf("n3", { pool: "a", "remediation.medik8s.io/exclude-from-remediation": "true" })), false);
  });

  it("the coverage of NodeHealthChecks leaves out one that is disabled or invalid, or that fences by other projects only", () => {
    const foreign = { apiVersion: "fence-agents-remediation.medik8s.io/v1alpha1", kind: "FarTemplate", name: "t" };
    const remediationTemplate = { ...foreign, namespace: "n" };
    const useless = [
      healthCheck({}, { phase: "Disabled" }),
      healthCheck({ minHealthy: "most" }),
      healthCheck({ remediationTemplate }),
    ];
    for (const check of useless) assert.equal(nodeCoverage([check])(nodeOf("n1")), false);
    assert.equal(nodeCoverage([...useless, healthCheck()])(nodeOf("n1")), true);
  });

  it("the coverage of MachineHealthChecks has the nodes of covered Machines of the agent's own cluster", () => {
    const machines = ["m1", "m2"].map((name) => machineOf(name, { status: { nodeRef: { name: `node-of-${name}` } } }));
    const view = <T>(...objects: T[]) => ({ values: () => objects.values() });
    const judge = (ownCluster: { namespace: string; name: string } | undefined, kind = CLUSTER_API_CHECKS) =>
      machineCoverage({ kind, checks: view(checkOf()), machines: view(...machines), ownCluster });
    const own = { namespace: "tenant", name: "prod" };
    assert.equal(judge(own)(nodeOf("node-of-m1")), true);
    assert.equal(judge(own)(nodeOf("n9")), false, "it has no Machine");
    assert.equal(judge(undefined)(nodeOf("node-of-m1")), false, "the Machine belongs to a workload cluster");
    assert.equal(judge({ ...own, name: "other" })(nodeOf("node-of-m1")), false);
    const ofOkd = { ...CLUSTER_API_CHECKS, clusters: OKD_CHECKS.clusters };
    assert.equal(judge(undefined, ofOkd)(nodeOf("node-of-m2")), true, "OKD's Machines are of the cluster they are in");
  });
});
