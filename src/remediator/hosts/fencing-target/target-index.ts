import type { FencingTarget } from "../../../api/ironfence/fencing-target.ts";
import type { ClusterRef } from "../../../clusters/workload-clusters.ts";
import type { Change } from "../../../kube/watched.ts";
import type { NodeId } from "../../../nodes/subject.ts";
import { clusterKey, nodeKey } from "../../../nodes/subject.ts";
import { MultiMap } from "../../../runtime/multi-map.ts";
import type { ExpectedIdentity } from "../model/identity.ts";
import { enrolledOutlets } from "../model/enrolment.ts";
import { canonicalUuid, expectedIdentity } from "../model/identity.ts";
import { systemClaims, uuidClaim } from "../model/hardware-claims.ts";

/** Why a target cannot be trusted although it is well-formed. */
export interface Conflict {
  message: string;
  /** Whether it depends on what a host has reported, so that a further probe may end it. */
  byReport: boolean;
  /** Whether nothing contradicts the target, but an object that could do so cannot be read. Probes continue. */
  unread?: true;
  /**
   * Whether it also holds an order to power the host on: it is in the configuration, or a remediation owns the other
   * target.
   */
  holdsOn: boolean;
}

/**
 * FencingTargets by node, UID and Secret, and which of them claim the same host. The cost of a change depends only on
 * the claims that it touches, not on the number of targets.
 */
export class TargetIndex {
  readonly #byUid = new Map<string, IndexedTarget>();
  readonly #claimants = new MultiMap<IndexedTarget>();
  /**
   * System UUIDs that the devices of targets have reported, by the UID of the target, for that generation of its spec.
   */
  readonly #reports = new Map<string, { generation: number | undefined; uuids: readonly string[] }>();
  readonly #namespace: string;
  #deviceCount = 0;

  /** @param namespace targets in other namespaces are ignored. */
  constructor(namespace: string) {
    this.#namespace = namespace;
  }

  /** The number of devices of all targets. */
  get deviceCount(): number {
    return this.#deviceCount;
  }

  /** Applies a change. @returns the targets whose lookup or conflict it may have changed, including itself. */
  apply(change: Change<FencingTarget>): FencingTarget[] {
    const { object } = change;
    if (object.metadata.namespace !== this.#namespace) return [];
    const { uid, generation } = object.metadata;
    const isStale = change.type === "deleted" || this.#reports.get(uid)?.generation !== generation;
    if (isStale) this.#reports.delete(uid);
    return [object, ...this.#replace(uid, change.type === "deleted" ? undefined : object)];
  }

  /**
   * Records which system UUIDs the devices of a target have reported.
   *
   * @returns the other targets whose conflict this may have changed.
   */
  report({ metadata: { uid, generation } }: FencingTarget, uuids: readonly string[]): FencingTarget[] {
    const known = this.#byUid.get(uid)?.target;
    if (known === undefined || known.metadata.generation !== generation) return [];
    if ((this.#reports.get(uid)?.uuids ?? []).join(" ") === uuids.join(" ")) return [];
    this.#reports.set(uid, { generation, uuids });
    return this.#replace(uid, known);
  }

  /** Indexes a target as it is now. @returns the other targets that are affected. */
  #replace(uid: string, target: FencingTarget | undefined): FencingTarget[] {
    const touched = new Set<IndexedTarget>();
    const previous = this.#byUid.get(uid);
    const entry = target && entryOf(target, this.#reports.get(uid)?.uuids ?? []);
    if (previous !== undefined) this.#addCompetitors(touched, previous);
    if (entry !== undefined) this.#addCompetitors(touched, entry);
    if (previous !== undefined && entry !== undefined && claimTheSame(previous, entry)) {
      // The entry keeps its position. If each write of a status moved it to the end, the other targets would name
      // another competitor in their status each time, without end.
      this.#deviceCount += entry.target.spec.devices.length - previous.target.spec.devices.length;
      Object.assign(previous, entry);
    } else {
      if (previous !== undefined) this.#remove(previous);
      if (entry !== undefined) this.#add(entry);
    }
    if (entry !== undefined) touched.delete(entry);
    if (previous !== undefined) touched.delete(previous);
    return [...touched].map((entry) => entry.target);
  }

  byUid(uid: string): FencingTarget | undefined {
    return this.#byUid.get(uid)?.target;
  }

  /** The identity that the host of a target must have (`expectedIdentity`), computed once for each of its states. */
  identityOf(uid: string): ExpectedIdentity | undefined {
    return this.#byUid.get(uid)?.identity;
  }

  byNode(node: NodeId): FencingTarget[] {
    return [...this.#claimants.get(nodeClaim(node))].map((entry) => entry.target);
  }

  /** The targets of nodes of one workload cluster. */
  byCluster(cluster: ClusterRef): FencingTarget[] {
    return [...this.#claimants.get(clusterClaim(cluster))].map((entry) => entry.target);
  }

  /** Targets that are indexed under any of these claims (`systemClaims`, `uuidClaim`). */
  claiming(claims: readonly string[]): FencingTarget[] {
    const entries = new Set(claims.flatMap((claim) => [...this.#claimants.get(claim)]));
    return [...entries].map((entry) => entry.target);
  }

  bySecret(secretName: string): FencingTarget[] {
    return [...this.#claimants.get(secretClaim(secretName))].map((entry) => entry.target);
  }

  /**
   * The conflict with another target that claims the node, the System or the identity of this one; undefined without
   * one. An identity in a spec belongs to that target, and a host that only reports the same is in conflict with it. If
   * both hosts only report it, it proves neither. A conflict that also holds an On takes precedence.
   */
  conflictOf(uid: string): Conflict | undefined {
    const entry = this.#byUid.get(uid);
    if (entry === undefined) return undefined;
    let mild: Conflict | undefined;
    for (const { claims, what, reported } of claimsOf(entry).exclusive) {
      for (const claim of claims) {
        for (const competitor of this.#claimants.get(claim)) {
          if (competitor === entry) continue;
          if (reported === undefined) {
            return { message: conflictText(competitor.target, what), byReport: false, holdsOn: true };
          }
          const isHolder =
            competitor.identity?.source === "spec" && claimsOf(competitor).claims.has(uuidClaim(reported));
          const holdsOn = isHolder || competitor.target.status?.owner !== undefined;
          const message = sharedUuidText(targetText(competitor.target), reported, isHolder);
          const conflict = { message, byReport: true, holdsOn };
          if (holdsOn) return conflict;
          mild ??= conflict;
        }
      }
    }
    return mild;
  }

  #add(entry: IndexedTarget): void {
    this.#byUid.set(entry.target.metadata.uid, entry);
    this.#deviceCount += entry.target.spec.devices.length;
    for (const claim of claimsOf(entry).claims) this.#claimants.add(claim, entry);
  }

  #remove(entry: IndexedTarget): void {
    this.#byUid.delete(entry.target.metadata.uid);
    this.#deviceCount -= entry.target.spec.devices.length;
    for (const claim of claimsOf(entry).claims) this.#claimants.delete(claim, entry);
  }

  #addCompetitors(into: Set<IndexedTarget>, entry: IndexedTarget): void {
    for (const claim of claimsOf(entry).contested)
      for (const competitor of this.#claimants.get(claim)) into.add(competitor);
  }
}

interface IndexedTarget {
  target: FencingTarget;
  identity: ExpectedIdentity | undefined;
  /** System UUIDs that its devices have reported. */
  reported: readonly string[];
}

interface Claims {
  /** The claims under which it is indexed. */
  claims: ReadonlySet<string>;
  /**
   * The claims that no other target may have. Each has a text for a conflict, or the UUID that a host has only
   * reported.
   */
  exclusive: readonly Exclusive[];
  /** The claims whose change affects other targets that have them. */
  contested: readonly string[];
}

function claimTheSame(a: IndexedTarget, b: IndexedTarget): boolean {
  const [before, now] = [claimsOf(a).claims, claimsOf(b).claims];
  return before.size === now.size && [...before].every((claim) => now.has(claim));
}

type Exclusive = { claims: readonly string[] } & (
  | { what: string; reported?: undefined }
  | { what?: undefined; reported: string }
);

/** A UUID in a spec, which is then the identity of the host of that target. */
const givenClaim = (uuid: string): string => `given uuid ${canonicalUuid(uuid)}`;
/** A UUID that a device has reported. It may be the UUID of a host other than that of the target. */
const reportedClaim = (uuid: string): string => `reported uuid ${canonicalUuid(uuid)}`;
/** An outlet as its PDU names it. Two addresses, such as a name and an IP address, may lead to one outlet. */
const outletClaim = (pdu: string, outlet: string): string => `outlet ${outlet} of ${pdu}`;
const serialClaim = (serial: string): string => `serial ${serial}`;
const nodeClaim = (node: NodeId): string => `node ${nodeKey(node)}`;
const clusterClaim = (cluster: ClusterRef): string => `cluster ${clusterKey(cluster)}`;
const secretClaim = (name: string): string => `secret ${name}`;

function entryOf(target: FencingTarget, reported: readonly string[]): IndexedTarget {
  return { target, identity: expectedIdentity(target), reported };
}

/** Computed whenever they are needed: stored claims would take more memory than the target. */
function claimsOf({ target, identity, reported }: IndexedTarget): Claims {
  const { nodeName, clusterRef, devices } = target.spec;
  // The name of a node is unique only within its cluster. Hardware is unique everywhere.
  const node = nodeClaim({ cluster: clusterRef, name: nodeName });
  const claims = new Set([node]);
  if (clusterRef !== undefined) claims.add(clusterClaim(clusterRef));
  const exclusive: Exclusive[] = [{ claims: [node], what: `names node ${nodeName} as well` }];
  const { systemUUID: uuid, serialNumber: serial } = identity ?? {};
  const hardware = reported.map(reportedClaim);
  if (uuid !== undefined) {
    hardware.push(uuidClaim(uuid));
    if (identity?.source === "spec") {
      hardware.push(givenClaim(uuid));
      exclusive.push({ claims: [givenClaim(uuid)], what: `claims system UUID ${uuid} as well` });
    } else exclusive.push({ claims: [uuidClaim(uuid), reportedClaim(uuid)], reported: uuid });
  }
  if (serial !== undefined) {
    hardware.push(serialClaim(serial));
    exclusive.push({ claims: [serialClaim(serial)], what: `claims serial number ${serial} as well` });
  }
  for (const claim of hardware) claims.add(claim);
  for (const device of devices) {
    claims.add(secretClaim(device.credentialsSecretRef.name));
    if (device.tls?.caSecretRef !== undefined) claims.add(secretClaim(device.tls.caSecretRef.name));
    const system = systemClaims(device.address);
    for (const claim of system.filed) claims.add(claim);
    exclusive.push({ claims: system.exclusive, what: `points at ${device.address} as well` });
  }
  for (const { pdu, outlet } of enrolledOutlets(target)) {
    const claim = outletClaim(pdu, outlet);
    claims.add(claim);
    exclusive.push({ claims: [claim], what: `has outlet ${outlet} of PDU ${pdu} enrolled as well` });
  }
  const uuids = [...reported, ...(uuid === undefined ? [] : [uuid])];
  const contested = exclusive.flatMap(({ claims }) => claims).concat(hardware, uuids.map(uuidClaim));
  return { claims, exclusive, contested };
}

/** Why a target is not trusted: a competitor does `what`. */
export function conflictText(competitor: FencingTarget, what: string): string {
  return `${targetText(competitor)} ${what}, so neither is trusted: delete or correct one of them`;
}

/**
 * Why a UUID that a host reports does not identify it.
 *
 * @param isHolder whether the spec of the competitor has that UUID.
 */
export function sharedUuidText(competitor: string, uuid: string, isHolder: boolean): string {
  const why = isHolder
    ? `${competitor} has system UUID ${uuid} in its spec.identity, and the host of this target reports the same`
    : `the host of ${competitor} reports system UUID ${uuid} as well, so it proves neither`;
  return `${why}: give this target a spec.identity that only its host has, such as its serial number, or delete the stale target`;
}

function targetText({ metadata: { namespace, name } }: FencingTarget): string {
  return `FencingTarget ${namespace}/${name}`;
}
