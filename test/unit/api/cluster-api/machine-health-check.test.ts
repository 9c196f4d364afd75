import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { KubeObject } from "../../../../src/kube/resource.ts";
import { readMachineHealthCheck } from "../../../../src/api/cluster-api/machine-health-check.ts";

function read(version: string, spec: object) {
  const raw: KubeObject & { spec: object } = {
    apiVersion: `cluster.x-k8s.io/${version}`,
    kind: "MachineHealthCheck",
    metadata: { namespace: "tenant", name: "check", uid: "u", resourceVersion: "1" },
    spec,
  };
  return readMachineHealthCheck(raw).spec;
}

const COMMON = { clusterName: "prod", selector: { matchLabels: { pool: "a" } } };

describe("a MachineHealthCheck of either version", () => {
  it("a MachineHealthCheck of either version is read into the same", () => {
    const older = read("v1beta1", {
      ...COMMON,
      nodeStartupTimeout: "20m",
      unhealthyConditions: [{ type: "Ready", status: "Unknown", timeout: "5m0s" }],
      unhealthyMachineConditions: [{ type: "EtcdPodHealthy", status: "False", timeout: "1h" }],
      maxUnhealthy: "40%",
      unhealthyRange: "[1-2]",
      remediationTemplate: { apiVersion: "x/v1", kind: "XTemplate", name: "t", namespace: "elsewhere" },
    });
    const newer = read("v1beta2", {
      ...COMMON,
      checks: {
        nodeStartupTimeoutSeconds: 1_200,
        unhealthyNodeConditions: [{ type: "Ready", status: "Unknown", timeoutSeconds: 300 }],
        unhealthyMachineConditions: [{ type: "EtcdPodHealthy", status: "False", timeoutSeconds: 3_600 }],
      },
      remediation: {
        triggerIf: { unhealthyLessThanOrEqualTo: "40%", unhealthyInRange: "[1-2]" },
        templateRef: { apiVersion: "x/v1", kind: "XTemplate", name: "t" },
      },
    });
    assert.deepEqual(older, newer);
    assert.equal(newer.nodeStartupTimeoutMs, 1_200_000);
    assert.deepEqual(newer.template, { apiVersion: "x/v1", kind: "XTemplate", name: "t" });
    assert.deepEqual(newer.problems, []);
  });

  for (const version of ["v1beta1", "v1beta2"]) {
    it(`a MachineHealthCheck of either version has upstream's defaults (${version})`, () => {
      const spec = read(version, COMMON);
      assert.equal(spec.nodeStartupTimeoutMs, 600_000);
      assert.equal(spec.template, undefined);
      assert.equal(spec.unhealthyLessThanOrEqualTo, undefined);
      assert.deepEqual(spec.unhealthyNodeConditions, []);
    });
  }

  it("a MachineHealthCheck of either version keeps a nodeStartupTimeout of 0, which is not the same as none", () => {
    assert.equal(read("v1beta1", { ...COMMON, nodeStartupTimeout: "0s" }).nodeStartupTimeoutMs, 0);
    assert.equal(read("v1beta2", { ...COMMON, checks: { nodeStartupTimeoutSeconds: 0 } }).nodeStartupTimeoutMs, 0);
  });

  it("a MachineHealthCheck of either version leaves out rules that cannot be parsed, and reports it: they must make nothing unhealthy", () => {
    const spec = read("v1beta1", {
      ...COMMON,
      nodeStartupTimeout: "soon",
      unhealthyConditions: [
        { type: "Ready", status: "Unknown", timeout: "5 minutes" },
        { type: "Ready", status: "False", timeout: "5m" },
      ],
    });
    assert.equal(spec.nodeStartupTimeoutMs, 0);
    assert.deepEqual(spec.unhealthyNodeConditions, [{ type: "Ready", status: "False", durationMs: 300_000 }]);
    assert.equal(spec.problems.length, 2);
  });

  it("a MachineHealthCheck of either version reports expressions, which are not evaluated", () => {
    const checks = { unhealthyExpressions: [{ expression: "true", message: "m" }] };
    assert.match(read("v1beta2", { ...COMMON, checks }).problems[0] ?? "", /unhealthyExpressions are not evaluated/);
  });
});
