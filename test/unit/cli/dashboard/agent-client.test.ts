import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Node } from "../../../../src/api/kubernetes/core.ts";
import { BARE_METAL_REMEDIATIONS } from "../../../../src/api/ironfence/bare-metal-remediation.ts";
import { NODES } from "../../../../src/api/kubernetes/core-types.ts";
import { FENCING_TARGETS } from "../../../../src/api/ironfence/fencing-target.ts";
import { agentClient } from "../../../../src/cli/dashboard/serve/agent-client.ts";
import type { Family } from "../../../../src/config/parsers.ts";
import type { KubeClient } from "../../../../src/kube/client.ts";
import type { Watched } from "../../../../src/kube/watched.ts";
import { isKubeError } from "../../../../src/kube/errors.ts";
import { node } from "./fixture.ts";

const SIGNAL = new AbortController().signal;

/** The client of the agent's page, and its requests to the API server. */
function clientOf(families: Family[], synced = true) {
  const calls: string[] = [];
  const call = (...words: string[]): void => void calls.push(words.join(" "));
  const real = {
    get: (type: { kind: string }) => Promise.resolve(call("get", type.kind)),
    list: (type: { kind: string }, { namespace = "" }) => {
      call("list", type.kind, namespace);
      return Promise.resolve({ items: [], resourceVersion: "1" });
    },
    discover: (apiVersion: string, kind: string) => Promise.resolve(call("discover", apiVersion, kind)),
    create: () => Promise.resolve(call("create")),
    patch: () => Promise.resolve(call("patch")),
    mergePatch: () => Promise.resolve(call("mergePatch")),
    delete: () => Promise.resolve(call("delete")),
  } as unknown as KubeClient;
  const nodes = { synced, values: () => [node("w1")].values() } as unknown as Watched<Node>;
  return { calls, client: agentClient(real, { families: new Set(families), nodes }) };
}

describe("the reads of the agent's page", () => {
  it("the reads of the agent's page take the nodes from the agent's own view, and wait for that", async () => {
    const { calls, client } = clientOf([]);
    assert.deepEqual(
      (await client.list(NODES, {}, SIGNAL)).items.map(({ metadata }) => metadata.name),
      ["w1"],
    );
    assert.deepEqual(calls, []);
    await assert.rejects(clientOf([], false).client.list(NODES, {}, SIGNAL), /has not listed the nodes yet/);
  });

  it("the agent's page reads only what the agent has permission for", async () => {
    const { calls, client } = clientOf(["bare-metal-host"]);
    await assert.rejects(client.list(FENCING_TARGETS, {}, SIGNAL), (error) => isKubeError(error, "Forbidden"));
    await client.list(FENCING_TARGETS, { namespace: "n" }, SIGNAL);
    await client.list(BARE_METAL_REMEDIATIONS, {}, SIGNAL);
    await client.discover("cluster.x-k8s.io/v1beta2", "MachineHealthCheck", SIGNAL);
    await client.discover("metal3.io/v1alpha1", "BareMetalHost", SIGNAL);
    await client.discover("example.com/v1", "AnyTemplate", SIGNAL);
    assert.deepEqual(calls, [
      "list FencingTarget n",
      "list BareMetalRemediation ",
      "discover metal3.io/v1alpha1 BareMetalHost",
      "discover example.com/v1 AnyTemplate",
    ]);
  });

  it("the reads of the agent's page write nothing", async () => {
    const { calls, client } = clientOf([]);
    const { create, patch, mergePatch, delete: remove } = client as unknown as Record<string, () => Promise<void>>;
    for (const write of [create, patch, mergePatch, remove]) await assert.rejects(async () => write?.());
    assert.deepEqual(calls, []);
  });
});
