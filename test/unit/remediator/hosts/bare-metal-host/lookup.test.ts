import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Node } from "../../../../../src/api/kubernetes/core.ts";
import type { BareMetalHost, Metal3Machine } from "../../../../../src/api/metal3/metal3.ts";
import { powerOffAnnotation, readBareMetalHost, readMetal3Machine } from "../../../../../src/api/metal3/metal3.ts";
import type { HostIdentity } from "../../../../../src/bmc/identity/host-identity.ts";
import type { Subject } from "../../../../../src/nodes/subject.ts";
import { localNode } from "../../../../../src/nodes/subject.ts";
import type { Located } from "../../../../../src/remediator/hosts/bare-metal-host/lookup/host-search.ts";
import { HostIndex } from "../../../../../src/remediator/hosts/bare-metal-host/lookup/host-index.ts";
import { foreignOffRequests } from "../../../../../src/remediator/hosts/bare-metal-host/store/host-annotations.ts";
import { disputeOf } from "../../../../../src/remediator/hosts/bare-metal-host/lookup/node-claims.ts";
import { judgeHost } from "../../../../../src/remediator/hosts/bare-metal-host/power/judge-host.ts";
import {
  maintenanceOf,
  powerPathOf,
  powerOffRefusal,
} from "../../../../../src/remediator/hosts/bare-metal-host/store/power-path.ts";
import {
  powerByStatus,
  STATUS_SETTLE_MS,
  StatusPowerReader,
} from "../../../../../src/remediator/hosts/bare-metal-host/power/power-reader.ts";
import { parseProviderID } from "../../../../../src/remediator/hosts/bare-metal-host/lookup/provider-id.ts";
import { VirtualClock } from "../../../../lib/virtual-clock.ts";

interface HostParts {
  name?: string;
  annotations?: Record<string, string>;
  deleted?: boolean;
  spec?: Record<string, unknown>;
  status?: Record<string, unknown>;
}

const CONSUMER = { apiVersion: "infrastructure.cluster.x-k8s.io/v1beta1", kind: "Metal3Machine", namespace: "metal3" };

function hostOf({
  name = "h1",
  annotations = {},
  deleted = false,
  spec = {},
  status = {},
}: HostParts = {}): BareMetalHost {
  return readBareMetalHost({
    apiVersion: "metal3.io/v1alpha1",
    kind: "BareMetalHost",
    metadata: {
      name,
      namespace: "metal3",
      uid: `uid-${name}`,
      resourceVersion: "1",
      annotations,
      ...(deleted && { deletionTimestamp: "2026-01-01T00:00:00Z" }),
    },
    spec: { online: true, bmc: { address: `redfish://${name}/1`, credentialsName: "bmc" }, ...spec },
    status: { operationalStatus: "OK", poweredOn: true, provisioning: { state: "provisioned" }, ...status },
  } as never);
}

function machineOf(name: string, host: string | undefined, spec: Record<string, unknown> = {}): Metal3Machine {
  const annotations = host === undefined ? {} : { "metal3.io/BareMetalHost": `metal3/${host}` };
  const owner = { apiVersion: "cluster.x-k8s.io/v1beta1", kind: "Machine", name, uid: `uid-${name}` };
  return readMetal3Machine({
    apiVersion: "infrastructure.cluster.x-k8s.io/v1beta1",
    kind: "Metal3Machine",
    metadata: {
      name: `${name}-m3`,
      namespace: "metal3",
      uid: `m3-${name}`,
      resourceVersion: "1",
      annotations,
      ownerReferences: [owner],
    },
    spec,
  } as never);
}

function nodeOf(
  name: string,
  spec: Node["spec"] = {},
  annotations: Record<string, string> = {},
  systemUUID?: string,
): Node {
  const metadata = { name, uid: `node-${name}`, resourceVersion: "1", annotations };
  return {
    apiVersion: "v1",
    kind: "Node",
    metadata,
    spec,
    status: { nodeInfo: { ...(systemUUID !== undefined && { systemUUID }) } },
  };
}

const ofMachine = (name: string): Subject => ({
  nodeName: `node-of-${name}`,
  cluster: { namespace: "metal3", name: "workload" },
  machine: { apiVersion: "cluster.x-k8s.io/v1beta1", kind: "Machine", namespace: "metal3", name, uid: `uid-${name}` },
});

function indexOf(hosts: readonly BareMetalHost[], machines: readonly Metal3Machine[] = []): HostIndex {
  const index = new HostIndex();
  for (const object of hosts) index.applyHost({ type: "added", object });
  for (const object of machines) index.applyMachine({ type: "added", object });
  return index;
}

const nameOf = (located: Located): string =>
  located.found ? located.host.metadata.name : `${located.reason}: ${located.message}`;

describe("a Node's report of its BareMetalHost", () => {
  const UUID = "11111111-2222-4333-8444-000000000001";
  const used = hostOf({ spec: { consumerRef: { ...CONSUMER, name: "m1-m3" } } });
  const okd = hostOf({ spec: { consumerRef: { kind: "Machine", namespace: "okd", name: "w1" } } });
  const honest = nodeOf("n1", { providerID: "metal3://metal3/h1/m1-m3" }, {}, UUID);
  const rows: { what: string; host?: BareMetalHost; node?: Node; other?: Node; disputed?: RegExp }[] = [
    { what: "no other object says the same" },
    { what: "it is asked among all", other: honest },
    { what: "another one runs elsewhere", other: nodeOf("n2", { providerID: "metal3://metal3/h2/m2-m3" }) },
    {
      what: "another one has its providerID",
      other: nodeOf("n2", { providerID: "metal3://metal3/h1/m1-m3" }),
      disputed:
        /^Node n1 and Node n2 \(by its spec.providerID metal3:.*\) both report that they run on BareMetalHost metal3\/h1/,
    },
    {
      what: "another one names the same host in another form",
      other: nodeOf("n2", { providerID: "metal3://uid-h1" }),
      disputed: /Node n2/,
    },
    {
      what: "another one was that of a Machine that had the host before",
      other: nodeOf("n2", { providerID: "metal3://metal3/h1/m0-m3" }),
    },
    {
      what: "another one has its system UUID",
      other: nodeOf("n2", {}, {}, UUID.toUpperCase()),
      disputed: /Node n2 \(by its system UUID/,
    },
    {
      what: "another one has the name of its Machine",
      host: okd,
      node: nodeOf("n1"),
      other: nodeOf("n2", {}, { "machine.openshift.io/machine": "okd/w1" }),
      disputed: /Node n2 \(by its annotation/,
    },
    {
      what: "another one has the name of a host without a consumer",
      host: hostOf(),
      node: nodeOf("n1", { providerID: "metal3://uid-h1" }),
      other: nodeOf("h1"),
      disputed: /Node h1 \(by its name\)/,
    },
    {
      what: "it names another host than its Machine",
      node: nodeOf("n1", { providerID: "metal3://metal3/h2/m1-m3" }),
      disputed: /names another BareMetalHost than BareMetalHost metal3\/h1/,
    },
    {
      what: "it names a namesake that was there before",
      node: nodeOf("n1", { providerID: "baremetalhost:///metal3/h1/uid-before" }),
      disputed: /names another BareMetalHost/,
    },
  ];
  for (const { what, host = used, node = honest, other, disputed } of rows) {
    it(`a Node's report of its BareMetalHost is ${disputed === undefined ? "trusted" : "not trusted"} if ${what}`, () => {
      const dispute = disputeOf(host, node.metadata.name, node, [node, ...(other === undefined ? [] : [other])]);
      if (disputed === undefined) assert.equal(dispute, undefined);
      else assert.match(dispute ?? "", disputed);
    });
  }

  it("a Node's report of its BareMetalHost is not disputed by the Node itself if a reboot has deleted it and it joins again meanwhile", () => {
    assert.equal(disputeOf(used, "n1", undefined, [honest]), undefined);
    assert.match(disputeOf(used, "n2", undefined, [honest]) ?? "", /^Node n2 and Node n1/);
  });

  it("a Node's report of its BareMetalHost is also compared with a Machine that has no Node yet", () => {
    const stale = nodeOf("n2", { providerID: "metal3://uid-h1" });
    assert.match(disputeOf(used, undefined, undefined, [stale]) ?? "", /^the Machine's node and Node n2/);
    assert.equal(disputeOf(used, undefined, undefined, [nodeOf("n2")]), undefined);
  });
});

describe("the BareMetalHost of a Machine", () => {
  const taken = (name: string): Record<string, unknown> => ({ consumerRef: { ...CONSUMER, name } });

  it("the BareMetalHost of a Machine is named by its Metal3Machine's annotation, by consumerRef and by providerID, which agree", () => {
    const index = indexOf(
      [hostOf({ spec: taken("m1-m3") }), hostOf({ name: "h2", spec: taken("m2-m3") })],
      [machineOf("m1", "h1", { providerID: "metal3://metal3/h1/m1-m3" }), machineOf("m2", "h2")],
    );
    assert.equal(nameOf(index.locate(ofMachine("m1"), undefined)), "h1");
    assert.equal(nameOf(index.locate(ofMachine("m2"), undefined)), "h2");
  });

  it("the BareMetalHost of a Machine is found by each reference without the others", () => {
    const host = hostOf({ spec: taken("m1-m3") });
    const plain = hostOf();
    for (const [what, index] of [
      ["annotation", indexOf([plain], [machineOf("m1", "h1")])],
      ["consumerRef", indexOf([host], [machineOf("m1", undefined)])],
      ["providerID by UID", indexOf([plain], [machineOf("m1", undefined, { providerID: "metal3://uid-h1" })])],
      ["providerID by name", indexOf([host], [machineOf("m1", undefined, { providerID: "metal3://metal3/h1/m1-m3" })])],
    ] as const) {
      assert.equal(nameOf(index.locate(ofMachine("m1"), undefined)), "h1", what);
    }
  });

  it("the BareMetalHost of a Machine is ambiguous if two references disagree", () => {
    const index = indexOf([hostOf(), hostOf({ name: "h2", spec: taken("m1-m3") })], [machineOf("m1", "h1")]);
    assert.match(
      nameOf(index.locate(ofMachine("m1"), undefined)),
      /^Ambiguous: Machine metal3\/m1 has more than one host \(BareMetalHost metal3\/h1 by the annotation of Metal3Machine metal3\/m1-m3; BareMetalHost metal3\/h2 by spec.consumerRef/,
    );
  });

  it("the BareMetalHost of a Machine is not one that another machine has taken", () => {
    const index = indexOf([hostOf({ spec: taken("m2-m3") })], [machineOf("m1", "h1")]);
    assert.match(
      nameOf(index.locate(ofMachine("m1"), undefined)),
      /^Ambiguous: .*is used by Metal3Machine metal3\/m2-m3/,
    );
  });

  it("the BareMetalHost of a Machine is not one that a machine merely claims by annotation or providerID, while a namesake of another namespace has it", () => {
    const foreign = hostOf({ spec: { consumerRef: { ...CONSUMER, namespace: "others", name: "m1-m3" } } });
    for (const claimant of [
      machineOf("m1", "h1"),
      machineOf("m1", undefined, { providerID: "metal3://uid-h1" }),
      machineOf("m1", undefined, { providerID: "metal3://metal3/h1/m1-m3" }),
      machineOf("m1", undefined, { providerID: "baremetalhost:///metal3/h1/uid-h1" }),
    ]) {
      assert.match(
        nameOf(indexOf([foreign], [claimant]).locate(ofMachine("m1"), undefined)),
        /^Ambiguous: .*is used by Metal3Machine others\/m1-m3/,
      );
    }
  });

  it("the BareMetalHost of a Machine is not one of another namespace that does not say that it is the machine's", () => {
    const host = hostOf();
    const elsewhere: BareMetalHost = { ...host, metadata: { ...host.metadata, namespace: "others" } };
    const index = indexOf([elsewhere], [machineOf("m1", undefined, { providerID: "metal3://uid-h1" })]);
    assert.match(nameOf(index.locate(ofMachine("m1"), undefined)), /^Ambiguous: .*is in another namespace/);
  });

  it("the BareMetalHost of a Machine is not one that was deleted, nor one that was created again under its name", () => {
    const gone = indexOf([], [machineOf("m1", "h1")]);
    assert.match(
      nameOf(gone.locate(ofMachine("m1"), undefined)),
      /^NoTarget: .*names BareMetalHost metal3\/h1, which does not exist/,
    );
    const anew = indexOf([hostOf()]);
    const node = nodeOf("n1", { providerID: "baremetalhost:///metal3/h1/uid-of-before" });
    assert.match(nameOf(anew.locate(localNode("n1"), node)), /^NoTarget: .*does not exist/);
  });

  it("the BareMetalHost of a Machine of OKD is the one whose consumerRef names the Machine that the node names", () => {
    const consumerRef = {
      apiVersion: "machine.openshift.io/v1beta1",
      kind: "Machine",
      namespace: "okd",
      name: "worker-0",
    };
    const index = indexOf([hostOf({ spec: { consumerRef } })]);
    const node = nodeOf("n1", {}, { "machine.openshift.io/machine": "okd/worker-0" });
    assert.equal(nameOf(index.locate(localNode("n1"), node)), "h1");
    assert.match(nameOf(index.locate(localNode("n1"), nodeOf("n1"))), /^NoTarget/);
  });
});

describe("the BareMetalHost of a node", () => {
  it("the BareMetalHost of a node is named by the node's providerID if its owner has allowed that, and by no kubelet's word alone", () => {
    const allowed = hostOf();
    allowed.metadata.annotations = { "ironfence.io/allow-provider-id": "true" };
    const index = indexOf([allowed]);
    const machine = { "machine.openshift.io/machine": "okd/worker-0" };
    for (const providerID of ["metal3://uid-h1", "metal3://metal3/h1/m1-m3", "baremetalhost:///metal3/h1/uid-h1"]) {
      assert.equal(nameOf(index.locate(localNode("n1"), nodeOf("n1", { providerID }))), "h1", providerID);
      for (const node of [nodeOf("n1", { providerID }), nodeOf("n1", { providerID }, machine)]) {
        assert.match(nameOf(indexOf([hostOf()]).locate(localNode("n1"), node)), /^NoTarget/, providerID);
      }
    }
  });

  it("the BareMetalHost of a node is the one with the node's name, unless its providerID names another one, even without permission", () => {
    const [h1, n1] = [hostOf(), hostOf({ name: "n1" })];
    const locate = (providerID: string) => indexOf([h1, n1]).locate(localNode("n1"), nodeOf("n1", { providerID }));
    assert.equal(nameOf(locate("metal3://uid-n1")), "n1");
    assert.match(nameOf(locate("metal3://uid-h1")), /^Ambiguous/);
  });

  it("the BareMetalHost of a node is not one that was provisioned for another machine since", () => {
    const index = indexOf([hostOf({ spec: { consumerRef: { ...CONSUMER, name: "m2-m3" } } })]);
    const node = nodeOf("n1", { providerID: "metal3://metal3/h1/m1-m3" });
    assert.match(nameOf(index.locate(localNode("n1"), node)), /^Ambiguous/);
  });

  it("the BareMetalHost of a node is the one with its name only if there is no other reference and no consumer", () => {
    assert.equal(nameOf(indexOf([hostOf({ name: "n1" })]).locate(localNode("n1"), nodeOf("n1"))), "n1");
    const taken = indexOf([hostOf({ name: "n1", spec: { consumerRef: { ...CONSUMER, name: "x" } } })]);
    assert.match(nameOf(taken.locate(localNode("n1"), nodeOf("n1"))), /^NoTarget/);
    const elsewhere = { ...localNode("n1"), cluster: { namespace: "metal3", name: "workload" } };
    assert.match(
      nameOf(indexOf([hostOf({ name: "n1" })]).locate(elsewhere, undefined)),
      /^NoTarget/,
      "another cluster's node",
    );
  });

  it("the BareMetalHost of a node follows what is watched", () => {
    const index = indexOf([hostOf({ name: "n1" })]);
    index.applyHost({ type: "deleted", object: hostOf({ name: "n1" }) });
    assert.match(nameOf(index.locate(localNode("n1"), nodeOf("n1"))), /^NoTarget/);
    assert.equal(index.byUid("uid-n1"), undefined);
    assert.deepEqual(index.claiming(["system redfish https://n1 1"]), []);
  });
});

describe("a host that was taken", () => {
  it("a claimed host no longer belongs to its subject when it serves another Machine, but not when its own Machine is deleted", () => {
    const host = hostOf({ spec: { consumerRef: { ...CONSUMER, name: "m2-m3" } } });
    const index = indexOf([host], [machineOf("m2", "h1")]);
    assert.match(index.mismatchOf(host, ofMachine("m1"), undefined) ?? "", /now serves Metal3Machine metal3\/m2-m3/);
    assert.equal(indexOf([hostOf()]).mismatchOf(hostOf(), ofMachine("m1"), undefined), undefined);
    assert.equal(index.mismatchOf(host, ofMachine("m2"), undefined), undefined);
  });

  it("a claimed host no longer belongs to its subject when it serves another Machine of OKD, whatever the node's providerID is", () => {
    const apiVersion = "machine.openshift.io/v1beta1";
    const host = hostOf({ spec: { consumerRef: { apiVersion, kind: "Machine", namespace: "okd", name: "worker-1" } } });
    const node = nodeOf("n1", { providerID: "baremetalhost:///metal3/h1/uid-h1" });
    const subject = (name: string): Subject => ({
      ...localNode("n1"),
      machine: { apiVersion, kind: "Machine", namespace: "okd", name, uid: name },
    });
    const index = indexOf([host]);
    for (const seen of [node, undefined]) {
      assert.match(index.mismatchOf(host, subject("worker-0"), seen) ?? "", /used by Machine okd\/worker-1/);
      assert.equal(index.mismatchOf(host, subject("worker-1"), seen), undefined);
    }
    assert.match(nameOf(index.locate(subject("worker-0"), node)), /^Ambiguous: .*used by Machine okd\/worker-1/);
  });

  it("a claimed host no longer belongs to its subject once the subject has another host", () => {
    const index = indexOf([hostOf(), hostOf({ name: "h2" })], [machineOf("m1", "h2")]);
    assert.match(index.mismatchOf(hostOf(), ofMachine("m1"), undefined) ?? "", /BareMetalHost metal3\/h2 is/);
  });
});

describe("a providerID", () => {
  it("a providerID names a host in Metal3's and OKD's forms, and in no other", () => {
    assert.deepEqual(parseProviderID("metal3://4711"), { uid: "4711" });
    assert.deepEqual(parseProviderID("metal3://ns/h1/m1"), { namespace: "ns", name: "h1", consumer: "m1" });
    assert.deepEqual(parseProviderID("baremetalhost:///ns/h1/4711"), { namespace: "ns", name: "h1", uid: "4711" });
    for (const text of [
      "",
      "metal3://",
      "metal3://a/b",
      "metal3://a//c",
      "aws:///eu/i-1",
      "baremetalhost:///h1",
      "metal3://a/b/c/d",
    ]) {
      assert.equal(parseProviderID(text), undefined, text);
    }
  });
});

describe("who powers a host", () => {
  it("a host is powered by its operator or, when it is detached, by ironfence, and by neither in between", () => {
    const detached = { "baremetalhost.metal3.io/detached": "" };
    assert.equal(powerPathOf(hostOf()), "Operator");
    assert.equal(powerPathOf(hostOf({ annotations: detached, status: { operationalStatus: "detached" } })), "Direct");
    assert.equal(powerPathOf(hostOf({ annotations: detached })), "Changing");
    assert.equal(powerPathOf(hostOf({ status: { operationalStatus: "detached" } })), "Changing");
  });

  for (const [reason, parts] of [
    ["HostBeingDeleted", { deleted: true }],
    ["PowerOffDisabled", { spec: { disablePowerOff: true } }],
    ["HostDetaching", { annotations: { "baremetalhost.metal3.io/detached": "" } }],
    ["HostNotProvisioned", { status: { provisioning: { state: "deprovisioning" } } }],
    ["HostNotProvisioned", { status: { provisioning: {} } }],
    ["HostOffline", { spec: { online: false } }],
  ] as const) {
    it(`a host is refused as ${reason} for ${JSON.stringify(parts)}`, () => {
      const refusal = powerOffRefusal(hostOf(parts));
      assert.equal(refusal?.reason, reason);
      assert.match(refusal?.message ?? "", /BareMetalHost metal3\/h1/);
    });
  }

  it("a power order is not refused for a host that is provisioned, by its operator or externally", () => {
    assert.equal(powerOffRefusal(hostOf()), undefined);
    assert.equal(powerOffRefusal(hostOf({ status: { provisioning: { state: "externally provisioned" } } })), undefined);
  });

  it("no power order goes to a paused host, which its operator would not power", () => {
    const paused = { "baremetalhost.metal3.io/paused": "" };
    assert.match(maintenanceOf(hostOf({ annotations: paused })) ?? "", /is paused/);
    assert.equal(maintenanceOf(hostOf()), undefined);
  });

  it("the holds of others on a host are told apart from our own", () => {
    const annotations = {
      [powerOffAnnotation({ uid: "1" })]: "",
      "reboot.metal3.io": "",
      "reboot.metal3.io/x": "",
      "ironfence.io/owner": "",
    };
    assert.deepEqual(foreignOffRequests(hostOf({ annotations })), ["reboot.metal3.io", "reboot.metal3.io/x"]);
  });
});

describe("whose BMC it is that answers", () => {
  const uuid = (n: number): string => `00000000-0000-4000-8000-00000000000${n}`;
  const hardware = { hardware: { systemVendor: { serialNumber: "SN-1" } } };
  const consumed = { consumerRef: { ...CONSUMER, name: "m1-m3" } };
  const node = nodeOf("n1", {}, {}, uuid(1));
  const owner = {
    "ironfence.io/owner": JSON.stringify({
      uid: "r",
      kind: "BareMetalRemediation",
      namespace: "x",
      name: "y",
      systemUUID: uuid(1),
    }),
  };
  const verdict = (parts: HostParts, known: Node | undefined, answer: Omit<HostIdentity, "device">): string => {
    const judged = judgeHost(hostOf(parts), known, { device: "bmc", ...answer }, undefined);
    return judged.verified ? "verified" : judged.reason;
  };
  for (const [what, parts, known, answer, expected] of [
    ["the node's system UUID", {}, node, { systemUUID: uuid(1) }, "verified"],
    [
      "another system UUID than the node's",
      { status: hardware, spec: consumed },
      node,
      { systemUUID: uuid(2), serialNumber: "SN-1" },
      "Mismatch",
    ],
    [
      "the UUID that the owner found, without a node",
      { annotations: owner },
      undefined,
      { systemUUID: uuid(1) },
      "verified",
    ],
    ["another UUID than the owner found", { annotations: owner }, undefined, { systemUUID: uuid(2) }, "Mismatch"],
    [
      "the serial number of a host that serves a machine",
      { status: hardware, spec: consumed },
      undefined,
      { serialNumber: "SN-1" },
      "verified",
    ],
    [
      "the service tag, which Dell gives as SKU",
      { status: hardware, spec: consumed },
      undefined,
      { serialNumber: "BOARD-7", sku: "SN-1" },
      "verified",
    ],
    ["another serial number", { status: hardware, spec: consumed }, undefined, { serialNumber: "SN-2" }, "Mismatch"],
    [
      "the serial number of a host that only a name ties to the node",
      { status: hardware },
      undefined,
      { serialNumber: "SN-1" },
      "Unknown",
    ],
    ["nothing at all", { status: hardware, spec: consumed }, node, {}, "Unknown"],
    [
      "a serial number that is not valid",
      { status: { hardware: { systemVendor: { serialNumber: "To be filled by O.E.M." } } }, spec: consumed },
      undefined,
      { serialNumber: "To be filled by O.E.M." },
      "Unknown",
    ],
  ] as const) {
    it(`a BMC that answers with ${what} is ${expected}`, () => assert.equal(verdict(parts, known, answer), expected));
  }

  it("a serial number that two hosts were inspected with proves neither, until one of them is deleted", () => {
    const index = new HostIndex();
    const [one, two] = ["h1", "h2"].map((name) => hostOf({ name, status: hardware, spec: consumed }));
    assert.ok(one !== undefined && two !== undefined);
    index.applyHost({ type: "added", object: one });
    index.applyHost({ type: "added", object: two });
    const judged = (): ReturnType<typeof judgeHost> =>
      judgeHost(one, undefined, { device: "bmc", serialNumber: "SN-1" }, index.otherWithSerial(one));
    const shared = judged();
    assert.ok(!shared.verified && shared.reason === "Unknown");
    assert.match(shared.message, /h2 was inspected with serial number SN-1 as well/);
    index.applyHost({ type: "deleted", object: two });
    assert.ok(judged().verified);
  });
});

describe("power from the status alone", () => {
  const owner = { uid: "r1", kind: "BareMetalRemediation", namespace: "x", name: "y" };
  const asked = (poweredOn: string, lastUpdated?: string): Record<string, string> => ({
    [powerOffAnnotation(owner)]: '{"mode":"hard"}',
    "ironfence.io/power-off-request": JSON.stringify({ uid: "r1", poweredOn, lastUpdated }),
  });
  const [before, after] = ["2026-01-01T00:00:00Z", "2026-01-01T00:01:00Z"];
  for (const [what, parts, expected] of [
    ["true to false since our request", { annotations: asked("true"), status: { poweredOn: false } }, "Off"],
    [
      "false, reported again since our request",
      { annotations: asked("false", before), status: { poweredOn: false, lastUpdated: after } },
      "Off",
    ],
    [
      "false as it was before",
      { annotations: asked("false", before), status: { poweredOn: false, lastUpdated: before } },
      "Changing",
    ],
    ["false, and nothing of ironfence keeps it off", { status: { poweredOn: false } }, "Changing"],
    [
      "false, and our off request was removed",
      {
        annotations: { "ironfence.io/power-off-request": asked("true")["ironfence.io/power-off-request"] ?? "" },
        status: { poweredOn: false },
      },
      "Changing",
    ],
    [
      "false by another client's request",
      {
        annotations: { ...asked("true"), "ironfence.io/power-off-request": '{"uid":"r2","poweredOn":"true"}' },
        status: { poweredOn: false },
      },
      "Changing",
    ],
    ["true", { annotations: asked("true") }, "On"],
    ["nothing", { annotations: asked("true"), status: { poweredOn: undefined } }, "Unknown"],
    [
      "false in addition to an error",
      { annotations: asked("true"), status: { poweredOn: false, errorType: "power management error" } },
      "Unknown",
    ],
    [
      "false of a host that is never powered off",
      { annotations: asked("true"), spec: { disablePowerOff: true }, status: { poweredOn: false } },
      "Unknown",
    ],
  ] as const) {
    it(`the power state by the status is ${expected} for poweredOn ${what}`, () =>
      assert.equal(powerByStatus(hostOf(parts), owner).state, expected));
  }

  it("power from the status alone is Off only after several reads in a row have shown it for a while", async () => {
    const clock = new VirtualClock();
    const { signal } = new AbortController();
    let host = hostOf({ annotations: asked("true"), status: { poweredOn: false } });
    const sense = new StatusPowerReader(clock, owner, () => Promise.resolve(host));
    const read = async (): Promise<string> => (await sense.read(signal)).state;
    assert.equal(await read(), "Changing");
    await clock.advance(STATUS_SETTLE_MS - 1);
    assert.equal(await read(), "Changing");
    await clock.advance(1);
    assert.equal(await read(), "Off");
    host = hostOf({ annotations: asked("true") });
    assert.equal(await read(), "On");
    host = hostOf({ annotations: asked("true"), status: { poweredOn: false } });
    assert.equal(await read(), "Changing", "from the start again");
  });
});
