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
  /** The holder that this process writes to the Lease. */
  identity: string;
  leaseDurationMs: number;
  /** Annotations of the Lease, for information. Called at each renewal. */
  describe?(): Readonly<Record<string, string>>;
  /** The same, for annotations that stay when the agent releases the Lease. */
  remember?(): Readonly<Record<string, string>>;
}

/** A Lease that this process has written. */
export interface WrittenLease {
  lease: LeaderLease;
  /**
   * When the request was sent. The term counts from then, because other candidates may have observed the write that
   * early.
   */
  sent: Moment;
}

/** The API calls on one Lease. Each write is guarded by the resourceVersion that was read. */
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

  /** Creates the Lease, with this process as its holder. */
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

  /** Takes or renews the Lease, in the version that was last read or written. */
  async renew(lease: LeaderLease, signal: AbortSignal): Promise<WrittenLease> {
    const sent = momentOf(this.#clock);
    const annotations = this.#annotations;
    const content = { ...(annotations && { metadata: { annotations } }), spec: this.#record(lease.spec) };
    return { lease: await this.#patch(lease, content, signal), sent };
  }

  /** Removes the holder. @returns undefined if this process did not hold the Lease. */
  async release(signal: AbortSignal): Promise<LeaderLease | undefined> {
    // Read again, because the last renewal may have taken effect although its call was aborted.
    const lease = await this.read(signal);
    if (lease === undefined || holderOf(lease) !== this.#options.identity) return undefined;
    // These annotations describe the agent that led, so they are removed.
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
