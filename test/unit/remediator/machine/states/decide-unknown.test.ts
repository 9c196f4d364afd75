import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { BareMetalRemediationStatus } from "../../../../../src/api/ironfence/bare-metal-remediation.ts";
import { decide } from "../../../../../src/remediator/machine/decide.ts";
import { parseState } from "../../../../../src/remediator/machine/model/decision/state.ts";
import { NOW, snapshot } from "../snapshots.ts";

// A deleted remediation whose status this version cannot read completely. It is undone once.

const TARGET = { kind: "FencingTarget", namespace: "ironfence", name: "n1", uid: "target-uid" };
const MACHINE = { apiVersion: "cluster.x-k8s.io/v1beta1", kind: "Machine", namespace: "ns", name: "m1", uid: "m" };

/**
 * The stored status of a remediation that was deleted during a fence, with `parts` that another version has written.
 */
function undone(parts: Record<string, unknown>): BareMetalRemediationStatus {
  const base = snapshot({ state: "Releasing", status: { target: TARGET }, remediation: { deleting: true } });
  // Another version wrote the status, and the test is about its form.
  const status: BareMetalRemediationStatus = { ...base.status, ...parts };
  const state = parseState(status);
  assert.equal(state.name, "Unknown");
  const decision = decide({ ...base, status, state }, NOW);
  return decision.status ?? assert.fail("nothing is stored");
}

describe("a part of a status that cannot be read", () => {
  for (const [what, parts, kept] of [
    ["a node", { node: "n1" }, { node: undefined, target: TARGET }],
    ["a field of a node", { node: { name: "n1", uid: 7, zone: "a" } }, { node: { name: "n1", zone: "a" } }],
    ["a Machine", { machine: { ...MACHINE, uid: 7 } }, { machine: undefined, target: TARGET }],
    ["a target", { target: { ...TARGET, uid: null } }, { target: undefined }],
    ["a field of a target", { target: { ...TARGET, systemUUID: 7 } }, { target: TARGET }],
    ["a backup", { backup: { labels: {} } }, { backup: undefined, target: TARGET }],
    ["a replacement", { replacement: 7 }, { replacement: undefined, target: TARGET }],
  ] as const) {
    it(`${what} of a status that cannot be read does not restart the undo, and the rest of the status is kept`, () => {
      const status = undone(parts);
      assert.equal(parseState(status).name, "Undoing");
      const stored = Object.fromEntries(Object.keys(kept).map((part) => [part, status[part as keyof typeof status]]));
      assert.deepEqual(stored, kept);
    });
  }
});
