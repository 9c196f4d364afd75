import { describe, it } from "node:test";
import type { BareMetalRemediation } from "../../../src/api/ironfence/bare-metal-remediation.ts";
import type { Node } from "../../../src/api/kubernetes/core.ts";
import { REQUEST } from "../../../src/api/names/labels.ts";
import type { NodeHealthCheck } from "../../../src/api/ironfence/node-health-check.ts";
import { toTime } from "../../../src/runtime/time.ts";
import type { Facts, HostTruth, Step } from "./facts.ts";
import { assertBroken, assertHolds, world, host, hosts, object, remediations, wrote } from "./fixtures.ts";

describe("S8", () => {
  const check = object<NodeHealthCheck>("NodeHealthCheck", "all", { spec: { selector: {}, minHealthy: 2 } });
  const named = (name: string, ready: string, labels = {}, lastTransitionTime?: string): Node =>
    object<Node>("Node", name, {
      metadata: { labels },
      spec: {},
      status: {
        conditions: [{ type: "Ready", status: ready, ...(lastTransitionTime !== undefined && { lastTransitionTime }) }],
      },
    });
  const manual = (name: string): BareMetalRemediation =>
    object<BareMetalRemediation>("BareMetalRemediation", name, { spec: {}, status: {} });
  const started = (name: string): BareMetalRemediation =>
    object<BareMetalRemediation>("BareMetalRemediation", name, {
      metadata: { ownerReferences: [{ uid: "uid-all" }] },
      spec: {},
      status: {},
    });
  const facts = (nodes: Node[], ...running: BareMetalRemediation[]): Facts =>
    world({
      checks: new Map([["all", check]]),
      nodes: new Map(nodes.map((one) => [one.metadata.name, one])),
      ...remediations(...running),
    });

  it("S8 breaks if too few nodes are healthy, or another control plane node is in remediation", () => {
    const nodes = [named("n1", "Unknown"), named("n2", "True"), named("n3", "Unknown")];
    assertBroken("S8", facts(nodes, started("n1")), wrote(started("n1")), /1 healthy nodes of 2/);
    const changing = (changed: string): Facts =>
      facts([named("n1", "Unknown"), named("n2", "True"), named("n3", "Unknown", {}, changed)]);
    const lagging = (changed: string): Facts => ({ ...changing(changed), nodesLag: true });
    const created = { ...started("n1"), metadata: { ...started("n1").metadata, creationTimestamp: toTime(60_000) } };
    assertHolds("S8", changing(toTime(60_000)), wrote(created));
    assertBroken("S8", changing(toTime(59_000)), wrote(created), /1 healthy nodes of 2/);
    assertHolds("S8", lagging(toTime(58_000)), wrote(created));
    assertBroken("S8", lagging(toTime(57_000)), wrote(created), /1 healthy nodes of 2/);
    assertHolds("S8", facts([...nodes, named("n4", "True")], started("n1")), wrote(started("n1")));
    assertHolds("S8", facts([...nodes, named("n4", "True")]), wrote(started("n1"), undefined, undefined));
    assertHolds("S8", facts([...nodes, named("n4", "True")], started("n1"), manual("n2")), wrote(started("n1")));
    const roles = { "node-role.kubernetes.io/control-plane": "" };
    const masters = [
      named("n1", "Unknown", roles),
      named("n2", "Unknown", roles),
      named("n3", "True"),
      named("n4", "True"),
    ];
    assertBroken(
      "S8",
      facts(masters, started("n1"), started("n2")),
      wrote(started("n1")),
      /control plane node n1 is remediated while n2 is/,
    );
  });
});

describe("S8, requests of other kinds", () => {
  const child = object<BareMetalRemediation>("BareMetalRemediation", "m1-1", {
    metadata: { labels: { [REQUEST]: "okd-machine" }, ownerReferences: [{ uid: "uid-m1", controller: true }] },
    spec: {},
    status: {},
  });

  it("S8, requests of other kinds, breaks if a remediation serves a request that was not made", () => {
    assertBroken("S8", world(), wrote(child), /started without a request/);
    assertHolds("S8", world({ asked: new Set(["uid-m1"]) }), wrote(child));
  });
});

describe("S8, the limits", () => {
  const inZone = (name: string, zone: string): HostTruth =>
    host(name, { spec: { labels: { "topology.kubernetes.io/zone": zone } } });
  const at = (name: string, phase: string): BareMetalRemediation =>
    object<BareMetalRemediation>("BareMetalRemediation", name, { spec: {}, status: { phase, node: { name } } });
  const facts = (limits: Facts["limits"], ...all: BareMetalRemediation[]): Facts =>
    world({ limits, ...hosts(inZone("n1", "a"), inZone("n2", "a"), inZone("n3", "b")), ...remediations(...all) });
  const begins = wrote(at("n1", "Verifying"), at("n1", "Resolving"));

  it("S8, the limits, breaks if more hosts are remediated at once than there may be", () => {
    const two = [at("n1", "Verifying"), at("n2", "PoweringOn")];
    assertBroken("S8", facts({ hosts: 1, perZone: Infinity }, ...two), begins, /2 hosts are remediated at once/);
    assertHolds("S8", facts({ hosts: 2, perZone: Infinity }, ...two), begins);
    assertHolds("S8", facts({ hosts: 1, perZone: Infinity }, at("n1", "Verifying"), at("n2", "Failed")), begins);
    assertBroken("S8", facts({ hosts: Infinity, perZone: 1 }, ...two), begins, /2 hosts of a are remediated at once/);
    assertHolds("S8", facts({ hosts: 2, perZone: 1 }, at("n1", "Verifying"), at("n3", "Releasing")), begins);
    assertHolds("S8", facts({ hosts: 1, perZone: 1 }, at("n1", "Verifying"), at("n2", "Rejoining")), begins);
  });

  it("S8, the limits, breaks if a remediation waits for admission though fewer are at work than there may be", () => {
    const says = (name: string, phase: string, reason: string): BareMetalRemediation =>
      object<BareMetalRemediation>("BareMetalRemediation", name, {
        spec: {},
        status: {
          phase,
          timeline: [{ step: reason, time: new Date(0).toISOString() }],
          conditions: [{ type: "Processing", status: "True", reason }],
        },
      });
    const waits = says("n1", "Resolving", "WaitingForTurn");
    const one = { hosts: 1, perZone: Infinity };
    const among = (...others: BareMetalRemediation[]): Facts => ({
      ...facts(one, waits, ...others),
      epochMs: 1_000_000,
      atMs: 1_000_000,
    });
    const PASSED: Step = { type: "passed" };
    assertBroken("S8", among(), PASSED, /n1 waits for admission/);
    assertBroken("S8", among(at("n2", "Rejoining")), PASSED, /n1 waits for admission/);
    assertBroken("S8", among(says("n2", "Releasing", "ApiFailing")), PASSED, /n1 waits for admission/);
    assertHolds("S8", among(at("n2", "Releasing")), PASSED);
    assertHolds("S8", { ...among(), calmSinceMs: 990_000 }, PASSED);
    const left = (atMs: number): BareMetalRemediation =>
      object<BareMetalRemediation>("BareMetalRemediation", "n2", {
        spec: {},
        status: { phase: "Rejoining", timeline: [{ step: "PoweredOn", time: new Date(atMs).toISOString() }] },
      });
    assertHolds("S8", among(left(995_000)), PASSED);
    assertBroken("S8", among(left(985_000)), PASSED, /n1 waits for admission/);
    const gone = among(left(995_000));
    const present = new Set([...gone.present].filter((uid) => gone.remediations.get(uid)?.metadata.name === "n1"));
    assertHolds("S8", { ...gone, present }, PASSED);
  });

  it("S8, the limits, breaks if a clock that has jumped past a deadline gives the place of a host to another", () => {
    const overdue = object<BareMetalRemediation>("BareMetalRemediation", "n2", {
      spec: {},
      status: { phase: "PoweringOff", attempt: { deadline: new Date(0).toISOString() } },
    });
    const jumped = (agoMs: number): Facts => ({
      ...facts({ hosts: 1, perZone: Infinity }, at("n1", "Verifying"), overdue),
      clocksAgree: false,
      clocksDoubtedAtMs: 1_000_000 - agoMs,
      epochMs: 1_000_000,
      atMs: 1_000_000,
    });
    assertBroken("S8", jumped(5_000), begins, /2 hosts are remediated at once/);
    assertHolds("S8", jumped(61_000), begins);
  });
});
