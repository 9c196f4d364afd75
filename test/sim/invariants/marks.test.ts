import { describe, it } from "node:test";
import { QUARANTINED_BY } from "../../../src/api/names/annotations.ts";
import type { BareMetalRemediation } from "../../../src/api/ironfence/bare-metal-remediation.ts";
import { OUT_OF_SERVICE, QUARANTINE } from "../../../src/api/kubernetes/taints.ts";
import { FINALIZER } from "../../../src/remediator/effects/objects/finalizer.ts";
import type { Step } from "./facts.ts";
import {
  FENCED,
  ORDER,
  assertBroken,
  assertHolds,
  world,
  object,
  node,
  remediation,
  remediations,
  target,
  wrote,
  condition,
} from "./fixtures.ts";

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

describe("S7", () => {
  it("S7 breaks if a taint is put on for a host whose identity is not verified", () => {
    const verified = remediations(remediation({ conditions: [condition("IdentityVerified", "True")] }));
    const unverified = remediations(remediation({ conditions: [condition("IdentityVerified", "False")] }));
    assertBroken("S7", world(unverified), wrote(node(FENCED), node()), /identity is not verified/);
    assertHolds("S7", world(verified), wrote(node(FENCED), node()));
  });

  it("S7 breaks if a host with a wrong identity is not reported", () => {
    const wrong = (verified: string): BareMetalRemediation =>
      remediation({ outcome: { reason: "WrongHost" }, conditions: [condition("IdentityVerified", verified)] });
    const trip = wrote(wrong("False"), remediation({}));
    assertHolds("S7", world(), trip);
    assertBroken("S7", world(), wrote(wrong("True"), remediation({})), /IdentityVerified is True/);
    const next = wrote(wrong("False"), wrong("False"));
    const silent = { calmSinceMs: 5, failedBy: new Map([["r1", { agent: "agent", atMs: 10 }]]) };
    assertBroken("S7", world(silent), next, /no warning was recorded/);
    assertHolds("S7", world({ ...silent, warnedAtMs: new Map([["r1", new Map([["WrongHost", 0]])]]) }), next);
    assertHolds("S7", world({ ...silent, calmSinceMs: 20 }), next);
    assertHolds("S7", world({ ...silent, failedBy: new Map([["r1", { agent: "another", atMs: 10 }]]) }), next);
  });
});

describe("S9", () => {
  const led = world({ leader: { holder: "agent-2" } });
  it("S9 breaks if an agent without the lease writes or orders anything other than the lease and Events", () => {
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
