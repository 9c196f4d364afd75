import type { FencingTarget } from "../../api/fencing-target.ts";
import { parseBmcAddress } from "../../bmc/address.ts";
import { BmcError } from "../../bmc/errors.ts";
import type { ClusterRef } from "../../clusters/workload-clusters.ts";
import type { Change } from "../../kube/watched.ts";
import type { NodeId } from "../subject.ts";
import { clusterKey, nodeKey } from "../subject.ts";
import type { ExpectedIdentity } from "./identity.ts";
import { canonicalUuid, expectedIdentity } from "./identity.ts";

/**
 * FencingTargets by node, UID and Secret, and which of them claim the same host. A change costs as much as the claims that it
 * touches, however many targets there are.
 */
export class TargetIndex {
  readonly #byUid = new Map<string, Entry>();
  readonly #claimants = new Map<string, Set<Entry>>();
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
    const touched = new Set<Entry>();
    const previous = this.#byUid.get(object.metadata.uid);
    if (previous !== undefined) {
      this.#remove(previous);
      this.#addRivals(touched, previous);
    }
    if (change.type !== "deleted") {
      const entry = entryOf(object);
      this.#add(entry);
      this.#addRivals(touched, entry);
    }
    if (previous !== undefined) touched.delete(previous);
    return [object, ...[...touched].map((entry) => entry.target).filter((target) => target !== object)];
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
   * Why a target cannot be trusted although it is well-formed: another one claims its node, its System or its system UUID.
   * Undefined where none does.
   */
  conflictOf(uid: string): string | undefined {
    const entry = this.#byUid.get(uid);
    if (entry === undefined) return undefined;
    for (const { claims, what } of entry.exclusive) {
      for (const claim of claims) {
        for (const rival of this.#claimants.get(claim) ?? []) {
          if (rival !== entry) return conflictText(rival.target, what);
        }
      }
    }
    return undefined;
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
    for (const { claims } of entry.exclusive) {
      for (const claim of claims) {
        for (const rival of this.#claimants.get(claim) ?? []) into.add(rival);
      }
    }
  }
}

interface Entry {
  target: FencingTarget;
  identity: ExpectedIdentity | undefined;
  /** What it is filed under. */
  claims: ReadonlySet<string>;
  /** What nobody else may be filed under, with words for it. */
  exclusive: readonly { claims: readonly string[]; what: string }[];
}

/** What nobody else may claim who names the host with that system UUID. */
export const uuidClaim = (uuid: string): string => `uuid ${canonicalUuid(uuid)}`;
const nodeClaim = (node: NodeId): string => `node ${nodeKey(node)}`;
const clusterClaim = (cluster: ClusterRef): string => `cluster ${clusterKey(cluster)}`;
const secretClaim = (name: string): string => `secret ${name}`;

function entryOf(target: FencingTarget): Entry {
  const { nodeName, clusterRef, devices } = target.spec;
  // Names are each cluster's own; hardware is not.
  const node = nodeClaim({ cluster: clusterRef, name: nodeName });
  const claims = new Set([node]);
  if (clusterRef !== undefined) claims.add(clusterClaim(clusterRef));
  const exclusive: { claims: string[]; what: string }[] = [{ claims: [node], what: `names node ${nodeName} as well` }];
  const identity = expectedIdentity(target);
  const uuid = identity?.systemUUID;
  if (uuid !== undefined) {
    const claim = uuidClaim(uuid);
    claims.add(claim);
    exclusive.push({ claims: [claim], what: `claims system UUID ${uuid} as well` });
  }
  for (const device of devices) {
    claims.add(secretClaim(device.credentialsSecretRef.name));
    if (device.tls?.caSecretRef !== undefined) claims.add(secretClaim(device.tls.caSecretRef.name));
    const system = systemClaims(device.address);
    for (const claim of system.filed) claims.add(claim);
    exclusive.push({ claims: system.exclusive, what: `points at ${device.address} as well` });
  }
  return { target, identity, claims, exclusive };
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
  const { namespace, name } = rival.metadata;
  return `FencingTarget ${namespace}/${name} ${what}, so neither is trusted: delete or correct one of them`;
}
