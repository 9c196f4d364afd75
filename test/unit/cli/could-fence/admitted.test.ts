import assert from "node:assert/strict";
import { describe, it } from "node:test";
import * as fc from "fast-check";
import type { BareMetalRemediation } from "../../../../src/api/ironfence/bare-metal-remediation.ts";
import type { Node } from "../../../../src/api/kubernetes/core.ts";
import { ETCD_ROLE } from "../../../../src/api/names/labels.ts";
import type { FencingTarget } from "../../../../src/api/ironfence/fencing-target.ts";
import { judgeNodes } from "../../../../src/cli/status/could-fence/could-fence.ts";
import type { Overview } from "../../../../src/cli/status/objects/read.ts";
import { isReady } from "../../../../src/nodes/ready.ts";
import { localNode } from "../../../../src/nodes/subject.ts";
import { DeletedMembers } from "../../../../src/remediator/controller/admission/deleted-members.ts";
import { Admissions } from "../../../../src/remediator/controller/admission/admissions.ts";
import { decide } from "../../../../src/remediator/machine/decide.ts";
import { etcdNodes, mayRunEtcd } from "../../../../src/remediator/machine/rules/admission/quorum.ts";
import { VirtualClock } from "../../../lib/virtual-clock.ts";
import { NOW, READ_ON, snapshot, VERIFIED } from "../../remediator/machine/snapshots.ts";
import { node, remediation, target } from "../dashboard/fixture.ts";
import { OVERVIEW } from "../overview-fixture.ts";

// If the page answers yes, the remediator admits the remediation: its queue grants a slot, and its decision before the
// power-off does not wait for etcd.

const ROLES = {
  worker: {},
  controlPlane: { "node-role.kubernetes.io/control-plane": "" },
  etcd: { [ETCD_ROLE]: "true" },
} as const;

interface Member {
  role: keyof typeof ROLES;
  /** Whether its Node was deleted. Its target still records the etcd member. */
  isDeleted: boolean;
  ready: "True" | "False" | "Unknown";
  phase: string | undefined;
}

const cluster = fc.array(
  fc.record({
    role: fc.constantFrom<keyof typeof ROLES>("worker", "controlPlane", "controlPlane", "etcd"),
    ready: fc.constantFrom<Member["ready"]>("True", "True", "Unknown", "False"),
    isDeleted: fc.constantFrom(false, false, false, false, true),
    phase: fc.oneof(
      { weight: 5, arbitrary: fc.constant(undefined) },
      {
        weight: 1,
        arbitrary: fc.constantFrom("Resolving", "Verifying", "PoweringOff", "Releasing", "Rejoining", "Failed"),
      },
    ),
  }),
  { minLength: 1, maxLength: 7 },
);

function overviewOf(members: readonly Member[], hosts: number): Overview {
  const { agent } = OVERVIEW;
  assert.ok(agent.state === "leading");
  return {
    ...OVERVIEW,
    agent: { ...agent, limits: { hosts } },
    nodes: members.flatMap(({ role, ready, isDeleted }, index) =>
      isDeleted ? [] : [node(`n${index}`, ready, ROLES[role])],
    ),
    targets: members.map(({ role }, index) => {
      const nodeName = `n${index}`;
      const etcdMember = { nodeName, role: role === "etcd" ? "etcd" : "control-plane" } as const;
      return target(nodeName, { status: role === "worker" ? {} : { etcdMember } });
    }),
    remediations: members.flatMap(({ phase }, index) =>
      phase === undefined ? [] : [remediation(`n${index}`, phase, phase)],
    ),
  };
}

/** The nodes that the remediator counts, including deleted ones, whose members count as down. */
function countedNodes({ nodes, targets }: Overview): Node[] {
  const deleted = new DeletedMembers(() => false);
  for (const object of targets as FencingTarget[]) deleted.observeTarget({ type: "added", object });
  return [...deleted.among(undefined, nodes as Node[])];
}

/** Whether the queue of the remediator would admit a new remediation of the node. */
function isAdmitted(overview: Overview, nodes: readonly Node[], name: string, hosts: number): boolean {
  const byName = new Map(nodes.map((each) => [each.metadata.name, each]));
  const stored = overview.remediations as BareMetalRemediation[];
  const asking = { ...remediation(name, "Resolving", "New"), status: {} };
  const admissions = new Admissions({
    clock: new VirtualClock(OVERVIEW.nowMs),
    limits: { hosts, perCluster: Infinity, perZone: Infinity },
    zoneLabel: "zone",
    nodesOf: () => ({ get: ({ name: wanted }) => byName.get(wanted), values: () => nodes.values() }),
    hasExternalEtcd: () => false,
    remediations: () => stored,
    wake: () => undefined,
    onWaiting: () => undefined,
  });
  admissions.ask(asking);
  return admissions.of(asking.metadata.uid)?.granted === true;
}

/** Whether the decision before the power-off would not wait for etcd. */
function isDecided(nodes: readonly Node[], name: string): boolean {
  const self = nodes.find(({ metadata }) => metadata.name === name);
  const members = self !== undefined && mayRunEtcd(self) ? etcdNodes(nodes) : [];
  const decision = decide(
    snapshot({
      state: "Verifying",
      other: { nodeName: name, subject: localNode(name) },
      observations: {
        identity: VERIFIED,
        power: READ_ON,
        members: members.map((each) => ({ node: each.metadata.name, up: isReady(each) })),
      },
    }),
    NOW,
  );
  return !JSON.stringify(decision).includes("ControlPlaneQuorum");
}

describe("a node that the page says yes to", () => {
  it("a node that the page says yes to is admitted by the remediator, whatever runs etcd and is under way", () => {
    let asked = 0;
    fc.assert(
      fc.property(cluster, fc.integer({ min: 1, max: 4 }), (members, hosts) => {
        const overview = overviewOf(members, hosts);
        const nodes = countedNodes(overview);
        for (const { node: name, answer } of judgeNodes(overview).nodes) {
          const hasOwn = members[Number(name.slice(1))]?.phase !== undefined;
          if (answer !== "yes" || hasOwn) continue;
          asked += 1;
          assert.ok(isAdmitted(overview, nodes, name, hosts), `the queue refuses ${name}`);
          assert.ok(isDecided(nodes, name), `the decision keeps ${name} for etcd`);
        }
      }),
      { numRuns: 1_000 },
    );
    assert.ok(asked > 500, `only ${asked} nodes were a yes`);
  });

  it("a node that etcd needs is a no, and the remediator would not admit it", () => {
    const members = (["True", "True", "Unknown"] as const).map((ready): Member => ({
      role: "controlPlane",
      ready,
      phase: undefined,
      isDeleted: false,
    }));
    const overview = overviewOf(members, 100);
    const found = new Map(judgeNodes(overview).nodes.map(({ node: name, reason }) => [name, reason]));
    assert.deepEqual(
      [found.get("n0"), found.get("n1"), found.get("n2")],
      ["ControlPlaneQuorum", "ControlPlaneQuorum", "NoHealthCheck"],
    );
    const nodes = countedNodes(overview);
    assert.deepEqual(
      ["n0", "n1", "n2"].map((name) => isAdmitted(overview, nodes, name, 100) && isDecided(nodes, name)),
      [false, false, true],
    );
  });
});
