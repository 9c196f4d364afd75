import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { CONFIRM } from "../../../src/api/names/annotations.ts";
import { RESTORED_BY_VELERO } from "../../../src/api/names/labels.ts";
import type { NodeHealthCheck } from "../../../src/api/ironfence/node-health-check.ts";
import { isStale, PAUSED } from "./came-back.ts";
import type { Facts, Step } from "./facts.ts";
import { ORDER, assertBroken, assertHolds, world, host, hosts, object, remediation, remediations } from "./fixtures.ts";

describe("S11", () => {
  const step: Step = { type: "ordered", record: { ...ORDER, atMs: 100_000 } };
  const begun = (bootID: string | undefined, wasReady: boolean, atMs = 0): Pick<Facts, "begun"> => ({
    begun: new Map([["r1", { node: "n1", bootID, wasReady, isStale: false, atMs }]]),
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

  it("S11 breaks if a node that had been Ready again for a while when its remediation began is powered off", () => {
    const facts = world({ ...begun("b2", false, 99_000), ...ready(80_000) });
    assertBroken("S11", facts, step, /n1 has been Ready again for 20000 ms/);
    assertHolds("S11", world({ ...begun("b2", false, 85_000), ...ready(80_000) }), step);
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

  it("S12 allows a power-on while the target cannot be read, but no power-off", () => {
    const hamperedAtMs = (call: string): number | undefined => (call === "get fencingtargets" ? 95_000 : undefined);
    assertHolds("S12", { ...held("n1", 80_000), hamperedAtMs }, on);
    assertBroken("S12", { ...held("n1", 80_000), hamperedAtMs }, off, /in maintenance/);
    assertBroken("S12", { ...held("n1", 80_000), hamperedAtMs: () => 85_000 }, on, /in maintenance/);
  });
});

describe("S13", () => {
  const step: Step = { type: "ordered", record: ORDER };
  const begun = (isStale: boolean, wasReady = true): Pick<Facts, "begun"> => ({
    begun: new Map([["r1", { node: "n1", bootID: "b1", wasReady, isStale, atMs: 0 }]]),
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

  it("S13 treats a remediation as stale if Velero has restored it or it is older than ten minutes", () => {
    const made = (metadata: Record<string, unknown>): boolean =>
      isStale(object("BareMetalRemediation", "n1", { metadata }), Date.parse("2026-01-01T01:00:00Z"));
    assert.equal(made({ creationTimestamp: "2026-01-01T00:50:00Z" }), true);
    assert.equal(made({ creationTimestamp: "2026-01-01T00:50:01Z" }), false);
    assert.equal(made({ creationTimestamp: "2026-01-01T01:00:00Z", labels: { [RESTORED_BY_VELERO]: "m" } }), true);
  });
});
