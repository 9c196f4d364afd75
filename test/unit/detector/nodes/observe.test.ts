import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type {
  NodeActionEvent,
  NodeCheckEvent,
  NodeObservations,
} from "../../../../src/detector/nodes/decide/observe.ts";
import {
  announceNodeEvent,
  NOTHING_OBSERVED_OF_NODE,
  observeNode,
} from "../../../../src/detector/nodes/decide/observe.ts";
import type { Deferral } from "../../../../src/detector/shared/model/deferral.ts";
import { nodeOf, remediationOf, T0 } from "./builders.ts";

const NODE = nodeOf("n1", "Unknown", T0);
const DEFERRAL: Deferral = { reason: "node lease is already taken by x", cause: "lease", untilMs: T0 + 15_000 };
const STALE: Deferral = { reason: "a live read differs", cause: "staleView", untilMs: T0 + 1_000 };
const TAKEN: NodeCheckEvent = { type: "leaseTaken", nodeName: "n1", renewAtMs: T0 + 60_000 };

const deferred = (deferral: Deferral): NodeCheckEvent => ({ type: "deferred", nodeName: "n1", deferral });
const timePassed = (nowMs: number): NodeCheckEvent => ({ type: "timePassed", nowMs });

/**
 * The observations of a node after these events, beginning with none. Each result is frozen before it is the next
 * input.
 */
function after(...events: NodeCheckEvent[]): NodeObservations {
  return events.reduce(
    (observations, event) => Object.freeze(observeNode(observations, event)),
    Object.freeze({ ...NOTHING_OBSERVED_OF_NODE }),
  );
}

function announced(event: NodeActionEvent): string[] {
  return announceNodeEvent(event).map(({ reason, note }) => `${reason}: ${note}`);
}

describe("what an action on a node has done", () => {
  it("a lease that was taken is renewed later, and forgotten when it is released", () => {
    assert.deepEqual(after(TAKEN), { deferral: undefined, leaseRenewAtMs: T0 + 60_000 });
    assert.deepEqual(after(TAKEN, { type: "leaseReleased", nodeName: "n1" }), NOTHING_OBSERVED_OF_NODE);
  });

  it("a lease that another holder has defers the node, and is requested again when the deferral ends", () => {
    const refused: NodeCheckEvent = { type: "leaseRefused", nodeName: "n1", deferral: DEFERRAL };
    assert.deepEqual(after(refused), { deferral: DEFERRAL, leaseRenewAtMs: DEFERRAL.untilMs });
  });

  it("a deferral replaces the earlier one, and leaves the lease as it is", () => {
    const both = after(TAKEN, deferred(DEFERRAL), deferred(STALE));
    assert.deepEqual(both, { deferral: STALE, leaseRenewAtMs: T0 + 60_000 });
  });

  it("a deferral lasts until its time, and the lease of the node lasts longer", () => {
    const observed = after(TAKEN, deferred(DEFERRAL), timePassed(DEFERRAL.untilMs - 1));
    assert.deepEqual(observed, { deferral: DEFERRAL, leaseRenewAtMs: T0 + 60_000 });
    assert.deepEqual(after(TAKEN, deferred(DEFERRAL), timePassed(DEFERRAL.untilMs)), after(TAKEN));
  });

  it("a deferral of a view that was late ends with the next version of the node, and no other one does", () => {
    assert.deepEqual(after(deferred(STALE), { type: "nodeChanged" }), NOTHING_OBSERVED_OF_NODE);
    assert.deepEqual(after(deferred(DEFERRAL), { type: "nodeChanged" }), after(deferred(DEFERRAL)));
  });

  it("a deferral ends when the spec of the health check changes, and its lease does not", () => {
    assert.deepEqual(after(TAKEN, deferred(DEFERRAL), { type: "specChanged" }), after(TAKEN));
  });

  it("an event that changes nothing about a node leaves its observations as they are", () => {
    const observations = after(TAKEN, deferred(DEFERRAL));
    for (const type of ["markedOld", "confirmationConsumed"] as const) {
      assert.equal(observeNode(observations, { type, nodeName: "n1" }), observations);
    }
    assert.equal(observeNode(NOTHING_OBSERVED_OF_NODE, { type: "nodeChanged" }), NOTHING_OBSERVED_OF_NODE);
  });

  it("a deferral is recorded as no Event: decide announces it while it lasts", () => {
    assert.deepEqual(announced({ type: "deferred", nodeName: "n1", deferral: DEFERRAL }), []);
  });

  it("a creation is recorded, and by how much it came before the end of the duration", () => {
    const created: NodeActionEvent = {
      type: "created",
      node: NODE,
      remediation: remediationOf("n1").object,
      because: "it is Unknown",
      atMs: T0,
      skipped: undefined,
    };
    assert.deepEqual(announced(created), ["RemediationCreated: Created remediation object for node n1"]);
    const skipped = { proof: "read Off twice", untilMs: T0 + 1_000, durationUntilMs: T0 + 299_400 };
    assert.deepEqual(announced({ ...created, skipped }).slice(1), [
      "DurationSkipped: Node n1 is remediated 299 s before its duration is over: read Off twice",
    ]);
  });

  it("a deletion is recorded, about the remediation", () => {
    const remediation = remediationOf("n1").object;
    const [announcement] = announceNodeEvent({ type: "deleted", remediation });
    assert.deepEqual([announcement?.reason, announcement?.about], ["RemediationRemoved", remediation]);
  });
});
