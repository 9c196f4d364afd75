import { LEASES, NODES } from "../../api/kubernetes/core-types.ts";
import type { Lease, Node } from "../../api/kubernetes/core.ts";
import { isReady } from "../../nodes/ready.ts";
import { isKubeError } from "../../kube/errors.ts";
import type { KubeRuntime } from "../../kube/runtime.ts";

const LEASE_NAMESPACE = "kube-node-lease";

/** What live reads show about a node, on the clock of this process. */
export class LiveNode {
  readonly #runtime: KubeRuntime;
  readonly #name: string;
  #lease: string | undefined;
  /** When a renewal of its lease was seen last, on the monotonic clock; -Infinity if none was. */
  renewedAtMs = -Infinity;
  renewals = 0;
  node: Node | undefined;

  constructor(runtime: KubeRuntime, name: string) {
    this.#runtime = runtime;
    this.#name = name;
  }

  get bootID(): string | undefined {
    return this.node?.status.nodeInfo?.bootID;
  }

  get isReady(): boolean {
    return this.node !== undefined && isReady(this.node);
  }

  /** Reads lease and Node. @throws KubeError if the API server does not answer: silence then shows nothing. */
  async read(signal: AbortSignal): Promise<void> {
    const { client, clock } = this.#runtime;
    const lease = await client
      .get<Lease>(LEASES, { namespace: LEASE_NAMESPACE, name: this.#name }, signal)
      .catch(absent);
    const version = lease === undefined ? undefined : `${lease.metadata.uid} ${lease.spec.renewTime ?? ""}`;
    if (this.#lease !== undefined && version !== undefined && version !== this.#lease) {
      this.renewedAtMs = clock.monotonicMs();
      this.renewals += 1;
    }
    this.#lease = version ?? this.#lease;
    this.node = await client.get<Node>(NODES, { name: this.#name }, signal).catch(absent);
  }
}

function absent(error: unknown): undefined {
  if (isKubeError(error, "NotFound")) return undefined;
  throw error;
}
