import type { Node } from "../api/kubernetes/core.ts";
import { isKubeError } from "../kube/errors.ts";
import type { KubeRuntime } from "../kube/runtime.ts";
import { readSecret } from "../kube/objects/secret-reader.ts";
import type { StoredSecret } from "../kube/objects/secret-reader.ts";
import type { Watched } from "../kube/watched.ts";
import { sleep } from "../runtime/clock.ts";
import { KubeconfigError, parseWorkloadKubeconfig } from "./kubeconfig-secret.ts";
import type { WorkloadKubeconfig } from "./kubeconfig-secret.ts";
import { Link } from "./link.ts";
import type { LinkDeps } from "./link.ts";

/**
 * How often the Secret is read while the cluster is connected. A rotated kubeconfig is noticed within this time, or at
 * once if the server refuses the old one.
 */
const SECRET_READ_MS = 30_000;
/** The same while the cluster is not connected or its Secret cannot be used. */
const SECRET_READ_TROUBLED_MS = 10_000;
/**
 * How long a connection stays open after its Secret becomes missing or invalid. A Secret that is replaced may be
 * deleted first.
 */
const SECRET_GONE_MS = 60_000;
/** How often the state of the connection is checked. */
const REVIEW_MS = 2_000;

/** A Cluster of Cluster API, by name. */
export interface ClusterRef {
  namespace: string;
  name: string;
}

/** The Secret with the kubeconfig of a workload cluster. */
export function kubeconfigSecret({ namespace, name }: ClusterRef): { namespace: string; name: string } {
  return { namespace, name: `${name}-kubeconfig` };
}

/** Why the agent cannot work with a workload cluster. */
export type DisconnectReason =
  | "KubeconfigMissing"
  | "KubeconfigInvalid"
  | "Unreachable"
  | "Unauthorized"
  | "OverBudget";

/** The current connection to a workload cluster. */
export type ClusterConnection =
  /** It is not known yet whether the cluster can be reached. */
  | { state: "connecting" }
  /**
   * `nodes` is complete and up to date. `runtime` and `nodes` stay the same objects until a kubeconfig points to
   * another API server. `uid` identifies the cluster that answers (`readClusterUid`); undefined for the agent's own
   * cluster.
   */
  | { state: "connected"; runtime: KubeRuntime; nodes: Watched<Node>; uid?: string }
  /** `message` is for the user and contains no credentials. `sinceMs` is on the wall clock. */
  | { state: "disconnected"; reason: DisconnectReason; message: string; sinceMs: number };

type Disconnected = Extract<ClusterConnection, { state: "disconnected" }>;

/**
 * The connection to one workload cluster. It reads the kubeconfig Secret periodically and connects to the API server in
 * it. It does not watch the Secret, because a watch would need the permission to list all Secrets.
 */
export class WorkloadConnection {
  readonly #deps: LinkDeps;
  readonly #cluster: string;
  readonly #secret: { namespace: string; name: string };
  readonly #onChange: () => void;
  #state: ClusterConnection = { state: "connecting" };
  /** Why the last read of the Secret returned no valid kubeconfig. `sinceMs` is on the monotonic clock. */
  #problem: (Pick<Disconnected, "reason" | "message"> & { sinceMs: number }) | undefined;
  /** UID and version of the Secret whose kubeconfig is in use. */
  #followed: string | undefined;
  #link: Link | undefined;
  /** A link to a new API server. It replaces `#link` when it is connected. */
  #next: Link | undefined;
  #reading: Promise<void> | undefined;
  readonly #closing = new Set<Promise<void>>();

  constructor(deps: LinkDeps, ref: ClusterRef, onChange: () => void) {
    this.#deps = deps;
    this.#cluster = `${ref.namespace}/${ref.name}`;
    this.#secret = kubeconfigSecret(ref);
    this.#onChange = onChange;
  }

  /** The state as of now. It is not cached, because the process may have been suspended since the last check. */
  get state(): ClusterConnection {
    const assessed = this.#assess();
    return isSame(this.#state, assessed) ? this.#state : assessed;
  }

  /** Runs until `signal` aborts, and then closes all connections. Never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    await Promise.allSettled([this.#keepReading(signal), this.#keepReviewing(signal)]);
    this.#drop(this.#link);
    this.#drop(this.#next);
    await Promise.allSettled(this.#closing);
  }

  async #keepReading(signal: AbortSignal): Promise<void> {
    const { clock, random } = this.#deps.runtime;
    for (;;) {
      await this.#read(signal);
      const isWell = this.state.state === "connected" && this.#problem === undefined;
      const everyMs = isWell ? SECRET_READ_MS : SECRET_READ_TROUBLED_MS;
      // Random, so that the Secrets of many clusters are not all read at the same moment.
      await sleep(clock, everyMs * (0.75 + random.next() / 2), signal);
    }
  }

  async #keepReviewing(signal: AbortSignal): Promise<void> {
    for (;;) {
      await sleep(this.#deps.runtime.clock, REVIEW_MS, signal);
      this.#review();
    }
  }

  /** Reads the Secret, never twice at the same time. */
  #read(signal: AbortSignal): Promise<void> {
    this.#reading ??= this.#readSecret(signal).finally(() => {
      this.#reading = undefined;
    });
    return this.#reading;
  }

  async #readSecret(signal: AbortSignal): Promise<void> {
    const { client, logger } = this.#deps.runtime;
    const name = `Secret ${this.#secret.namespace}/${this.#secret.name}`;
    try {
      const secret = await readSecret(client, this.#secret, signal);
      signal.throwIfAborted();
      if (secret === undefined) {
        this.#problem = { reason: "KubeconfigMissing", message: `there is no ${name}`, sinceMs: this.#problemSinceMs };
      } else {
        if (secret.version !== this.#followed) this.#follow(readKubeconfig(secret), signal);
        this.#followed = secret.version;
        this.#problem = undefined;
      }
    } catch (error) {
      if (signal.aborted) return;
      const sinceMs = this.#problemSinceMs;
      if (error instanceof KubeconfigError) {
        this.#problem = { reason: "KubeconfigInvalid", message: `${name}: ${error.message}`, sinceMs };
      } else if (isKubeError(error, "Forbidden")) {
        this.#problem = {
          reason: "KubeconfigMissing",
          message: `cannot read ${name} (forbidden): ${error.message}`,
          sinceMs,
        };
      } else {
        // The management cluster cannot be reached, so the kubeconfig that was read last stays in use.
        logger.warn({ err: error, cluster: this.#cluster }, "cannot read the kubeconfig of a workload cluster");
      }
    }
    this.#review();
  }

  #follow(kubeconfig: WorkloadKubeconfig, signal: AbortSignal): void {
    if (this.#link === undefined) {
      this.#link = this.#open(kubeconfig, signal);
      return;
    }
    if (this.#link.renew(kubeconfig)) {
      this.#drop(this.#next);
      this.#next = undefined;
      return;
    }
    if (this.#next?.renew(kubeconfig) === true) return;
    this.#drop(this.#next);
    this.#next = this.#open(kubeconfig, signal);
  }

  #open(kubeconfig: WorkloadKubeconfig, signal: AbortSignal): Link {
    const source = { cluster: this.#cluster, secret: `${this.#secret.namespace}/${this.#secret.name}` };
    return new Link(this.#deps, source, kubeconfig, {
      refused: () => this.#read(signal),
      changed: () => this.#review(),
    });
  }

  #drop(link: Link | undefined): void {
    if (link === undefined) return;
    const closed = link.close().finally(() => this.#closing.delete(closed));
    this.#closing.add(closed);
  }

  #review(): void {
    if (this.#next?.health().state === "connected") {
      this.#drop(this.#link);
      this.#link = this.#next;
      this.#next = undefined;
    }
    if (this.#problem !== undefined && this.#problemAgeMs() >= SECRET_GONE_MS) {
      this.#drop(this.#link);
      this.#drop(this.#next);
      this.#link = undefined;
      this.#next = undefined;
      this.#followed = undefined;
    }
    const assessed = this.#assess();
    if (isSame(this.#state, assessed)) return;
    this.#state = assessed;
    this.#announce();
  }

  /** Since when there is a problem; now if there was none. */
  get #problemSinceMs(): number {
    return this.#problem?.sinceMs ?? this.#deps.runtime.clock.monotonicMs();
  }

  #problemAgeMs(): number {
    return this.#deps.runtime.clock.monotonicMs() - (this.#problem?.sinceMs ?? Infinity);
  }

  #assess(): ClusterConnection {
    const link = this.#link;
    const health = link?.health() ?? { state: "connecting" };
    if (link !== undefined && health.state === "connected") {
      return { state: "connected", runtime: link.runtime, nodes: link.nodes, uid: health.uid };
    }
    const next = this.#next?.health();
    const trouble = this.#problem ?? (next?.state === "disconnected" ? next : health);
    if (!("reason" in trouble)) return { state: "connecting" };
    const { reason, message } = trouble;
    const sinceMs = this.#state.state === "disconnected" ? this.#state.sinceMs : this.#deps.runtime.clock.nowMs();
    return { state: "disconnected", reason, message, sinceMs };
  }

  #announce(): void {
    const { logger } = this.#deps.runtime;
    const fields = { cluster: this.#cluster };
    if (this.#state.state === "connected") logger.info(fields, "a workload cluster is connected");
    if (this.#state.state === "disconnected") {
      const { reason, message } = this.#state;
      logger.warn({ ...fields, reason, problem: message }, "a workload cluster cannot be reached");
    }
    this.#onChange();
  }
}

/** @throws KubeconfigError */
function readKubeconfig(secret: StoredSecret): WorkloadKubeconfig {
  const value = secret.value("value");
  if (value === undefined) throw new KubeconfigError(`has ${secret.has("value") ? "an empty" : "no"} key "value"`);
  try {
    return parseWorkloadKubeconfig(value.reveal());
  } catch (error) {
    if (error instanceof KubeconfigError) throw new KubeconfigError(`key "value": ${error.message}`);
    throw error;
  }
}

function isSame(a: ClusterConnection, b: ClusterConnection): boolean {
  if (a.state === "connected" && b.state === "connected") return a.runtime === b.runtime && a.uid === b.uid;
  if (a.state === "disconnected" && b.state === "disconnected") return a.reason === b.reason && a.message === b.message;
  return a.state === b.state;
}
