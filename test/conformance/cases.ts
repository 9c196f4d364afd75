import { test } from "node:test";
import assert from "node:assert/strict";
import type { KubeTransport } from "../../src/kube/transport.ts";
import { Api } from "./api.ts";
import type { ConformanceCase } from "./api.ts";
import { BUILT_IN_KINDS } from "./cases/built-in-kinds.ts";
import { CUSTOM_RESOURCES } from "./cases/custom-resources.ts";
import { DELETIONS } from "./cases/deletions.ts";
import { LISTS } from "./cases/lists.ts";
import { READS_AND_CREATES } from "./cases/reads-and-creates.ts";
import { SHIPPED_CRDS } from "./cases/shipped-crds.ts";
import { WATCHES } from "./cases/watches.ts";
import { WRITES } from "./cases/writes.ts";

/** Every behavior on which ironfence or the simulated cluster relies. */
const CASES: readonly ConformanceCase[] = [
  ...READS_AND_CREATES,
  ...WRITES,
  ...DELETIONS,
  ...LISTS,
  ...WATCHES,
  ...BUILT_IN_KINDS,
  ...CUSTOM_RESOURCES,
  ...SHIPPED_CRDS,
];

/** A server for the cases. Our CRDs are installed on it. */
export interface ServerUnderTest {
  transport: KubeTransport;
  /** Makes the server drop its history. */
  compact: () => Promise<void>;
}

/**
 * Runs every case as a test, each in a separate namespace.
 *
 * @param run distinguishes the runs against one server.
 */
export function testConformance(run: string, server: () => ServerUnderTest): void {
  for (const [index, { name, run: ask, answer }] of CASES.entries()) {
    test(name, async () => {
      const { transport, compact } = server();
      const namespace = `conformance-${run}-${index}`;
      const api = new Api({ transport, namespace, compact });
      try {
        const created = await api.send("POST", "/api/v1/namespaces", { metadata: { name: namespace } });
        assert.equal(created.status, 201, JSON.stringify(created.body));
        assert.deepEqual(await ask(api), answer);
      } finally {
        await cleanUp(api);
        api.close();
      }
    });
  }
}

async function cleanUp(api: Api): Promise<void> {
  const definition = `gadgets.${api.namespace}.example.com`;
  await api.send("DELETE", `/apis/apiextensions.k8s.io/v1/customresourcedefinitions/${definition}`);
  await api.send("DELETE", `/api/v1/namespaces/${api.namespace}`);
}
