import { LEASES, NODE_LEASE_NAMESPACE, NODES } from "../../api/kubernetes/core-types.ts";
import type { Lease, Node } from "../../api/kubernetes/core.ts";
import type { KubeRuntime } from "../../kube/runtime.ts";
import { isReady } from "../../nodes/ready.ts";
import { failEnrolment } from "./fail-enrolment.ts";

/** How many nodes a message names. */
const NAMED_MAX = 3;

/**
 * The other nodes of the cluster. None of them may notice that outlets are off. A node that was not Ready at the
 * beginning shows nothing.
 */
export class OtherNodes {
  readonly #runtime: KubeRuntime;
  readonly #name: string;
  /** The boot of each node that was Ready at the beginning, by name. */
  #boots = new Map<string, string>();
  #leases = new Map<string, string>();

  /** @param name of the node to which the outlets belong. */
  constructor(runtime: KubeRuntime, name: string) {
    this.#runtime = runtime;
    this.#name = name;
  }

  async begin(signal: AbortSignal): Promise<void> {
    const nodes = [...(await this.#readNodes(signal)).values()].filter(isReady);
    this.#boots = new Map(nodes.map((node) => [node.metadata.name, bootOf(node)]));
    this.#boots.delete(this.#name);
  }

  /** Remembers the leases: from now on, renewals come from nodes that run without the outlets. */
  async mark(signal: AbortSignal): Promise<void> {
    this.#leases = await this.#readLeases(signal);
  }

  /** @throws CommandFailure if a node has not renewed its lease since the last mark, or is not Ready in its boot. */
  async ensureRunning(outlets: string, signal: AbortSignal): Promise<void> {
    const leases = await this.#readLeases(signal);
    const silent = [...this.#boots.keys()].filter((name) => leases.get(name) === this.#leases.get(name));
    if (silent.length > 0) fail(`${namesOf(silent)} stopped renewing its lease while ${outlets} was off`);
    await this.ensureUntouched(signal);
  }

  /** @throws CommandFailure if a node is not Ready, or in another boot than at the beginning. */
  async ensureUntouched(signal: AbortSignal): Promise<void> {
    const nodes = await this.#readNodes(signal);
    const touched = [...this.#boots].filter(([name, boot]) => {
      const node = nodes.get(name);
      return node === undefined || !isReady(node) || bootOf(node) !== boot;
    });
    const names = touched.map(([name]) => name);
    if (names.length > 0) fail(`${namesOf(names)} is not Ready, or in a new boot, since outlets were switched`);
  }

  async #readNodes(signal: AbortSignal): Promise<Map<string, Node>> {
    const { items } = await this.#runtime.client.list<Node>(NODES, {}, signal);
    return new Map(items.map((node) => [node.metadata.name, node]));
  }

  /** The version of each lease by the name of its node. */
  async #readLeases(signal: AbortSignal): Promise<Map<string, string>> {
    const { items } = await this.#runtime.client.list<Lease>(LEASES, { namespace: NODE_LEASE_NAMESPACE }, signal);
    return new Map(items.map(({ metadata, spec }) => [metadata.name, `${metadata.uid} ${spec.renewTime ?? ""}`]));
  }
}

function bootOf({ metadata, status }: Node): string {
  return `${metadata.uid} ${status.nodeInfo?.bootID ?? ""}`;
}

function namesOf(names: readonly string[]): string {
  const more = names.length > NAMED_MAX ? `, and ${names.length - NAMED_MAX} more` : "";
  return `node ${names.slice(0, NAMED_MAX).join(", node ")}${more}`;
}

function fail(what: string): never {
  failEnrolment(`${what}: an outlet may feed it as well, or something that it needs, such as its switch`);
}
