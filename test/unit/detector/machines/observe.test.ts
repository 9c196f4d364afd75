import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { MachineActionEvent } from "../../../../src/detector/machines/snapshot/observe.ts";
import { observeMachineCheck } from "../../../../src/detector/machines/snapshot/observe.ts";
import type { Deferral } from "../../../../src/detector/shared/model/deferral.ts";
import { checkOf, machineOf, T0 } from "./builders.ts";

const MACHINE = machineOf("m0");

/** What the agent remembers after an event, and the Kubernetes Events that it records for it. */
function after(event: MachineActionEvent) {
  const deferrals = new Map<string, Deferral>();
  const announcements = observeMachineCheck({ deferrals, compiled: { problem: "not used here" } }, checkOf(), event);
  return { deferrals, recorded: announcements.map(({ type, reason, note }) => `${type} ${reason}: ${note}`) };
}

describe("what an action on a Machine has done", () => {
  it("a deferral is remembered by the UID of the Machine, and records nothing", () => {
    const deferral: Deferral = { reason: "refused", cause: "refused", untilMs: T0 + 15_000 };
    const { deferrals, recorded } = after({ type: "deferred", machine: MACHINE, deferral });
    assert.deepEqual([...deferrals], [[MACHINE.metadata.uid, deferral]]);
    assert.deepEqual(recorded, []);
  });

  const cases: readonly [MachineActionEvent["type"], MachineActionEvent, RegExp][] = [
    [
      "markedUnhealthy",
      { type: "markedUnhealthy", machine: MACHINE },
      /^Normal MachineMarkedUnhealthy: .*tenant\/m0 .*tenant\/check$/,
    ],
    ["annotated", { type: "annotated", machine: MACHINE }, /^Normal ExternalAnnotationAdded: /],
    [
      "annotationFailed",
      { type: "annotationFailed", machine: MACHINE, message: "no" },
      /^Warning ExternalAnnotationFailed: .* failed: no$/,
    ],
    ["deleted", { type: "deleted", machine: MACHINE }, /^Normal MachineDeleted: /],
    [
      "deletionFailed",
      { type: "deletionFailed", machine: MACHINE, message: "no" },
      /^Warning MachineDeletionFailed: .*: no$/,
    ],
  ];
  for (const [type, event, expected] of cases) {
    it(`the action ${type} on a Machine records one Event about the Machine, in upstream's words`, () => {
      const { recorded } = after(event);
      assert.equal(recorded.length, 1);
      assert.match(recorded[0] ?? "", expected);
    });
  }
});
