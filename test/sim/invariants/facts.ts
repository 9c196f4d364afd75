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

/** The real state of a host, whatever its BMC reports. `hack/rack`'s Host implements this. */
export interface HostTruth {
  readonly name: string;
  readonly power: SimulatedPower;
  /** Whether an OS may still write to volumes. A frozen OS may, until the power is really off. */
  readonly canWrite: boolean;
  readonly workloads: ReadonlyMap<string, Workload>;
  readonly bootSetting: { enabled: "Disabled" | "Once" };
  readonly spec: { readonly labels: Readonly<Record<string, string>> };
}

/** The real state of the world for the invariants: the stored objects, and the real state of the hosts. */
export interface Facts {
  /** Real monotonic time, milliseconds. */
  readonly atMs: number;
  /** The same time on the wall clock. */
  readonly epochMs: number;
  readonly hosts: ReadonlyMap<string, HostTruth>;
  readonly nodes: ReadonlyMap<string, Node>;
  /** By `namespace/name`. */
  readonly pods: ReadonlyMap<string, Pod>;
  readonly attachments: ReadonlyMap<string, VolumeAttachment>;
  /** By UID, including deleted ones in their last state. */
  readonly remediations: ReadonlyMap<string, BareMetalRemediation>;
  /** UIDs of remediations that are in storage. */
  readonly present: ReadonlySet<string>;
  /** By name. */
  readonly targets: ReadonlyMap<string, FencingTarget>;
  /** By name. */
  readonly checks: ReadonlyMap<string, NodeHealthCheck>;
  /** The stored holder of the agent lease; undefined if agents run without a lease. */
  readonly leader: { holder: string } | undefined;
  /** Power orders of agents that reached a host, oldest first. */
  readonly orders: readonly OrderRecord[];
  /** When each host last left Off; absent for a host that is off. */
  readonly notOffSinceMs: ReadonlyMap<string, number>;
  /** When each host last left Off, whatever its state is now; absent if it never did. */
  readonly leftOffAtMs: ReadonlyMap<string, number>;
  /** Names of the nodes with our signed out-of-service taint. */
  readonly fenced: ReadonlySet<string>;
  /** How many hosts agents may remediate at once, in total and per zone: any number by default. */
  readonly limits: { hosts: number; perZone: number };
  /** UIDs of objects of other kinds that have requested a remediation so far. */
  readonly asked: ReadonlySet<string>;
  /** Hosts that the operator of their BareMetalHost would power on if they are off. */
  readonly operated: ReadonlySet<string>;
  /** By UID of a remediation, the time of its last warning with each reason. */
  readonly warnedAtMs: ReadonlyMap<string, ReadonlyMap<string, number>>;
  /**
   * By UID of a remediation, the time since which its state and the reason of its condition Processing are unchanged.
   */
  readonly waits: ReadonlyMap<string, Wait>;
  /** By UID of a failed remediation, the agent that stored the failure before this step. */
  readonly failedBy: ReadonlyMap<string, { agent: string; atMs: number }>;
  /**
   * By UID of a remediation, its node as first stored by an agent. If an agent has created the remediation, the node at
   * the creation counts as well.
   */
  readonly begun: ReadonlyMap<
    string,
    { node: string; bootID: string | undefined; wasReady: boolean; isStale: boolean; atMs: number }
  >;
  /** By name of a node that is Ready in storage, its boot and the time since which it is Ready. */
  readonly readySince: ReadonlyMap<string, { bootID: string; sinceMs: number }>;
  /** By name of a node that is no longer Ready in storage, the time since which it is not. */
  readonly notReadySinceMs: ReadonlyMap<string, number>;
  /** Names of hosts that, according to a user, no longer have an etcd member (status of their targets). */
  readonly clearedMembers: ReadonlySet<string>;
  /** Whether etcd runs on machines outside of the cluster. */
  readonly isEtcdExternal: boolean;
  /** The stored holds of power orders with their start: `PAUSED`, and names of targets in maintenance. */
  readonly heldSinceMs: ReadonlyMap<string, number>;
  /** By UID of the Node, the taints (`taintKey`) that agents have added. */
  readonly ownTaints: ReadonlyMap<string, ReadonlySet<string>>;
  /**
   * The time since which nothing has hampered the leader: no crash, stop, fault of the API server or change of leader.
   */
  readonly calmSinceMs: number;
  /** When a fault last affected a call of agents, such as `get nodes`; undefined if it never did. */
  hamperedAtMs(call: string): number | undefined;
  /** Whether no device and no target has failed so far, so that there is no excuse for leaving a host off. */
  readonly devicesWell: boolean;
  /** Whether a watch on Nodes is delayed now. A detector then counts the nodes in an earlier state. */
  readonly nodesLag: boolean;
  /** Whether the agents' clocks have the speed of the world's clock and agree with each other. */
  readonly clocksAgree: boolean;
  /** Whether the clock of an API server was ever moved, so that its timestamps no longer show the age of an object. */
  readonly isServerClockSet: boolean;
  /** When a clock last jumped, or was first wrong. */
  readonly clocksDoubtedAtMs: number;
}

/** How long a remediation has been stored with its state and reason. */
export interface Wait {
  /** Its state, and the reason of its condition Processing. */
  of: string;
  sinceMs: number;
  /** The start of the wait before this one. */
  previousSinceMs: number;
}

/** One power order of an agent that reached a host. */
export interface OrderRecord {
  atMs: number;
  agent: string;
  /** The host that really received it. */
  host: string;
  order: PowerOrderType;
  outcome: OrderOutcome;
  /** The remediation that owned the target at that time, and its stored attempt. */
  remediation: string | undefined;
  attempt: { id: string; action: string; retryCount: number } | undefined;
}

/** One step of the world. An invariant gets the facts right after the step. */
export type Step =
  /** An object changed. `by` names the agent that wrote it; undefined for another client. */
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
  /** @returns how the step breaks the rule; undefined if it does not. Pure. */
  check(facts: Facts, step: Step): string | undefined;
}

/** The remediation that has signed a mark on a node; undefined if the mark is missing or not signed. */
export function signerOf(node: Node | undefined, mark: "outOfService" | "quarantine"): string | undefined {
  const find = (taint: Pick<Taint, "key" | "effect">): Taint | undefined =>
    (node?.spec.taints ?? []).find((present) => sameTaint(present, taint));
  // A kubelet can write the annotation of the out-of-service taint, so the signature is a second taint, which it cannot
  // write.
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

/** `step` if it is a write of an agent to an object of that kind. */
export function agentWrite<T extends KubeObject>(
  step: Step,
  kind: string,
): { by: string; type: Change["type"]; object: T; previous: T | undefined } | undefined {
  if (step.type !== "wrote" || step.by === undefined || step.change.object.kind !== kind) return undefined;
  const { type, object, previous } = step.change;
  // The kind determines the type of the object.
  return { by: step.by, type, object: object as T, previous: previous as T | undefined };
}

/** The key of the BMC of a target, which is that of its first device. */
export function keyOfTarget({ spec }: FencingTarget): string | undefined {
  const address = spec.devices[0]?.address;
  return address === undefined ? undefined : bmcOfAddress(address);
}

/** The identity of a taint. Kubernetes distinguishes the taints of a node by key and effect. */
export function taintKey({ key, effect }: { key: string; effect: string }): string {
  return `${key}:${effect}`;
}

/**
 * The owner of a target if it remediates the node of the target. If a user has changed the node of the target, the
 * owner no longer owns it.
 */
export function ownerOf(facts: Facts, target: FencingTarget): BareMetalRemediation | undefined {
  const owner = facts.remediations.get(target.status?.owner?.uid ?? "");
  return owner?.status?.node?.name === target.spec.nodeName ? owner : undefined;
}
