import { ALLOW_PROVIDER_ID } from "../../../../api/names/annotations.ts";
import type { BareMetalHost, Metal3Machine } from "../../../../api/metal3/metal3.ts";
import type { ObjectKey } from "../../../../kube/client.ts";
import { keyText } from "../../../../kube/watched.ts";
import type { Subject } from "../../../../nodes/subject.ts";
import type { Consumer } from "../store/consumer.ts";
import { whyNotOf } from "../store/consumer.ts";
import { hostText } from "../store/power-path.ts";
import { parseProviderID } from "./provider-id.ts";

/** The host of a subject, or why it is not known. */
export type Located =
  | { found: true; host: BareMetalHost }
  | {
      found: false;
      reason: "NoTarget" | "Ambiguous";
      message: string;
      /**
       * A host that the providerID of the Node names without permission. Another operator may power the host of the
       * node.
       */
      notAllowed?: BareMetalHost | undefined;
    };

/** One search. Each reference adds the host to which it leads, or what is missing. */
export class HostSearch {
  readonly #hosts: ReadonlyMap<string, BareMetalHost>;
  readonly #byUid: ReadonlyMap<string, BareMetalHost>;
  readonly #hostsOfConsumer: (consumer: Consumer) => readonly BareMetalHost[];
  readonly #named = new Map<string, { host: BareMetalHost; ways: string[] }>();
  /** References to hosts that do not exist or belong to another subject. */
  readonly #missing: string[] = [];
  readonly #conflicts: string[] = [];
  /** A host that the providerID of a Node names, without an annotation that allows it. */
  #notAllowed: { host: BareMetalHost; way: string } | undefined;

  constructor(
    hosts: ReadonlyMap<string, BareMetalHost>,
    byUid: ReadonlyMap<string, BareMetalHost>,
    hostsOfConsumer: (consumer: Consumer) => readonly BareMetalHost[],
  ) {
    this.#hosts = hosts;
    this.#byUid = byUid;
    this.#hostsOfConsumer = hostsOfConsumer;
  }

  byMetal3Machine(machine: Metal3Machine): void {
    const { namespace, name } = machine.metadata;
    const what = `Metal3Machine ${namespace}/${name}`;
    const consumer: Consumer = { kind: "Metal3Machine", namespace, name };
    if (machine.host !== undefined) this.#add(machine.host, `the annotation of ${what}`, [consumer]);
    this.byConsumer(consumer);
    if (machine.providerID !== undefined) this.#byProviderID(machine.providerID, what, consumer, false);
  }

  byConsumer(consumer: Consumer): void {
    for (const host of this.#hostsOfConsumer(consumer)) this.#name(host, `spec.consumerRef of ${hostText(host)}`);
  }

  /** @param consumer the Machine that the Node names; undefined if it names none. */
  byNode(providerID: string, nodeName: string, consumer: Consumer | undefined): void {
    this.#byProviderID(providerID, `Node ${nodeName}`, consumer, true);
  }

  #byProviderID(providerID: string, of: string, consumer: Consumer | undefined, isReportedByNode: boolean): void {
    const named = parseProviderID(providerID);
    if (named === undefined) return;
    const way = `spec.providerID of ${of}`;
    const consumers = consumer === undefined ? [] : [consumer];
    if (!("name" in named)) {
      const host = this.#byUid.get(named.uid);
      if (host === undefined)
        this.#missing.push(`${way} names a BareMetalHost with UID ${named.uid}, which does not exist`);
      else this.#nameFor(consumers, host, way, isReportedByNode);
      return;
    }
    const { namespace, consumer: name } = named;
    if (name !== undefined) consumers.push({ kind: "Metal3Machine", namespace, name });
    this.#add(named, way, consumers, { uid: named.uid, isReportedByNode });
  }

  /** A host with the name of the node and without a consumer. Hardware ids decide the rest (`judgeHost`). */
  byName(nodeName: string | undefined): Located | undefined {
    const named = [...this.#hosts.values()].filter(
      ({ metadata, consumerRef }) => metadata.name === nodeName && consumerRef === undefined,
    );
    const [host, other] = named;
    if (host === undefined) return undefined;
    const way = this.#notAllowed?.host === host ? undefined : this.#notAllowed?.way;
    if (other === undefined && way === undefined) return { found: true, host };
    if (way !== undefined) {
      const message = `node ${nodeName} has the name of ${hostText(host)}, but ${way}: correct the wrong one`;
      return { found: false, reason: "Ambiguous", message };
    }
    const message = `${named.map(hostText).join(" and ")} have the name of node ${nodeName}, and nothing else shows to which node they belong`;
    return { found: false, reason: "Ambiguous", message };
  }

  /** What the references have found together; undefined if they have found nothing at all. */
  result(subject: Subject): Located | undefined {
    const [first, second] = this.#named.values();
    const ambiguous = (what: string): Located => {
      const message = `${what}: ironfence uses neither; correct the wrong one`;
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
    consumers: readonly Consumer[],
    { uid, isReportedByNode = false }: { uid?: string | undefined; isReportedByNode?: boolean } = {},
  ): void {
    const host = this.#hosts.get(keyText({ namespace: key.namespace, name: key.name }));
    if (host === undefined || (uid !== undefined && uid !== host.metadata.uid)) {
      this.#missing.push(`${way} names BareMetalHost ${key.namespace}/${key.name}, which does not exist`);
      return;
    }
    this.#nameFor(consumers, host, way, isReportedByNode);
  }

  /**
   * Adds a host that another object names.
   *
   * @param consumers the consumers that must use the host for the reference to be valid. Otherwise a user who may write
   * to their own Machines could have any host powered off.
   * @param isReportedByNode whether a kubelet reports the reference about its own Node. A host without a consumer,
   * which is possibly not a node at all, is found that way only if an annotation on it allows it.
   */
  #nameFor(consumers: readonly Consumer[], host: BareMetalHost, way: string, isReportedByNode: boolean): void {
    if (
      isReportedByNode &&
      host.consumerRef === undefined &&
      host.metadata.annotations?.[ALLOW_PROVIDER_ID] !== "true"
    ) {
      const next = `which has no spec.consumerRef: if the reference is correct, add the annotation ${ALLOW_PROVIDER_ID}=true`;
      this.#notAllowed = { host, way: `${way} names ${hostText(host)}, ${next}` };
      return;
    }
    for (const consumer of consumers) {
      const whose = whyNotOf(host, consumer);
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

/** A subject as text. */
export function subjectText({ nodeName, cluster, machine }: Subject): string {
  if (machine !== undefined) return `Machine ${machine.namespace}/${machine.name}`;
  return cluster === undefined
    ? `node ${nodeName}`
    : `node ${nodeName} of cluster ${cluster.namespace}/${cluster.name}`;
}
