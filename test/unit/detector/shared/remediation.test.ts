import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Remediation } from "../../../../src/detector/shared/model/remediation.ts";
import {
  isOwnedBy,
  readRemediation,
  remediationDiffers,
  trimForHealthCheck,
} from "../../../../src/detector/shared/model/remediation.ts";
import type { KubeObject } from "../../../../src/kube/resource.ts";
import { CHECK_UID, remediationOf } from "../nodes/builders.ts";

describe("remediation of any vendor", () => {
  it("a remediation of any vendor belongs to the health check of that UID, not to one that has its name", () => {
    const { object } = remediationOf("a");
    assert.equal(isOwnedBy(object, CHECK_UID), true);
    assert.equal(isOwnedBy(object, "a-later-check-of-that-name"), false);
    const foreign = { ...object, metadata: { ...object.metadata, ownerReferences: [] } };
    assert.equal(isOwnedBy(foreign, CHECK_UID), false);
  });

  it("a remediation of any vendor is read whatever its status looks like", () => {
    const metadata = { name: "n1", uid: "u", resourceVersion: "1" };
    for (const status of [undefined, 1, "x", [], { conditions: 3 }, { conditions: [null, { type: 1 }], attempt: [] }]) {
      const raw = { apiVersion: "fence.example/v1", kind: "Fence", metadata, status };
      const { nodeName, succeeded, powerOrdered } = readRemediation(trimForHealthCheck(raw));
      assert.deepEqual([nodeName, succeeded, powerOrdered], ["n1", undefined, false]);
    }
  });

  it("a remediation of any vendor that has failed is quoted with text that the API server stores as it is, also if it is cut", () => {
    const metadata = { name: "n1", uid: "u", resourceVersion: "1" };
    const failed = { type: "Succeeded", status: "False", message: `${"m".repeat(511)}\u{1f600}` };
    const raw = { apiVersion: "fence.example/v1", kind: "Fence", metadata, status: { conditions: [failed] } };
    // The API server would store half of a surrogate pair as U+FFFD, and the status would differ from it each time.
    assert.equal(readRemediation(trimForHealthCheck(raw)).failure, `${"m".repeat(511)}\ufffd`);
  });

  it("a remediation of any vendor counts as changed only if a field changes that a health check reads", () => {
    const annotations = { "remediation.medik8s.io/node-name": "n1" };
    const metadata = { name: "n1", uid: "u", resourceVersion: "1", annotations };
    const processing = { type: "Processing", status: "True", lastTransitionTime: "2026-01-01T00:00:00Z" };
    const succeeded = { type: "Succeeded", status: "False", lastTransitionTime: "2026-01-01T00:00:00Z" };
    const status = { conditions: [processing, succeeded], attempt: { action: "None" }, phase: "Verifying" };
    const raw = { apiVersion: "fence.example/v1", kind: "Fence", metadata, status };
    const differs = (after: object): boolean =>
      remediationDiffers(trimForHealthCheck(raw), trimForHealthCheck({ ...raw, ...after }));
    const withMeta = (more: object): object => ({ metadata: { ...metadata, ...more } });
    const withStatus = (more: object): object => ({ status: { ...status, ...more } });
    const steps = {
      "a newer version": withMeta({ resourceVersion: "2" }),
      "another phase": withStatus({ phase: "PoweringOff" }),
      "a condition that no reader uses": withStatus({ conditions: [{ ...processing, status: "False" }, succeeded] }),
      "an annotation of its remediator's": withMeta({ annotations: { ...annotations, "fence.example/step": "2" } }),
    };
    for (const [what, after] of Object.entries(steps)) assert.equal(differs(after), false, what);
    const unknown = { ...succeeded, status: "Unknown" };
    const [silent, inProgress] = [
      withStatus({ conditions: [] }),
      withStatus({ conditions: [processing, unknown] }),
    ].map((after) => trimForHealthCheck({ ...raw, ...after }));
    assert.ok(
      silent && inProgress && !remediationDiffers(silent, inProgress),
      "its first report that it is in progress",
    );
    const expected = { type: "PermanentNodeDeletionExpected", status: "True" };
    const news = {
      "its verdict": withStatus({ conditions: [processing, { ...succeeded, status: "True" }] }),
      "the time of its verdict": withStatus({
        conditions: [{ ...succeeded, lastTransitionTime: "2026-01-01T00:01:00Z" }],
      }),
      "that the Node will be deleted": withStatus({ conditions: [processing, succeeded, expected] }),
      "a power order": withStatus({ attempt: { action: "ForceOff" } }),
      "its deletion": withMeta({ deletionTimestamp: "2026-01-01T00:00:00Z" }),
      "that it was given up": withMeta({
        annotations: { "remediation.medik8s.io/nhc-timed-out": "2026-01-01T00:00:00Z" },
      }),
      "a label": withMeta({ labels: { "remediation.medik8s.io/isControlPlaneNode": "" } }),
      "another owner": withMeta({ ownerReferences: [{ apiVersion: "v1", kind: "X", name: "x", uid: "x" }] }),
      "another object of its name": withMeta({ uid: "another" }),
    };
    for (const [what, after] of Object.entries(news)) assert.equal(differs(after), true, what);
  });
});

describe("a Metal3Remediation that has failed, whose kind has no conditions", () => {
  const failed = (
    managedFields?: { time: string; subresource?: string }[],
    annotations?: Record<string, string>,
  ): Remediation =>
    readRemediation(
      trimForHealthCheck({
        apiVersion: "infrastructure.cluster.x-k8s.io/v1beta1",
        kind: "Metal3Remediation",
        metadata: {
          name: "m1",
          uid: "u",
          resourceVersion: "1",
          creationTimestamp: "2026-01-01T00:00:00Z",
          ...(managedFields && { managedFields }),
          ...(annotations && { annotations }),
        },
        status: { phase: "Failed" },
      } as KubeObject),
    );

  it("a failed Metal3Remediation, whose kind has no conditions, failed when its status was last written, and the pause before the next try counts from there", () => {
    const { succeeded, succeededSinceMs } = failed([
      { time: "2026-01-01T00:05:00Z", subresource: "status" },
      { time: "2026-01-01T00:20:00Z", subresource: "status" },
      { time: "2026-01-01T00:30:00Z" },
    ]);
    assert.deepEqual([succeeded, succeededSinceMs], ["False", Date.UTC(2026, 0, 1, 0, 20)]);
  });

  it("a Metal3Remediation that has failed, whose kind has no conditions, has failed at an unknown time, if the API server has not noted it", () => {
    assert.deepEqual([failed().succeeded, failed().succeededSinceMs], ["False", undefined]);
  });

  it("a Metal3Remediation that has failed, whose kind has no conditions, names the BareMetalRemediation that says why it failed, unless it says so itself", () => {
    const served = { "ironfence.io/served-by": "m1-12345678" };
    assert.equal(failed([], served).failure, "BareMetalRemediation m1-12345678 says why");
    assert.equal(failed([], { ...served, "ironfence.io/refused": "NoHost: none" }).failure, "NoHost: none");
    assert.equal(failed().failure, undefined);
  });
});
