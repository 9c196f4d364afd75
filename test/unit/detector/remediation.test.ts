import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { isOwnedBy, readRemediation, trimRemediation } from "../../../src/detector/remediation.ts";
import { CHECK_UID, remediationOf } from "./world.ts";

describe("remediation of any vendor", () => {
  it("belongs to the health check of that UID, not to one that bears its name", () => {
    const { object } = remediationOf("a");
    assert.equal(isOwnedBy(object, CHECK_UID), true);
    assert.equal(isOwnedBy(object, "a-later-check-of-that-name"), false);
    const foreign = { ...object, metadata: { ...object.metadata, ownerReferences: [] } };
    assert.equal(isOwnedBy(foreign, CHECK_UID), false);
  });

  it("is read whatever its status looks like", () => {
    const metadata = { name: "n1", uid: "u", resourceVersion: "1" };
    for (const status of [undefined, 1, "x", [], { conditions: 3 }, { conditions: [null, { type: 1 }], attempt: [] }]) {
      const raw = { apiVersion: "fence.example/v1", kind: "Fence", metadata, status };
      const { nodeName, succeeded, powerOrdered } = readRemediation(trimRemediation(raw));
      assert.deepEqual([nodeName, succeeded, powerOrdered], ["n1", undefined, false]);
    }
  });
});
