import { describe, it } from "node:test";
import type { BareMetalRemediation } from "../../../src/api/ironfence/bare-metal-remediation.ts";
import type { Pod } from "../../../src/api/kubernetes/core.ts";
import { OUT_OF_SERVICE } from "../../../src/api/kubernetes/taints.ts";
import type { Facts, Step } from "./facts.ts";
import {
  FENCED,
  ORDER,
  assertBroken,
  assertHolds,
  world,
  host,
  hosts,
  object,
  node,
  remediation,
  remediations,
  wrote,
  condition,
} from "./fixtures.ts";

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

  it("S1 excuses acts on a host for a moment after another client has powered it on, but not after ironfence has", () => {
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

  it("S2 breaks for ironfence's own out-of-service taint on a node that runs, and holds for that of another client", () => {
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

  it("S3 holds if the node is drained or the remediation is undone", () => {
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
    assertHolds("S3", world({ ...facts, leftOffAtMs: new Map([["n1", 1]]) }), end());
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
    // An AC cycle by outlets is for a host that is off.
    const cycled = remediations(remediation({ acCycle: { attemptID: "a1" } }));
    assertBroken("S4", world({ orders: [ORDER], ...cycled }), unintended, /without a stored intent/);
    const none: Step = { ...unintended, record: { ...unintended.record, outcome: "NoChange" } };
    assertBroken("S4", world({ orders: [], ...known }), none, /without a stored intent/);
    assertHolds("S4", world({ orders: [], ...cycled }), none);
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
