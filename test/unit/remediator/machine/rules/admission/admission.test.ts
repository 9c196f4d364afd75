import assert from "node:assert/strict";
import { describe, it } from "node:test";
import * as fc from "fast-check";
import type { Node } from "../../../../../../src/api/kubernetes/core.ts";
import { DeletedMembers } from "../../../../../../src/remediator/controller/admission/deleted-members.ts";
import { isReady } from "../../../../../../src/nodes/ready.ts";
import {
  etcdNodes,
  keepsQuorum,
  mayRunEtcd,
  quorumMessage,
} from "../../../../../../src/remediator/machine/rules/admission/quorum.ts";
import type { Contender } from "../../../../../../src/remediator/machine/rules/admission/admission.ts";
import { admit } from "../../../../../../src/remediator/machine/rules/admission/admission.ts";
import type { EtcdMember } from "../../../../../../src/remediator/machine/model/facts/observations.ts";
import { node } from "../../snapshots.ts";
import type { Admission } from "../../../../../../src/remediator/machine/model/facts/snapshot.ts";

const contender = (uid: string, changes: Partial<Contender> = {}): Contender => ({
  uid,
  name: `ns/${uid}`,
  cluster: "",
  node: `node-${uid}`,
  zone: undefined,
  createdAtMs: 0,
  inherits: false,
  attempts: 0,
  holdsSlot: true,
  ...changes,
});
const ANY = { hosts: Infinity, perCluster: Infinity, perZone: Infinity };
const UP: EtcdMember[] = ["a", "b", "c"].map((node) => ({ node, up: true }));

/** The remediations that may begin, and those that wait with their positions. */
function outcome(admissions: Map<string, Admission>): { begin: string[]; wait: string[] } {
  const begin = [...admissions].filter(([, admission]) => admission.granted).map(([uid]) => uid);
  const places = [...admissions].flatMap(([uid, admission]) =>
    admission.granted ? [] : [{ uid, place: Number(/place (\d+)/.exec(admission.message)?.[1]) }],
  );
  return { begin, wait: places.sort((a, b) => a.place - b.place).map(({ uid }) => uid) };
}

describe("admissions", () => {
  it("admissions go to the oldest, as many as there are slots, and the others learn their positions", () => {
    const waiting = ["c", "a", "b"].map((uid, index) => contender(uid, { createdAtMs: index }));
    const admissions = admit([contender("busy")], waiting, { ...ANY, hosts: 2 }, () => []);
    assert.deepEqual(outcome(admissions), { begin: ["c"], wait: ["a", "b"] });
    const told = admissions.get("b");
    const message = "2 of 2 hosts are being remediated: ns/busy, ns/c; position 2 of 2 in the queue";
    assert.deepEqual(told, { granted: false, reason: "WaitingForTurn", message });
  });

  it("admissions are waited for without naming the nodes of other clusters that go first", () => {
    const busy = [contender("ours"), contender("theirs", { cluster: "x/y" }), contender("others", { cluster: "x/z" })];
    const admission = admit(busy, [contender("a")], { ...ANY, hosts: 3 }, () => []).get("a");
    const message = "3 of 3 hosts are being remediated: ns/ours, 2 of other clusters; position 1 of 1 in the queue";
    assert.deepEqual(admission, { granted: false, reason: "WaitingForTurn", message });
  });

  it("admissions are limited for each workload cluster, so that one delays no other cluster, and not for the agent's own", () => {
    const waiting = [contender("a", { cluster: "caps/w1" }), contender("b", { cluster: "caps/w2" }), contender("c")];
    const busy = [contender("busy", { cluster: "caps/w1" }), contender("own")];
    const admissions = admit(busy, waiting, { ...ANY, perCluster: 1 }, () => []);
    assert.deepEqual(outcome(admissions), { begin: ["b", "c"], wait: ["a"] });
    const told = admissions.get("a");
    const message = "1 of 1 hosts of cluster caps/w1 are being remediated: ns/busy; position 1 of 1 in the queue";
    assert.deepEqual(told, { granted: false, reason: "WaitingForTurn", message });
  });

  it("an admission is not kept by a remediation that has given back its slot, although etcd counts its member as down", () => {
    const back = contender("a", { node: "a", holdsSlot: false });
    const next = contender("b", { node: "b" });
    assert.deepEqual(outcome(admit([back], [next], { ...ANY, hosts: 1 }, () => [])).begin, ["b"]);
    assert.deepEqual(outcome(admit([back], [next], { ...ANY, hosts: 1 }, () => UP)).wait, ["b"]);
  });

  it("admissions to a full zone keep no other remediation waiting", () => {
    const waiting = [contender("a", { zone: "r1" }), contender("b", { zone: "r2", createdAtMs: 1 })];
    const admissions = admit([contender("busy", { zone: "r1" })], waiting, { ...ANY, hosts: 9, perZone: 1 }, () => []);
    assert.deepEqual(outcome(admissions), { begin: ["b"], wait: ["a"] });
  });

  it("admissions count nodes without a zone towards the limit of all alone", () => {
    const waiting = [contender("a"), contender("b"), contender("c", { createdAtMs: 1 })];
    assert.deepEqual(outcome(admit([], waiting, { ...ANY, hosts: 2, perZone: 1 }, () => [])).begin, ["a", "b"]);
  });

  it("admissions go to the zone with the fewest hosts under way: a rack that fails as a whole holds up no lone host", () => {
    const rack = Array.from({ length: 5 }, (_, index) => contender(`r${index}`, { zone: "rack", createdAtMs: index }));
    const lone = contender("lone", { zone: "other", createdAtMs: 99 });
    assert.deepEqual(outcome(admit([], [...rack, lone], { ...ANY, hosts: 2 }, () => [])), {
      begin: ["r0", "lone"],
      wait: ["r1", "r2", "r3", "r4"],
    });
  });

  it("admissions go first to a remediation that may have been left with a host that is off", () => {
    const waiting = [contender("a"), contender("b", { createdAtMs: 5, inherits: true })];
    assert.deepEqual(outcome(admit([], waiting, { ...ANY, hosts: 1 }, () => [])), {
      begin: ["b"],
      wait: ["a"],
    });
  });

  it("admissions go to a host that was not cycled yet before one that was, unless that one is ten minutes older", () => {
    const waiting = [contender("a", { attempts: 1 }), contender("b", { createdAtMs: 5 })];
    assert.deepEqual(outcome(admit([], waiting, { ...ANY, hosts: 1 }, () => [])), { begin: ["b"], wait: ["a"] });
    const late = [contender("a", { attempts: 1 }), contender("b", { createdAtMs: 600_001 })];
    assert.deepEqual(outcome(admit([], late, { ...ANY, hosts: 1 }, () => [])), { begin: ["a"], wait: ["b"] });
  });

  it("admissions go first to a remediation that inherits a host that may be off, however many hosts of its zone are under way", () => {
    const busy = [contender("busy", { zone: "r1" })];
    const waiting = [contender("a", { zone: "r2" }), contender("b", { zone: "r1", createdAtMs: 5, inherits: true })];
    assert.deepEqual(outcome(admit(busy, waiting, { ...ANY, hosts: 2 }, () => [])), {
      begin: ["b"],
      wait: ["a"],
    });
  });

  it("admissions never exceed a limit, and leave no slot empty that a remediation could take", () => {
    const some = fc.array(
      fc.record({ zone: fc.constantFrom(undefined, "r1", "r2", "r3"), createdAtMs: fc.nat(9), inherits: fc.boolean() }),
      { maxLength: 12 },
    );
    const limits = fc.record({ hosts: fc.nat(8), perZone: fc.nat(4) });
    fc.assert(
      fc.property(some, some, limits, (busyOnes, waitingOnes, { hosts, perZone }) => {
        const busy = busyOnes.map((changes, index) => contender(`busy${index}`, changes));
        const waiting = waitingOnes.map((changes, index) => contender(`w${index}`, changes));
        const admissions = admit(busy, waiting, { ...ANY, hosts, perZone }, () => []);
        assert.equal(admissions.size, waiting.length);
        const begun = waiting.filter(({ uid }) => admissions.get(uid)?.granted === true);
        const all = [...busy, ...begun];
        const inZone = (zone: string | undefined): number => all.filter((other) => other.zone === zone).length;
        if (begun.length > 0) assert.ok(all.length <= hosts);
        for (const { zone } of begun) assert.ok(zone === undefined || inZone(zone) <= perZone);
        for (const { uid, zone } of waiting) {
          const fits = all.length < hosts && (zone === undefined || inZone(zone) < perZone);
          assert.ok(admissions.get(uid)?.granted === true || !fits, uid);
        }
      }),
    );
  });

  it("every remediation is admitted in the end, whatever comes after: the slots of a zone that works are given to the others", () => {
    const flood = Array.from({ length: 20 }, (_, index) => contender(`f${index}`, { zone: "a", createdAtMs: index }));
    const other = contender("other", { zone: "b", createdAtMs: 1_000 });
    const admissions = admit([contender("busy", { zone: "b" })], [...flood, other], { ...ANY, hosts: 3 }, () => []);
    assert.deepEqual(outcome(admissions).wait[0], "other");
  });
});

describe("etcd's quorum", () => {
  it("etcd's quorum lets one of three control plane nodes begin, and the next one only after it", () => {
    const waiting = [contender("1", { node: "a" }), contender("2", { node: "b", createdAtMs: 1 })];
    const admissions = admit([], waiting, ANY, () => UP);
    assert.deepEqual(outcome(admissions), { begin: ["1"], wait: ["2"] });
    const told = admissions.get("2");
    assert.ok(told?.granted === false && told.reason === "WaitingForTurn");
    assert.match(told.message, /other control plane nodes are being remediated: ns\/1/);
  });

  it("etcd's quorum refuses a node while another member is down, and says which", () => {
    const members = UP.map((member) => ({ ...member, up: member.node !== "c" }));
    const told = admit([], [contender("1", { node: "a" })], ANY, () => members).get("1");
    assert.ok(told?.granted === false && told.reason === "ControlPlaneQuorum");
    assert.match(told.message, /not Ready: c/);
  });

  it("etcd's quorum and zones belong to one cluster: nodes of the same name in another cluster do not count", () => {
    const there = { cluster: "caps/w1" };
    const busy = [contender("1", { node: "a", zone: "r1" })];
    const waiting = [contender("2", { node: "b", zone: "r1", ...there }), contender("3", { node: "b", zone: "r2" })];
    const admissions = admit(busy, waiting, { ...ANY, hosts: 9, perZone: 1 }, () => UP);
    assert.deepEqual(outcome(admissions), { begin: ["2"], wait: ["3"] });
    const down = UP.map((member) => ({ ...member, up: member.node === "a" }));
    const others = admit([], waiting, ANY, (cluster) => (cluster === "" ? down : UP));
    assert.deepEqual(outcome(others), { begin: ["2"], wait: ["3"] });
  });

  it("etcd's quorum holds no other remediation up", () => {
    const members = UP.map((member) => ({ ...member, up: false }));
    const waiting = [contender("1", { node: "a" }), contender("2", { node: "worker", createdAtMs: 1 })];
    assert.deepEqual(outcome(admit([], waiting, ANY, () => members)).begin, ["2"]);
  });

  it("etcd's quorum is not asked if etcd runs outside the cluster: one other control plane node that is up is enough", () => {
    const outside = (...up: boolean[]) => up.map((isUp, index) => ({ node: `m${index}`, up: isUp, external: true }));
    assert.equal(keepsQuorum(outside(true, true, false, false), "m0"), true);
    assert.equal(keepsQuorum(outside(true, false), "m0"), false);
    assert.match(quorumMessage(outside(true), "m0"), /no control plane node without node m0 \(it is the only one\)/);
    assert.match(quorumMessage(outside(false, false), "m0"), /no control plane node without node m0 \(not Ready: m1\)/);
  });

  it("etcd's quorum names how many members there are if none of the others is down", () => {
    const members = [
      { node: "m0", up: false },
      { node: "m1", up: true },
    ];
    assert.match(quorumMessage(members, "m0"), /quorum of 2 members without node m0 \(there are only 2 members\)/);
  });

  it("etcd's quorum is asked about no node without a role of etcd or of the control plane", () => {
    const labelled = (labels?: Record<string, string>) => {
      const plain = node();
      return mayRunEtcd({ ...plain, metadata: { ...plain.metadata, ...(labels !== undefined && { labels }) } });
    };
    assert.deepEqual(
      [labelled(), labelled({ rack: "r7" }), labelled({ "node-role.kubernetes.io/etcd": "" })],
      [false, false, true],
    );
  });

  const cases: [members: number, down: number, keeps: boolean][] = [
    [1, 0, false],
    [2, 0, false],
    [3, 0, true],
    [3, 1, false],
    [4, 0, true],
    [4, 1, false],
    [5, 1, true],
    [5, 2, false],
    [7, 2, true],
    [7, 3, false],
  ];
  for (const [count, down, keeps] of cases) {
    it(`etcd ${keeps ? "keeps" : "loses"} its quorum without one of ${count} members when ${down} others are down`, () => {
      const members = Array.from({ length: count }, (_, index) => ({
        node: `m${index}`,
        up: index === 0 || index > down,
      }));
      assert.equal(keepsQuorum(members, "m0"), keeps);
    });
  }

  it("a node without an etcd member does not count for the quorum", () =>
    assert.equal(keepsQuorum(UP, "worker"), true));

  const plain = (name: string, ...roles: string[]): Node => ({
    apiVersion: "v1",
    kind: "Node",
    metadata: {
      name,
      uid: name,
      resourceVersion: "1",
      labels: Object.fromEntries(roles.map((role) => [`node-role.kubernetes.io/${role}`, ""])),
    },
    spec: {},
    status: { conditions: [{ type: "Ready", status: "True", lastTransitionTime: "2026-01-01T11:00:00Z" }] },
  });

  it("etcd's quorum counts members whose Nodes were deleted as down, for as long as a target names their hosts", () => {
    const targets = new Set(["a", "b", "c", "d", "e"]);
    const lost = new DeletedMembers((_cluster, name) => targets.has(name));
    const left = ["a", "b", "c"].map((name) => plain(name, "control-plane"));
    const members = (nodes: Node[]): EtcdMember[] =>
      etcdNodes(lost.among(undefined, nodes)).map((node) => ({ node: node.metadata.name, up: isReady(node) }));
    assert.equal(keepsQuorum(members(left), "c"), true, "two of three, if these were all");
    for (const name of ["d", "e"]) lost.observe(undefined, { type: "deleted", object: plain(name, "control-plane") });
    lost.observe(undefined, { type: "deleted", object: plain("w", "worker") });
    assert.deepEqual(
      members(left).map(({ node, up }) => `${node} ${up}`),
      ["a true", "b true", "c true", "d false", "e false"],
    );
    assert.equal(keepsQuorum(members(left), "c"), false, "two of five are no majority");
    assert.equal([...lost.among({ namespace: "ns", name: "other" }, [])].length, 0, "of another cluster");

    const joined = plain("d", "control-plane");
    lost.observe(undefined, { type: "added", object: joined });
    assert.equal(keepsQuorum(members([...left, joined]), "c"), true, "one that joins again is up again");
    targets.delete("e");
    assert.equal(members(left).length, 3, "one whose target is gone does not come back");
  });

  it("etcd's quorum is that of the nodes with the role of etcd, else of the control plane", () => {
    const names = (nodes: Node[]): string[] => etcdNodes(nodes).map(({ metadata }) => metadata.name);
    const plane = [plain("a", "control-plane"), plain("b", "master"), plain("w", "worker")];
    assert.deepEqual(names(plane), ["a", "b"]);
    assert.deepEqual(names([...plane, plain("e", "etcd")]), ["e"]);
  });
});
