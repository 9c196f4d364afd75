import assert from "node:assert/strict";
import { it } from "node:test";
import { createApiServer } from "../../../hack/kube-mock/api-server.ts";
import { readForeignCrds } from "../../../hack/lib/crds.ts";
import { createKubeRuntime } from "../../../src/kube/connection/create-runtime.ts";
import { findServed } from "../../../src/kube/objects/served-kind.ts";
import { VirtualClock } from "../../lib/virtual-clock.ts";
import { evenRandom, silentLogger } from "./support.ts";

const MACHINE = { group: "cluster.x-k8s.io", kind: "Machine", versions: ["v1beta2", "v1beta1"] };

async function servedVersion(versions: readonly string[] | undefined): Promise<string | undefined> {
  const deps = { clock: new VirtualClock(), random: evenRandom };
  const server = createApiServer(deps);
  if (versions === undefined || versions.length > 0) {
    for (const yaml of await readForeignCrds(versions)) server.load(yaml);
  }
  const runtime = createKubeRuntime({
    ...deps,
    transport: server.transport({ client: "test" }),
    logger: silentLogger,
    controllerName: "ironfence.io/test",
    instance: "test",
  });
  const type = await findServed(runtime, MACHINE, new AbortController().signal);
  if (type !== undefined) assert.deepEqual(type, { ...type, kind: "Machine", plural: "machines", namespaced: true });
  return type?.version;
}

it("a kind is found in the first of its versions that is served", async () => {
  assert.equal(await servedVersion(undefined), "v1beta2");
  assert.equal(await servedVersion(["v1beta1"]), "v1beta1");
});

it("a kind that is served in none of its versions is not found", async () => {
  assert.equal(await servedVersion([]), undefined);
});
