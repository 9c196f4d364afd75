import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { readAsIfAlone } from "../../../../src/detector/shared/model/read-as-if-alone.ts";
import type { KubeObject } from "../../../../src/kube/resource.ts";

function object(kind: string, metadata: object, rest: object = {}): KubeObject {
  return { apiVersion: "x/v1", kind, metadata: { name: "n1", uid: "u", resourceVersion: "1", ...metadata }, ...rest };
}

const owner = (kind: string): object => ({ ownerReferences: [{ apiVersion: "x/v1", kind, name: "all", uid: "o" }] });

describe("the view of an agent that only observes", () => {
  it("the view of an agent that only observes leaves out the status and the attempts of a NodeHealthCheck, and keeps the rest", () => {
    const annotations = { "ironfence.io/remediation-attempts": "{}", "ironfence.io/attempt-budget": "5/24h" };
    const read = readAsIfAlone(object("NodeHealthCheck", { annotations }, { spec: { minHealthy: 1 }, status: {} }));
    const kept = { "ironfence.io/attempt-budget": "5/24h" };
    assert.deepEqual(read, object("NodeHealthCheck", { annotations: kept }, { spec: { minHealthy: 1 } }));
  });

  it("the view of an agent that only observes has no proof that another agent has stored of a host", () => {
    const status = { powerState: "Off", offProof: {}, earlyOffProof: {}, owner: { name: "n1" } };
    assert.deepEqual(
      readAsIfAlone(object("FencingTarget", {}, { status })),
      object("FencingTarget", {}, { status: { powerState: "Off" } }),
    );
  });

  it("the view of an agent that only observes leaves out remediations of health checks, and keeps others", () => {
    const made = ["NodeHealthCheck", "Machine"].map((kind) =>
      readAsIfAlone(object("FenceAgentsRemediation", owner(kind))),
    );
    assert.deepEqual(made, [undefined, undefined]);
    for (const other of [
      object("FenceAgentsRemediation", {}),
      object("BareMetalRemediation", owner("Metal3Remediation")),
      object("Metal3Machine", owner("Machine")),
      object("FencingTarget", {}, { status: { powerState: "On" } }),
    ]) {
      assert.equal(readAsIfAlone(other), other);
    }
  });

  it("the view of an agent that only observes leaves out of a Machine what a health check has marked, in each form", () => {
    const marks = ["HealthCheckSucceeded", "OwnerRemediated"].map((type) => ({ type, status: "False" }));
    const ready = { type: "Ready", status: "True" };
    const status = (own: object[]): object => ({
      phase: "Running",
      nodeRef: { name: "n1" },
      conditions: own,
      deprecated: { v1beta1: { conditions: own } },
    });
    const annotations = { "host.metal3.io/external-remediation": "", "example.com/other": "kept" };
    const read = readAsIfAlone(object("Machine", { annotations }, { status: status([ready, ...marks]) }));
    assert.deepEqual(
      read,
      object("Machine", { annotations: { "example.com/other": "kept" } }, { status: status([ready]) }),
    );
    const bare = object("Machine", {});
    assert.equal(readAsIfAlone(bare), bare);
  });
});
