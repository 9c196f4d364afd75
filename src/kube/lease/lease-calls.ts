import type { Clock } from "../../runtime/clock.ts";
import type { KubeClient } from "../client.ts";
import { isKubeError } from "../errors.ts";
import type { LeaderLease, LeaseSpec } from "./lease-record.ts";
import { heldRecord, holderOf, LEASE, releasedRecord } from "./lease-record.ts";
import type { Moment } from "./lease-term.ts";
import { momentOf } from "./lease-term.ts";

export interface LeaseCallsOptions {
  namespace: string;
  name: string;
  /** What the Lease names as its holder. */
  identity: string;
  leaseDurationMs: number;
  /** Annotations of the Lease, for information: read at each renewal. */
  describe?(): Readonly<Record<string, string>>;
  /** The same, for annotations that stay when the agent releases the Lease. */
  remember?(): Readonly<Record<string, string>>;
}

/** A Lease as our write left it. */
export interface WrittenLease {
  lease: LeaderLease;
  /** When the request was sent: the lease is ours from then on, since others may have seen it that early. */
  sent: Moment;
}

/** The calls to the API server on one Lease. Each write is guarded by the resourceVersion that was read. */
export class LeaseCalls {
  readonly #client: KubeClient;
  readonly #clock: Clock;
  readonly #options: LeaseCallsOptions;

  constructor({ client, clock }: { client: KubeClient; clock: Clock }, options: LeaseCallsOptions) {
    this.#client = client;
    this.#clock = clock;
    this.#options = options;
  }

  /** @returns undefined if there is no such Lease. */
  async read(signal: AbortSignal): Promise<LeaderLease | undefined> {
    const { namespace, name } = this.#options;
    try {
      return await this.#client.get<LeaderLease>(LEASE, { namespace, name }, signal);
    } catch (error) {
      if (isKubeError(error, "NotFound")) return undefined;
      throw error;
    }
  }

  /** Creates the Lease, held by us. */
  async create(signal: AbortSignal): Promise<WrittenLease> {
    const { namespace, name } = this.#options;
    const sent = momentOf(this.#clock);
    const object = {
      apiVersion: "coordination.k8s.io/v1",
      kind: "Lease",
      metadata: { namespace, name, annotations: this.#annotations ?? {} },
      spec: this.#record(undefined),
    };
    return { lease: await this.#client.create<LeaderLease>(LEASE, object, {}, signal), sent };
  }

  /** Takes or renews the Lease as it was last read or written. */
  async renew(lease: LeaderLease, signal: AbortSignal): Promise<WrittenLease> {
    const sent = momentOf(this.#clock);
    const annotations = this.#annotations;
    const content = { ...(annotations && { metadata: { annotations } }), spec: this.#record(lease.spec) };
    return { lease: await this.#patch(lease, content, signal), sent };
  }

  /** Names no holder any more. @returns undefined if the Lease was not ours. */
  async release(signal: AbortSignal): Promise<LeaderLease | undefined> {
    // Read again: the last renewal may have been cut off and still have taken effect.
    const lease = await this.read(signal);
    if (lease === undefined || holderOf(lease) !== this.#options.identity) return undefined;
    // They describe the agent that led.
    const annotations = Object.fromEntries(Object.keys(this.#options.describe?.() ?? {}).map((key) => [key, null]));
    const content = { metadata: { annotations }, spec: releasedRecord(lease.spec, this.#clock.nowMs()) };
    return await this.#patch(lease, content, signal);
  }

  async #patch(lease: LeaderLease, content: Record<string, unknown>, signal: AbortSignal): Promise<LeaderLease> {
    const { namespace, name } = this.#options;
    const { uid, resourceVersion } = lease.metadata;
    return await this.#client.mergePatch<LeaderLease>(
      LEASE,
      { namespace, name },
      { uid, resourceVersion },
      content,
      {},
      signal,
    );
  }

  get #annotations(): Readonly<Record<string, string>> | undefined {
    const described = this.#options.describe?.();
    const remembered = this.#options.remember?.();
    return described || remembered ? { ...described, ...remembered } : undefined;
  }

  #record(before: LeaseSpec | undefined): Required<LeaseSpec> {
    return heldRecord(before, this.#options.identity, this.#options.leaseDurationMs, this.#clock.nowMs());
  }
}
