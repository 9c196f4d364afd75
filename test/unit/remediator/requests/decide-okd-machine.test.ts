import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type {
  BareMetalRemediation,
  BareMetalRemediationStatus,
} from "../../../../src/api/ironfence/bare-metal-remediation.ts";
import { bareMetalRemediationSpecSchema } from "../../../../src/api/ironfence/bare-metal-remediation.ts";
import { readBareMetalHost } from "../../../../src/api/metal3/metal3.ts";
import { readOkdMachineHealthCheck } from "../../../../src/api/okd/okd-machine-health-check.ts";
import { NODE_ANNOTATIONS_BACKUP, NODE_LABELS_BACKUP } from "../../../../src/api/metal3/metal3-remediation.ts";
import { readOkdMachine } from "../../../../src/api/okd/okd-machine.ts";
import { toTime } from "../../../../src/runtime/time.ts";
import type { ObjectMeta } from "../../../../src/kube/resource.ts";
import type { OkdMachineSnapshot } from "../../../../src/remediator/requests/decide-okd-machine.ts";
import {
  concerns,
  decideOkdMachine,
  otherRemediator,
  POWERED_OFF_BY_OKD,
  remediationSpec,
} from "../../../../src/remediator/requests/decide-okd-machine.ts";

const REQUEST = { "host.metal3.io/external-remediation": "" };
const OWNER = {
  apiVersion: "machine.openshift.io/v1beta1",
  kind: "MachineSet",
  name: "set",
  uid: "set",
  controller: true,
};

function machine(metadata: Partial<ObjectMeta> = {}): OkdMachineSnapshot["machine"] {
  return readOkdMachine({
    apiVersion: "machine.openshift.io/v1beta1",
    kind: "Machine",
    metadata: {
      name: "worker-0",
      namespace: "openshift-machine-api",
      uid: "0a1b2c3d-0000",
      resourceVersion: "7",
      annotations: REQUEST,
      ownerReferences: [OWNER],
      ...metadata,
    },
  });
}

function child(status: BareMetalRemediationStatus, metadata: Partial<ObjectMeta> = {}): BareMetalRemediation {
  return {
    apiVersion: "ironfence.io/v1alpha1",
    kind: "BareMetalRemediation",
    metadata: { name: "worker-0-0a1b2c3d", uid: "child", resourceVersion: "9", ...metadata },
    spec: bareMetalRemediationSpecSchema.parse({}),
    status,
  };
}

function decide(snapshot: Partial<OkdMachineSnapshot>): ReturnType<typeof decideOkdMachine> {
  return decideOkdMachine({
    machine: machine(),
    child: undefined,
    nodeReady: false,
    otherActor: undefined,
    nowMs: 0,
    ...snapshot,
  });
}

const BACKUP = { nodeUID: "node", labels: { rack: "r1" }, annotations: { "example.com/a": "1" } };
const BACKUPS = {
  [NODE_LABELS_BACKUP]: '{"rack":"r1"}',
  [NODE_ANNOTATIONS_BACKUP]: '{"example.com/a":"1"}',
};

describe("a Machine that asks for external remediation", () => {
  test("a Machine that asks for external remediation gets one child", () => {
    assert.deepEqual(decide({}), { do: "create" });
    assert.deepEqual(decide({ child: child({ phase: "PoweringOff" }) }), { do: "wait" });
  });

  test("a Machine that does not ask for external remediation gets no child", () => {
    assert.deepEqual(decide({ machine: machine({ annotations: {} }) }), { do: "wait" });
  });

  test("a Machine that asks for external remediation waits for an earlier child to be gone", () => {
    const leaving = child({ phase: "Undoing" }, { deletionTimestamp: "2026-01-01T00:00:00Z" });
    assert.deepEqual(decide({ child: leaving }), { do: "wait" });
  });

  test("a Machine that asks for external remediation has the backup of its Node as OKD writes it, while the Node is deleted", () => {
    const powering = child({ phase: "PoweringOn", backup: BACKUP });
    assert.deepEqual(decide({ child: powering }), {
      do: "patch",
      done: false,
      operations: [
        { op: "add", path: "/metadata/annotations/remediation.metal3.io~1node-labels-backup", value: '{"rack":"r1"}' },
        {
          op: "add",
          path: "/metadata/annotations/remediation.metal3.io~1node-annotations-backup",
          value: '{"example.com/a":"1"}',
        },
      ],
    });
    const mirrored = machine({ annotations: { ...REQUEST, ...BACKUPS } });
    assert.deepEqual(decide({ machine: mirrored, child: powering }), { do: "wait" });
  });

  test("a Machine that asks for external remediation has no backup that is too large for an annotation", () => {
    const backup = { ...BACKUP, annotations: { big: "x".repeat(200_000) } };
    assert.deepEqual(decide({ child: child({ phase: "PoweringOn", backup }) }), { do: "wait" });
  });

  test("a Machine that asks for external remediation asks no more once its child has succeeded: request and backups go in one patch", () => {
    const mirrored = machine({ annotations: { ...REQUEST, ...BACKUPS, keep: "me" } });
    assert.deepEqual(decide({ machine: mirrored, child: child({ phase: "Succeeded", backup: BACKUP }) }), {
      do: "patch",
      done: true,
      operations: [
        { op: "remove", path: "/metadata/annotations/host.metal3.io~1external-remediation" },
        { op: "remove", path: "/metadata/annotations/remediation.metal3.io~1node-labels-backup" },
        { op: "remove", path: "/metadata/annotations/remediation.metal3.io~1node-annotations-backup" },
      ],
    });
  });

  describe("a Machine that asks for external remediation whose child has failed", () => {
    const FAILED_MS = Date.UTC(2026, 0, 1);
    const MINUTE_MS = 60_000;
    const message = "the BMC is away";
    const failed = (wasReady: boolean | undefined, provenReboots = 0): BareMetalRemediation =>
      child({
        phase: "Failed",
        provenReboots,
        ...(wasReady !== undefined && { node: { name: "n1", wasReady } }),
        conditions: [
          {
            type: "Succeeded",
            status: "False",
            reason: "PowerOffTimeout",
            message,
            lastTransitionTime: toTime(FAILED_MS),
          },
        ],
      });
    const after = (minutes: number): number => FAILED_MS + minutes * MINUTE_MS;

    test("a Machine that asks for external remediation whose child has failed keeps its request, and an Event says why", () => {
      const step = decide({ child: failed(false), nowMs: after(1) });
      assert.deepEqual(step, { do: "hold", reason: "RemediationFailed", message });
    });

    test("an OKD Machine whose remediation has failed is not remediated again if its node comes back by itself or joins at last", () => {
      for (const wasReady of [false, undefined]) {
        const step = decide({ child: failed(wasReady), nodeReady: true, nowMs: after(1) });
        assert.equal(step.do === "patch" && step.done, true);
      }
    });

    test("a Machine that asks for external remediation whose child has failed is left alone while it holds what its deleted Node had, and gives it back", () => {
      const holding = failed(false, 2);
      holding.status?.conditions?.push({
        type: "PermanentNodeDeletionExpected",
        status: "True",
        reason: "NodeDeletionExpected",
        message: "",
        lastTransitionTime: toTime(FAILED_MS),
      });
      for (const nodeReady of [undefined, true]) {
        assert.equal(decide({ child: holding, nodeReady, nowMs: after(1_000) }).do, "hold");
      }
    });

    test("an OKD Machine whose remediation has failed and whose node was always Ready has not recovered, and its health check judges it again in time", () => {
      assert.equal(decide({ child: failed(true), nodeReady: true, nowMs: after(9) }).do, "hold");
      const step = decide({ child: failed(true), nodeReady: true, nowMs: after(10) });
      assert.equal(step.do === "patch" && step.done, true);
    });

    test("a Machine that asks for external remediation whose child has failed is tried again after ten minutes, or two hours if its host was power-cycled", () => {
      const isTriedAgain = (provenReboots: number, minutes: number): boolean => {
        const step = decide({ child: failed(false, provenReboots), nowMs: after(minutes) });
        return step.do === "remove" && step.reason === "TriedAgain";
      };
      assert.deepEqual([isTriedAgain(0, 9), isTriedAgain(0, 10)], [false, true]);
      assert.deepEqual([isTriedAgain(2, 119), isTriedAgain(2, 120)], [false, true]);
    });
  });
});

describe("a request that is withdrawn halfway", () => {
  const withdrawn = machine({ annotations: BACKUPS });

  test("a request that is withdrawn halfway loses its backup and its child is aborted", () => {
    const step = decide({ machine: withdrawn, child: child({ phase: "PoweringOn", backup: BACKUP }) });
    assert.deepEqual(step, {
      do: "patch",
      done: false,
      operations: [
        { op: "remove", path: "/metadata/annotations/remediation.metal3.io~1node-labels-backup" },
        { op: "remove", path: "/metadata/annotations/remediation.metal3.io~1node-annotations-backup" },
      ],
    });
    assert.deepEqual([machine(), withdrawn, machine({ annotations: { keep: "me" } })].map(concerns), [
      true,
      true,
      false,
    ]);
  });

  test("a request that is withdrawn halfway leaves a backup alone that is not ours", () => {
    assert.deepEqual(decide({ machine: withdrawn }), { do: "wait" });
  });
});

describe("a Machine that is being deleted", () => {
  const deleted = machine({ deletionTimestamp: "2026-01-01T00:00:00Z" });

  test("a Machine that is being deleted gets no child", () => {
    assert.deepEqual(decide({ machine: deleted }), { do: "wait" });
  });

  test("a Machine that is being deleted ends its child's work: its host belongs to the machine controller", () => {
    const step = decide({ machine: deleted, child: child({ phase: "PoweringOff" }) });
    assert.equal(step.do === "remove" && step.reason, "MachineDeleted");
  });

  test("a Machine that is being deleted by its own child keeps it: that is how the Machine is replaced", () => {
    assert.deepEqual(decide({ machine: deleted, child: child({ phase: "Provisioning" }) }), { do: "wait" });
  });
});

describe("OKD's own remediator", () => {
  const otherActor = "annotation x on the Machine";

  test("OKD's own remediator at work on the same Machine keeps ours out, with a message", () => {
    const step = decide({ otherActor });
    assert.equal(step.do === "hold" && step.reason, "ConflictingController");
    assert.match(step.do === "hold" ? step.message : "", /^annotation x on the Machine\. .*docs\/reference\/okd\.md$/);
  });

  test("OKD's own remediator that begins at the same time as ours makes ours step back", () => {
    const step = decide({ otherActor, child: child({ phase: "PoweringOff" }) });
    assert.equal(step.do === "remove" && step.reason, "ConflictingController");
  });

  test("OKD's own remediator is known by its annotations on host and Machine", () => {
    const host = (annotations: Record<string, string>): ReturnType<typeof readBareMetalHost> =>
      readBareMetalHost({
        apiVersion: "metal3.io/v1alpha1",
        kind: "BareMetalHost",
        metadata: { name: "host-0", namespace: "openshift-machine-api", uid: "h", resourceVersion: "1", annotations },
      });
    assert.equal(otherRemediator(machine(), undefined), undefined);
    assert.equal(otherRemediator(machine(), host({ "reboot.metal3.io/ironfence-1": '{"mode":"hard"}' })), undefined);
    for (const key of ["reboot.metal3.io/capbm-requested-power-off", "reboot.metal3.io/machine-remediation"]) {
      assert.match(otherRemediator(machine(), host({ [key]: "" })) ?? "", /host-0/);
    }
    const marked = machine({ annotations: { ...REQUEST, [POWERED_OFF_BY_OKD]: "" } });
    assert.match(otherRemediator(marked, undefined) ?? "", /on the Machine/);
  });
});

describe("the child's strategy", () => {
  const strategyOf = (metadata: Partial<ObjectMeta>): unknown => {
    const { strategy } = remediationSpec(machine(metadata), []);
    return [strategy.type, strategy.via];
  };

  test("the child's strategy is power fencing with the Node deleted, then a new Machine", () => {
    const { strategy } = remediationSpec(machine(), []);
    assert.deepEqual(
      [strategy.type, strategy.via, strategy.workloadRelease],
      ["Escalate", "MachineDeletion", "DeleteNode"],
    );
    assert.equal(strategy.timeout, "20m0s");
    assert.equal(strategy.powerOffTimeout, "120s");
    assert.equal(strategy.retryLimit, 1);
  });

  test("the child's strategy waits for the node as long as the health checks that cover the Machine let nodes start", () => {
    const check = (nodeStartupTimeout: string, matchLabels: Record<string, string> = {}) => {
      const raw = {
        apiVersion: "machine.openshift.io/v1beta1",
        kind: "MachineHealthCheck",
        metadata: { name: "check", namespace: "openshift-machine-api", uid: "c", resourceVersion: "1" },
        spec: { selector: { matchLabels }, unhealthyConditions: [], nodeStartupTimeout },
      };
      return readOkdMachineHealthCheck(raw);
    };
    const timeoutOf = (...checks: ReturnType<typeof check>[]): string =>
      remediationSpec(machine({ labels: { pool: "a" } }), checks).strategy.timeout;
    assert.equal(timeoutOf(check("25m"), check("5m", { pool: "a" }), check("90m", { pool: "b" })), "25m0s");
    assert.equal(timeoutOf(check("5m")), "5m0s");
    assert.equal(timeoutOf(check("0")), "20m0s");
  });

  test("the child's strategy never replaces a control plane Machine, by either label", () => {
    const master = (key: string): unknown =>
      strategyOf({ labels: { [`machine.openshift.io/cluster-api-machine-${key}`]: "master" } });
    assert.deepEqual(master("role"), ["Reboot", "MachineDeletion"]);
    assert.deepEqual(master("type"), ["Reboot", "MachineDeletion"]);
  });

  test("the child's strategy never deletes a Machine that no controller would recreate", () => {
    assert.deepEqual(strategyOf({ ownerReferences: [{ ...OWNER, controller: false }] }), ["Reboot", "MachineDeletion"]);
    assert.deepEqual(strategyOf({ ownerReferences: [] }), ["Reboot", "MachineDeletion"]);
  });
});
