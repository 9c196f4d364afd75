import { describe, it } from "node:test";
import type { FencingTarget } from "../../../src/api/ironfence/fencing-target.ts";
import type { Facts, Step } from "./facts.ts";
import { ORDER, assertBroken, assertHolds, world, host, hosts, object, remediation, remediations } from "./fixtures.ts";

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

  it("S15 holds if a member has failed just now, or is not a member any more: its target is gone, or a user has removed the record", () => {
    assertHolds("S15", facts(["n2", "n3"], { notReadySinceMs: new Map([["n4", 95_000]]) }), step);
    assertBroken("S15", facts(["n2", "n3"], { notReadySinceMs: new Map([["n4", 80_000]]) }), step, /only 2/);
    const left = new Map([...targets].filter(([name]) => !["n4", "n5"].includes(name)));
    assertHolds("S15", facts(["n2", "n3"], { targets: left }), step);
    assertHolds("S15", facts(["n2", "n3"], { clearedMembers: new Set(["n4", "n5"]) }), step);
  });
});
