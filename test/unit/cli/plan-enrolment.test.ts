import assert from "node:assert/strict";
import { test } from "node:test";
import type { FencingTarget } from "../../../src/api/ironfence/fencing-target.ts";
import type { Node, Pod } from "../../../src/api/kubernetes/core.ts";
import { planEnrolment } from "../../../src/cli/enroll/plan-enrolment.ts";
import type { EnrollFacts } from "../../../src/cli/enroll/plan-enrolment.ts";

const UUID = "4c4c4544-0042-4a10-8054-b9c04f503132";

interface Given {
  maintenance?: boolean;
  ready?: "True" | "False";
  unschedulable?: boolean;
  labels?: Record<string, string>;
  annotations?: Record<string, string>;
  systemUUID?: string;
  pods?: unknown[];
  levels?: number[];
  bmcs?: string[];
  owner?: object;
  underWay?: unknown[];
}

function planOf({
  maintenance = true,
  ready = "True",
  unschedulable = true,
  labels = {},
  annotations = {},
  systemUUID = UUID,
  pods = [],
  levels = [2, 2],
  bmcs = ["redfish://bmc-1"],
  owner,
  underWay = [],
}: Given = {}) {
  const outlets = levels.map((level, index) => ({ address: `snmp://pdu-1/${index + 1}`, level }));
  const devices = [...bmcs.map((address) => ({ address, level: 1 })), ...outlets];
  const target = {
    metadata: { namespace: "ironfence-system", name: "n1" },
    spec: { nodeName: "n1", maintenance, identity: { systemUUID: UUID }, devices },
    status: { ...(owner !== undefined && { owner }) },
  } as unknown as FencingTarget;
  const node = {
    metadata: { name: "n1", labels, annotations },
    spec: { unschedulable },
    status: { conditions: [{ type: "Ready", status: ready }], nodeInfo: { systemUUID, bootID: "b1" } },
  } as unknown as Node;
  const facts = { host: { target, node }, conflict: undefined, pods: pods as Pod[], underWay };
  return planEnrolment(facts as unknown as EnrollFacts);
}

test("an enrolment of a drained node in maintenance switches each outlet alone, and then all of them", () => {
  const { obstacles, steps } = planOf();
  assert.deepEqual(obstacles, []);
  assert.equal(steps.length, 5);
  assert.equal(planOf({ levels: [2] }).steps.length, 3, "a single outlet is not switched alone");
});

for (const [what, given, why] of [
  ["a target that is not in maintenance", { maintenance: false }, /not in maintenance: kubectl patch fencingtarget/],
  ["a node that is not Ready", { ready: "False" }, /not Ready/],
  ["a node that is not cordoned", { unschedulable: false }, /not cordoned: kubectl cordon n1/],
  [
    "a node with pods",
    { pods: [{ metadata: { namespace: "default", name: "db" }, status: {} }] },
    /not drained \(default\/db\): kubectl drain n1 --ignore-daemonsets/,
  ],
  ["a node of the control plane", { labels: { "node-role.kubernetes.io/control-plane": "" } }, /control plane/],
  [
    "a node that resets itself when it is cut off",
    { annotations: { "is-reboot-capable.self-node-remediation.medik8s.io": "true" } },
    /resets itself/,
  ],
  [
    "a node on other hardware than the target expects",
    { systemUUID: "4c4c4544-0042-4a10-8054-b9c04f503199" },
    /runs on system UUID/,
  ],
  ["a node without a system UUID of its own", { systemUUID: "00000000-0000-0000-0000-000000000000" }, /no system UUID/],
  ["outlets on two levels", { levels: [2, 3] }, /outlets at levels 2 and 3/],
  ["a target without a BMC", { bmcs: [] }, /has no BMC/],
  ["a target without outlets", { levels: [] }, /has no outlet/],
  ["a host that a remediation owns", { owner: { uid: "r1" } }, /a remediation owns the host/],
  ["a node with a remediation", { underWay: [{ metadata: { namespace: "x", name: "r" } }] }, /x\/r is under way/],
] as const satisfies readonly (readonly [string, Given, RegExp])[]) {
  test(`an enrolment is refused for ${what}`, () => {
    assert.match(planOf(given).obstacles.join("\n"), why);
  });
}
