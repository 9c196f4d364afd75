import assert from "node:assert/strict";
import { test } from "node:test";
import { kwokArguments } from "../../../hack/control-plane/control-plane.ts";

test("a kwok plays the one node that it is started for", () => {
  const args = kwokArguments("worker-1", {
    kubeconfig: "/tmp/kubeconfig",
    stages: "/tmp/stages.yaml",
    leaseSeconds: 4,
  });
  assert.ok(args.includes("--manage-single-node=worker-1"));
});

test("a kwok that is started for no node plays all fake nodes", () => {
  const args = kwokArguments(undefined, {
    kubeconfig: "/tmp/kubeconfig",
    stages: "/tmp/stages.yaml",
    leaseSeconds: 40,
  });
  assert.ok(args.includes("--manage-nodes-with-annotation-selector=kwok.x-k8s.io/node=fake"));
  assert.deepEqual(
    args.filter((argument) => argument.startsWith("--manage-single-node")),
    [],
  );
});
