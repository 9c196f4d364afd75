import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { toTime } from "../../../../src/runtime/time.ts";
import { decideUnusable } from "../../../../src/detector/machines/decide/decide.ts";
import {
  checkOf,
  conditionsOf,
  decideFor,
  deedsOf,
  factsOf,
  FAULT,
  machineOf,
  MINUTE,
  requestOf,
  reportedBy,
  T0,
} from "./builders.ts";

const HEALTHY = { state: "healthy" } as const;
const ASKS_OWNER = { check: checkOf({ spec: { remediation: undefined } }), template: undefined };
const ATTEMPTS = (count: number) =>
  Array.from({ length: count }, (_, index) => ({ uid: `old-${index}`, startedMs: T0 - (count - index) * MINUTE }));

describe("a MachineHealthCheck", () => {
  it("a MachineHealthCheck requests a remediation of an unhealthy machine, and reports that on the machine", () => {
    const decision = decideFor([factsOf()]);
    assert.deepEqual(deedsOf(decision), ["request m0"]);
    assert.deepEqual(reportedBy(decision), ["m0 HealthCheckSucceeded=False UnhealthyNode"]);
    assert.equal(decision.status.remediationsAllowed, 3);
    assert.equal(decision.status.currentHealthy, 3);
    assert.equal(decision.status.expectedMachines, 4);
    assert.equal(decision.status.observedGeneration, 3);
  });

  it("a MachineHealthCheck answers every machine of an evaluation, though the first ones have their requests", () => {
    const machines = ["a", "b", "c"].map((name) => machineOf(name));
    const [first, second, third] = machines.map((machine, index) =>
      factsOf({ machine, requests: index === 2 ? [] : [requestOf(machine)] }),
    );
    assert.ok(first && second && third);
    assert.deepEqual(deedsOf(decideFor([first, second, third])), ["record a 1", "record b 1", "request c"]);
  });

  describe("a request that failed", () => {
    /** A machine whose request failed `ago` minutes ago, when it had been unhealthy for `outage` minutes. */
    const failed = (outage: number, ago: number, more: Parameters<typeof factsOf>[0] = {}) => {
      const failedMs = T0 - ago * MINUTE;
      const lastTransitionTime = toTime(failedMs - outage * MINUTE);
      const conditions = [
        { type: "HealthCheckSucceeded", status: "False", reason: "x", message: "", lastTransitionTime },
      ];
      const machine = machineOf("m0", { status: { conditions } });
      const request = requestOf(machine, { createdMs: failedMs - MINUTE, failedMs });
      const attempts = [{ uid: request.uid, startedMs: failedMs - MINUTE }];
      return factsOf({ machine, requests: [request], attempts, ...more });
    };
    for (const [outage, pause] of [
      [2, 10],
      [15, 15],
      [30, 30],
      [100, 100],
      [500, 120],
    ] as const) {
      it(`a request that failed is made again after ${pause} minutes, and no sooner, if the machine has been unhealthy for ${outage} minutes`, () => {
        const early = decideFor([failed(outage, pause - 1)]);
        assert.deepEqual([deedsOf(early), early.nextCheckMs], [[], T0 + MINUTE]);
        assert.deepEqual(deedsOf(decideFor([failed(outage, pause)])), ["renew m0"]);
      });
    }

    it("a request that failed says why the last try failed, when the next one starts, and how to start it now", () => {
      const { machines, standing } = decideFor([failed(2, 1)]);
      const reason = `Fence m0 has failed (BMCUnreachable: no route). The next try starts at ${toTime(T0 + 9 * MINUTE)}. To try again now, delete it: kubectl delete fence m0 -n tenant`;
      assert.deepEqual(machines, [{ name: "m0", outcome: "failed", reason }]);
      assert.deepEqual(
        standing.map((told) => [told.reason, told.note]),
        [["RemediationFailed", `Machine tenant/m0: ${reason}`]],
      );
    });

    it("a request that failed is made again at once if its host can be fenced again, which it could not after the failure", () => {
      const at = (fenceableSinceMs: number) => deedsOf(decideFor([failed(500, 5, { fenceableSinceMs })]));
      assert.deepEqual(at(T0 - 4 * MINUTE), ["renew m0"]);
      assert.deepEqual(at(T0 - 5 * MINUTE), []);
    });

    it("a request that failed is made again if a Metal3Remediation says by its phase alone that it failed", () => {
      const machine = machineOf();
      const request = requestOf(machine, { createdMs: T0 - 20 * MINUTE, metal3Failed: true });
      const attempts = [{ uid: request.uid, startedMs: T0 - 20 * MINUTE }];
      assert.deepEqual(deedsOf(decideFor([factsOf({ machine, requests: [request], attempts })])), ["renew m0"]);
    });

    it("a request that failed is made again within the budget, and not while the threshold prevents it, the machine is being deleted, or a control plane machine is busy", () => {
      const spent = failed(2, 10, { attempts: ATTEMPTS(10) });
      assert.match(decideFor([spent]).machines[0]?.reason ?? "", /No retry starts now: giving up until/);
      const gone = failed(2, 10);
      const { machine } = gone;
      const metadata = { ...machine.metadata, deletionTimestamp: toTime(T0) };
      const going = decideFor([{ ...gone, machine: { ...machine, metadata } }]);
      assert.match(going.machines[0]?.reason ?? "", /No retry starts now: it is already being deleted/);
      const plane = { ...machine, isControlPlane: true };
      const busy = decideFor([{ ...gone, machine: plane, controlPlaneBusy: "m9" }]);
      assert.match(busy.machines[0]?.reason ?? "", /control plane Machine m9/);
      const deferred = decideFor([gone], { blocked: "the view is stale" });
      for (const decision of [decideFor([spent]), going, busy, deferred]) {
        assert.deepEqual(
          deedsOf(decision).filter((deed) => deed.startsWith("renew")),
          [],
        );
      }
    });

    it("a request that failed waits while the last remediation is still being deleted", () => {
      const machine = machineOf();
      const request = requestOf(machine, { terminating: true, failedMs: T0 - 20 * MINUTE });
      const attempts = [{ uid: request.uid, startedMs: T0 - 20 * MINUTE }];
      const { machines } = decideFor([factsOf({ machine, requests: [request], attempts })]);
      assert.equal(machines[0]?.reason, "its last request is still being deleted");
    });
  });

  it("a MachineHealthCheck withdraws the request of a machine that is well while too many others are not, and remembers it first", () => {
    const machine = machineOf("well");
    const sick = ["a", "b", "c"].map((name) => factsOf({ machine: machineOf(name) }));
    const check = checkOf({
      spec: {
        remediation: {
          ...checkOf().spec,
          triggerIf: { unhealthyLessThanOrEqualTo: 1 },
          templateRef: { apiVersion: "fence.example/v1", kind: "FenceTemplate", name: "t" },
        },
      },
    });
    const request = requestOf(machine);
    const unrecorded = decideFor([...sick, factsOf({ machine, health: HEALTHY, requests: [request] })], { check });
    assert.equal(unrecorded.gate?.outcome, "tooManyUnhealthy");
    assert.deepEqual(deedsOf(unrecorded), ["record well 1"]);
    const attempts = [{ uid: request.uid, startedMs: T0 }];
    const recorded = decideFor([...sick, factsOf({ machine, health: HEALTHY, requests: [request], attempts })], {
      check,
    });
    assert.deepEqual(deedsOf(recorded), ["withdraw well"]);
  });

  it("a MachineHealthCheck withdraws no request that another health check still needs, and none twice", () => {
    const machine = machineOf("well");
    const attempts = [{ uid: "request-well", startedMs: T0 }];
    const facts = { machine, health: HEALTHY, attempts };
    assert.deepEqual(
      deedsOf(decideFor([factsOf({ ...facts, requests: [requestOf(machine)], neededBy: "tenant/other" })])),
      [],
    );
    assert.deepEqual(
      deedsOf(decideFor([factsOf({ ...facts, requests: [requestOf(machine, { terminating: true })] })])),
      [],
    );
  });

  for (const [what, parts] of [
    ["the view is stale", { blocked: "stale" }],
    ["the workload cluster is unreachable", { unreachable: "gone fishing" }],
  ] as const) {
    it(`a MachineHealthCheck starts nothing while ${what}, and reports it`, () => {
      const decision = decideFor([factsOf()], parts);
      assert.deepEqual(deedsOf(decision), []);
      assert.equal(decision.status.remediationsAllowed, 0);
      assert.equal(decision.conditions[0]?.status, "False");
      assert.equal(decision.standing.filter(({ reason }) => reason === "RemediationRestricted").length, 1);
    });
  }

  it("a MachineHealthCheck keeps what was counted last while the workload cluster is unreachable", () => {
    const check = checkOf({ status: { currentHealthy: 4, expectedMachines: 4, targets: ["m0"] } });
    const unknown = factsOf({ health: { state: "unknown", reason: "unreachable" } });
    const { status } = decideFor([unknown], { check, unreachable: "unreachable", others: 0 });
    assert.deepEqual([status.currentHealthy, status.expectedMachines, status.targets], [4, 4, ["m0"]]);
  });

  it("a MachineHealthCheck says that it selects no Machine, which a misspelt selector looks like", () => {
    const { conditions, standing } = decideFor([], { others: 0 });
    assert.match(conditions[0]?.message ?? "", /^No Machine is selected/);
    assert.deepEqual(
      standing.map(({ type, reason }) => [type, reason]),
      [["Normal", "NoMachineSelected"]],
    );
    assert.equal(decideFor([]).conditions[0]?.message, "");
  });

  it("a MachineHealthCheck reports no restriction if no node is unhealthy: machines that have not started count too", () => {
    const starting = factsOf({ health: { state: "waiting", reason: "it has no node yet", untilMs: T0 + MINUTE } });
    const check = checkOf({ spec: { remediation: { triggerIf: { unhealthyLessThanOrEqualTo: 0 } } } });
    const decision = decideFor([starting], { check, template: undefined });
    assert.equal(decision.gate?.outcome, "tooManyUnhealthy");
    assert.deepEqual(
      decision.standing.map(({ reason }) => reason),
      ["DetectedUnhealthy"],
    );
    assert.equal(decision.nextCheckMs, T0 + MINUTE);
  });

  it("a MachineHealthCheck leaves a machine whose budget is used up to the operator, and checks again when attempts are left", () => {
    const check = checkOf({ annotations: { "ironfence.io/attempt-budget": "3/1h" } });
    const spent = decideFor([factsOf({ attempts: ATTEMPTS(3) })], { check });
    assert.deepEqual(deedsOf(spent), []);
    assert.equal(spent.nextCheckMs, T0 + 57 * MINUTE);
    assert.deepEqual(deedsOf(decideFor([factsOf({ attempts: ATTEMPTS(2) })], { check })), ["request m0"]);
  });

  it("a MachineHealthCheck starts one machine of a control plane at a time", () => {
    const labels = { "cluster.x-k8s.io/control-plane": "" };
    const [a, b] = ["a", "b"].map((name) => factsOf({ machine: machineOf(name, { metadata: { labels } }) }));
    assert.ok(a && b);
    assert.deepEqual(deedsOf(decideFor([a, b])), ["request a"]);
    assert.deepEqual(deedsOf(decideFor([{ ...b, controlPlaneBusy: "a" }])), []);
  });

  it("a MachineHealthCheck asks an owner of every unhealthy machine of a control plane: its controller takes one at a time", () => {
    const labels = { "cluster.x-k8s.io/control-plane": "" };
    const targets = ["a", "b"].map((name) => factsOf({ machine: machineOf(name, { metadata: { labels } }) }));
    const decision = decideFor(targets, ASKS_OWNER);
    assert.equal(reportedBy(decision).filter((reported) => reported.includes("OwnerRemediated=False")).length, 2);
  });

  it("a MachineHealthCheck asks the owner of a machine that is not being deleted already, and does not ask again while the owner works on it", () => {
    const asked = (status: object, metadata: object = {}) =>
      reportedBy(decideFor([factsOf({ machine: machineOf("m0", { status, metadata }) })], ASKS_OWNER)).some(
        (reported) => reported.includes("OwnerRemediated"),
      );
    const owner = (status: string) => ({
      conditions: conditionsOf({ OwnerRemediated: { status, sinceMs: T0, reason: "X" } }),
    });
    assert.equal(asked({}), true);
    assert.equal(asked(owner("True")), true);
    assert.equal(asked(owner("False")), false);
    assert.equal(asked({}, { deletionTimestamp: "2026-01-01T00:00:00Z" }), false);
  });

  it("a MachineHealthCheck counts a replacement that fails before it is of use, by its MachineDeployment, before it asks for another", () => {
    const labels = { "cluster.x-k8s.io/deployment-name": "workers" };
    const machine = machineOf("young", { metadata: { labels }, createdMs: T0 - MINUTE });
    const first = decideFor([factsOf({ machine })], ASKS_OWNER);
    assert.deepEqual(deedsOf(first), ["record MachineDeployment/workers 1"]);
    assert.equal(
      reportedBy(first).some((reported) => reported.includes("OwnerRemediated")),
      false,
    );
    const attempts = [{ uid: "uid-young", startedMs: T0 }];
    const second = decideFor([factsOf({ machine, attempts })], ASKS_OWNER);
    assert.equal(
      reportedBy(second).some((reported) => reported.includes("OwnerRemediated=False")),
      true,
    );
    const old = machineOf("old", { metadata: { labels } });
    assert.deepEqual(deedsOf(decideFor([factsOf({ machine: old, attempts: ATTEMPTS(40) })], ASKS_OWNER)), []);
    assert.equal(
      reportedBy(decideFor([factsOf({ machine: old, attempts: ATTEMPTS(40) })], ASKS_OWNER)).some((reported) =>
        reported.includes("OwnerRemediated=False"),
      ),
      true,
    );
  });

  it("a MachineHealthCheck reports on a Machine that there is no template, and clears that once its request exists", () => {
    const missing = { reason: "RemediationTemplateNotFound", message: "not found" } as const;
    const decision = decideFor([factsOf()], { template: missing });
    assert.ok(reportedBy(decision).includes("m0 ExternallyRemediated=False RemediationTemplateNotFound"));
    assert.deepEqual(deedsOf(decision), []);
    const conditions = conditionsOf({
      ExternallyRemediated: { status: "False", sinceMs: T0, reason: "RemediationTemplateNotFound" },
    });
    const machine = machineOf("m0", { status: { conditions } });
    const later = decideFor([factsOf({ machine, requests: [requestOf(machine)] })]);
    assert.ok(reportedBy(later).includes("m0 ExternallyRemediated=False WaitingForRemediation"));
  });

  it("a MachineHealthCheck keeps the condition that a remediator writes on its request, and removes it at the end", () => {
    const says = (reason: string) => {
      const conditions = conditionsOf({ ExternallyRemediated: { status: "False", sinceMs: T0, reason } });
      return machineOf("m0", { status: { conditions } });
    };
    const machine = says("RemediationFailed");
    const during = decideFor([factsOf({ machine, requests: [requestOf(machine)] })]);
    assert.equal(
      reportedBy(during).some((reported) => reported.includes("ExternallyRemediated")),
      false,
    );
    assert.ok(reportedBy(decideFor([factsOf({ machine, health: HEALTHY })])).includes("m0 no ExternallyRemediated"));
    const conditions = conditionsOf({ ExternallyRemediated: { status: "True", sinceMs: T0, reason: "Succeeded" } });
    const afterwards = decideFor([factsOf({ machine: machineOf("m0", { status: { conditions } }) })]);
    assert.ok(reportedBy(afterwards).includes("m0 ExternallyRemediated=False WaitingForRemediation"));
  });

  it("a MachineHealthCheck of v1beta1 shows in its own status what one of v1beta2 shows on machines", () => {
    const reference = { apiVersion: "fence.example/v1", kind: "FenceTemplate", name: "t" };
    const check = checkOf({ version: "v1beta1", spec: { remediation: undefined, remediationTemplate: reference } });
    const machine = machineOf("m0", { version: "v1beta1" });
    const template = { reason: "RemediationTemplateNotFound", message: "not found" } as const;
    const decision = decideFor([factsOf({ machine })], { check, template });
    assert.deepEqual(
      decision.conditions.map(({ type, v1beta1 }) => [type, v1beta1?.severity]),
      [
        ["RemediationAllowed", "Warning"],
        ["ExternalRemediationTemplateAvailable", "Error"],
      ],
    );
    assert.equal(
      reportedBy(decision).some((reported) => reported.includes("ExternallyRemediated")),
      false,
    );
  });

  it("a MachineHealthCheck reports a field of its spec that the agent does not implement", () => {
    const check = checkOf({ spec: { checks: { unhealthyExpressions: [{ expression: "true", message: "x" }] } } });
    const { standing } = decideFor([], { check });
    assert.deepEqual(
      standing.map(({ reason }) => reason),
      ["HealthCheckIncomplete"],
    );
  });

  it("a MachineHealthCheck shows a spec that cannot be used, and does nothing", () => {
    const decision = decideUnusable(checkOf(), "the selector is empty");
    assert.deepEqual(decision.actions, []);
    assert.equal(decision.conditions[0]?.message, "the selector is empty");
    assert.equal(decision.status.remediationsAllowed, 0);
  });

  it("a MachineHealthCheck is identified by its fault, not by its message: upstream's may differ", () => {
    const conditions = conditionsOf({ HealthCheckSucceeded: { status: "False", sinceMs: T0, reason: FAULT.reason } });
    const machine = machineOf("m0", { status: { conditions } });
    assert.deepEqual(reportedBy(decideFor([factsOf({ machine })])), []);
  });
});
