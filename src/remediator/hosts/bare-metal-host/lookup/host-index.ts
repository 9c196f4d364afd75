import { MACHINE } from "../../../../api/names/annotations.ts";
import { CLUSTER_API_GROUP } from "../../../../api/cluster-api/cluster-api.ts";
import type { Node } from "../../../../api/kubernetes/core.ts";
import type { BareMetalHost, Metal3Machine } from "../../../../api/metal3/metal3.ts";
import { parseHostName } from "../../../../api/metal3/metal3.ts";
import { OKD_MACHINE_GROUP } from "../../../../api/okd/okd-machine.ts";
import type { KubeObject } from "../../../../kube/resource.ts";
import type { Change } from "../../../../kube/watched.ts";
import { keyText } from "../../../../kube/watched.ts";
import type { MachineRef, Subject } from "../../../../nodes/subject.ts";
import { meaningfulSerial, meaningfulUuid } from "../../model/identity.ts";
import { systemClaims, uuidClaim } from "../../model/hardware-claims.ts";
import { storedOwner } from "../store/host-annotations.ts";
import type { Consumer } from "../store/consumer.ts";
import { consumerKey, consumerOf, whyNotOf } from "../store/consumer.ts";
import type { Located } from "./host-search.ts";
import { HostSearch, subjectText } from "./host-search.ts";
import { hostText } from "../store/power-path.ts";

/**
 * The watched BareMetalHosts and the Metal3Machines that use them, and which host belongs to a subject. If two
 * references lead to different hosts, neither is trusted: one of them would power off a host that serves another
 * subject.
 */
export class HostIndex {
  readonly #hosts = new Map<string, BareMetalHost>();
  readonly #byUid = new Map<string, BareMetalHost>();
  readonly #machines = new Map<string, Metal3Machine>();
  /** UIDs of hosts by their claims, and by their consumer; Metal3Machines by their Machine. */
  readonly #claimants = new KeyIndex();
  readonly #byConsumer = new KeyIndex();
  readonly #ofMachines = new KeyIndex();

  applyHost(change: Change<BareMetalHost>): void {
    apply(this.#hosts, change);
    const { object } = change;
    const { uid } = object.metadata;
    if (change.type === "deleted") this.#byUid.delete(uid);
    else this.#byUid.set(uid, object);
    const isGone = change.type === "deleted";
    const { consumerRef } = object;
    const serial = meaningfulSerial(object.serialNumber);
    const serials = serial === undefined ? [] : [serialClaim(serial)];
    this.#claimants.set(uid, isGone ? [] : [...hostClaimsOf(object).filed, ...serials]);
    this.#byConsumer.set(
      uid,
      isGone || consumerRef === undefined ? [] : [consumerKey(consumerOf(object, consumerRef))],
    );
  }

  /** Hosts that are indexed under any of these claims (`systemClaims`, `uuidClaim`). */
  claiming(claims: readonly string[]): BareMetalHost[] {
    const uids = new Set(claims.flatMap((claim) => [...this.#claimants.under(claim)]));
    return [...uids].flatMap((uid) => this.#byUid.get(uid) ?? []);
  }

  /** Another host that was inspected with the same serial number. */
  otherWithSerial(host: BareMetalHost): BareMetalHost | undefined {
    const serial = meaningfulSerial(host.serialNumber);
    const uids = serial === undefined ? [] : [...this.#claimants.under(serialClaim(serial))];
    const other = uids.find((uid) => uid !== host.metadata.uid);
    return other === undefined ? undefined : this.#byUid.get(other);
  }

  applyMachine(change: Change<Metal3Machine>): void {
    apply(this.#machines, change);
    const { namespace, name, ownerReferences = [] } = change.object.metadata;
    const owners = ownerReferences.filter(({ kind }) => kind === "Machine");
    const keys = change.type === "deleted" ? [] : owners.map((owner) => keyText({ namespace, name: owner.name }));
    this.#ofMachines.set(keyText({ namespace, name }), keys);
  }

  byUid(uid: string): BareMetalHost | undefined {
    return this.#byUid.get(uid);
  }

  values(): IterableIterator<BareMetalHost> {
    return this.#hosts.values();
  }

  /** @param node the watched Node of the subject, if it is in this cluster. */
  locate(subject: Subject, node: Node | undefined): Located {
    const machine = subject.machine ?? machineOf(node);
    const hostsOfConsumer = (consumer: Consumer): BareMetalHost[] =>
      [...this.#byConsumer.under(consumerKey(consumer))].flatMap((uid) => this.#byUid.get(uid) ?? []);
    const search = new HostSearch(this.#hosts, this.#byUid, hostsOfConsumer);
    let okdMachine: Consumer | undefined;
    if (machine !== undefined) {
      const group = machine.apiVersion?.split("/", 1)[0];
      if (group !== OKD_MACHINE_GROUP) for (const taken of this.#machinesFor(machine)) search.byMetal3Machine(taken);
      if (group !== CLUSTER_API_GROUP) search.byConsumer({ ...machine, kind: "Machine" });
      if (group === OKD_MACHINE_GROUP) okdMachine = { ...machine, kind: "Machine" };
    }
    const { providerID } = node?.spec ?? {};
    if (providerID !== undefined) search.byNode(providerID, node?.metadata.name ?? "", okdMachine);
    const found = search.result(subject);
    if (found !== undefined) return found;
    // Only a node of this cluster without a Machine is searched by name: the host of a Machine is found by the Machine.
    const isPlain = subject.machine === undefined && subject.cluster === undefined;
    return (isPlain ? search.byName(subject.nodeName) : undefined) ?? search.nothing(subject);
  }

  /** Why a host now belongs to another subject; undefined if nothing shows that. */
  mismatchOf(host: BareMetalHost, subject: Subject, node: Node | undefined): string | undefined {
    const located = this.locate(subject, node);
    if (located.found) {
      return located.host.metadata.uid === host.metadata.uid
        ? undefined
        : `is no longer the host of ${subjectText(subject)}, ${hostText(located.host)} is`;
    }
    if (located.reason === "Ambiguous") return `can no longer be trusted: ${located.message}`;
    const consumer = host.consumerRef;
    if (subject.machine === undefined || consumer === undefined) return undefined;
    if (consumer.kind === "Machine") {
      const whose = whyNotOf(host, { ...subject.machine, kind: "Machine" });
      return whose === undefined ? undefined : `now belongs to another Machine, ${whose}`;
    }
    const machine = this.consumingMachine(host);
    if (machine === undefined || isMachineFor(machine, subject.machine)) return undefined;
    return `now serves ${consumer.kind} ${machine.metadata.namespace}/${consumer.name}`;
  }

  /** The Metal3Machine that a host names as its consumer. */
  consumingMachine({ consumerRef, metadata }: BareMetalHost): Metal3Machine | undefined {
    if (consumerRef?.kind !== "Metal3Machine") return undefined;
    return this.#machines.get(
      keyText({ namespace: consumerRef.namespace ?? metadata.namespace, name: consumerRef.name }),
    );
  }

  /** The Metal3Machines of a Machine: there should be one. */
  #machinesFor(machine: MachineKey): Metal3Machine[] {
    const { namespace, name } = machine;
    const named = [...this.#ofMachines.under(keyText({ namespace, name }))].flatMap(
      (key) => this.#machines.get(key) ?? [],
    );
    return named.filter((taken) => isMachineFor(taken, machine));
  }
}

/** The claims of a host, like those of a FencingTarget: its System, and the system UUID that its owner has read. */
export function hostClaimsOf(host: BareMetalHost): { filed: string[]; exclusive: string[] } {
  const system = systemClaims(host.bmc.address ?? "");
  const uuid = meaningfulUuid(storedOwner(host)?.systemUUID);
  const uuids = uuid === undefined ? [] : [uuidClaim(uuid)];
  return { filed: [...system.filed, ...uuids], exclusive: [...system.exclusive, ...uuids] };
}

const serialClaim = (serial: string): string => `serial ${serial}`;

/** Ids by the keys under which each is indexed. */
class KeyIndex {
  readonly #ids = new Map<string, Set<string>>();
  readonly #keys = new Map<string, readonly string[]>();

  under(key: string): Iterable<string> {
    return this.#ids.get(key) ?? [];
  }

  /** Indexes `id` under these keys and no others. It keeps its position under keys that it already had. */
  set(id: string, keys: readonly string[]): void {
    for (const key of this.#keys.get(id) ?? []) {
      if (keys.includes(key)) continue;
      const ids = this.#ids.get(key);
      ids?.delete(id);
      if (ids?.size === 0) this.#ids.delete(key);
    }
    if (keys.length === 0) this.#keys.delete(id);
    else this.#keys.set(id, keys);
    for (const key of keys) {
      const ids = this.#ids.get(key);
      if (ids === undefined) this.#ids.set(key, new Set([id]));
      else ids.add(id);
    }
  }
}

type MachineKey = Pick<MachineRef, "namespace" | "name"> & Partial<Pick<MachineRef, "uid" | "apiVersion">>;

function isMachineFor({ metadata }: Metal3Machine, { namespace, name, uid }: MachineKey): boolean {
  if (metadata.namespace !== namespace) return false;
  return (metadata.ownerReferences ?? []).some(
    (owner) => owner.kind === "Machine" && owner.name === name && (uid === undefined || owner.uid === uid),
  );
}

/** The Machine that OKD names on its nodes. */
function machineOf(node: Node | undefined): MachineKey | undefined {
  const key = parseHostName(node?.metadata.annotations?.[MACHINE]);
  return key === undefined ? undefined : { ...key, apiVersion: `${OKD_MACHINE_GROUP}/v1beta1` };
}

function apply<T extends KubeObject>(into: Map<string, T>, { type, object }: Change<T>): void {
  const { namespace = "", name } = object.metadata;
  const key = keyText({ namespace, name });
  if (type === "deleted") into.delete(key);
  else into.set(key, object);
}
