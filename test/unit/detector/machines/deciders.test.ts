import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { machineCheckDecider } from "../../../../src/detector/machines/decide/deciders.ts";
import type { MachineCheckSnapshot } from "../../../../src/detector/machines/decide/decision.ts";
import { CLUSTER_API_CHECKS } from "../../../../src/detector/machines/vendors/cluster-api.ts";
import { checkOf, decideFor, factsOf, FAULT, policyOf, TEMPLATE } from "./builders.ts";

const DECIDER = machineCheckDecider(CLUSTER_API_CHECKS);

describe("a log of decisions about Machines", () => {
  it("a log of decisions about Machines leaves out the spec of another vendor's template, which may hold a password", () => {
    const template = { ...TEMPLATE, remediationSpec: { sharedparameters: { "--password": "hunter2" } } };
    const machines = [factsOf({ health: { state: "unhealthy", fault: FAULT } })];
    const check = checkOf();
    const snapshot: MachineCheckSnapshot = {
      check,
      policy: policyOf(check),
      machineNames: [],
      healthy: 3,
      machines,
      template,
      blocked: undefined,
      unreachable: undefined,
      deleting: undefined,
      isHistoryFull: false,
    };
    const decision = decideFor(machines, { check, template });
    assert.ok(decision.actions.some(({ type }) => type === "request"));
    const recorded = JSON.stringify([DECIDER.fieldsOf(snapshot), DECIDER.recorded(decision)]);
    assert.match(recorded, /"type":"request"/);
    assert.doesNotMatch(recorded, /hunter2/);
  });
});
