import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { Machine } from "../../../../src/api/cluster-api/cluster-api.ts";
import type { Node } from "../../../../src/api/kubernetes/core.ts";
import { readOkdMachineHealthCheck } from "../../../../src/api/okd/okd-machine-health-check.ts";
import { readOkdMachine } from "../../../../src/api/okd/okd-machine.ts";
import type { ObjectMeta } from "../../../../src/kube/resource.ts";
import { chooseRemedy, judgeOkdMachine } from "../../../../src/detector/machines/vendors/okd.ts";
import type { ObservedNode } from "../../../../src/detector/machines/decide/observed-machine.ts";
import { compileUnhealthyLimit, judgeUnhealthyLimit } from "../../../../src/detector/machines/decide/threshold.ts";
import { parseTimeMs, toTime } from "../../../../src/runtime/time.ts";

const NOW_MS = Date.UTC(2026, 0, 1, 12);
const OWNER = {
  apiVersion: "machine.openshift.io/v1beta1",
  kind: "MachineSet",
  name: "set",
  uid: "set",
  controller: true,
};
const MINUTE_MS = 60_000;

function check(spec: Record<string, unknown> = {}, annotations: Record<string, string> = {}) {
  const raw = {
    apiVersion: "machine.openshift.io/v1beta1",
    kind: "MachineHealthCheck",
    metadata: { name: "workers", namespace: "openshift-machine-api", uid: "c", resourceVersion: "1", annotations },
    spec: {
      selector: {},
      unhealthyConditions: [
        { type: "Ready", status: "Unknown", timeout: "300s" },
        { type: "Ready", status: "False", timeout: "5m0s" },
      ],
      ...spec,
    },
    status: {},
  };
  return readOkdMachineHealthCheck(raw);
}

function machine(metadata: Partial<ObjectMeta> = {}, status: Record<string, unknown> = {}): Machine {
  const raw = {
    apiVersion: "machine.openshift.io/v1beta1",
    kind: "Machine",
    metadata: {
      name: "worker-0",
      namespace: "openshift-machine-api",
      uid: "m",
      resourceVersion: "1",
      creationTimestamp: toTime(NOW_MS - 3_600_000),
      ownerReferences: [OWNER],
      ...metadata,
    },
    status: { phase: "Running", nodeRef: { kind: "Node", name: "n0" }, ...status },
  };
  return readOkdMachine(raw);
}

function node(status: string, sinceMs: number): ObservedNode {
  const found: Node = {
    apiVersion: "v1",
    kind: "Node",
    metadata: { name: "n0", uid: "n", resourceVersion: "1" },
    spec: {},
    status: { conditions: [{ type: "Ready", status, lastTransitionTime: toTime(NOW_MS - sinceMs) }] },
  };
  return { state: "there", node: found };
}

const nodeSinceMs = ({ lastTransitionTime }: { lastTransitionTime?: string }) => parseTimeMs(lastTransitionTime);

function judge(observed: ObservedNode, of: Machine = machine(), spec: Record<string, unknown> = {}) {
  const target = { machine: of, cluster: undefined, node: observed, nodeSinceMs };
  return judgeOkdMachine(target, check(spec).spec, NOW_MS);
}

describe("the health of an OKD Machine", () => {
  test("the health of an OKD Machine is its node's conditions, each with its time", () => {
    assert.equal(judge(node("True", 0)).state, "healthy");
    assert.equal(judge(node("Unknown", 6 * MINUTE_MS)).state, "unhealthy");
    assert.equal(judge(node("False", 6 * MINUTE_MS)).state, "unhealthy");
    const waiting = judge(node("Unknown", 4 * MINUTE_MS));
    assert.equal(waiting.state === "waiting" && waiting.untilMs, NOW_MS + MINUTE_MS);
  });

  test("the health of an OKD Machine is lost at once with phase Failed, whatever its node says", () => {
    assert.equal(judge(node("True", 0), machine({}, { phase: "Failed" })).state, "unhealthy");
  });

  test("the health of an OKD Machine is not lost with an error that its provider may get over, such as no host being free", () => {
    const waiting = machine({}, { phase: "Provisioning", errorReason: "InsufficientResources", nodeRef: undefined });
    assert.equal(judge({ state: "none" }, waiting, { nodeStartupTimeout: "0" }).state, "unsettled");
  });

  test("the health of an OKD Machine is lost at once when its node is gone", () => {
    assert.equal(judge({ state: "gone" }).state, "unhealthy");
  });

  test("the health of an OKD Machine waits for its first node from the last change of its status, 10 minutes by default, forever with 0", () => {
    const fresh = machine({}, { nodeRef: undefined, lastUpdated: toTime(NOW_MS - 9 * MINUTE_MS) });
    const old = machine({}, { nodeRef: undefined, lastUpdated: toTime(NOW_MS - 11 * MINUTE_MS) });
    assert.equal(judge({ state: "none" }, fresh).state, "waiting");
    assert.equal(judge({ state: "none" }, old).state, "unhealthy");
    assert.equal(judge({ state: "none" }, fresh, { nodeStartupTimeout: "5m" }).state, "unhealthy");
    assert.equal(judge({ state: "none" }, old, { nodeStartupTimeout: "0" }).state, "unsettled");
  });

  test("the health of an OKD Machine does not count while it is being deleted", () => {
    const deleted = machine({ deletionTimestamp: toTime(NOW_MS) });
    assert.equal(judge(node("True", 0), deleted).state, "unsettled");
  });
});

describe("maxUnhealthy of OKD", () => {
  const allowed = (maxUnhealthy: unknown, expected: number, unhealthy: number): boolean => {
    const unhealthyLimit = compileUnhealthyLimit(check(maxUnhealthy === undefined ? {} : { maxUnhealthy }).spec);
    assert.ok(typeof unhealthyLimit !== "string");
    return judgeUnhealthyLimit(unhealthyLimit, expected, unhealthy).allowed;
  };

  test("maxUnhealthy of OKD rounds a share down: 40 % of 6 are 2", () => {
    assert.equal(allowed("40%", 6, 2), true);
    assert.equal(allowed("40%", 6, 3), false);
  });

  test("maxUnhealthy of OKD is all of them by default, and may be a number", () => {
    assert.equal(allowed(undefined, 3, 3), true);
    assert.equal(allowed(1, 3, 1), true);
    assert.equal(allowed("1", 3, 2), false);
    assert.equal(allowed("0%", 3, 1), false);
  });
});

describe("what is done to an unhealthy OKD Machine", () => {
  const external = { "machine.openshift.io/remediation-strategy": "external-baremetal" };
  const asked = { "host.metal3.io/external-remediation": "" };
  const master = { labels: { "machine.openshift.io/cluster-api-machine-role": "master" } };

  test("an unhealthy OKD Machine is deleted", () => {
    assert.deepEqual(chooseRemedy(check(), machine()), { type: "delete" });
    assert.deepEqual(chooseRemedy(check({}, { "machine.openshift.io/remediation-strategy": "other" }), machine()), {
      type: "delete",
    });
  });

  test("an unhealthy OKD Machine gets a request if there is a template", () => {
    const remediationTemplate = {
      apiVersion: "ironfence.io/v1alpha1",
      kind: "BareMetalRemediationTemplate",
      name: "t",
    };
    assert.deepEqual(chooseRemedy(check({ remediationTemplate }, external), machine()), { type: "request" });
  });

  test("an unhealthy OKD Machine of the control plane is left alone, by either label", () => {
    assert.equal(chooseRemedy(check(), machine(master)).type, "none");
    const byType = { labels: { "machine.openshift.io/cluster-api-machine-type": "master" } };
    assert.equal(chooseRemedy(check(), machine(byType, { phase: "Failed" })).type, "none");
  });

  test("an unhealthy OKD Machine that no controller would recreate is left alone", () => {
    assert.equal(chooseRemedy(check(), machine({ ownerReferences: [] })).type, "none");
    assert.equal(chooseRemedy(check(), machine({ ownerReferences: [{ ...OWNER, controller: false }] })).type, "none");
  });

  test("an unhealthy OKD Machine that is being deleted is left alone", () => {
    assert.equal(chooseRemedy(check(), machine({ deletionTimestamp: toTime(NOW_MS) })).type, "none");
  });

  test("an unhealthy OKD Machine with external-baremetal is power-fenced, also one of the control plane or without an owner", () => {
    const annotate = { type: "annotate", annotation: "host.metal3.io/external-remediation" };
    assert.deepEqual(chooseRemedy(check({}, external), machine()), annotate);
    assert.deepEqual(chooseRemedy(check({}, external), machine(master)), annotate);
    assert.deepEqual(chooseRemedy(check({}, external), machine({ ownerReferences: [] })), annotate);
  });

  test("an unhealthy OKD Machine with external-baremetal gets no further request while one exists", () => {
    assert.equal(chooseRemedy(check({}, external), machine({ annotations: asked })).type, "none");
  });

  test("an unhealthy OKD Machine with external-baremetal is deleted once its provider has given it up, never one of the control plane", () => {
    assert.deepEqual(chooseRemedy(check({}, external), machine({}, { phase: "Failed" })), { type: "delete" });
    assert.equal(chooseRemedy(check({}, external), machine(master, { phase: "Failed" })).type, "none");
  });
});
