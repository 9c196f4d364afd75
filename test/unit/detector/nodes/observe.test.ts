import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { NodeActionEvent } from "../../../../src/detector/nodes/snapshot/observe.ts";
import { observeNodeCheck } from "../../../../src/detector/nodes/snapshot/observe.ts";
import type { Deferral } from "../../../../src/detector/shared/model/deferral.ts";
import { nodeOf, remediationOf, T0 } from "./builders.ts";

const NODE = nodeOf("n1", "Unknown", T0);
const DEFERRAL: Deferral = { reason: "node lease is already taken by x", cause: "lease", untilMs: T0 + 15_000 };

/** What the agent remembers after these events, and the Kubernetes Events that it records for them. */
function after(...events: NodeActionEvent[]) {
  const memory = { deferrals: new Map<string, Deferral>(), leaseRenewals: new Map<string, number>() };
  const announcements = events.flatMap((event) => observeNodeCheck(memory, event));
  return { ...memory, recorded: announcements.map(({ reason, note }) => `${reason}: ${note}`) };
}

describe("what an action on a node has done", () => {
  it("a lease that was taken is renewed later, and forgotten when it is released", () => {
    const taken: NodeActionEvent = { type: "leaseTaken", nodeName: "n1", renewAtMs: T0 + 60_000 };
    assert.deepEqual([...after(taken).leaseRenewals], [["n1", T0 + 60_000]]);
    assert.deepEqual([...after(taken, { type: "leaseReleased", nodeName: "n1" }).leaseRenewals], []);
  });

  it("a lease that another holder has defers the node, and is requested again when the deferral ends", () => {
    const { deferrals, leaseRenewals } = after({ type: "leaseRefused", nodeName: "n1", deferral: DEFERRAL });
    assert.deepEqual([...deferrals], [["n1", DEFERRAL]]);
    assert.deepEqual([...leaseRenewals], [["n1", DEFERRAL.untilMs]]);
  });

  it("a deferral replaces the earlier one without an Event: decide announces it while it lasts", () => {
    const stale: Deferral = { reason: "a live read differs", cause: "staleView", untilMs: T0 + 1_000 };
    const first: NodeActionEvent = { type: "deferred", nodeName: "n1", deferral: DEFERRAL };
    const { deferrals, leaseRenewals, recorded } = after(first, { type: "deferred", nodeName: "n1", deferral: stale });
    assert.deepEqual([...deferrals], [["n1", stale]]);
    assert.deepEqual([[...leaseRenewals], recorded], [[], []]);
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
    assert.deepEqual(after(created).recorded, ["RemediationCreated: Created remediation object for node n1"]);
    const skipped = { proof: "read Off twice", untilMs: T0 + 1_000, durationUntilMs: T0 + 299_400 };
    assert.deepEqual(after({ ...created, skipped }).recorded.slice(1), [
      "DurationSkipped: Node n1 is remediated 299 s before its duration is over: read Off twice",
    ]);
  });

  it("a deletion is recorded, about the remediation", () => {
    const remediation = remediationOf("n1").object;
    const memory = { deferrals: new Map<string, Deferral>(), leaseRenewals: new Map<string, number>() };
    const [announcement] = observeNodeCheck(memory, { type: "deleted", remediation });
    assert.deepEqual([announcement?.reason, announcement?.about], ["RemediationRemoved", remediation]);
  });
});
