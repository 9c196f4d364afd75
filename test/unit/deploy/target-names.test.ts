import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { ApiError } from "../../../hack/kube-mock/api-error.ts";
import { createApiServer } from "../../../hack/kube-mock/api-server.ts";
import { readCrds } from "../../../hack/lib/crds.ts";
import { FENCING_TARGETS } from "../../../src/api/ironfence/fencing-target.ts";
import { seededRandom } from "../../lib/seeded-random.ts";
import { VirtualClock } from "../../lib/virtual-clock.ts";

// Checks the schema that the API server enforces (deploy/crds), not the code that reads a target.

const server = createApiServer({ clock: new VirtualClock(), random: seededRandom(1) });
for (const yaml of await readCrds()) server.load(yaml);

/** Every field of a FencingTarget that contains a name, with its maximum length. */
const PLACES: Readonly<Record<string, (name: string) => { spec: object; longest: number }>> = {
  "spec.nodeName": (name) => ({ spec: { nodeName: name, devices: [device()] }, longest: 253 }),
  "spec.devices[].credentialsSecretRef.name": (name) => ({
    spec: { nodeName: "n", devices: [device({ credentialsSecretRef: { name } })] },
    longest: 253,
  }),
  "spec.devices[].tls.caSecretRef.name": (name) => ({
    spec: { nodeName: "n", devices: [device({ tls: { caSecretRef: { name } } })] },
    longest: 253,
  }),
  "spec.clusterRef.name": (name) => ({
    spec: { nodeName: "n", clusterRef: { namespace: "a", name }, devices: [device()] },
    longest: 253,
  }),
  "spec.clusterRef.namespace": (namespace) => ({
    spec: { nodeName: "n", clusterRef: { namespace, name: "c" }, devices: [device()] },
    longest: 63,
  }),
};

function device(change: object = {}): object {
  return { address: "redfish://10.0.0.3", credentialsSecretRef: { name: "bmc" }, ...change };
}

function refusal(spec: object): string | undefined {
  const targets = server.collection(FENCING_TARGETS);
  const metadata = { namespace: "default", name: "t" };
  try {
    targets.create({ metadata, spec });
    targets.delete(metadata);
    return undefined;
  } catch (error) {
    assert.ok(error instanceof ApiError && error.reason === "Invalid", String(error));
    return error.message;
  }
}

describe("the names in a FencingTarget", () => {
  it("names of targets are refused by the API server if they are not DNS-1123 names", () => {
    const wrong = [
      "",
      "../../kube-system/secrets/x",
      "a/b",
      "A",
      "-a",
      "a-",
      "a b",
      "a%2fb",
      "a\n",
      "ä",
      "_a",
      ".",
      "..",
    ];
    for (const [place, specWith] of Object.entries(PLACES)) {
      const { longest } = specWith("");
      for (const name of [...wrong, "a".repeat(longest + 1)]) {
        assert.notEqual(refusal(specWith(name).spec), undefined, `${place}: ${JSON.stringify(name)}`);
      }
      for (const name of ["a", "worker-1", "0", "a".repeat(longest)]) {
        assert.equal(refusal(specWith(name).spec), undefined, `${place}: ${name}`);
      }
    }
  });
});
