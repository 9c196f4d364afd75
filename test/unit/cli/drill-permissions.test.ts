import assert from "node:assert/strict";
import { test } from "node:test";
import type { Pod } from "../../../src/api/kubernetes/core.ts";
import { lackingPermissions } from "../../../src/cli/fence/drill-permissions.ts";
import type { KubeClient } from "../../../src/kube/client.ts";

interface Review {
  spec: { resourceAttributes: { verb: string; resource: string; subresource?: string; namespace?: string } };
}

void test("ironfence drill asks for each permission that it needs, in each namespace once, and names those that lack", async () => {
  const asked: string[] = [];
  const create = (_type: unknown, object: unknown): Promise<unknown> => {
    const { verb, resource, subresource = "-", namespace = "-" } = (object as Review).spec.resourceAttributes;
    asked.push([verb, resource, subresource, namespace].join(" "));
    return Promise.resolve({ status: { allowed: resource === "baremetalremediations" && verb !== "delete" } });
  };
  const pods = ["web", "db", "web"].map((namespace) => ({ metadata: { namespace } }) as Pod);
  const of = { namespace: "ironfence-system", nodeName: "worker-3", pods };
  const lacking = await lackingPermissions({ create } as Pick<KubeClient, "create">, of, AbortSignal.timeout(60_000));
  assert.deepEqual(asked, [
    "patch nodes - -",
    "create pods eviction web",
    "create pods eviction db",
    "create baremetalremediations - ironfence-system",
    "get baremetalremediations - ironfence-system",
    "delete baremetalremediations - ironfence-system",
  ]);
  assert.deepEqual(lacking, [
    "patch nodes named worker-3",
    "create pods/eviction in namespace web",
    "create pods/eviction in namespace db",
    "delete baremetalremediations.ironfence.io in namespace ironfence-system",
  ]);
});
