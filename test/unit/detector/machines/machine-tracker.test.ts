import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Machine } from "../../../../src/api/cluster-api/cluster-api.ts";
import { MachineTracker } from "../../../../src/detector/machines/snapshot/machine-tracker.ts";
import { machineOf } from "./builders.ts";

function trackerOf(...machines: Machine[]): MachineTracker {
  const covers = ({ metadata }: Machine): boolean => metadata.labels?.["pool"] !== "other";
  const deps = { covers, judge: () => ({ state: "healthy" }) as const, isSettled: () => true };
  return new MachineTracker(deps, machines);
}

function version(resourceVersion: string, uid = "uid-m0"): Machine {
  return machineOf("m0", { metadata: { uid, resourceVersion } });
}

describe("the Machines of a health check", () => {
  it("a Machine as a write has answered it counts before the watch shows it", () => {
    const tracker = trackerOf(version("9"));
    const written = version("10");
    tracker.observeWritten(written);
    assert.equal(tracker.get("m0")?.machine, written);
    assert.deepEqual([tracker.size, tracker.healthy], [1, 1]);
  });

  it("a Machine that a write shows as not covered any more is not named any more", () => {
    const tracker = trackerOf(version("9"));
    assert.deepEqual(tracker.names, ["m0"]);
    tracker.observeWritten(machineOf("m0", { metadata: { resourceVersion: "10", labels: { pool: "other" } } }));
    assert.deepEqual([tracker.names, tracker.size], [[], 0]);
  });

  it("the Machine of the watch stays if a write answers the same version or an earlier one later", () => {
    const watched = version("10");
    const tracker = trackerOf(watched);
    tracker.observeWritten(version("10"));
    tracker.observeWritten(version("9"));
    assert.equal(tracker.get("m0")?.machine, watched);
  });

  it("a Machine that was deleted does not count again because a write to it is answered later", () => {
    const deleted = version("9");
    const tracker = trackerOf(deleted);
    tracker.observe({ type: "deleted", object: deleted });
    tracker.observeWritten(version("10"));
    assert.equal(tracker.size, 0);
  });

  it("a Machine that replaced a deleted one of the same name stays if a write to the deleted one is answered later", () => {
    const successor = version("12", "uid-successor");
    const tracker = trackerOf(successor);
    tracker.observeWritten(version("13"));
    assert.equal(tracker.get("m0")?.machine, successor);
  });
});
