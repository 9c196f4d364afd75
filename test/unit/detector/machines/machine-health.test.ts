import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { HealthCriteria } from "../../../../src/detector/machines/decide/machine-health.ts";
import { judgeMachine } from "../../../../src/detector/machines/decide/machine-health.ts";
import type { MachineHealth, ObservedMachine } from "../../../../src/detector/machines/decide/observed-machine.ts";
import { clusterOf, conditionsOf, machineOf, MINUTE, nodeOf, T0, targetOf } from "./builders.ts";

const CHECKS: HealthCriteria = {
  nodeStartupTimeoutMs: 10 * MINUTE,
  unhealthyNodeConditions: [
    { type: "Ready", status: "False", durationMs: 5 * MINUTE },
    { type: "Ready", status: "Unknown", durationMs: 5 * MINUTE },
  ],
  unhealthyMachineConditions: [{ type: "EtcdPodHealthy", status: "False", durationMs: 2 * MINUTE }],
};

function judge(parts: Partial<ObservedMachine>, checks: Partial<HealthCriteria> = {}): MachineHealth {
  return judgeMachine(targetOf(parts), { ...CHECKS, ...checks }, T0);
}

/** Reason and messages of an unhealthy machine, in both forms; otherwise its state. */
function conclude(health: MachineHealth): unknown {
  if (health.state !== "unhealthy") return health.state;
  const { reason, message, v1beta1 } = health.fault;
  return [reason, message, v1beta1.reason, v1beta1.message];
}

const notReady = (minutes: number) => ({
  state: "there" as const,
  node: nodeOf("m0", { Ready: { status: "Unknown", sinceMs: T0 - minutes * MINUTE } }),
});

describe("a machine of Cluster API", () => {
  it("a machine of Cluster API is healthy if its node is healthy", () => {
    assert.deepEqual(judge({}), { state: "healthy" });
  });

  it("a machine of Cluster API is unhealthy once a condition of its node has lasted for its timeout", () => {
    assert.deepEqual(conclude(judge({ node: notReady(5) })), [
      "UnhealthyNode",
      "Health check failed:\n  * Condition Ready on Node is reporting status Unknown for more than 5m0s",
      "UnhealthyNode",
      "Condition Ready on Node is reporting status Unknown for more than 5m0s",
    ]);
    const waiting = judge({ node: notReady(4) });
    assert.deepEqual(waiting.state === "waiting" && waiting.untilMs, T0 + MINUTE);
  });

  it("a machine of Cluster API is unhealthy at once by the annotation remediate-machine, whatever else holds", () => {
    const machine = machineOf("m0", { metadata: { annotations: { "cluster.x-k8s.io/remediate-machine": "" } } });
    const unknown = { state: "unknown" as const, reason: "unreachable" };
    assert.deepEqual(conclude(judge({ machine, node: unknown, cluster: clusterOf({ initializedMs: -1 }) })), [
      "HasRemediateAnnotation",
      "Health check failed: marked for remediation via cluster.x-k8s.io/remediate-machine annotation",
      "HasRemediateMachineAnnotation",
      "Marked for remediation via remediate-machine annotation",
    ]);
  });

  it("a machine of Cluster API is unhealthy by its failureReason or failureMessage, of either version", () => {
    const failed = (status: object, version: string) =>
      conclude(judge({ machine: machineOf("m0", { status, version }) }));
    assert.equal((failed({ failureReason: "CreateError" }, "v1beta1") as string[])[3], "FailureReason: CreateError");
    const nested = { deprecated: { v1beta1: { failureMessage: "no host" } } };
    assert.equal((failed(nested, "v1beta2") as string[])[3], "FailureMessage: no host");
    assert.equal((failed(nested, "v1beta2") as string[])[0], "MachineHasFailure");
  });

  it("a machine of Cluster API is judged only after the control plane is initialized, unless it belongs to the control plane", () => {
    const cluster = clusterOf({ initializedMs: -1 });
    assert.equal(judge({ cluster, node: notReady(60) }).state, "unsettled");
    const machine = machineOf("m0", { metadata: { labels: { "cluster.x-k8s.io/control-plane": "" } } });
    assert.equal(judge({ cluster, machine, node: notReady(60) }).state, "unhealthy");
  });

  it("a machine of Cluster API is judged only after the infrastructure of its cluster is ready", () => {
    assert.equal(judge({ cluster: clusterOf({ infrastructureMs: -1 }), node: notReady(60) }).state, "unsettled");
  });

  it("a machine of Cluster API is unhealthy at once if its node is gone, in either form's own words", () => {
    assert.deepEqual(conclude(judge({ node: { state: "gone" } })), [
      "NodeDeleted",
      "Health check failed:\n  * Node m0 has been deleted",
      "NodeNotFound",
      "",
    ]);
  });

  it("a machine of Cluster API is neither healthy nor unhealthy if its node cannot be known", () => {
    assert.deepEqual(judge({ node: { state: "unknown", reason: "unreachable" } }), {
      state: "unknown",
      reason: "unreachable",
    });
  });

  for (const [what, sinceMs] of [
    ["its creation", { createdMs: T0 - 11 * MINUTE }],
    ["the cluster's infrastructure", { infrastructureMs: T0 - 11 * MINUTE, createdMs: T0 - 60 * MINUTE }],
    ["the control plane", { initializedMs: T0 - 11 * MINUTE, createdMs: T0 - 60 * MINUTE }],
    ["its own infrastructure", { machineMs: T0 - 11 * MINUTE, createdMs: T0 - 60 * MINUTE }],
  ] as const) {
    it(`a machine of Cluster API has nodeStartupTimeout counted from ${what} if that is the latest of the four`, () => {
      const times = {
        infrastructureMs: T0 - 500 * MINUTE,
        initializedMs: T0 - 500 * MINUTE,
        machineMs: T0 - 500 * MINUTE,
        ...sinceMs,
      };
      const startup = (shiftMs: number) => {
        const latest = T0 - 11 * MINUTE;
        const moved = (time: number) => (time === latest ? time + shiftMs : time);
        const conditions = conditionsOf({ InfrastructureReady: { status: "True", sinceMs: moved(times.machineMs) } });
        const machine = machineOf("m0", {
          createdMs: moved(times.createdMs),
          status: { nodeRef: undefined, conditions },
        });
        const cluster = clusterOf({
          infrastructureMs: moved(times.infrastructureMs),
          initializedMs: moved(times.initializedMs),
        });
        return judge({ machine, cluster, node: { state: "none" } });
      };
      assert.deepEqual(conclude(startup(0)), [
        "NodeStartupTimeout",
        "Health check failed:\n  * Node failed to report startup in 10m0s",
        "NodeStartupTimeout",
        "Node failed to report startup in 10m0s",
      ]);
      const early = startup(2 * MINUTE);
      assert.equal(early.state === "waiting" && early.untilMs, T0 + MINUTE);
    });
  }

  it("a machine of Cluster API may wait for its node forever if nodeStartupTimeout is 0", () => {
    const machine = machineOf("m0", { createdMs: T0 - 1_000 * MINUTE, status: { nodeRef: undefined } });
    assert.equal(judge({ machine, node: { state: "none" } }, { nodeStartupTimeoutMs: 0 }).state, "unsettled");
  });

  it("a machine of Cluster API is unhealthy by a condition of its own, whose reason goes before the node's, and all are reported", () => {
    const machine = machineOf("m0", {
      status: { conditions: conditionsOf({ EtcdPodHealthy: { status: "False", sinceMs: T0 - 3 * MINUTE } }) },
    });
    assert.deepEqual(conclude(judge({ machine, node: notReady(6) })), [
      "UnhealthyMachine",
      "Health check failed:\n  * Condition Ready on Node is reporting status Unknown for more than 5m0s\n  * Condition EtcdPodHealthy on Machine is reporting status False for more than 2m0s",
      "UnhealthyMachine",
      "Condition Ready on Node is reporting status Unknown for more than 5m0s; Condition EtcdPodHealthy on Machine is reporting status False for more than 2m0s",
    ]);
    assert.equal((conclude(judge({ machine })) as string[])[0], "UnhealthyMachine");
    assert.equal((conclude(judge({ machine, node: { state: "gone" } })) as string[])[0], "UnhealthyMachine");
    assert.equal((conclude(judge({ machine, node: { state: "none" } })) as string[])[0], "UnhealthyMachine");
  });

  it("a machine of Cluster API is not made unhealthy by a condition without the time of its last transition", () => {
    const node = nodeOf("m0", { Ready: { status: "Unknown", sinceMs: T0 - 60 * MINUTE } });
    const nodeSinceMs = () => undefined;
    assert.equal(judge({ node: { state: "there", node }, nodeSinceMs }).state, "healthy");
  });

  it("a machine of Cluster API is not healthy while it is being deleted", () => {
    const machine = machineOf("m0", { metadata: { deletionTimestamp: "2026-01-01T00:00:00Z" } });
    assert.equal(judge({ machine }).state, "unsettled");
  });
});
