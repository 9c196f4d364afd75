import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { CLONED_FROM_GROUP_KIND } from "../../../src/api/cluster-api/cluster-api.ts";
import * as ANNOTATIONS from "../../../src/api/names/annotations.ts";
import { trimForHealthCheck } from "../../../src/detector/shared/model/remediation.ts";
import type { KubeObject } from "../../../src/kube/resource.ts";
import { trimRemediation, trimTarget } from "../../../src/nodes/trim.ts";

/** The annotations that only requests of other projects have, such as a Metal3Remediation. */
const OF_REQUESTS: readonly string[] = [ANNOTATIONS.REFUSED, ANNOTATIONS.SERVED_BY];

const OWNER = { apiVersion: "remediation.medik8s.io/v1alpha1", kind: "NodeHealthCheck", name: "c", uid: "check-uid" };
const OTHER = "example.com/other";

function metadataWith(annotations: Record<string, string>): KubeObject["metadata"] {
  return {
    name: "n1",
    namespace: "ns",
    uid: "uid",
    resourceVersion: "7",
    generation: 2,
    generateName: "n-",
    creationTimestamp: "2026-01-01T00:00:00Z",
    deletionTimestamp: "2026-01-01T00:10:00Z",
    labels: { "remediation.medik8s.io/isControlPlaneNode": "" },
    annotations,
    finalizers: ["ironfence.io/remediation"],
    ownerReferences: [OWNER],
  };
}

function annotated(names: readonly string[]): KubeObject {
  return {
    apiVersion: "ironfence.io/v1alpha1",
    kind: "BareMetalRemediation",
    metadata: {
      ...metadataWith(Object.fromEntries(names.map((name) => [name, `value of ${name}`]))),
      managedFields: [{ subresource: "status", time: "2026-01-01T00:00:00Z" }],
    },
    spec: { strategy: { type: "Reboot" }, powerOnNotBefore: "2026-01-01T00:01:00Z" },
    status: {
      phase: "Failed",
      node: { name: "n1", bootIDAtStart: "boot" },
      attempt: { id: "a1", action: "ForceOff" },
      conditions: [
        { type: "Succeeded", status: "False", lastTransitionTime: "2026-01-01T00:05:00Z", reason: "X", message: "why" },
        { type: "PermanentNodeDeletionExpected", status: "True" },
      ],
    },
  } as KubeObject;
}

describe("what the shared cache keeps of a BareMetalRemediation", () => {
  it("what the shared cache keeps of a BareMetalRemediation is all that a health check of any kind reads", () => {
    const known = [...Object.values(ANNOTATIONS), CLONED_FROM_GROUP_KIND];
    const raw = annotated([...known.filter((name) => !OF_REQUESTS.includes(name)), OTHER]);
    const read = trimForHealthCheck(structuredClone(raw));
    assert.deepEqual(trimForHealthCheck(trimRemediation(structuredClone(raw))), read);
    const { NODE_NAME, TEMPLATE_NAME, NHC_TIMED_OUT, HEALTHY_DELAY, OLD_REMEDIATION_CR } = ANNOTATIONS;
    const names = [NODE_NAME, TEMPLATE_NAME, NHC_TIMED_OUT, HEALTHY_DELAY, OLD_REMEDIATION_CR, CLONED_FROM_GROUP_KIND];
    // The health check keeps what only the remediator reads as well, so that both share the metadata.
    const ofRemediator = [ANNOTATIONS.CONFIRM, ANNOTATIONS.NODE_READY_IN_BOOT, ANNOTATIONS.NODE_AT_CREATION];
    assert.deepEqual(Object.keys(read.metadata.annotations ?? {}).sort(), [...names, ...ofRemediator].sort());
    const shared = trimRemediation(structuredClone(raw));
    assert.equal(trimForHealthCheck(shared).metadata, shared.metadata);
    assert.deepEqual([read.powerOrdered, read.bootIDAtStart, read.conditions.length], [true, "boot", 2]);
  });

  it("what the shared cache keeps of a BareMetalRemediation is all that its remediator reads", () => {
    const { NODE_NAME, NHC_TIMED_OUT, CONFIRM, NODE_READY_IN_BOOT, NODE_AT_CREATION } = ANNOTATIONS;
    const names = [NODE_NAME, NHC_TIMED_OUT, CONFIRM, NODE_READY_IN_BOOT, NODE_AT_CREATION];
    const raw = annotated([...names, OTHER]);
    const { metadata, spec, status } = structuredClone(annotated(names)) as KubeObject & Record<string, unknown>;
    const { managedFields: _managedFields, ...kept } = metadata;
    const { apiVersion, kind } = raw;
    assert.deepEqual(trimRemediation(raw), { apiVersion, kind, metadata: kept, spec, status });
  });
});

describe("what the shared cache keeps of many BareMetalRemediations", () => {
  it("what the shared cache keeps of many BareMetalRemediations has equal strategies and equal owners only once", () => {
    const [one, same, other] = [annotated([OTHER]), annotated([OTHER]), annotated([OTHER])].map(
      (raw) => raw as KubeObject & { spec: { strategy: { type: string } } },
    );
    assert.ok(one !== undefined && same !== undefined && other !== undefined);
    other.spec.strategy.type = "Reprovision";
    other.metadata.ownerReferences = [{ ...OWNER, uid: "other-uid" }];
    const [first, second, third] = [trimRemediation(one), trimRemediation(same), trimRemediation(other)];
    assert.equal(second.spec.strategy, first.spec.strategy);
    assert.equal(second.metadata.ownerReferences, first.metadata.ownerReferences);
    assert.equal(third.spec.strategy.type, "Reprovision");
    assert.deepEqual(third.metadata.ownerReferences, [{ ...OWNER, uid: "other-uid" }]);
    assert.deepEqual([first.spec.strategy, first.metadata.ownerReferences], [{ type: "Reboot" }, [OWNER]]);
  });
});

describe("what the shared cache keeps of a FencingTarget", () => {
  it("what the shared cache keeps of a FencingTarget is everything except managed fields", () => {
    const target = {
      apiVersion: "ironfence.io/v1alpha1",
      kind: "FencingTarget",
      metadata: metadataWith({ [OTHER]: "x" }),
      spec: { nodeName: "n1", clusterRef: { namespace: "ns", name: "c" }, maintenance: true },
      status: {
        owner: { uid: "uid" },
        observedGeneration: 2,
        powerState: "Off",
        conditions: [{ type: "Ready", status: "True", lastTransitionTime: "2026-01-01T00:00:00Z" }],
        offProof: { time: "2026-01-01T00:00:00Z" },
        earlyOffProof: { time: "2026-01-01T00:00:00Z" },
      },
    };
    const raw = { ...target, metadata: { ...target.metadata, managedFields: [{ subresource: "status" }] } };
    assert.deepEqual(trimTarget(structuredClone(raw)), target);
  });
});
