import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { readMachine } from "../../../../src/api/cluster-api/cluster-api.ts";
import { fieldAt } from "../../../../src/api/schema/read-fields.ts";
import type { ConditionWrite } from "../../../../src/api/cluster-api/machine-conditions.ts";
import {
  hasConditionWithAnyMessage,
  changeConditions,
  hasCondition,
} from "../../../../src/api/cluster-api/machine-conditions.ts";
import type { KubeObject } from "../../../../src/kube/resource.ts";

const T0 = Date.UTC(2026, 0, 1);
const BEFORE = "2025-12-31T00:00:00Z";

const FAILED: ConditionWrite = {
  type: "HealthCheckSucceeded",
  status: "False",
  reason: "NodeDeleted",
  message: "Node n has been deleted",
  v1beta1: { reason: "NodeNotFound", message: "", severity: "Warning" },
};
const SUCCEEDED: ConditionWrite = { ...FAILED, status: "True", reason: "HealthCheckSucceeded", message: "" };

function machineOf(version: string, status: object | undefined): KubeObject {
  return {
    apiVersion: `cluster.x-k8s.io/${version}`,
    kind: "Machine",
    metadata: { namespace: "tenant", name: "m", uid: "u", resourceVersion: "1", generation: 4 },
    ...(status !== undefined && { status }),
  };
}

describe("conditions of Cluster API's objects", () => {
  it("conditions of Cluster API's objects are metav1.Conditions in v1beta2, and have a severity in v1beta1", () => {
    assert.deepEqual(changeConditions(machineOf("v1beta2", undefined), [FAILED], [], T0), [
      {
        path: ["status", "conditions"],
        conditions: [
          {
            type: "HealthCheckSucceeded",
            status: "False",
            reason: "NodeDeleted",
            message: "Node n has been deleted",
            lastTransitionTime: "2026-01-01T00:00:00Z",
            observedGeneration: 4,
          },
        ],
      },
    ]);
    assert.deepEqual(changeConditions(machineOf("v1beta1", undefined), [FAILED], [], T0), [
      {
        path: ["status", "conditions"],
        conditions: [
          {
            type: "HealthCheckSucceeded",
            status: "False",
            severity: "Warning",
            reason: "NodeNotFound",
            lastTransitionTime: "2026-01-01T00:00:00Z",
          },
        ],
      },
    ]);
  });

  it("conditions of Cluster API's objects have no reason in v1beta1 while they are true", () => {
    const [change] = changeConditions(machineOf("v1beta1", {}), [SUCCEEDED], [], T0);
    assert.deepEqual(change?.conditions, [
      { type: "HealthCheckSucceeded", status: "True", lastTransitionTime: "2026-01-01T00:00:00Z" },
    ]);
  });

  it("conditions of Cluster API's objects are kept in the other form too if the object has it, since controllers of different ages read different ones", () => {
    const other = [{ type: "Ready", status: "True", lastTransitionTime: BEFORE }];
    const newer = machineOf("v1beta2", { conditions: [], deprecated: { v1beta1: { conditions: other } } });
    assert.deepEqual(
      changeConditions(newer, [FAILED], [], T0).map(({ path, conditions }) => [path.join("."), conditions.length]),
      [
        ["status.conditions", 1],
        ["status.deprecated.v1beta1.conditions", 2],
      ],
    );
    const older = machineOf("v1beta1", { v1beta2: { conditions: [{ ...other[0], reason: "R", message: "" }] } });
    assert.deepEqual(
      changeConditions(older, [FAILED], [], T0).map(({ path }) => path.join(".")),
      ["status.v1beta2.conditions", "status.conditions"],
    );
  });

  it("conditions of Cluster API's objects of others stay as they are, in their places", () => {
    const conditions = [
      { type: "Ready", status: "True", extra: 1, lastTransitionTime: BEFORE },
      {
        type: "HealthCheckSucceeded",
        status: "True",
        reason: "HealthCheckSucceeded",
        message: "",
        lastTransitionTime: BEFORE,
      },
      { type: "Paused", status: "False", lastTransitionTime: BEFORE },
    ];
    const [change] = changeConditions(machineOf("v1beta2", { conditions }), [FAILED], [], T0);
    assert.deepEqual(change?.conditions[0], conditions[0]);
    assert.deepEqual(change?.conditions[2], conditions[2]);
    assert.equal(change?.conditions.length, 3);
  });

  it("conditions of Cluster API's objects keep their transition time while their status stays", () => {
    const conditions = [
      { type: FAILED.type, status: "False", reason: "Other", message: "", lastTransitionTime: BEFORE },
    ];
    const [change] = changeConditions(machineOf("v1beta2", { conditions }), [FAILED], [], T0);
    assert.equal(fieldAt(change?.conditions[0], "lastTransitionTime"), BEFORE);
  });

  it("conditions of Cluster API's objects are written in the one form that knows them", () => {
    const old = { type: "Ready", status: "True", lastTransitionTime: BEFORE };
    const raw = machineOf("v1beta2", { deprecated: { v1beta1: { conditions: [old] } } });
    const wanted = { ...FAILED, type: "ExternallyRemediated", v1beta1: undefined };
    const changes = changeConditions(raw, [wanted], [], T0);
    assert.deepEqual(
      changes.map(({ path }) => path),
      [["status", "conditions"]],
    );
    const conditions = changes[0]?.conditions ?? [];
    assert.equal(
      hasConditionWithAnyMessage(
        readMachine(machineOf("v1beta2", { conditions, deprecated: { v1beta1: { conditions: [old] } } })),
        wanted,
      ),
      true,
    );
  });

  it("conditions of Cluster API's objects are not written again if they are equal, and removed if they are unwanted", () => {
    const raw = machineOf("v1beta2", {
      conditions: [
        {
          type: FAILED.type,
          status: "False",
          reason: FAILED.reason,
          message: FAILED.message,
          lastTransitionTime: BEFORE,
        },
        { type: "ExternallyRemediated", status: "False", reason: "X", message: "", lastTransitionTime: BEFORE },
      ],
    });
    assert.deepEqual(changeConditions(raw, [FAILED], [], T0), []);
    assert.equal(changeConditions(raw, [], ["ExternallyRemediated"], T0)[0]?.conditions.length, 1);
    assert.equal(hasCondition(readMachine(raw), FAILED), true);
    assert.equal(hasCondition(readMachine(raw), { ...FAILED, message: "in other words" }), false);
    assert.equal(hasConditionWithAnyMessage(readMachine(raw), { ...FAILED, message: "in other words" }), true);
    assert.equal(hasConditionWithAnyMessage(readMachine(raw), { ...FAILED, reason: "NodeStartupTimeout" }), false);
  });
});
