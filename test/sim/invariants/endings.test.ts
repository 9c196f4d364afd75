import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { NodeHealthCheck } from "../../../src/api/ironfence/node-health-check.ts";
import { FINALIZER } from "../../../src/remediator/effects/objects/finalizer.ts";
import { unsettled } from "./endings.ts";
import type { Facts, Step } from "./facts.ts";
import {
  FENCED,
  ORDER,
  assertBroken,
  assertHolds,
  world,
  host,
  hosts,
  node,
  object,
  remediation,
  remediations,
  target,
  wrote,
  condition,
} from "./fixtures.ts";

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

describe("L1", () => {
  it("L1 names each remediation, mark and owner that is left when all faults have ended", () => {
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

  it("L1 names a node without a remediation, unless etcd has lost its quorum and runs on its host", () => {
    const spec = { labels: { "node-role.kubernetes.io/control-plane": "" } };
    const names = ["n1", "n2", "n3"];
    const facts = (up: readonly string[]): Facts =>
      world({
        ...hosts(...names.map((name) => host(name, { spec }))),
        nodes: new Map(
          names.map((name) => [
            name,
            node({ status: { conditions: [condition("Ready", up.includes(name) ? "True" : "False")] } }),
          ]),
        ),
        readySince: new Map(up.map((name) => [name, { bootID: "b", sinceMs: 0 }])),
        checks: new Map([["all", object<NodeHealthCheck>("NodeHealthCheck", "all", { spec: { minHealthy: 1 } })]]),
      });
    assert.match(unsettled(facts(["n2", "n3"])).join(), /n1 is not Ready, and has no remediation/);
    assert.deepEqual(unsettled(facts(["n3"])), []);
  });
});
