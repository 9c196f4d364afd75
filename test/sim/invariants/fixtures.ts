import assert from "node:assert/strict";
import type { BareMetalRemediation } from "../../../src/api/ironfence/bare-metal-remediation.ts";
import type { Node } from "../../../src/api/kubernetes/core.ts";
import type { FencingTarget } from "../../../src/api/ironfence/fencing-target.ts";
import { FENCED as FENCED_TAINT, OUT_OF_SERVICE } from "../../../src/api/kubernetes/taints.ts";
import type { KubeObject } from "../../../src/kube/resource.ts";
import { INVARIANTS } from "./all.ts";
import type { Change, Facts, HostTruth, OrderRecord, Step } from "./facts.ts";
import { signerOf } from "./facts.ts";

// Shows with invented facts that each invariant can be broken, and that it holds for the corresponding allowed facts. A
// test has the name of the rule.

export const FENCED = { spec: { taints: [OUT_OF_SERVICE, { ...FENCED_TAINT, value: "r1" }] } };

export const ORDER: OrderRecord = {
  atMs: 0,
  agent: "agent",
  host: "n1",
  order: "ForceOff",
  outcome: "Started",
  remediation: "r1",
  attempt: { id: "a1", action: "ForceOff", retryCount: 0 },
};

/** The violations of the rules of this name by the step. */
export function broken(name: string, facts: Facts, step: Step): string[] {
  return INVARIANTS.filter((invariant) => invariant.name === name).flatMap(
    (invariant) => invariant.check(facts, step) ?? [],
  );
}

export function assertBroken(name: string, facts: Facts, step: Step, what: RegExp): void {
  const found = broken(name, facts, step);
  assert.equal(found.length, 1, `${name}: ${found.join("; ")}`);
  assert.match(found[0] ?? "", what);
}

export function assertHolds(name: string, facts: Facts, step: Step): void {
  assert.deepEqual(broken(name, facts, step), []);
}

export function world(parts: Partial<Facts> = {}): Facts {
  const none = new Map<string, never>();
  const nodes: Facts["nodes"] = parts.nodes ?? none;
  const fenced = [...nodes].filter(([, node]) => signerOf(node, "outOfService") !== undefined);
  return {
    atMs: 100_000,
    epochMs: 100_000,
    hosts: new Map([host("n1"), host("n2")].map((truth) => [truth.name, truth])),
    nodes: none,
    pods: none,
    attachments: none,
    remediations: none,
    present: new Set(),
    targets: none,
    checks: none,
    leader: undefined,
    orders: [],
    notOffSinceMs: none,
    leftOffAtMs: none,
    fenced: new Set(fenced.map(([name]) => name)),
    limits: { hosts: Infinity, perZone: Infinity },
    asked: new Set(),
    operated: new Set(),
    warnedAtMs: none,
    waits: none,
    failedBy: none,
    begun: none,
    readySince: none,
    notReadySinceMs: none,
    clearedMembers: new Set(),
    isEtcdExternal: false,
    heldSinceMs: none,
    hamperedAtMs: () => undefined,
    ownTaints: none,
    calmSinceMs: 0,
    devicesWell: true,
    nodesLag: false,
    clocksAgree: true,
    isServerClockSet: false,
    clocksDoubtedAtMs: -Infinity,
    ...parts,
  };
}

export function host(name: string, parts: Partial<HostTruth> = {}): HostTruth {
  return {
    name,
    power: "On",
    canWrite: true,
    workloads: new Map(),
    bootSetting: { enabled: "Disabled" },
    spec: { labels: {} },
    ...parts,
  };
}

export function hosts(...truths: HostTruth[]): Pick<Facts, "hosts"> {
  return { hosts: new Map(truths.map((truth) => [truth.name, truth])) };
}

export function object<T extends KubeObject>(kind: T["kind"], name: string, parts: Record<string, unknown>): T {
  const { metadata = {}, ...rest } = parts;
  const common = { name, uid: `uid-${name}`, resourceVersion: "1" };
  return { apiVersion: "v1", kind, metadata: { ...common, ...(metadata as object) }, ...rest } as unknown as T;
}

export const node = (parts: Record<string, unknown> = {}): Node =>
  object<Node>("Node", "n1", {
    status: { conditions: [{ type: "Ready", status: "True" }] },
    spec: {},
    ...parts,
  });

export function remediation(
  status: Record<string, unknown>,
  strategy: Record<string, unknown> = {},
): BareMetalRemediation {
  const spec = { strategy: { type: "Reboot", retryLimit: 0, drainTimeout: "20s", requireReboot: true, ...strategy } };
  return object<BareMetalRemediation>("BareMetalRemediation", "n1", { metadata: { uid: "r1" }, spec, status });
}

export function remediations(...all: BareMetalRemediation[]): Pick<Facts, "remediations" | "present"> {
  return {
    remediations: new Map(all.map((one) => [one.metadata.uid, one])),
    present: new Set(all.map((one) => one.metadata.uid)),
  };
}

export const target = (owner: string | undefined): FencingTarget =>
  object<FencingTarget>("FencingTarget", "n1", {
    spec: { nodeName: "n1", devices: [{ address: "redfish://n1" }] },
    status: owner === undefined ? {} : { owner: { uid: owner, name: "n1" } },
  });

export function wrote(
  after: KubeObject,
  before?: KubeObject,
  by: string | undefined = "agent",
  type?: Change["type"],
): Step {
  const change: Change = {
    type: type ?? (before === undefined ? "ADDED" : "MODIFIED"),
    object: after,
    ...(before !== undefined && { previous: before }),
  };
  return { type: "wrote", by, change };
}

export const condition = (type: string, status: string, reason = "-", message = ""): object => ({
  type,
  status,
  reason,
  message,
});
