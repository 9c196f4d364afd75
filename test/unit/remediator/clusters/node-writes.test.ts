import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Node } from "../../../../src/api/kubernetes/core.ts";
import type { KubeClient } from "../../../../src/kube/client.ts";
import { isKubeError } from "../../../../src/kube/errors.ts";
import { getNode, patchNode } from "../../../../src/remediator/clusters/node-writes.ts";

const SIGNAL = new AbortController().signal;

/** An API server with one Node, whose status contains what a user has stored there. */
function serving(status: unknown): { client: KubeClient; sent: unknown[] } {
  const sent: unknown[] = [];
  const node = {
    apiVersion: "v1",
    kind: "Node",
    metadata: { name: "n1", uid: "u1", resourceVersion: "7" },
    spec: {},
    status,
  };
  const client: Partial<KubeClient> = {
    get: <T>() => Promise.resolve(node as T),
    patch: <T>(...call: unknown[]) => {
      sent.push(call[3]);
      return Promise.resolve(node as T);
    },
  };
  return { client: client as KubeClient, sent };
}

describe("a Node whose status makes no sense", () => {
  const untaint = (): Parameters<typeof patchNode>[2] extends (node: Node) => infer R ? R : never => [
    { op: "remove", path: "/spec/taints" },
  ];

  it("a Node whose status is malformed can be patched, so that its taint can be removed", async () => {
    const { client, sent } = serving({ conditions: [5] });
    await patchNode(client, "n1", untaint, SIGNAL);
    assert.deepEqual(sent, [[{ op: "remove", path: "/spec/taints" }]]);
  });

  it("a Node whose status makes no sense is not judged", async () => {
    await assert.rejects(getNode(serving({ conditions: [5] }).client, "n1", SIGNAL), (error) =>
      isKubeError(error, "BadResponse"),
    );
  });
});
