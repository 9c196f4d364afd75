import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { readNode, readNodeMarks } from "../../../../src/api/kubernetes/read-node.ts";
import { trimMeta, trimNode } from "../../../../src/api/kubernetes/trim.ts";
import type { KubeObject } from "../../../../src/kube/resource.ts";

const METADATA = { name: "n1", uid: "u1", resourceVersion: "1" };
const nodeOf = (rest: object, metadata: object = {}): KubeObject => ({
  apiVersion: "v1",
  kind: "Node",
  metadata: { ...METADATA, ...metadata },
  ...rest,
});

/** Values that an untrusted API server may send instead of a field. */
const SHAPES: readonly [what: string, node: KubeObject][] = [
  ["taints that are no list", nodeOf({ spec: { taints: {} } })],
  ["taints that are a text", nodeOf({ spec: { taints: "x" } })],
  ["a taint that is nothing", nodeOf({ spec: { taints: [null] } })],
  ["a taint without a key", nodeOf({ spec: { taints: [{ effect: "NoExecute" }] } })],
  ["a taint whose value is an object", nodeOf({ spec: { taints: [{ key: "a", effect: "b", value: {} }] } })],
  ["a providerID that is a number", nodeOf({ spec: { providerID: 5 } })],
  ["a spec that is a number", nodeOf({ spec: 5 })],
  ["a status that is a text", nodeOf({ status: "x" })],
  ["conditions that are no list", nodeOf({ status: { conditions: {} } })],
  ["a condition that is a number", nodeOf({ status: { conditions: [5] } })],
  ["a condition without a status", nodeOf({ status: { conditions: [{ type: "Ready" }] } })],
  [
    "a time that is a number",
    nodeOf({ status: { conditions: [{ type: "Ready", status: "True", lastTransitionTime: 5 }] } }),
  ],
  ["a boot that is an object", nodeOf({ status: { nodeInfo: { bootID: {} } } })],
  ["labels that are a text", nodeOf({}, { labels: "x" })],
  ["a label that is an object", nodeOf({}, { labels: { zone: { toString: 1 } } })],
  ["annotations that are a number", nodeOf({}, { annotations: 5 })],
  ["finalizers that are no list", nodeOf({}, { finalizers: {} })],
  ["owners that are a number", nodeOf({}, { ownerReferences: 5 })],
  ["a deletion that is an object", nodeOf({}, { deletionTimestamp: {} })],
];

describe("a Node of an untrusted API server", () => {
  for (const [what, node] of SHAPES) {
    it(`a Node of an untrusted API server is refused if it has ${what}, so that no part of the agent fails on it`, () => {
      assert.throws(() => readNode(node), TypeError);
      assert.throws(() => trimNode(node), TypeError);
    });
  }

  it("a Node of an untrusted API server is read with fields that are null, as Go writes a time that is not set", () => {
    const condition = { type: "Ready", status: "True", reason: null, lastTransitionTime: null };
    const taint = { key: "a", effect: "NoExecute", value: null, timeAdded: null };
    const raw = nodeOf({ spec: { taints: [taint], providerID: null }, status: { conditions: [condition] } });
    for (const { spec, status } of [readNode(raw), trimNode(raw)]) {
      assert.deepEqual(spec, { taints: [{ key: "a", effect: "NoExecute" }] });
      assert.deepEqual(status.conditions, [{ type: "Ready", status: "True" }]);
    }
    assert.deepEqual(readNode(nodeOf({ spec: null })).spec, {});
  });

  it("a Node of an untrusted API server has only the fields that are read, whatever else its API server sends", () => {
    const more = { more: [[[]]] };
    const condition = { type: "Ready", status: "True" };
    const taint = { key: "a", effect: "NoExecute" };
    const owner = { apiVersion: "v1", kind: "Machine", name: "m1", uid: "u2" };
    const raw = nodeOf(
      {
        ...more,
        spec: { ...more, taints: [{ ...taint, ...more }] },
        status: { ...more, conditions: [{ ...condition, ...more }], nodeInfo: { bootID: "b", ...more } },
      },
      { ...more, ownerReferences: [{ ...owner, ...more }] },
    );
    const known = {
      apiVersion: "v1",
      kind: "Node",
      metadata: { ...METADATA, ownerReferences: [owner] },
      spec: { taints: [taint] },
      status: { conditions: [condition], nodeInfo: { bootID: "b" } },
    };
    assert.deepEqual(readNode(raw), known);
    assert.deepEqual(trimNode(raw), known);
    assert.deepEqual(trimMeta(raw.metadata), known.metadata);
  });

  it("metadata that has to be trimmed loses only what is not kept, and other metadata stays the same object", () => {
    const owner = { apiVersion: "v1", kind: "Machine", name: "m1", uid: "u2" };
    const metadata = { ...METADATA, annotations: { a: "1" }, ownerReferences: [owner] };
    assert.equal(trimMeta(metadata), metadata);
    assert.equal(trimMeta(metadata, ["a", "b"]), metadata);
    assert.deepEqual(trimMeta({ ...metadata, selfLink: "x" } as typeof metadata), metadata);
    assert.deepEqual(trimMeta(metadata, ["b"]), { ...metadata, annotations: {} });
    const more = { ...metadata, ownerReferences: [{ ...owner, more: [[[]]] }] };
    assert.deepEqual(trimMeta(more), metadata);
  });

  it("a Node of an untrusted API server has marks that can be read and changed, whatever its status is", () => {
    const taint = { key: "node.kubernetes.io/out-of-service", effect: "NoExecute" };
    const { spec, status } = readNodeMarks(nodeOf({ spec: { taints: [taint] }, status: { conditions: [5] } }));
    assert.deepEqual([spec.taints, status], [[taint], {}]);
    assert.throws(() => readNodeMarks(nodeOf({ spec: 5 })), TypeError);
  });

  it("a Node of an untrusted API server is read without a spec and without a status", () => {
    const { spec, status } = readNode(nodeOf({}));
    assert.deepEqual({ spec, status }, { spec: {}, status: {} });
  });

  it("a Node of an untrusted API server has no identity so long that what it is copied to could not be stored", () => {
    const node = nodeOf({ status: { nodeInfo: { bootID: "b".repeat(2_000_000), systemUUID: "s".repeat(2_000_000) } } });
    for (const { status } of [readNode(node), trimNode(node)]) {
      assert.equal(status.nodeInfo?.bootID?.length, 256);
      assert.equal(status.nodeInfo?.systemUUID?.length, 256);
    }
  });
});
