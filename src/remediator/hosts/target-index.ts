import type { FencingTarget } from "../../api/fencing-target.ts";
import { parseBmcAddress } from "../../bmc/address.ts";
import { BmcError } from "../../bmc/errors.ts";
import type { ClusterRef } from "../../clusters/workload-clusters.ts";
import type { Change } from "../../kube/watched.ts";
import type { NodeId } from "../../nodes/subject.ts";
import { clusterKey, nodeKey } from "../../nodes/subject.ts";
import type { ExpectedIdentity } from "./identity.ts";
import { canonicalUuid, expectedIdentity } from "./identity.ts";

/** Why a target cannot be trusted although it is well-formed. */
export interface Conflict {
  message: string;
  /** It rests on what a host has reported, and a further probe may find that it is over. */
  byReport: boolean;
  /** Nothing speaks against the target, but what might cannot be read: no probe is held back. */
  unread?: true;
  /** It also holds an order to power the host on: the configuration says it, or a remediation is at work on the other target. */
  holdsOn: boolean;
}

/**
 * FencingTargets by node, UID and Secret, and which of them claim the same host. A change costs as much as the claims that it
 * touches, however many targets there are.
 */
export class TargetIndex {
  readonly #byUid = new Map<string, Entry>();
  readonly #claimants = new Map<string, Set<Entry>>();
  /** System UUIDs that the devices of targets have reported, by the target's UID, for the spec that they were of. */
  readonly #reports = new Map<string, { generation: number | undefined; uuids: readonly string[] }>();
  readonly #namespace: string;
  #deviceCount = 0;

  /** @param namespace targets of any other are left out. */
  constructor(namespace: string) {
    this.#namespace = namespace;
  }

  /** Devices of all targets together. */
  get deviceCount(): number {
    return this.#deviceCount;
  }

  /** Takes a change in. @returns the targets whose lookup or conflict it may have changed, itself included. */
  apply(change: Change<FencingTarget>): FencingTarget[] {
    const { object } = change;
    if (object.metadata.namespace !== this.#namespace) return [];
    const { uid, generation } = object.metadata;
    const isStale = change.type === "deleted" || this.#reports.get(uid)?.generation !== generation;
    if (isStale) this.#reports.delete(uid);
    return [object, ...this.#replace(uid, change.type === "deleted" ? undefined : object)];
  }

  /**
   * Takes in which system UUIDs the devices of a target have reported.
   *
   * @returns the other targets whose conflict that may have changed.
   */
  report({ metadata: { uid, generation } }: FencingTarget, uuids: readonly string[]): FencingTarget[] {
    const known = this.#byUid.get(uid)?.target;
    if (known === undefined || known.metadata.generation !== generation) return [];
    if (this.#reports.get(uid)?.uuids.join(" ") === uuids.join(" ")) return [];
    this.#reports.set(uid, { generation, uuids });
    return this.#replace(uid, known);
  }

  /** Files a target as it is now. @returns the other targets that this concerns. */
  #replace(uid: string, target: FencingTarget | undefined): FencingTarget[] {
    const touched = new Set<Entry>();
    const previous = this.#byUid.get(uid);
    const entry = target && entryOf(target, this.#reports.get(uid)?.uuids ?? []);
    if (previous !== undefined) this.#addRivals(touched, previous);
    if (entry !== undefined) this.#addRivals(touched, entry);
    if (previous !== undefined && entry !== undefined && claimTheSame(previous, entry)) {
      // In its place: filed again as the last one, each status that is written would change whom its rivals name, without end.
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

  /** Who the host of a target must be (`expectedIdentity`), worked out once for each of its states. */
  identityOf(uid: string): ExpectedIdentity | undefined {
    return this.#byUid.get(uid)?.identity;
  }

  byNode(node: NodeId): FencingTarget[] {
    return [...(this.#claimants.get(nodeClaim(node)) ?? [])].map((entry) => entry.target);
  }

  /** The targets of nodes of one workload cluster. */
  byCluster(cluster: ClusterRef): FencingTarget[] {
    return [...(this.#claimants.get(clusterClaim(cluster)) ?? [])].map((entry) => entry.target);
  }

  /** Targets that are filed under any of these claims (`systemClaims`, `uuidClaim`). */
  claiming(claims: readonly string[]): FencingTarget[] {
    const entries = new Set(claims.flatMap((claim) => [...(this.#claimants.get(claim) ?? [])]));
    return [...entries].map((entry) => entry.target);
  }

  bySecret(secretName: string): FencingTarget[] {
    return [...(this.#claimants.get(secretClaim(secretName)) ?? [])].map((entry) => entry.target);
  }

  /**
   * Another target claims the node, the System or the identity of this one. What a person has given as an identity is its
   * holder's, and a host that merely reports the same is the newcomer; where both merely report it, it proves neither.
   * Undefined where none does. A conflict that holds the On as well goes before one that does not.
   */
  conflictOf(uid: string): Conflict | undefined {
    const entry = this.#byUid.get(uid);
    if (entry === undefined) return undefined;
    let mild: Conflict | undefined;
    for (const { claims, what, reported } of entry.exclusive) {
      for (const claim of claims) {
        for (const rival of this.#claimants.get(claim) ?? []) {
          if (rival === entry) continue;
          if (reported === undefined) {
            return { message: conflictText(rival.target, what), byReport: false, holdsOn: true };
          }
          const isHolder = rival.identity?.source === "spec" && rival.claims.has(uuidClaim(reported));
          const holdsOn = isHolder || rival.target.status?.owner !== undefined;
          const message = sharedText(targetText(rival.target), reported, isHolder);
          const conflict = { message, byReport: true, holdsOn };
          if (holdsOn) return conflict;
          mild ??= conflict;
        }
      }
    }
    return mild;
  }

  #add(entry: Entry): void {
    this.#byUid.set(entry.target.metadata.uid, entry);
    this.#deviceCount += entry.target.spec.devices.length;
    for (const claim of entry.claims) {
      const claimants = this.#claimants.get(claim);
      if (claimants === undefined) this.#claimants.set(claim, new Set([entry]));
      else claimants.add(entry);
    }
  }

  #remove(entry: Entry): void {
    this.#byUid.delete(entry.target.metadata.uid);
    this.#deviceCount -= entry.target.spec.devices.length;
    for (const claim of entry.claims) {
      const claimants = this.#claimants.get(claim);
      claimants?.delete(entry);
      if (claimants?.size === 0) this.#claimants.delete(claim);
    }
  }

  #addRivals(into: Set<Entry>, entry: Entry): void {
    for (const claim of entry.contested) {
      for (const rival of this.#claimants.get(claim) ?? []) into.add(rival);
    }
  }
}

interface Entry {
  target: FencingTarget;
  identity: ExpectedIdentity | undefined;
  /** What it is filed under. */
  claims: ReadonlySet<string>;
  /** What nobody else may be filed under, with words for it, or with the UUID that the host has merely reported. */
  exclusive: readonly Exclusive[];
  /** What concerns others who are filed under it. */
  contested: readonly string[];
}

function claimTheSame(a: Entry, b: Entry): boolean {
  return a.claims.size === b.claims.size && [...a.claims].every((claim) => b.claims.has(claim));
}

type Exclusive = { claims: readonly string[] } & (
  | { what: string; reported?: undefined }
  | { what?: undefined; reported: string }
);

/** What nobody else may claim who names the host with that system UUID. */
export const uuidClaim = (uuid: string): string => `uuid ${canonicalUuid(uuid)}`;
/** A UUID that a person has given, which is then the identity of that target's host. */
const givenClaim = (uuid: string): string => `given uuid ${canonicalUuid(uuid)}`;
/** A UUID that a device has reported: it need not be that of the target's host. */
const reportedClaim = (uuid: string): string => `reported uuid ${canonicalUuid(uuid)}`;
const serialClaim = (serial: string): string => `serial ${serial}`;
const nodeClaim = (node: NodeId): string => `node ${nodeKey(node)}`;
const clusterClaim = (cluster: ClusterRef): string => `cluster ${clusterKey(cluster)}`;
const secretClaim = (name: string): string => `secret ${name}`;

function entryOf(target: FencingTarget, reported: readonly string[]): Entry {
  const { nodeName, clusterRef, devices } = target.spec;
  // Names are each cluster's own; hardware is not.
  const node = nodeClaim({ cluster: clusterRef, name: nodeName });
  const claims = new Set([node]);
  if (clusterRef !== undefined) claims.add(clusterClaim(clusterRef));
  const exclusive: Exclusive[] = [{ claims: [node], what: `names node ${nodeName} as well` }];
  const identity = expectedIdentity(target);
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
  const uuids = [...reported, ...(uuid === undefined ? [] : [uuid])];
  const contested = exclusive.flatMap(({ claims }) => claims).concat(hardware, uuids.map(uuidClaim));
  return { target, identity, claims, exclusive, contested };
}

/**
 * What an address claims. An address without a System means the only one of its BMC, hence every System that anybody names
 * there. An address that cannot be read claims nothing: it is refused when it is opened.
 */
export function systemClaims(addressText: string): { filed: string[]; exclusive: string[] } {
  const address = readAddress(addressText);
  if (address === undefined) return { filed: [], exclusive: [] };
  const system = `system ${address.key}`;
  if (address.protocol === "ipmi") return { filed: [system], exclusive: [system] };
  const anySystem = `any system of ${address.origin}`;
  const someSystem = `some system of ${address.origin}`;
  return address.system === undefined
    ? { filed: [anySystem, someSystem], exclusive: [someSystem] }
    : { filed: [system, someSystem], exclusive: [system, anySystem] };
}

function readAddress(text: string): ReturnType<typeof parseBmcAddress> | undefined {
  try {
    return parseBmcAddress(text);
  } catch (error) {
    if (error instanceof BmcError) return undefined;
    throw error;
  }
}

/** Why a target is not trusted: a rival of it does `what`. */
export function conflictText(rival: FencingTarget, what: string): string {
  return `${targetText(rival)} ${what}, so neither is trusted: delete or correct one of them`;
}

/**
 * Why a UUID that a host reports does not say which host it is.
 *
 * @param isHolder whether a person has given the rival that UUID.
 */
export function sharedText(rival: string, uuid: string, isHolder: boolean): string {
  const why = isHolder
    ? `${rival} has system UUID ${uuid} in its spec.identity, and the host of this target reports the same`
    : `the host of ${rival} reports system UUID ${uuid} as well, so that it proves neither`;
  return `${why}: give this target a spec.identity that its host alone has, such as its serial number, or delete the one that is stale`;
}

function targetText({ metadata: { namespace, name } }: FencingTarget): string {
  return `FencingTarget ${namespace}/${name}`;
}
