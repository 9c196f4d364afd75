import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { decide } from "../../../../../src/remediator/machine/decide.ts";
import { mayHaveTurnedOff, parseState } from "../../../../../src/remediator/machine/model/decision/state.ts";
import { HOST_INSTALLATION_STEPS } from "../steps/host-installation.ts";
import { MACHINE_DELETION_STEPS } from "../steps/machine-deletion.ts";
import { NOW, snapshot } from "../snapshots.ts";

function statusAfter(step: string): NonNullable<ReturnType<typeof decide>["status"]> {
  const found = [...MACHINE_DELETION_STEPS, ...HOST_INSTALLATION_STEPS].find(({ name }) => name === step);
  if (found === undefined) throw new Error(`no step "${step}"`);
  const { status } = decide(snapshot(found.given), NOW);
  if (status === undefined) throw new Error(`"${step}" stores nothing`);
  return status;
}

describe("a Machine that was deleted", () => {
  const status = statusAfter("a Machine that is being deleted is waited for, whatever the target of its host shows");

  it("a Machine that was deleted leaves its host to the controller that deprovisions it: no undo owes it an On", () => {
    const state = parseState(status);
    assert.ok("attempt" in state && state.attempt !== undefined);
    assert.equal(mayHaveTurnedOff(state.attempt), false);
  });

  it("a Machine that was deleted is recorded with the API server's time of its deletion: that time identifies replacements", () => {
    assert.equal(status.replacement?.deletedAt, "2026-01-01T11:59:59Z");
  });

  it("a Machine that was deleted has the time of a new host's installation", () => {
    assert.equal(status.attempt?.deadline, "2026-01-01T12:10:00.000000Z");
  });
});

describe("a node that was replaced", () => {
  const conditionOf = (type: string) =>
    statusAfter("a Ready node of another Machine counts as a success").conditions?.find(
      (condition) => condition.type === type,
    );

  it("a node that was replaced is a success that names the node", () => {
    assert.equal(conditionOf("Succeeded")?.status, "True");
    assert.match(conditionOf("NodeRestored")?.message ?? "", /node n2 has taken the place of node n1/u);
  });

  it("a node that was replaced is still reported as a node that will not come back: only the remediation itself knows of the new one", () => {
    assert.equal(conditionOf("PermanentNodeDeletionExpected"), undefined);
  });
});

describe("the image of a BareMetalHost in a reprovision", () => {
  it("the image of a BareMetalHost is stored before it is removed", () => {
    const status = statusAfter("a host's image is stored before it is removed");
    assert.deepEqual(status.installation, { step: "Deprovisioning", image: '{"image":{"url":"x"}}' });
  });

  it("the image of a BareMetalHost has the strategy's time to be removed, and again to come back", () => {
    assert.equal(
      statusAfter("a host's image is stored before it is removed").attempt?.deadline,
      "2026-01-01T12:10:00.000000Z",
    );
    assert.equal(
      statusAfter("a host without an image and a system is provisioned next").attempt?.deadline,
      "2026-01-01T12:10:00.000000Z",
    );
  });

  it("the image of a BareMetalHost is not put back twice: its return is stored", () => {
    assert.equal(statusAfter("a host that is provisioned is powered on").installation?.step, "Provisioned");
  });
});
