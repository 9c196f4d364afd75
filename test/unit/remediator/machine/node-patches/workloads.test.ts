import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Pod, Toleration, VolumeAttachment } from "../../../../../src/api/kubernetes/core.ts";
import {
  attachmentsOf,
  volumeClaimsOf,
  failedStatus,
  isFinished,
  mustLeave,
} from "../../../../../src/remediator/machine/node-patches/pods.ts";

function pod(spec: Partial<Pod["spec"]> = {}, annotations: Record<string, string> = {}): Pod {
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name: "db", namespace: "default", uid: "u", resourceVersion: "1", annotations },
    spec,
    status: { phase: "Running", conditions: [{ type: "Ready", status: "True" }] },
  };
}

const KEY = "node.kubernetes.io/out-of-service";
const TOLERATIONS: [name: string, toleration: Toleration, stays: boolean][] = [
  ["everything", { operator: "Exists" }, true],
  ["the key", { key: KEY, operator: "Exists" }, true],
  ["the key, for some time", { key: KEY, operator: "Exists", tolerationSeconds: 30 }, true],
  ["key and value", { key: KEY, operator: "Equal", value: "nodeshutdown", effect: "NoExecute" }, true],
  ["key and value without an operator", { key: KEY, value: "nodeshutdown" }, true],
  ["another value", { key: KEY, operator: "Equal", value: "else" }, false],
  ["another effect", { key: KEY, operator: "Exists", effect: "NoSchedule" }, false],
  ["an unreachable node only", { key: "node.kubernetes.io/unreachable", operator: "Exists" }, false],
  ["an empty key without Exists", { operator: "Equal", value: "nodeshutdown" }, false],
];

describe("a pod that tolerates", () => {
  for (const [name, toleration, stays] of TOLERATIONS) {
    it(`a pod that tolerates ${name} ${stays ? "stays" : "leaves"}`, () => {
      assert.equal(mustLeave(pod({ tolerations: [toleration] })), !stays);
    });
  }
});

describe("pods", () => {
  it("pods without tolerations leave", () => assert.equal(mustLeave(pod()), true));

  it("pods that mirror a static pod stay", () =>
    assert.equal(mustLeave(pod({}, { "kubernetes.io/config.mirror": "hash" })), false));

  it("pods that ended keep their status", () => {
    assert.equal(isFinished({ ...pod(), status: { phase: "Succeeded" } }), true);
    assert.equal(isFinished(pod()), false);
  });

  it("pods are failed as Kubernetes' own sweep fails them, conditions kept", () => {
    const { phase, conditions } = failedStatus(pod(), "2026-01-01T00:00:00Z");
    assert.equal(phase, "Failed");
    assert.deepEqual(
      conditions.map(({ type, status }) => `${type}=${status}`),
      ["Ready=True", "DisruptionTarget=True"],
    );
  });

  it("pods hold their claims, those of generic ephemeral volumes too", () => {
    const volumes = [
      { name: "data", persistentVolumeClaim: { claimName: "db-data" } },
      { name: "scratch", ephemeral: {} },
      { name: "config" },
    ];
    assert.deepEqual([...volumeClaimsOf([pod({ volumes })])], ["default/db-data", "default/db-scratch"]);
  });
});

describe("the volumes of a node", () => {
  const attachment = (nodeName: string, deletionTimestamp?: string): VolumeAttachment => ({
    apiVersion: "storage.k8s.io/v1",
    kind: "VolumeAttachment",
    metadata: {
      name: "a",
      uid: "u",
      resourceVersion: "1",
      ...(deletionTimestamp !== undefined && { deletionTimestamp }),
    },
    spec: { attacher: "csi.example", nodeName, source: {} },
  });

  it("the volumes of a node are those that are attached to it, also while they are being detached", () => {
    const going = attachment("n1", "2026-01-01T00:00:00Z");
    assert.deepEqual(attachmentsOf("n1", [attachment("n2"), going]), [going]);
  });
});
