import assert from "node:assert/strict";
import { describe, it } from "node:test";
import * as fc from "fast-check";
import { readCluster, readMachine } from "../../../src/api/cluster-api/cluster-api.ts";
import { readBareMetalHost, readMetal3Machine } from "../../../src/api/metal3/metal3.ts";
import { readOkdMachine } from "../../../src/api/okd/okd-machine.ts";
import type { KubeObject } from "../../../src/kube/resource.ts";

const SINCE = "2026-01-01T10:00:00Z";
const LATER = "2026-01-01T11:00:00Z";

function object(apiVersion: string, kind: string, content: object, metadata: object = {}): KubeObject {
  return {
    apiVersion,
    kind,
    metadata: { namespace: "tenant", name: "x", uid: "u", resourceVersion: "1", ...metadata },
    ...content,
  };
}

const cluster = (version: string, status: object, spec: object = {}) =>
  readCluster(object(`cluster.x-k8s.io/${version}`, "Cluster", { spec, status }));
const machine = (version: string, content: object, metadata: object = {}) =>
  readMachine(object(`cluster.x-k8s.io/${version}`, "Machine", content, metadata));
const condition = (type: string, status: string, lastTransitionTime = SINCE) => ({ type, status, lastTransitionTime });

describe("a Cluster of Cluster API", () => {
  it("a Cluster of Cluster API is paused by its spec alone", () => {
    assert.equal(cluster("v1beta2", {}, { paused: true }).paused, true);
    assert.equal(cluster("v1beta2", {}).paused, false);
  });

  const ready = [condition("InfrastructureReady", "True"), condition("ControlPlaneInitialized", "True", LATER)];
  const places: [string, string, object][] = [
    ["conditions of v1beta2", "v1beta2", { conditions: ready }],
    ["conditions of v1beta1 kept by v1beta2", "v1beta2", { deprecated: { v1beta1: { conditions: ready } } }],
    ["conditions of v1beta1", "v1beta1", { conditions: ready }],
    ["conditions of v1beta2 shown by v1beta1", "v1beta1", { v1beta2: { conditions: ready } }],
  ];
  for (const [what, version, status] of places) {
    it(`a Cluster of Cluster API is ready and initialized, with the times, by ${what}`, () => {
      const read = cluster(version, status);
      assert.equal(read.infrastructureReady, true);
      assert.equal(read.infrastructureReadySince, SINCE);
      assert.equal(read.controlPlaneInitialized, true);
      assert.equal(read.controlPlaneInitializedSince, LATER);
    });
  }

  const flags: [string, object][] = [
    ["v1beta2", { initialization: { infrastructureProvisioned: true, controlPlaneInitialized: true } }],
    ["v1beta1", { infrastructureReady: true, controlPlaneReady: true }],
  ];
  for (const [version, status] of flags) {
    it(`a Cluster of Cluster API is ready by the flags of ${version} if it has no conditions, from an unknown time`, () => {
      const read = cluster(version, status);
      assert.equal(read.infrastructureReady, true);
      assert.equal(read.infrastructureReadySince, undefined);
      assert.equal(read.controlPlaneInitialized, true);
      assert.equal(read.controlPlaneInitializedSince, undefined);
    });
  }

  it("a Cluster of Cluster API is not ready by a condition that is not True, whatever the flags say", () => {
    const status = { infrastructureReady: true, controlPlaneReady: true };
    for (const value of ["False", "Unknown"]) {
      const conditions = [condition("InfrastructureReady", value), condition("ControlPlaneInitialized", value)];
      const read = cluster("v1beta1", { ...status, conditions });
      assert.equal(read.infrastructureReady, false);
      assert.equal(read.infrastructureReadySince, undefined);
      assert.equal(read.controlPlaneInitialized, false);
    }
  });

  it("a Cluster of Cluster API is not ready if nothing reports that it is", () => {
    const read = cluster("v1beta2", {});
    assert.equal(read.infrastructureReady, false);
    assert.equal(read.controlPlaneInitialized, false);
  });
});

describe("a Machine of Cluster API", () => {
  it("a Machine of Cluster API names its infrastructure by group in v1beta2, by version in v1beta1", () => {
    const expected = {
      kind: "Metal3Machine",
      name: "m",
      namespace: "tenant",
      group: "infrastructure.cluster.x-k8s.io",
    };
    const byGroup = { apiGroup: expected.group, kind: expected.kind, name: "m" };
    const byVersion = { apiVersion: `${expected.group}/v1beta1`, kind: expected.kind, name: "m", namespace: "tenant" };
    assert.deepEqual(machine("v1beta2", { spec: { infrastructureRef: byGroup } }).infrastructureRef, expected);
    assert.deepEqual(machine("v1beta1", { spec: { infrastructureRef: byVersion } }).infrastructureRef, expected);
    assert.equal(
      machine("v1beta2", { spec: { infrastructureRef: { kind: "Metal3Machine" } } }).infrastructureRef,
      undefined,
    );
  });

  it("a Machine of Cluster API reports node, phase, cluster, provider ID and whether it is of the control plane", () => {
    const read = machine(
      "v1beta1",
      {
        spec: { clusterName: "alpha", providerID: "metal3://tenant/host/m" },
        status: { nodeRef: { kind: "Node", name: "n1" }, phase: "Running" },
      },
      { labels: { "cluster.x-k8s.io/control-plane": "" } },
    );
    assert.equal(read.clusterName, "alpha");
    assert.equal(read.providerID, "metal3://tenant/host/m");
    assert.equal(read.nodeName, "n1");
    assert.equal(read.phase, "Running");
    assert.equal(read.isControlPlane, true);
    const bare = machine("v1beta2", {});
    assert.equal(bare.nodeName, undefined);
    assert.equal(bare.isControlPlane, false);
  });

  it("a Machine of Cluster API reports what has failed permanently, in the fields of either version", () => {
    const failure = { failureReason: "CreateError", failureMessage: "no such image" };
    for (const read of [
      machine("v1beta1", { status: failure }),
      machine("v1beta2", { status: { deprecated: { v1beta1: failure } } }),
    ]) {
      assert.equal(read.failureReason, "CreateError");
      assert.equal(read.failureMessage, "no such image");
    }
  });

  it("a Machine of Cluster API keeps the conditions of either form apart", () => {
    const old = machine("v1beta1", {
      status: { conditions: [condition("Ready", "True")], v1beta2: { conditions: [condition("Available", "False")] } },
    });
    assert.deepEqual(
      old.v1beta1Conditions.map(({ type }) => type),
      ["Ready"],
    );
    assert.deepEqual(
      old.conditions.map(({ type }) => type),
      ["Available"],
    );
    const current = machine("v1beta2", {
      status: {
        conditions: [condition("Available", "False")],
        deprecated: { v1beta1: { conditions: [condition("Ready", "True")] } },
      },
    });
    assert.deepEqual(
      current.v1beta1Conditions.map(({ type }) => type),
      ["Ready"],
    );
    assert.deepEqual(
      current.conditions.map(({ type }) => type),
      ["Available"],
    );
  });
});

describe("a Metal3Machine", () => {
  it("a Metal3Machine has the host that its annotation names in full", () => {
    const hostOf = (annotation: string) =>
      readMetal3Machine(
        object(
          "infrastructure.cluster.x-k8s.io/v1beta1",
          "Metal3Machine",
          {},
          {
            annotations: { "metal3.io/BareMetalHost": annotation },
          },
        ),
      ).host;
    assert.deepEqual(hostOf("metal3/host-1"), { namespace: "metal3", name: "host-1" });
    for (const wrong of ["host-1", "/host-1", "metal3/", "a/b/c", ""]) assert.equal(hostOf(wrong), undefined, wrong);
  });
});

describe("objects of other projects", () => {
  it("objects of other projects can be read whatever they hold: no version of a CRD makes one unreadable", () => {
    const readers = [readCluster, readMachine, readOkdMachine, readBareMetalHost, readMetal3Machine];
    const names = fc.constantFrom(
      "conditions",
      "infrastructureRef",
      "nodeRef",
      "v1beta2",
      "deprecated",
      "v1beta1",
      "initialization",
      "bmc",
      "consumerRef",
      "provisioning",
      "hardware",
      "phase",
      "poweredOn",
      "type",
      "status",
      "name",
      "kind",
    );
    const { value } = fc.letrec((tie) => ({
      value: fc.oneof(
        { maxDepth: 4 },
        fc.jsonValue({ maxDepth: 1 }),
        tie("object"),
        fc.array(tie("value"), { maxLength: 3 }),
      ),
      object: fc.dictionary(names, tie("value"), { maxKeys: 6 }),
    }));
    fc.assert(
      fc.property(
        fc.constantFrom(...readers),
        fc.constantFrom("v1beta1", "v1beta2"),
        value,
        value,
        (read, version, spec, status) => {
          const { metadata } = read(object(`cluster.x-k8s.io/${version}`, "Any", { spec, status }));
          assert.equal(metadata.name, "x");
        },
      ),
      { seed: Number(process.env["SEED"] ?? 42) },
    );
  });
});
