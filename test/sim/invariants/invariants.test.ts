import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { CONFIRM, QUARANTINED_BY } from "../../../src/api/names/annotations.ts";
import type { BareMetalRemediation } from "../../../src/api/ironfence/bare-metal-remediation.ts";
import type { Node, Pod } from "../../../src/api/kubernetes/core.ts";
import type { FencingTarget } from "../../../src/api/ironfence/fencing-target.ts";
import { REQUEST, RESTORED_BY_VELERO } from "../../../src/api/names/labels.ts";
import type { NodeHealthCheck } from "../../../src/api/ironfence/node-health-check.ts";
import { FENCED as FENCED_TAINT, OUT_OF_SERVICE, QUARANTINE } from "../../../src/api/kubernetes/taints.ts";
import type { KubeObject } from "../../../src/kube/resource.ts";
import { toTime } from "../../../src/runtime/time.ts";
import { FINALIZER } from "../../../src/remediator/effects/finalizer.ts";
import { INVARIANTS } from "./all.ts";
import { isStale, PAUSED } from "./came-back.ts";
import { unsettled } from "./endings.ts";
import type { Change, Facts, HostTruth, OrderRecord, Step } from "./facts.ts";
import { signerOf } from "./facts.ts";

// Each invariant is seen to break, on facts made by hand, and to hold on their lawful counterpart. Its name is that of
// the rule.

const FENCED = { spec: { taints: [OUT_OF_SERVICE, { ...FENCED_TAINT, value: "r1" }] } };
const ORDER: OrderRecord = {
  atMs: 0,
  agent: "agent",
  host: "n1",
  order: "ForceOff",
  outcome: "Started",
  remediation: "r1",
  attempt: { id: "a1", action: "ForceOff", retryCount: 0 },
};

/** The rules of that name that the step breaks. */
function broken(name: string, facts: Facts, step: Step): string[] {
  return INVARIANTS.filter((invariant) => invariant.name === name).flatMap(
    (invariant) => invariant.check(facts, step) ?? [],
  );
}

function assertBroken(name: string, facts: Facts, step: Step, what: RegExp): void {
  const found = broken(name, facts, step);
  assert.equal(found.length, 1, `${name}: ${found.join("; ")}`);
  assert.match(found[0] ?? "", what);
}

function assertHolds(name: string, facts: Facts, step: Step): void {
  assert.deepEqual(broken(name, facts, step), []);
}

function world(parts: Partial<Facts> = {}): Facts {
  const none = new Map<string, never>();
  const nodes: Facts["nodes"] = parts.nodes ?? none;
  const fenced = [...nodes].filter(([, node]) => signerOf(node, "outOfService") !== undefined);
  return {
    atMs: 100_000,
    epochMs: 100_000,
    hosts: new Map([host("n1"), host("n2")].map((truth) => [truth.name, truth])),
    nodes: none,
    pods: none,
    attachments: none,
    remediations: none,
    present: new Set(),
    targets: none,
    checks: none,
    leader: undefined,
    orders: [],
    notOffSinceMs: none,
    fenced: new Set(fenced.map(([name]) => name)),
    limits: { hosts: Infinity, perZone: Infinity },
    asked: new Set(),
    operated: new Set(),
    warnings: none,
    failedBy: none,
    begun: none,
    readySince: none,
    notReadySinceMs: none,
    clearedMembers: new Set(),
    isEtcdExternal: false,
    heldSinceMs: none,
    hamperedAtMs: () => undefined,
    ownTaints: none,
    calmSinceMs: 0,
    devicesWell: true,
    nodesLag: false,
    clocksAgree: true,
    isServerClockSet: false,
    clocksDoubtedAtMs: -Infinity,
    ...parts,
  };
}

function host(name: string, parts: Partial<HostTruth> = {}): HostTruth {
  return {
    name,
    power: "On",
    canWrite: true,
    workloads: new Map(),
    bootSetting: { enabled: "Disabled" },
    spec: { labels: {} },
    ...parts,
  };
}

function hosts(...truths: HostTruth[]): Pick<Facts, "hosts"> {
  return { hosts: new Map(truths.map((truth) => [truth.name, truth])) };
}

function object<T extends KubeObject>(kind: T["kind"], name: string, parts: Record<string, unknown>): T {
  const { metadata = {}, ...rest } = parts;
  const common = { name, uid: `uid-${name}`, resourceVersion: "1" };
  return { apiVersion: "v1", kind, metadata: { ...common, ...(metadata as object) }, ...rest } as unknown as T;
}

const node = (parts: Record<string, unknown> = {}): Node =>
  object<Node>("Node", "n1", {
    status: { conditions: [{ type: "Ready", status: "True" }] },
    spec: {},
    ...parts,
  });

function remediation(status: Record<string, unknown>, strategy: Record<string, unknown> = {}): BareMetalRemediation {
  const spec = { strategy: { type: "Reboot", retryLimit: 0, drainTimeout: "20s", requireReboot: true, ...strategy } };
  return object<BareMetalRemediation>("BareMetalRemediation", "n1", { metadata: { uid: "r1" }, spec, status });
}

function remediations(...all: BareMetalRemediation[]): Pick<Facts, "remediations" | "present"> {
  return {
    remediations: new Map(all.map((one) => [one.metadata.uid, one])),
    present: new Set(all.map((one) => one.metadata.uid)),
  };
}

const target = (owner: string | undefined): FencingTarget =>
  object<FencingTarget>("FencingTarget", "n1", {
    spec: { nodeName: "n1", devices: [{ address: "redfish://n1" }] },
    status: owner === undefined ? {} : { owner: { uid: owner, name: "n1" } },
  });

function wrote(after: KubeObject, before?: KubeObject, by: string | undefined = "agent", type?: Change["type"]): Step {
  const change: Change = {
    type: type ?? (before === undefined ? "ADDED" : "MODIFIED"),
    object: after,
    ...(before !== undefined && { previous: before }),
  };
  return { type: "wrote", by, change };
}

const condition = (type: string, status: string, reason = "-", message = ""): object => ({
  type,
  status,
  reason,
  message,
});

describe("S1", () => {
  const off = world(hosts(host("n1", { power: "Off" })));
  const halfOff = world(hosts(host("n1", { power: "PoweringOff" })));
  const pod = object<Pod>("Pod", "db", { spec: { nodeName: "n1" } });

  it("S1 breaks if the taint is put on a host that is not off yet, holds if it is off or another client sets it", () => {
    assertBroken("S1", halfOff, wrote(node(FENCED), node()), /taint was put on n1 while n1 is PoweringOff/);
    assertHolds("S1", off, wrote(node(FENCED), node()));
    assertHolds("S1", halfOff, { ...wrote(node(FENCED), node()), by: undefined } as Step);
  });

  it("S1 breaks if a pod is ended, or the Node deleted, on a host that is not off", () => {
    assertBroken("S1", halfOff, wrote(pod, pod), /pod db was ended/);
    assertBroken("S1", halfOff, wrote(pod, pod, "agent", "DELETED"), /pod db was ended/);
    assertBroken("S1", halfOff, wrote(node(), node(), "agent", "DELETED"), /Node n1 was deleted/);
    assertHolds("S1", off, wrote(pod, pod, "agent", "DELETED"));
  });

  it("S1 excuses what is done to a host that another client has just powered on, not one that we have, nor later", () => {
    const justOn = { ...hosts(host("n1", { power: "PoweringOn" })), notOffSinceMs: new Map([["n1", 97_000]]) };
    const ours = { ...ORDER, order: "On", atMs: 97_000 } as const;
    const step = wrote(node(FENCED), node());
    assertHolds("S1", world(justOn), step);
    assertBroken("S1", world({ ...justOn, orders: [ours] }), step, /taint was put on n1/);
    assertBroken("S1", world({ ...justOn, notOffSinceMs: new Map([["n1", 92_000]]) }), step, /taint was put on n1/);
  });

  it("S1 breaks if a host is ordered on with the taint on", () => {
    const step: Step = { type: "ordered", record: { ...ORDER, order: "On" } };
    assertBroken("S1", world({ nodes: new Map([["n1", node(FENCED)]]) }), step, /ordered on with our/);
    assertHolds("S1", world({ nodes: new Map([["n1", node()]]) }), step);
  });

  it("S1 breaks if the taint outlasts the proof, holds within its grace and after a disturbance", () => {
    const facts = { nodes: new Map([["n1", node(FENCED)]]), notOffSinceMs: new Map([["n1", 80_000]]) };
    assertBroken("S1", world(facts), { type: "passed" }, /has not been off for 20000 ms/);
    assertHolds("S1", world({ ...facts, calmSinceMs: 95_000 }), { type: "passed" });
    assertHolds("S1", world({ ...facts, atMs: 85_000 }), { type: "passed" });
    assertHolds("S1", world({ ...facts, notOffSinceMs: new Map() }), { type: "passed" });
  });
});

describe("S2", () => {
  const workloads = new Map([["p", { pod: "default/db-0", claims: ["default/data"] }]]);
  it("S2 breaks if pods on two hosts can write to one claim, holds if one of the hosts is off", () => {
    const both = world(hosts(host("n1", { workloads }), host("n2", { workloads })));
    assertBroken("S2", both, { type: "passed" }, /default\/data is written to on n1 and on n2/);
    const one = world(hosts(host("n1", { workloads, canWrite: false }), host("n2", { workloads })));
    assertHolds("S2", one, { type: "passed" });
  });

  it("S2 does not blame ironfence for the out-of-service taint that another client put on a node that runs, and blames it for its own", () => {
    const both = hosts(host("n1", { workloads }), host("n2", { workloads }));
    const tainted = new Map([["n1", node({ spec: { taints: [OUT_OF_SERVICE] } })]]);
    assertHolds("S2", world({ ...both, nodes: tainted }), { type: "passed" });
    assertBroken("S2", world({ ...both, nodes: new Map([["n1", node(FENCED)]]) }), { type: "passed" }, /written to/);
  });
});

describe("S3", () => {
  const on: Step = { type: "ordered", record: { ...ORDER, order: "On" } };
  const attempt = { action: "On", actionAt: "2026-01-01T00:00:10Z", offConfirmedAt: "2026-01-01T00:00:00Z" };
  const poweringOn = (...conditions: object[]): Facts =>
    world(remediations(remediation({ phase: "PoweringOn", attempt, conditions })));

  it("S3 breaks if a host is ordered on before it is drained, without an intent, or in another state", () => {
    assertBroken("S3", poweringOn(), on, /nothing says that its workloads have left/);
    assertBroken(
      "S3",
      poweringOn(condition("WorkloadsReleased", "False", "DrainTimeout")),
      on,
      /10000 ms after the proof/,
    );
    assertBroken(
      "S3",
      world(remediations(remediation({ phase: "Releasing", attempt }))),
      on,
      /ordered on in Releasing/,
    );
    assertBroken("S3", world(), on, /ordered on by no remediation/);
  });

  it("S3 holds if it is drained, or taken back", () => {
    assertHolds("S3", poweringOn(condition("WorkloadsReleased", "True")), on);
    assertHolds("S3", world(remediations(remediation({ phase: "Undoing", outcome: {} }))), on);
  });

  it("S3 breaks if a node is reported as drained that is not", () => {
    const drained = remediation({ node: { name: "n1" }, conditions: [condition("WorkloadsReleased", "True")] });
    const step = wrote(drained, remediation({ node: { name: "n1" } }));
    const pods = new Map([["default/db", object<Pod>("Pod", "db", { spec: { nodeName: "n1" } })]]);
    assertBroken("S3", world({ pods }), step, /reported as drained, but pod db/);
    assertHolds("S3", world(), step);
  });

  it("S3 breaks if a remediation ends and leaves off the host that it turned off", () => {
    const failed = (message: string): BareMetalRemediation =>
      remediation({
        phase: "Failed",
        node: { name: "n1" },
        conditions: [condition("Succeeded", "False", "x", message)],
      });
    const facts = { orders: [ORDER], ...hosts(host("n1", { power: "Off" })) };
    const end = (message = ""): Step => wrote(failed(message), remediation({ phase: "Undoing" }));
    assertBroken("S3", world(facts), end(), /has ended, and n1, which it turned off, is Off/);
    assertHolds("S3", world({ ...facts, operated: new Set(["n1"]) }), end());
    assertBroken("S3", world(facts), end("it may still be OFF"), /has ended/);
    assertHolds("S3", world({ ...facts, devicesWell: false }), end("it may still be OFF"));
    assertBroken("S3", world({ ...facts, devicesWell: false }), end(), /has ended/);
    assertHolds("S3", world({ ...facts, ...hosts(host("n1", { power: "PoweringOn" })) }), end());
    const gone = wrote(remediation({ phase: "Undoing" }), remediation({ phase: "Undoing" }), "agent", "DELETED");
    assertBroken("S3", world(facts), gone, /has ended/);
    const owner = { apiVersion: "v1", kind: "MachineSet", name: "set", uid: "set" };
    const replaced = (deletedAt?: string): Step =>
      wrote(
        remediation({ phase: "Failed", node: { name: "n1" }, replacement: { owner, ...(deletedAt && { deletedAt }) } }),
        remediation({ phase: "Provisioning" }),
      );
    assertHolds("S3", world(facts), replaced("2026-01-01T00:00:00Z"));
    assertBroken("S3", world(facts), replaced(), /has ended/);
  });
});

describe("S4", () => {
  const step: Step = { type: "ordered", record: ORDER };
  it("S4 breaks if two power-offs take effect under one id, or one without an intent", () => {
    const known = remediations(remediation({}));
    assertHolds("S4", world({ orders: [ORDER], ...known }), step);
    assertBroken(
      "S4",
      world({ orders: [ORDER, ORDER], ...known }),
      step,
      /2 power-offs of n1 took effect under attempt a1/,
    );
    const unintended: Step = {
      type: "ordered",
      record: { ...ORDER, attempt: { id: "a1", action: "None", retryCount: 0 } },
    };
    assertBroken("S4", world({ orders: [ORDER], ...known }), unintended, /without a stored intent/);
  });

  it("S4 breaks if there are more power cycles than 1 + retryLimit, or too many orders in one", () => {
    const third = { ...ORDER, attempt: { id: "a2", action: "ForceOff", retryCount: 1 } };
    const facts = { orders: [ORDER, third], ...remediations(remediation({})) };
    assertBroken("S4", world(facts), { type: "ordered", record: third }, /power cycle 2 of 1/);
    assertHolds("S4", world({ ...facts, ...remediations(remediation({}, { retryLimit: 1 })) }), {
      type: "ordered",
      record: third,
    });
    const many = Array.from({ length: 5 }, (_, at) => ({
      ...ORDER,
      attempt: { id: `a${at}`, action: "ForceOff", retryCount: 0 },
    }));
    const last = many.at(-1) ?? ORDER;
    assertBroken(
      "S4",
      world({ orders: many, ...remediations(remediation({})) }),
      { type: "ordered", record: last },
      /cut off 5 times/,
    );
  });
});

describe("S5", () => {
  const own = { ownTaints: new Map([["uid-n1", new Set(["node.kubernetes.io/out-of-service:NoExecute"])]]) };
  const foreign = { key: "example.com/db", effect: "NoSchedule" };
  it("S5 breaks if a foreign label, annotation, taint, cordon or status is changed", () => {
    assertBroken(
      "S5",
      world(),
      wrote(node({ metadata: { labels: {} } }), node({ metadata: { labels: { a: "b" } } })),
      /label a/,
    );
    assertBroken(
      "S5",
      world(),
      wrote(node({ metadata: { annotations: { a: "c" } } }), node({ metadata: { annotations: { a: "b" } } })),
      /annotation a/,
    );
    assertBroken("S5", world(), wrote(node(), node({ spec: { taints: [foreign] } })), /taint example.com\/db/);
    assertBroken("S5", world(), wrote(node({ spec: { taints: [foreign] } }), node()), /taint example.com\/db/);
    assertBroken("S5", world(), wrote(node({ spec: { unschedulable: true } }), node()), /cordon/);
    assertBroken("S5", world(), wrote(node({ status: {} }), node()), /status/);
    assertBroken("S5", world(), wrote(node(), node({ spec: { taints: [OUT_OF_SERVICE] } })), /out-of-service/);
  });

  it("S5 holds for marks of our own, and for what a Node that replaces ours gets back", () => {
    assertHolds("S5", world(), wrote(node(FENCED), node()));
    assertHolds("S5", world(), wrote(node(), node(FENCED)));
    assertHolds("S5", world(own), wrote(node(), node({ spec: { taints: [OUT_OF_SERVICE] } })));
    const backup = { nodeUID: "before", labels: { a: "b" }, annotations: {}, taints: [foreign], unschedulable: true };
    const facts = world(remediations(remediation({ node: { name: "n1" }, backup })));
    assertHolds(
      "S5",
      facts,
      wrote(node({ metadata: { labels: { a: "b" } }, spec: { taints: [foreign], unschedulable: true } }), node()),
    );
    const earlier = remediation({ node: { name: "n1" }, backup: { nodeUID: "earlier", labels: {} } });
    const later = remediation({ node: { name: "n1" }, backup });
    assertHolds(
      "S5",
      world(remediations(earlier, { ...later, metadata: { ...later.metadata, uid: "uid-later" } })),
      wrote(node({ spec: { unschedulable: true } }), node()),
    );
    assertBroken(
      "S5",
      facts,
      wrote(node({ metadata: { labels: { a: "b" } } }), node({ metadata: { labels: { a: "c" } } })),
      /label a/,
    );
  });
});

describe("S6", () => {
  const step: Step = { type: "bootSet", by: "agent", host: "n1", enabled: "Once", remediation: "r1" };
  const attempt = { kind: "Reprovision", bootOverride: true };
  const facts = (strategy: object, parts: Partial<Facts> = {}, status: object = {}): Facts =>
    world({
      ...remediations(remediation({ attempt, ...status }, { ...strategy })),
      ...parts,
    });
  const cycles = [0, 1].map((retryCount) => ({
    ...ORDER,
    attempt: { id: `a${retryCount}`, action: "ForceOff", retryCount },
  }));

  it("S6 breaks for a host of the control plane, without an intent, and without a reboot before", () => {
    const labels = { "node-role.kubernetes.io/control-plane": "" };
    const nodes = new Map([["n1", node({ metadata: { labels } })]]);
    assertBroken("S6", facts({ type: "Reprovision", requireReboot: false }, { nodes }), step, /control plane host n1/);
    assertBroken("S6", facts({ type: "Reprovision" }), step, /without a reboot before/);
    assertBroken("S6", facts({ type: "Escalate" }, { orders: [ORDER] }), step, /after 0 reboots of 1/);
    assertBroken("S6", facts({}, {}, { attempt: { kind: "Reboot" } }), step, /without a stored intent/);
    assertBroken("S6", facts({}), { ...step, remediation: undefined }, /without a stored intent/);
  });

  it("S6 holds after the reboots, or if none is asked for", () => {
    assertHolds("S6", facts({ type: "Escalate" }, { orders: cycles }), step);
    assertHolds("S6", facts({ type: "Reprovision" }, { orders: [{ ...ORDER, remediation: "r0" }] }), step);
    assertHolds("S6", facts({ type: "Reprovision", requireReboot: false }), step);
  });

  it("S6 breaks if a boot override outlasts its remediation", () => {
    const end = wrote(remediation({ phase: "Failed", node: { name: "n1" } }), remediation({ phase: "Undoing" }));
    assertBroken(
      "S6",
      world(hosts(host("n1", { bootSetting: { enabled: "Once" } }))),
      end,
      /will boot from the network/,
    );
    assertHolds("S6", world(), end);
  });
});

describe("S15", () => {
  const step: Step = { type: "ordered", record: ORDER };
  const PLANE = { "node-role.kubernetes.io/control-plane": "" };
  const names = ["n1", "n2", "n3", "n4", "n5"];
  const plane = hosts(...names.map((name) => host(name, { spec: { labels: PLANE } })));
  const targets = new Map(
    names.map((name) => [
      name,
      object<FencingTarget>("FencingTarget", name, { spec: { nodeName: name, devices: [] } }),
    ]),
  );
  const facts = (up: readonly string[], parts: Partial<Facts> = {}): Facts =>
    world({ ...plane, targets, readySince: new Map(up.map((name) => [name, { bootID: "b", sinceMs: 0 }])), ...parts });

  it("S15 breaks if too few other members of etcd are up, those without a Node included", () => {
    assertHolds("S15", facts(["n2", "n3", "n4"]), step);
    assertBroken("S15", facts(["n1", "n2", "n3"]), step, /only 2 other members up of 5/);
  });

  it("S15 holds for an etcd elsewhere, a host without a member, and a host that was proven off in this power cycle", () => {
    assertHolds("S15", facts([], { isEtcdExternal: true }), step);
    assertHolds("S15", facts([], hosts(host("n1"))), step);
    assertHolds(
      "S15",
      facts([], remediations(remediation({ attempt: { offConfirmedAt: "2026-01-01T00:00:00Z" } }))),
      step,
    );
  });

  it("S15 holds if a member has failed just now, or is no member any more: its target is gone, or a user has removed the record", () => {
    assertHolds("S15", facts(["n2", "n3"], { notReadySinceMs: new Map([["n4", 95_000]]) }), step);
    assertBroken("S15", facts(["n2", "n3"], { notReadySinceMs: new Map([["n4", 80_000]]) }), step, /only 2/);
    const left = new Map([...targets].filter(([name]) => !["n4", "n5"].includes(name)));
    assertHolds("S15", facts(["n2", "n3"], { targets: left }), step);
    assertHolds("S15", facts(["n2", "n3"], { clearedMembers: new Set(["n4", "n5"]) }), step);
  });
});

describe("S7", () => {
  it("S7 breaks if a taint is put on for a host whose identity is not verified", () => {
    const verified = remediations(remediation({ conditions: [condition("IdentityVerified", "True")] }));
    const unverified = remediations(remediation({ conditions: [condition("IdentityVerified", "False")] }));
    assertBroken("S7", world(unverified), wrote(node(FENCED), node()), /identity is not verified/);
    assertHolds("S7", world(verified), wrote(node(FENCED), node()));
  });

  it("S7 breaks if nothing reports that the host is not the one that is meant", () => {
    const wrong = (verified: string): BareMetalRemediation =>
      remediation({ outcome: { reason: "WrongHost" }, conditions: [condition("IdentityVerified", verified)] });
    const trip = wrote(wrong("False"), remediation({}));
    assertHolds("S7", world(), trip);
    assertBroken("S7", world(), wrote(wrong("True"), remediation({})), /IdentityVerified is True/);
    const next = wrote(wrong("False"), wrong("False"));
    const silent = { calmSinceMs: 5, failedBy: new Map([["r1", { agent: "agent", atMs: 10 }]]) };
    assertBroken("S7", world(silent), next, /no warning was recorded/);
    assertHolds("S7", world({ ...silent, warnings: new Map([["r1", new Set(["WrongHost"])]]) }), next);
    assertHolds("S7", world({ ...silent, calmSinceMs: 20 }), next);
    assertHolds("S7", world({ ...silent, failedBy: new Map([["r1", { agent: "another", atMs: 10 }]]) }), next);
  });
});

describe("S8", () => {
  const check = object<NodeHealthCheck>("NodeHealthCheck", "all", { spec: { selector: {}, minHealthy: 2 } });
  const named = (name: string, ready: string, labels = {}, lastTransitionTime?: string): Node =>
    object<Node>("Node", name, {
      metadata: { labels },
      spec: {},
      status: {
        conditions: [{ type: "Ready", status: ready, ...(lastTransitionTime !== undefined && { lastTransitionTime }) }],
      },
    });
  const manual = (name: string): BareMetalRemediation =>
    object<BareMetalRemediation>("BareMetalRemediation", name, { spec: {}, status: {} });
  const started = (name: string): BareMetalRemediation =>
    object<BareMetalRemediation>("BareMetalRemediation", name, {
      metadata: { ownerReferences: [{ uid: "uid-all" }] },
      spec: {},
      status: {},
    });
  const facts = (nodes: Node[], ...running: BareMetalRemediation[]): Facts =>
    world({
      checks: new Map([["all", check]]),
      nodes: new Map(nodes.map((one) => [one.metadata.name, one])),
      ...remediations(...running),
    });

  it("S8 breaks if too few nodes are healthy, or another control plane node is in remediation", () => {
    const nodes = [named("n1", "Unknown"), named("n2", "True"), named("n3", "Unknown")];
    assertBroken("S8", facts(nodes, started("n1")), wrote(started("n1")), /1 healthy nodes of 2/);
    const changing = (changed: string): Facts =>
      facts([named("n1", "Unknown"), named("n2", "True"), named("n3", "Unknown", {}, changed)]);
    const lagging = (changed: string): Facts => ({ ...changing(changed), nodesLag: true });
    const created = { ...started("n1"), metadata: { ...started("n1").metadata, creationTimestamp: toTime(60_000) } };
    assertHolds("S8", changing(toTime(60_000)), wrote(created));
    assertBroken("S8", changing(toTime(59_000)), wrote(created), /1 healthy nodes of 2/);
    assertHolds("S8", lagging(toTime(58_000)), wrote(created));
    assertBroken("S8", lagging(toTime(57_000)), wrote(created), /1 healthy nodes of 2/);
    assertHolds("S8", facts([...nodes, named("n4", "True")], started("n1")), wrote(started("n1")));
    assertHolds("S8", facts([...nodes, named("n4", "True")]), wrote(started("n1"), undefined, undefined));
    assertHolds("S8", facts([...nodes, named("n4", "True")], started("n1"), manual("n2")), wrote(started("n1")));
    const roles = { "node-role.kubernetes.io/control-plane": "" };
    const masters = [
      named("n1", "Unknown", roles),
      named("n2", "Unknown", roles),
      named("n3", "True"),
      named("n4", "True"),
    ];
    assertBroken(
      "S8",
      facts(masters, started("n1"), started("n2")),
      wrote(started("n1")),
      /control plane node n1 is remediated while n2 is/,
    );
  });
});

describe("S8, requests of other kinds", () => {
  const child = object<BareMetalRemediation>("BareMetalRemediation", "m1-1", {
    metadata: { labels: { [REQUEST]: "okd-machine" }, ownerReferences: [{ uid: "uid-m1", controller: true }] },
    spec: {},
    status: {},
  });

  it("S8, requests of other kinds, breaks if a remediation serves a request that was not made", () => {
    assertBroken("S8", world(), wrote(child), /started without a request/);
    assertHolds("S8", world({ asked: new Set(["uid-m1"]) }), wrote(child));
  });
});

describe("S8, the limits", () => {
  const inZone = (name: string, zone: string): HostTruth =>
    host(name, { spec: { labels: { "topology.kubernetes.io/zone": zone } } });
  const at = (name: string, phase: string): BareMetalRemediation =>
    object<BareMetalRemediation>("BareMetalRemediation", name, { spec: {}, status: { phase, node: { name } } });
  const facts = (limits: Facts["limits"], ...all: BareMetalRemediation[]): Facts =>
    world({ limits, ...hosts(inZone("n1", "a"), inZone("n2", "a"), inZone("n3", "b")), ...remediations(...all) });
  const begins = wrote(at("n1", "Verifying"), at("n1", "Resolving"));

  it("S8, the limits, breaks if more hosts are remediated at once than there may be", () => {
    const two = [at("n1", "Verifying"), at("n2", "PoweringOn")];
    assertBroken("S8", facts({ hosts: 1, perZone: Infinity }, ...two), begins, /2 hosts are remediated at once/);
    assertHolds("S8", facts({ hosts: 2, perZone: Infinity }, ...two), begins);
    assertHolds("S8", facts({ hosts: 1, perZone: Infinity }, at("n1", "Verifying"), at("n2", "Failed")), begins);
    assertBroken("S8", facts({ hosts: Infinity, perZone: 1 }, ...two), begins, /2 hosts of a are remediated at once/);
    assertHolds("S8", facts({ hosts: 2, perZone: 1 }, at("n1", "Verifying"), at("n3", "Releasing")), begins);
    assertHolds("S8", facts({ hosts: 1, perZone: 1 }, at("n1", "Verifying"), at("n2", "Rejoining")), begins);
  });

  it("S8, the limits, breaks if a remediation waits for admission though fewer are at work than there may be", () => {
    const says = (name: string, phase: string, reason: string): BareMetalRemediation =>
      object<BareMetalRemediation>("BareMetalRemediation", name, {
        spec: {},
        status: {
          phase,
          timeline: [{ step: reason, time: new Date(0).toISOString() }],
          conditions: [{ type: "Processing", status: "True", reason }],
        },
      });
    const waits = says("n1", "Resolving", "WaitingForTurn");
    const one = { hosts: 1, perZone: Infinity };
    const among = (...others: BareMetalRemediation[]): Facts => ({
      ...facts(one, waits, ...others),
      epochMs: 1_000_000,
      atMs: 1_000_000,
    });
    const PASSED: Step = { type: "passed" };
    assertBroken("S8", among(), PASSED, /n1 waits for admission/);
    assertBroken("S8", among(at("n2", "Rejoining")), PASSED, /n1 waits for admission/);
    assertBroken("S8", among(says("n2", "Releasing", "ApiFailing")), PASSED, /n1 waits for admission/);
    assertHolds("S8", among(at("n2", "Releasing")), PASSED);
    assertHolds("S8", { ...among(), calmSinceMs: 990_000 }, PASSED);
    const left = (atMs: number): BareMetalRemediation =>
      object<BareMetalRemediation>("BareMetalRemediation", "n2", {
        spec: {},
        status: { phase: "Rejoining", timeline: [{ step: "PoweredOn", time: new Date(atMs).toISOString() }] },
      });
    assertHolds("S8", among(left(995_000)), PASSED);
    assertBroken("S8", among(left(985_000)), PASSED, /n1 waits for admission/);
    const gone = among(left(995_000));
    const present = new Set([...gone.present].filter((uid) => gone.remediations.get(uid)?.metadata.name === "n1"));
    assertHolds("S8", { ...gone, present }, PASSED);
  });

  it("S8, the limits, breaks if a clock that has jumped past a deadline gives the place of a host to another", () => {
    const overdue = object<BareMetalRemediation>("BareMetalRemediation", "n2", {
      spec: {},
      status: { phase: "PoweringOff", attempt: { deadline: new Date(0).toISOString() } },
    });
    const jumped = (agoMs: number): Facts => ({
      ...facts({ hosts: 1, perZone: Infinity }, at("n1", "Verifying"), overdue),
      clocksAgree: false,
      clocksDoubtedAtMs: 1_000_000 - agoMs,
      epochMs: 1_000_000,
      atMs: 1_000_000,
    });
    assertBroken("S8", jumped(5_000), begins, /2 hosts are remediated at once/);
    assertHolds("S8", jumped(61_000), begins);
  });
});

describe("S9", () => {
  const led = world({ leader: { holder: "agent-2" } });
  it("S9 breaks if an agent without the lease writes or orders anything, but the lease and events", () => {
    assertBroken("S9", led, wrote(node(), node()), /agent wrote Node n1 while agent-2 holds the lease/);
    assertBroken("S9", led, { type: "ordered", record: ORDER }, /agent ordered n1 ForceOff/);
    const set: Step = { type: "bootSet", by: "agent", host: "n1", enabled: "Once", remediation: undefined };
    assertBroken("S9", led, set, /how n1 boots/);
    assertHolds("S9", led, wrote(object("Lease", "ironfence", {})));
    assertHolds("S9", led, wrote(node(), node(), "agent-2"));
    assertHolds("S9", world(), wrote(node(), node()));
  });
});

describe("S10", () => {
  const final = remediations(remediation({ phase: "Failed", node: { name: "n1" } }));
  const going = remediations(remediation({ phase: "Undoing", node: { name: "n1" } }));
  const quarantined = node({
    metadata: { annotations: { [QUARANTINED_BY]: "r1/a1" } },
    spec: { taints: [QUARANTINE] },
  });

  it("S10 breaks if a remediation with a verdict orders power, or has a mark or a host", () => {
    assertBroken("S10", world(final), { type: "ordered", record: ORDER }, /by a remediation that has its verdict/);
    assertHolds("S10", world(going), { type: "ordered", record: ORDER });
    const marked = { nodes: new Map([["n1", quarantined]]) };
    assertBroken("S10", world({ ...final, ...marked }), wrote(node(), node()), /n1 has the quarantine mark/);
    assertHolds("S10", world({ ...going, ...marked }), wrote(node(), node()));
    const owned = { targets: new Map([["n1", target("r1")]]) };
    const claimed = wrote(target("r1"), target(undefined));
    assertBroken("S10", world({ ...final, ...owned }), claimed, /target n1 is owned/);
    assertHolds("S10", world({ ...going, ...owned }), claimed);
    const ends = wrote(remediation({ phase: "Failed" }), remediation({ phase: "Failed" }));
    assertBroken("S10", world({ ...final, ...marked }), ends, /n1 has the quarantine mark/);
    assertBroken("S10", world({ ...final, ...owned }), ends, /target n1 is owned/);
  });

  it("S10 breaks if a host is taken from a remediation that goes on, or a verdict changes", () => {
    assertBroken("S10", world(going), wrote(target("r2"), target("r1")), /taken from n1, which goes on/);
    assertHolds("S10", world(final), wrote(target("r2"), target("r1")));
    const verdict = (status: string, phase: string): BareMetalRemediation =>
      remediation({ phase, conditions: [condition("Succeeded", status)] });
    assertBroken(
      "S10",
      world(),
      wrote(verdict("True", "Succeeded"), verdict("False", "Failed")),
      /verdict of n1 changed/,
    );
    assertHolds("S10", world(), wrote(verdict("False", "Failed"), verdict("False", "Failed")));
  });

  it("S10 breaks if a finalizer goes before the verdict, or before the labels of a deleted node are back", () => {
    const letGo = (status: Record<string, unknown>, metadata: Record<string, unknown> = {}): Step => {
      const bare = remediation(status);
      const held = { ...bare, metadata: { ...bare.metadata, finalizers: [FINALIZER] } };
      return wrote({ ...bare, metadata: { ...bare.metadata, ...metadata } }, held);
    };
    assertBroken("S10", world(), letGo({ phase: "Undoing" }), /lost its finalizer in Undoing/);
    assertHolds("S10", world(), letGo({ phase: "Undoing" }, { deletionTimestamp: "2026-01-01T00:00:00Z" }));
    const announced = condition("PermanentNodeDeletionExpected", "True");
    const owing = { phase: "Failed", backup: { nodeUID: "u1" }, conditions: [announced] };
    assertBroken("S10", world(), letGo(owing), /while it keeps the labels/);
    assertHolds("S10", world(), letGo({ ...owing, conditions: [] }));
    assertHolds("S10", world(), letGo({ ...owing, replacement: { deletedAt: "2026-01-01T00:00:00Z" } }));
  });
});

describe("S11", () => {
  const step: Step = { type: "ordered", record: { ...ORDER, atMs: 100_000 } };
  const begun = (bootID: string | undefined, wasReady: boolean): Pick<Facts, "begun"> => ({
    begun: new Map([["r1", { node: "n1", bootID, wasReady, isStale: false }]]),
  });
  const ready = (sinceMs: number): Pick<Facts, "readySince"> => ({
    readySince: new Map([["n1", { bootID: "b2", sinceMs }]]),
  });

  it("S11 breaks if a node that has been Ready in a new boot for a while is powered off", () => {
    const facts = world({ ...begun("b1", false), ...ready(80_000) });
    assertBroken("S11", facts, step, /n1 has been Ready in a new boot for 20000 ms/);
    assertHolds("S11", facts, { type: "ordered", record: { ...step.record, outcome: "NoChange" } });
    assertHolds("S11", facts, { type: "ordered", record: { ...step.record, order: "On" } });
  });

  it("S11 holds for a host that is off already, though its node is still stored as Ready", () => {
    const facts = world({ ...begun("b1", false), ...ready(80_000), ...hosts(host("n1", { power: "Off" })) });
    assertHolds("S11", facts, step);
    assertBroken("S11", { ...facts, ...hosts(host("n1", { power: "PoweringOff" })) }, step, /Ready in a new boot/);
  });

  it("S11 holds for a node that was Ready from the start, is in its old boot, has just come back, or is not Ready", () => {
    assertHolds("S11", world({ ...begun("b1", true), ...ready(80_000) }), step);
    assertHolds("S11", world({ ...begun("b2", false), ...ready(80_000) }), step);
    assertHolds("S11", world({ ...begun(undefined, false), ...ready(80_000) }), step);
    assertHolds("S11", world({ ...begun("b1", false), ...ready(95_000) }), step);
    assertHolds("S11", world(begun("b1", false)), step);
  });
});

describe("S12", () => {
  const off: Step = { type: "ordered", record: { ...ORDER, atMs: 100_000 } };
  const on: Step = { type: "ordered", record: { ...ORDER, atMs: 100_000, order: "On" } };
  const held = (what: string, sinceMs: number): Facts => world({ heldSinceMs: new Map([[what, sinceMs]]) });

  it("S12 breaks if a host is powered off although the stop switch has been on for a while; it does not hold an On", () => {
    assertBroken("S12", held(PAUSED, 80_000), off, /ordered ForceOff although the stop switch is on for 20000 ms/);
    assertHolds("S12", held(PAUSED, 95_000), off);
    assertHolds("S12", held(PAUSED, 80_000), on);
  });

  it("S12 breaks if any order goes to a host in maintenance, and holds for other hosts", () => {
    assertBroken("S12", held("n1", 80_000), off, /ordered ForceOff although its target is in maintenance/);
    assertBroken("S12", held("n1", 80_000), on, /ordered On although its target is in maintenance/);
    assertHolds("S12", held("n2", 80_000), off);
    assertHolds("S12", held("n1", 95_000), on);
  });

  it("S12 leaves no host off for a target that cannot be read, and powers none off", () => {
    const hamperedAtMs = (call: string): number | undefined => (call === "get fencingtargets" ? 95_000 : undefined);
    assertHolds("S12", { ...held("n1", 80_000), hamperedAtMs }, on);
    assertBroken("S12", { ...held("n1", 80_000), hamperedAtMs }, off, /in maintenance/);
    assertBroken("S12", { ...held("n1", 80_000), hamperedAtMs: () => 85_000 }, on, /in maintenance/);
  });
});

describe("S13", () => {
  const step: Step = { type: "ordered", record: ORDER };
  const begun = (isStale: boolean, wasReady = true): Pick<Facts, "begun"> => ({
    begun: new Map([["r1", { node: "n1", bootID: "b1", wasReady, isStale }]]),
  });
  const confirmed = remediation({ phase: "PoweringOff" });
  confirmed.metadata.annotations = { [CONFIRM]: "r1" };

  it("S13 breaks if a remediation that came back without status powers a Ready node off", () => {
    assertBroken("S13", world(begun(true)), step, /n1 was ordered off, Ready as its node was/);
    assertHolds("S13", world(begun(false)), step);
    assertHolds("S13", world(begun(true, false)), step);
  });

  it("S13 holds if a person has confirmed it, or a health check lists the node", () => {
    assertHolds("S13", world({ ...begun(true), ...remediations(confirmed) }), step);
    const check = object<NodeHealthCheck>("NodeHealthCheck", "all", { status: { unhealthyNodes: [{ name: "n1" }] } });
    assertHolds("S13", world({ ...begun(true), checks: new Map([["all", check]]) }), step);
  });

  it("S13 takes for stale what Velero has restored, and what is older than ten minutes", () => {
    const made = (metadata: Record<string, unknown>): boolean =>
      isStale(object("BareMetalRemediation", "n1", { metadata }), Date.parse("2026-01-01T01:00:00Z"));
    assert.equal(made({ creationTimestamp: "2026-01-01T00:50:00Z" }), true);
    assert.equal(made({ creationTimestamp: "2026-01-01T00:50:01Z" }), false);
    assert.equal(made({ creationTimestamp: "2026-01-01T01:00:00Z", labels: { [RESTORED_BY_VELERO]: "m" } }), true);
  });
});

describe("L1", () => {
  it("L1 names what is not settled", () => {
    assert.deepEqual(unsettled(world()), []);
    assert.match(
      unsettled(world(remediations(remediation({ phase: "Releasing" })))).join(),
      /n1 has no verdict, in Releasing/,
    );
    assert.match(
      unsettled(world({ nodes: new Map([["n1", node(FENCED)]]) })).join(),
      /n1 is Ready and has ironfence.io\/fenced-by/,
    );
    const settled = remediation({
      phase: "Failed",
      node: { name: "n1" },
      conditions: [condition("Succeeded", "False")],
    });
    assert.deepEqual(unsettled(world(remediations(settled))), []);
    const kept = { ...settled, metadata: { ...settled.metadata, finalizers: [FINALIZER] } };
    assert.match(unsettled(world(remediations(kept))).join(), /n1 has its verdict, and keeps the finalizer/);
    assert.match(
      unsettled(world({ ...remediations(settled), targets: new Map([["n1", target("r1")]]) })).join(),
      /target n1 is owned/,
    );
  });
});

describe("S14: what waits past its deadline is reported", () => {
  const processing = (reason: string): Record<string, unknown> => ({ type: "Processing", status: "True", reason });
  const waiting = (reason: string, deadlineMs: number, phase = "Releasing"): Partial<Facts> => {
    const attempt = { id: "a1", action: "ForceOff", deadline: new Date(deadlineMs).toISOString() };
    const status = { phase, attempt, conditions: [processing(reason)] };
    return { remediations: new Map([["r1", remediation(status)]]), present: new Set(["r1"]) };
  };
  const warned = { warnings: new Map([["r1", new Set(["ApiFailing"])]]) };
  const PASSED: Step = { type: "passed" };

  it("S14: what waits past its deadline is reported breaks if neither the condition nor a warning names what is waited for", () => {
    assertBroken("S14", world(waiting("Releasing", 0)), PASSED, /n1 is in Releasing past its deadline/);
    assertBroken("S14", world({ ...waiting("Releasing", 0), ...warned }), PASSED, /reason Releasing/);
    assertBroken("S14", world(waiting("ApiFailing", 0)), PASSED, /without a warning/);
  });

  it("S14: what waits past its deadline is reported holds if both do, within a minute, and while the agent has been hampered", () => {
    assertHolds("S14", world({ ...waiting("ApiFailing", 0), ...warned }), PASSED);
    assertHolds("S14", world(waiting("Releasing", 50_000)), PASSED);
    assertHolds("S14", world({ ...waiting("Releasing", 0), calmSinceMs: 90_000 }), PASSED);
    assertHolds("S14", world(waiting("HostBusy", 0, "Resolving")), PASSED);
  });

  it("S14: what waits past its deadline is reported lets the warning follow the status by a second, if another reason was reported before", () => {
    const storedAt = (ms: number): Partial<Facts> => {
      const facts = waiting("PowerOnTimeout", 0);
      const status = facts.remediations?.get("r1")?.status;
      assert.ok(status !== undefined);
      status.timeline = [{ step: "PowerOnTimeout", time: new Date(ms).toISOString(), message: "" }];
      return facts;
    };
    assertHolds("S14", world({ ...storedAt(99_500), ...warned }), PASSED);
    assertBroken("S14", world({ ...storedAt(99_500) }), PASSED, /without a warning/);
    assertBroken("S14", world({ ...storedAt(90_000), ...warned }), PASSED, /without a warning/);
  });

  it("S14: what waits past its deadline is reported asks nothing of who can list no remediations", () => {
    const unlisted = (ms: number) => (call: string) => (call === "list baremetalremediations" ? ms : undefined);
    assertHolds("S14", world({ ...waiting("Releasing", 0), hamperedAtMs: unlisted(50_000) }), PASSED);
    assertBroken("S14", world({ ...waiting("Releasing", 0), hamperedAtMs: unlisted(20_000) }), PASSED, /n1/);
  });

  it("S14: what waits past its deadline is reported asks for a warning alone while no status can be stored", () => {
    const hamperedAtMs = (call: string): number | undefined =>
      call === "patch baremetalremediations/status" ? 50_000 : undefined;
    assertHolds("S14", world({ ...waiting("Releasing", 0), ...warned, hamperedAtMs }), PASSED);
    assertBroken("S14", world({ ...waiting("Releasing", 0), hamperedAtMs }), PASSED, /without a warning/);
  });
});
