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
 * How often the Secret is read while all is well: how late a rotated kubeconfig is noticed, unless the server refuses
 * the old one.
 */
const SECRET_READ_MS = 30_000;
/** The same while the cluster cannot be worked with, or its Secret not be used. */
const SECRET_READ_TROUBLED_MS = 10_000;
/** Who replaces a Secret may delete it first: a connection that works outlives its kubeconfig by this time. */
const SECRET_GONE_MS = 60_000;
/** How often it is looked at how the connection does. */
const REVIEW_MS = 2_000;

/** A Cluster of Cluster API, by name. */
export interface ClusterRef {
  namespace: string;
  name: string;
}

/** The Secret by which a workload cluster is reached. */
export function kubeconfigSecret({ namespace, name }: ClusterRef): { namespace: string; name: string } {
  return { namespace, name: `${name}-kubeconfig` };
}

/** Why a workload cluster cannot be worked with. */
export type DisconnectReason =
  | "KubeconfigMissing"
  | "KubeconfigInvalid"
  | "Unreachable"
  | "Unauthorized"
  | "OverBudget";

/** How a workload cluster can be worked with at present. */
export type ClusterConnection =
  /** Not known yet. */
  | { state: "connecting" }
  /**
   * `nodes` are listed in full and not old. Both stay the same objects until a kubeconfig leads to another API server.
   * `uid` shows which cluster answers (`readClusterUid`); not set for the agent's own.
   */
  | { state: "connected"; runtime: KubeRuntime; nodes: Watched<Node>; uid?: string }
  /** `message` is for the user, without credentials; `sinceMs` by the wall clock. */
  | { state: "disconnected"; reason: DisconnectReason; message: string; sinceMs: number };

type Disconnected = Extract<ClusterConnection, { state: "disconnected" }>;

/**
 * The connection to one workload cluster: reads its Secret again and again, and follows what it says. The Secret is
 * read by name rather than watched, since a watch would need the permission to list all Secrets.
 */
export class WorkloadConnection {
  readonly #deps: LinkDeps;
  readonly #cluster: string;
  readonly #secret: { namespace: string; name: string };
  readonly #onChange: () => void;
  #state: ClusterConnection = { state: "connecting" };
  /** Why the Secret gave no kubeconfig when it was read last; since when by the monotonic clock. */
  #problem: (Pick<Disconnected, "reason" | "message"> & { sinceMs: number }) | undefined;
  /** UID and version of the Secret whose kubeconfig is followed. */
  #followed: string | undefined;
  #link: Link | undefined;
  /** To another API server than `#link` leads to, until its nodes are listed. */
  #next: Link | undefined;
  #reading: Promise<void> | undefined;
  readonly #closing = new Set<Promise<void>>();

  constructor(deps: LinkDeps, ref: ClusterRef, onChange: () => void) {
    this.#deps = deps;
    this.#cluster = `${ref.namespace}/${ref.name}`;
    this.#secret = kubeconfigSecret(ref);
    this.#onChange = onChange;
  }

  /** Judged at this moment: a process that was suspended must not take what it knew then for news. */
  get state(): ClusterConnection {
    const assessed = this.#assess();
    return isSame(this.#state, assessed) ? this.#state : assessed;
  }

  /** Works until `signal` aborts, and then closes all. Never rejects. */
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
      // Clusters that were held at one moment are not read at one moment forever.
      await sleep(clock, everyMs * (0.75 + random.next() / 2), signal);
    }
  }

  async #keepReviewing(signal: AbortSignal): Promise<void> {
    for (;;) {
      await sleep(this.#deps.runtime.clock, REVIEW_MS, signal);
      this.#review();
    }
  }

  /** Never twice at once. */
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
        // It is the management cluster that cannot be reached: what was read last still holds.
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

  /** Since when there is a problem: a new one begins now. */
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
