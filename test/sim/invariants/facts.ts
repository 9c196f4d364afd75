import type { SimulatedPower, OrderOutcome, PowerOrderType } from "../../../hack/rack/events.ts";
import type { Workload } from "../../../hack/rack/host.ts";
import { QUARANTINED_BY } from "../../../src/api/names/annotations.ts";
import type { BareMetalRemediation } from "../../../src/api/ironfence/bare-metal-remediation.ts";
import type { Node, Pod, Taint, VolumeAttachment } from "../../../src/api/kubernetes/core.ts";
import type { FencingTarget } from "../../../src/api/ironfence/fencing-target.ts";
import type { NodeHealthCheck } from "../../../src/api/ironfence/node-health-check.ts";
import { FENCED, OUT_OF_SERVICE, QUARANTINE, sameTaint } from "../../../src/api/kubernetes/taints.ts";
import type { KubeObject } from "../../../src/kube/resource.ts";
import { bmcOfAddress } from "../rack-driver.ts";

/** What is true of a host, whatever is reported of it. `hack/rack`'s Host is one. */
export interface HostTruth {
  readonly name: string;
  readonly power: SimulatedPower;
  /** Whether an OS here may still write to volumes: a frozen one may, until the power is truly off. */
  readonly canWrite: boolean;
  readonly workloads: ReadonlyMap<string, Workload>;
  readonly bootSetting: { enabled: "Disabled" | "Once" };
  readonly spec: { readonly labels: Readonly<Record<string, string>> };
}

/** All that is true of the world, as the invariants judge it: what storage holds, and what the hosts truly do. */
export interface Facts {
  /** True time, milliseconds. */
  readonly atMs: number;
  /** The same as wall-clock time. */
  readonly epochMs: number;
  readonly hosts: ReadonlyMap<string, HostTruth>;
  readonly nodes: ReadonlyMap<string, Node>;
  /** By `namespace/name`. */
  readonly pods: ReadonlyMap<string, Pod>;
  readonly attachments: ReadonlyMap<string, VolumeAttachment>;
  /** By UID, those that are gone included, as they were last. */
  readonly remediations: ReadonlyMap<string, BareMetalRemediation>;
  /** UIDs of remediations that are in storage. */
  readonly present: ReadonlySet<string>;
  /** By name. */
  readonly targets: ReadonlyMap<string, FencingTarget>;
  /** By name. */
  readonly checks: ReadonlyMap<string, NodeHealthCheck>;
  /** Who holds the agents' lease, by storage; undefined where agents run without one. */
  readonly leader: { holder: string } | undefined;
  /** Power orders of agents that reached a host, oldest first. */
  readonly orders: readonly OrderRecord[];
  /** When each host was last seen to leave Off; absent for one that is off. */
  readonly notOffSinceMs: ReadonlyMap<string, number>;
  /** When each host has left Off last, whatever it is now; absent for one that never has. */
  readonly leftOffAtMs: ReadonlyMap<string, number>;
  /** Names of the nodes that bear our out-of-service taint, signed. */
  readonly fenced: ReadonlySet<string>;
  /** How many hosts agents may remediate at once, in all and of one zone: any number by default. */
  readonly limits: { hosts: number; perZone: number };
  /** UIDs of objects of other kinds that have asked for a remediation so far. */
  readonly asked: ReadonlySet<string>;
  /** Hosts that the operator of their BareMetalHost powers on, if they are off. */
  readonly operated: ReadonlySet<string>;
  /** By UID of a remediation, when a warning with each reason was last given about it. */
  readonly warnedAtMs: ReadonlyMap<string, ReadonlyMap<string, number>>;
  /** By UID of a remediation, since when its state and the reason of its condition Processing are as they are. */
  readonly waits: ReadonlyMap<string, Wait>;
  /** By UID of a remediation that has failed, the agent that stored so, before this step. */
  readonly failedBy: ReadonlyMap<string, { agent: string; atMs: number }>;
  /** By UID of a remediation, its node as an agent first stored it. */
  readonly begun: ReadonlyMap<
    string,
    { node: string; bootID: string | undefined; wasReady: boolean; isStale: boolean }
  >;
  /** By name of a node that is Ready by storage, in which boot and since when. */
  readonly readySince: ReadonlyMap<string, { bootID: string; sinceMs: number }>;
  /** By name of a node that was Ready and is not, by storage, since when. */
  readonly notReadySinceMs: ReadonlyMap<string, number>;
  /**
   * Names of hosts on which, according to a user, etcd has no member any more: by the status of their targets.
   */
  readonly clearedMembers: ReadonlySet<string>;
  /** Whether etcd runs on machines outside of the cluster. */
  readonly isEtcdExternal: boolean;
  /** What holds power orders by storage, and since when: `PAUSED`, and names of targets in maintenance. */
  readonly heldSinceMs: ReadonlyMap<string, number>;
  /** By UID of the Node, the taints (`taintKey`) that agents have put there. */
  readonly ownTaints: ReadonlyMap<string, ReadonlySet<string>>;
  /**
   * Since when nothing hampers the agent that leads: a crash, a stop, a fault of the API server, a change of leader.
   */
  readonly calmSinceMs: number;
  /** When a call of agents, as `get nodes`, was last made to fail or to take long; undefined where it never was. */
  hamperedAtMs(call: string): number | undefined;
  /** Whether no device and no target has failed so far, so that a host has no excuse for being left off. */
  readonly devicesWell: boolean;
  /**
   * Whether a watch on Nodes is held back right now: what a detector counts is then the nodes as they were a moment
   * ago.
   */
  readonly nodesLag: boolean;
  /** Whether the agents' clocks go as fast as the world's and agree with each other. */
  readonly clocksAgree: boolean;
  /** Whether the clock of an API server was ever set: its stamps no longer show how old an object is. */
  readonly isServerClockSet: boolean;
  /** When a clock has jumped last, or was first seen to go wrong. */
  readonly clocksDoubtedAtMs: number;
}

/** How long a remediation has been in its state, for its reason, by storage. */
export interface Wait {
  /** Its state, and the reason of its condition Processing. */
  of: string;
  sinceMs: number;
  /** Since when it was as it was before that. */
  previousSinceMs: number;
}

/** One power order of an agent that reached a host. */
export interface OrderRecord {
  atMs: number;
  agent: string;
  /** The host that truly got it. */
  host: string;
  order: PowerOrderType;
  outcome: OrderOutcome;
  /** The remediation that owned the target at that moment, and its attempt as stored. */
  remediation: string | undefined;
  attempt: { id: string; action: string; retryCount: number } | undefined;
}

/** One step of the world. An invariant sees the facts as they are right after it. */
export type Step =
  /** An object changed. `by` names the agent that wrote; undefined: another client. */
  | { type: "wrote"; by: string | undefined; change: Change }
  | { type: "ordered"; record: OrderRecord }
  /** `remediation` owns the target that names the BMC, or owned it when that was deleted. */
  | { type: "bootSet"; by: string; host: string; enabled: "Disabled" | "Once"; remediation: string | undefined }
  /** Something happened to a host, or time passed. */
  | { type: "passed" };

export interface Change {
  type: "ADDED" | "MODIFIED" | "DELETED";
  object: KubeObject;
  previous?: KubeObject;
}

/** A safety rule of docs/evidence/simulation.md. */
export interface Invariant {
  name: string;
  /** The rule in one sentence. */
  says: string;
  /** @returns how the step breaks the rule; undefined where it does not. Pure. */
  check(facts: Facts, step: Step): string | undefined;
}

/** The remediation that has signed a mark on a node; undefined where that mark is not there or has no signature. */
export function signerOf(node: Node | undefined, mark: "outOfService" | "quarantine"): string | undefined {
  const find = (taint: Pick<Taint, "key" | "effect">): Taint | undefined =>
    (node?.spec.taints ?? []).find((present) => sameTaint(present, taint));
  // A kubelet can write the annotation of the first; a taint shows who has set it.
  if (mark === "outOfService") return find(OUT_OF_SERVICE) && find(FENCED)?.value?.split(".")[0];
  return find(QUARANTINE) && node?.metadata.annotations?.[QUARANTINED_BY]?.split("/")[0];
}

export function isFinal({ status }: BareMetalRemediation): boolean {
  return status?.phase === "Succeeded" || status?.phase === "Failed";
}

export function conditionOf(
  { status }: BareMetalRemediation,
  type: string,
): { status: string; reason: string; message: string } | undefined {
  return status?.conditions?.find((condition) => condition.type === type);
}

/** `step` as a write of an agent to an object of that kind. */
export function agentWrite<T extends KubeObject>(
  step: Step,
  kind: string,
): { by: string; type: Change["type"]; object: T; previous: T | undefined } | undefined {
  if (step.type !== "wrote" || step.by === undefined || step.change.object.kind !== kind) return undefined;
  const { type, object, previous } = step.change;
  // The kind says what the object looks like.
  return { by: step.by, type, object: object as T, previous: previous as T | undefined };
}

/** The BMC that a target names: its first device's. */
export function keyOfTarget({ spec }: FencingTarget): string | undefined {
  const address = spec.devices[0]?.address;
  return address === undefined ? undefined : bmcOfAddress(address);
}

/** Kubernetes distinguishes the taints of a node by key and effect. */
export function taintKey({ key, effect }: { key: string; effect: string }): string {
  return `${key}:${effect}`;
}

/**
 * The owner of a target that is its node's: one whose target was given another node by a person owns nothing any more.
 */
export function ownerOf(facts: Facts, target: FencingTarget): BareMetalRemediation | undefined {
  const owner = facts.remediations.get(target.status?.owner?.uid ?? "");
  return owner?.status?.node?.name === target.spec.nodeName ? owner : undefined;
}
