import { ALLOW_PROVIDER_ID } from "../../../api/annotations.ts";
import type { BareMetalHost, Metal3Machine } from "../../../api/metal3.ts";
import type { ObjectKey } from "../../../kube/client.ts";
import { keyText } from "../../../kube/watched.ts";
import type { Subject } from "../../../nodes/subject.ts";
import type { Consumer } from "./consumer.ts";
import { whyNotOf } from "./consumer.ts";
import { hostText } from "./power-path.ts";
import { parseProviderID } from "./provider-id.ts";

/** Which host is a subject's, or why none can be said to be. */
export type Located =
  | { found: true; host: BareMetalHost }
  | {
      found: false;
      reason: "NoTarget" | "Ambiguous";
      message: string;
      /** A host that the Node's providerID names, and that may not be reached by it: somebody else may power the node's host. */
      notAllowed?: BareMetalHost | undefined;
    };

/** One search: each way adds the host that it names, and what it has found missing. */
export class HostSearch {
  readonly #hosts: ReadonlyMap<string, BareMetalHost>;
  readonly #byUid: ReadonlyMap<string, BareMetalHost>;
  readonly #takenBy: (consumer: Consumer) => readonly BareMetalHost[];
  readonly #named = new Map<string, { host: BareMetalHost; ways: string[] }>();
  /** Hosts that are named, and not there or somebody else's. */
  readonly #missing: string[] = [];
  readonly #conflicts: string[] = [];
  /** A host that a Node's providerID names, and whose owner has not allowed that. */
  #notAllowed: { host: BareMetalHost; way: string } | undefined;

  constructor(
    hosts: ReadonlyMap<string, BareMetalHost>,
    byUid: ReadonlyMap<string, BareMetalHost>,
    takenBy: (consumer: Consumer) => readonly BareMetalHost[],
  ) {
    this.#hosts = hosts;
    this.#byUid = byUid;
    this.#takenBy = takenBy;
  }

  byMetal3Machine(taken: Metal3Machine): void {
    const { namespace, name } = taken.metadata;
    const what = `Metal3Machine ${namespace}/${name}`;
    const consumer: Consumer = { kind: "Metal3Machine", namespace, name };
    if (taken.host !== undefined) this.#add(taken.host, `the annotation of ${what}`, [consumer]);
    this.byConsumer(consumer);
    if (taken.providerID !== undefined) this.#byProviderID(taken.providerID, what, consumer, false);
  }

  byConsumer(consumer: Consumer): void {
    for (const host of this.#takenBy(consumer)) this.#name(host, `spec.consumerRef of ${hostText(host)}`);
  }

  /** @param consumer the Machine that the Node says it is; undefined where it does not say so. */
  byNode(providerID: string, nodeName: string, consumer: Consumer | undefined): void {
    this.#byProviderID(providerID, `Node ${nodeName}`, consumer, true);
  }

  #byProviderID(providerID: string, of: string, consumer: Consumer | undefined, isNodesWord: boolean): void {
    const named = parseProviderID(providerID);
    if (named === undefined) return;
    const way = `spec.providerID of ${of}`;
    const takers = consumer === undefined ? [] : [consumer];
    if (!("name" in named)) {
      const host = this.#byUid.get(named.uid);
      if (host === undefined)
        this.#missing.push(`${way} names a BareMetalHost with UID ${named.uid}, which is not there`);
      else this.#nameFor(takers, host, way, isNodesWord);
      return;
    }
    const { namespace, consumer: name } = named;
    if (name !== undefined) takers.push({ kind: "Metal3Machine", namespace, name });
    this.#add(named, way, takers, { uid: named.uid, isNodesWord });
  }

  /** A host by the node's own name, and nobody's as far as it says: hardware ids have to tell the rest (`judgeHost`). */
  byName(nodeName: string | undefined): Located | undefined {
    const named = [...this.#hosts.values()].filter(
      ({ metadata, consumerRef }) => metadata.name === nodeName && consumerRef === undefined,
    );
    const [host, other] = named;
    if (host === undefined) return undefined;
    const way = this.#notAllowed?.host === host ? undefined : this.#notAllowed?.way;
    if (other === undefined && way === undefined) return { found: true, host };
    if (way !== undefined) {
      const message = `node ${nodeName} has the name of ${hostText(host)}, but ${way}: correct what is wrong there`;
      return { found: false, reason: "Ambiguous", message };
    }
    const message = `${named.map(hostText).join(" and ")} have the name of node ${nodeName}, and nothing else shows to which node they belong`;
    return { found: false, reason: "Ambiguous", message };
  }

  /** What the ways have found together; undefined where they have found nothing at all. */
  result(subject: Subject): Located | undefined {
    const [first, second] = this.#named.values();
    const ambiguous = (what: string): Located => {
      const message = `${what}: correct what is wrong there, since neither is trusted`;
      return { found: false, reason: "Ambiguous", message };
    };
    if (first !== undefined && second !== undefined) {
      const found = [...this.#named.values()].map(({ host, ways }) => `${hostText(host)} by ${ways.join(", ")}`);
      return ambiguous(`${subjectText(subject)} has more than one host (${found.join("; ")})`);
    }
    if (first !== undefined && this.#conflicts[0] !== undefined) return ambiguous(this.#conflicts[0]);
    if (first !== undefined && this.#missing[0] !== undefined)
      return ambiguous(`${this.#missing[0]}, but ${hostText(first.host)} is named by ${first.ways.join(", ")}`);
    if (first !== undefined) return { found: true, host: first.host };
    return this.#missing.length === 0 ? undefined : this.nothing(subject);
  }

  nothing(subject: Subject): Located {
    const missing = this.#notAllowed === undefined ? this.#missing : [...this.#missing, this.#notAllowed.way];
    const why = missing.length > 0 ? missing.join("; ") : "neither a Machine nor a providerID leads to one";
    const message = `no BareMetalHost of ${subjectText(subject)}: ${why}`;
    return { found: false, reason: "NoTarget", message, notAllowed: this.#notAllowed?.host };
  }

  #add(
    key: ObjectKey & { namespace: string },
    way: string,
    takers: readonly Consumer[],
    { uid, isNodesWord = false }: { uid?: string | undefined; isNodesWord?: boolean } = {},
  ): void {
    const host = this.#hosts.get(keyText({ namespace: key.namespace, name: key.name }));
    if (host === undefined || (uid !== undefined && uid !== host.metadata.uid)) {
      this.#missing.push(`${way} names BareMetalHost ${key.namespace}/${key.name}, which is not there`);
      return;
    }
    this.#nameFor(takers, host, way, isNodesWord);
  }

  /**
   * Adds a host that is named by others than itself.
   *
   * @param takers who must have taken it, for that way to be right: else whoever may write to his own machines could have any
   * host powered off.
   * @param isNodesWord the way is what a kubelet says of its own Node. A host that no machine has taken, which may be no node at
   * all, is reached so only where its owner has allowed it.
   */
  #nameFor(takers: readonly Consumer[], host: BareMetalHost, way: string, isNodesWord: boolean): void {
    if (isNodesWord && host.consumerRef === undefined && host.metadata.annotations?.[ALLOW_PROVIDER_ID] !== "true") {
      const next = `which has no spec.consumerRef: annotate it with ${ALLOW_PROVIDER_ID}=true if that is right`;
      this.#notAllowed = { host, way: `${way} names ${hostText(host)}, ${next}` };
      return;
    }
    for (const taker of takers) {
      const whose = whyNotOf(host, taker);
      if (whose !== undefined) this.#conflicts.push(`${way} names ${hostText(host)}, ${whose}`);
    }
    this.#name(host, way);
  }

  #name(host: BareMetalHost, way: string): void {
    const known = this.#named.get(host.metadata.uid);
    if (known === undefined) this.#named.set(host.metadata.uid, { host, ways: [way] });
    else known.ways.push(way);
  }
}

/** A subject in words. */
export function subjectText({ nodeName, cluster, machine }: Subject): string {
  if (machine !== undefined) return `Machine ${machine.namespace}/${machine.name}`;
  return cluster === undefined
    ? `node ${nodeName}`
    : `node ${nodeName} of cluster ${cluster.namespace}/${cluster.name}`;
}
