import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { readClusterUid } from "../../../src/clusters/cluster-uid.ts";
import { createKubeClient } from "../../../src/kube/api-client/api-client.ts";
import { isKubeError } from "../../../src/kube/errors.ts";
import { VirtualClock } from "../../lib/virtual-clock.ts";
import { answer, ScriptedTransport } from "../kube/scripted-transport.ts";
import { evenRandom } from "../kube/support.ts";

function read(uid: unknown): Promise<string> {
  const transport = new ScriptedTransport();
  const metadata = { name: "kube-system", resourceVersion: "1", uid };
  transport.onList = () => answer(200, { apiVersion: "v1", kind: "Namespace", metadata });
  const client = createKubeClient({ transport, clock: new VirtualClock(), random: evenRandom });
  return readClusterUid(client, new AbortController().signal);
}

describe("the UID of a cluster", () => {
  it("the UID of a cluster is that of its namespace kube-system", async () => {
    assert.equal(await read("b6b0a1f6-8f0e-4a6e-9c39-2d1f8c9b7a55"), "b6b0a1f6-8f0e-4a6e-9c39-2d1f8c9b7a55");
    assert.equal(await read("u".repeat(64)), "u".repeat(64));
  });

  for (const [what, uid] of [
    ["longer than any UID", "u".repeat(65)],
    ["empty", ""],
    ["a number", 7],
    ["a list", [[], []]],
    ["an object", { length: 36 }],
    ["missing", undefined],
  ] as const) {
    it(`the UID of a cluster is refused if it is ${what}, because it is copied to the status of other objects`, async () => {
      await assert.rejects(read(uid), (error: unknown) => isKubeError(error, "BadResponse"));
    });
  }
});
