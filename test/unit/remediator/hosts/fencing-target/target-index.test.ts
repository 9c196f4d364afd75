import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { FencingTarget } from "../../../../../src/api/ironfence/fencing-target.ts";
import type { BareMetalHost } from "../../../../../src/api/metal3/metal3.ts";
import { HostIndex } from "../../../../../src/remediator/hosts/bare-metal-host/lookup/host-index.ts";
import { TargetIndex } from "../../../../../src/remediator/hosts/fencing-target/target-index.ts";

const NAMESPACE = "ironfence-system";

function target(name: string, address: string, message = ""): FencingTarget {
  return {
    apiVersion: "ironfence.io/v1alpha1",
    kind: "FencingTarget",
    metadata: { namespace: NAMESPACE, name, uid: name, resourceVersion: "1", generation: 1 },
    spec: {
      nodeName: name,
      maintenance: false,
      identity: { verification: "Required" },
      devices: [{ address, credentialsSecretRef: { name: "bmc" }, level: 1 }],
    },
    status: { conditions: [{ type: "Ready", status: "False", reason: "Ambiguous", message, lastTransitionTime: "" }] },
  };
}

function updated<T>(object: T): { type: "updated"; object: T; previous: T } {
  return { type: "updated", object, previous: object };
}

describe("FencingTargets that point at one BMC", () => {
  it("FencingTargets that point at one BMC always name the same competitor, or each status that is written would cause the next write", () => {
    const names = ["a", "b", "c"];
    const index = new TargetIndex(NAMESPACE);
    for (const name of names) index.apply({ type: "added", object: target(name, "redfish://bmc") });
    const reported = (): (string | undefined)[] => names.map((name) => index.conflictOf(name)?.message);
    const before = reported();
    assert.match(before[0] ?? "", /\/b points at/);
    for (const name of [...names, ...names]) {
      const touched = index.apply(updated(target(name, "redfish://bmc", "written")));
      assert.equal(touched.length, 3, "its competitors are still asked whether they conflict");
      assert.deepEqual(reported(), before);
    }
    assert.equal(index.deviceCount, 3);
  });

  it("FencingTargets that point at one BMC are no longer competitors once one has been corrected", () => {
    const index = new TargetIndex(NAMESPACE);
    for (const name of ["a", "b"]) index.apply({ type: "added", object: target(name, "redfish://bmc") });
    index.apply(updated(target("b", "redfish://other")));
    assert.equal(index.conflictOf("a"), undefined);
    assert.equal(index.conflictOf("b"), undefined);
    index.apply({ type: "deleted", object: target("b", "redfish://other") });
    assert.equal(index.byUid("b"), undefined);
    assert.equal(index.deviceCount, 1);
  });
});

describe("BareMetalHosts that were inspected with one serial number", () => {
  it("BareMetalHosts that were inspected with one serial number name the same counterpart whatever is written into them", () => {
    const names = ["a", "b", "c"];
    const hosts = names.map(
      (name) =>
        ({
          metadata: { namespace: "metal3", name, uid: name, resourceVersion: "1" },
          serialNumber: "S1234567",
          bmc: {},
        }) as BareMetalHost,
    );
    const index = new HostIndex();
    for (const object of hosts) index.applyHost({ type: "added", object });
    const reported = (): (string | undefined)[] => hosts.map((host) => index.otherWithSerial(host)?.metadata.name);
    assert.deepEqual(reported(), ["b", "a", "a"]);
    for (const host of hosts) {
      index.applyHost(updated(host));
      assert.deepEqual(reported(), ["b", "a", "a"]);
    }
  });
});
