import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { MachineActionEvent } from "../../../../src/detector/machines/decide/observe.ts";
import {
  announceMachineEvent,
  NOTHING_OBSERVED_OF_MACHINE,
  observeMachine,
} from "../../../../src/detector/machines/decide/observe.ts";
import type { Deferral } from "../../../../src/detector/shared/model/deferral.ts";
import { checkOf, machineOf, T0 } from "./builders.ts";

const MACHINE = machineOf("m0");

/** The Kubernetes Events that an event leads to. */
function announced(event: MachineActionEvent): string[] {
  return announceMachineEvent(checkOf(), event).map(({ type, reason, note }) => `${type} ${reason}: ${note}`);
}

describe("what an action on a Machine has done", () => {
  it("a deferral of a Machine lasts until its time, and records nothing", () => {
    const deferral: Deferral = { reason: "refused", cause: "refused", untilMs: T0 + 15_000 };
    const event = { type: "deferred", machine: MACHINE, deferral } as const;
    const observed = observeMachine(NOTHING_OBSERVED_OF_MACHINE, event);
    assert.deepEqual(observed, { deferral });
    assert.equal(observeMachine(observed, { type: "timePassed", nowMs: T0 + 14_999 }), observed);
    assert.deepEqual(observeMachine(observed, { type: "timePassed", nowMs: T0 + 15_000 }), NOTHING_OBSERVED_OF_MACHINE);
    assert.deepEqual(announced(event), []);
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
    it(`the action ${type} on a Machine records one Event about the Machine, with upstream's text`, () => {
      const recorded = announced(event);
      assert.equal(recorded.length, 1);
      assert.match(recorded[0] ?? "", expected);
    });
  }
});
