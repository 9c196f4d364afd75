import { NODES } from "../api/kubernetes/core-types.ts";
import type { Node } from "../api/kubernetes/core.ts";
import { trimNode } from "../api/kubernetes/trim.ts";
import { createKubeRuntime } from "../kube/connection/create-runtime.ts";
import type { KubeError } from "../kube/errors.ts";
import { isKubeError } from "../kube/errors.ts";
import { guardWrites } from "../kube/connection/transport/guarded-transport.ts";
import type { ReadBudget } from "../kube/answers/read-budget.ts";
import { WorkAllowance } from "../kube/answers/read-budget.ts";
import type { KubeRuntime } from "../kube/runtime.ts";
import type { KubeTransport } from "../kube/transport.ts";
import type { Watched } from "../kube/watched.ts";
import { sleep } from "../runtime/clock.ts";
import { readClusterUid } from "./cluster-uid.ts";
import type { WorkloadKubeconfig } from "./kubeconfig-secret.ts";
import type { ClusterAccess, Credentials } from "../kube/connection/credentials/cluster-access.ts";

/**
 * How long the watch of nodes may fail before the cluster counts as disconnected. An API server that restarts needs
 * less time.
 */
const TROUBLE_MS = 15_000;
/** A server that has neither answered nor failed after this time counts as unreachable. */
const FIRST_ANSWER_MS = 30_000;
/**
 * The API server sends a bookmark about every minute. If a view has received nothing for this long, the cluster counts
 * as disconnected.
 */
const CONTACT_AGE_MAX_MS = 180_000;
/** How often the UID of the cluster is read, because another cluster may now have the same address. */
const UID_READ_MS = 60_000;
/** The same until the first answer. */
const UID_RETRY_MS = 5_000;

/**
 * The bounds for reading from a workload cluster, whose API server is not trusted. About 1.2 KiB are kept of each node,
 * so this is enough for 3,000 nodes. An answer of at most 4 MiB with 25 objects leaves 160 KiB for each object.
 */
export const WORKLOAD_BUDGET: ReadBudget = {
  pageSize: 25,
  // Kubernetes supports 5,000 nodes. A hostile server could send many more of them with a short text.
  objects: 5_000,
  listObjects: 50_000,
  textLength: 4 * 1024 * 1024,
  listTextLength: 16 * 1024 * 1024,
  listMs: 120_000,
  lineLength: 2 * 1024 * 1024,
  // A Node with 50 images and its managed fields has about 700 values, a Pod of ten containers 2,000.
  answerValues: 60_000,
  eventValues: 20_000,
  // 3,000 nodes with 50 images are 60 MiB, which take 1.3 s to receive and about 1 s to parse.
  busyMs: 5_000,
};

export interface LinkDeps {
  /** The runtime of the management cluster. Links use its clock, random numbers and logger. */
  runtime: KubeRuntime;
  /** Opens the connection to a workload cluster, which charges `work` for what it reads. */
  openTransport: (cluster: ClusterAccess, work: WorkAllowance) => KubeTransport;
  /** Whether this process still holds the lease. Called immediately before each write to a workload cluster. */
  mayWrite: () => boolean;
  /** `reportingController` and `reportingInstance` of events in workload clusters. */
  controllerName: string;
  instance: string;
}

export type LinkHealth =
  | { state: "connecting" }
  | { state: "connected"; uid: string }
  | { state: "disconnected"; reason: "Unreachable" | "Unauthorized" | "OverBudget"; message: string };

/** The connections to one API server of a workload cluster, with the UID of the cluster and a watch of its nodes. */
export class Link {
  readonly kubeconfig: WorkloadKubeconfig;
  readonly runtime: KubeRuntime;
  readonly nodes: Watched<Node>;
  readonly #transport: KubeTransport;
  readonly #stop = new AbortController();
  readonly #running: Promise<unknown>;
  readonly #changed: () => void;
  readonly #openedMs: number;
  #credentials: Credentials;
  #wellMs: number;
  #uid: string | undefined;
  /** Why the cluster cannot be identified. */
  #unidentified: KubeError | undefined;

  /**
   * @param source the names of the cluster and its Secret, for messages.
   * @param on `refused` is called when the server refuses the credentials. It should call `renew` with newer ones, if
   *   there are any, before it resolves. `changed` is called when `health` may have changed.
   */
  constructor(
    deps: LinkDeps,
    source: { cluster: string; secret: string },
    kubeconfig: WorkloadKubeconfig,
    on: { refused: () => Promise<void>; changed: () => void },
  ) {
    const { clock, random } = deps.runtime;
    this.kubeconfig = kubeconfig;
    this.#credentials = kubeconfig.credentials;
    this.#openedMs = clock.monotonicMs();
    this.#wellMs = this.#openedMs;
    const budget = WORKLOAD_BUDGET;
    const work = new WorkAllowance(clock, budget);
    const access: ClusterAccess = {
      server: kubeconfig.server,
      namespace: undefined,
      source: `Secret ${source.secret}`,
      loadCredentials: async ({ discardCached }) => {
        if (discardCached) await on.refused();
        return this.#credentials;
      },
    };
    const wire = deps.openTransport(access, work);
    this.#transport = guardWrites(wire, deps.mayWrite);
    const { controllerName, instance } = deps;
    const logger = deps.runtime.logger.child({ cluster: source.cluster });
    const transport = this.#transport;
    const names = { controllerName, instance };
    const runtime = createKubeRuntime({ transport, clock, random, logger, ...names, budget, work });
    this.runtime = runtime;
    this.nodes = runtime.watch({ type: NODES, trim: trimNode }, this.#stop.signal);
    this.#changed = on.changed;
    const { signal } = this.#stop;
    this.#running = Promise.allSettled([runtime.run(signal), this.#keepIdentified(signal)]);
    // Callers wait for the first list, so report it at once.
    this.nodes.whenSynced(signal).then(this.#changed, () => undefined);
  }

  /** Takes over newer credentials. @returns false, without taking them over, if they are for another server. */
  renew({ server, credentials }: WorkloadKubeconfig): boolean {
    const { tls } = this.#credentials;
    const isSame =
      server === this.kubeconfig.server &&
      credentials.tls.ca === tls.ca &&
      credentials.tls.serverName === tls.serverName &&
      credentials.tls.insecureSkipVerify === tls.insecureSkipVerify;
    if (isSame) this.#credentials = credentials;
    return isSame;
  }

  health(): LinkHealth {
    const { nodes } = this;
    const nowMs = this.runtime.clock.monotonicMs();
    const { problem } = nodes;
    if (problem === undefined) this.#wellMs = nowMs;
    // A server that exceeds its budget counts as disconnected at once, and not only after `TROUBLE_MS`.
    if (problem !== undefined && nodes.problemCode === "OverBudget") return this.#unhealthy(problem);
    if (nodes.synced) {
      const isTroubled = nowMs - this.#wellMs >= TROUBLE_MS || nowMs - nodes.lastContactMs > CONTACT_AGE_MAX_MS;
      if (isTroubled)
        return this.#unhealthy(problem ?? "its API server has reported nothing about nodes for 3 minutes");
      if (this.#uid !== undefined) return { state: "connected", uid: this.#uid };
      if (this.#unidentified !== undefined) return this.#unhealthy(this.#unidentified.message, this.#unidentified.code);
    }
    if (problem !== undefined) return this.#unhealthy(problem);
    if (nowMs - this.#openedMs < FIRST_ANSWER_MS) return { state: "connecting" };
    return this.#unhealthy(`${this.kubeconfig.server} has not answered yet`);
  }

  /** Closes all connections and ends all work. */
  async close(): Promise<void> {
    this.#stop.abort(new Error("the connection to the workload cluster was closed"));
    await Promise.allSettled([this.#running, this.#transport.close()]);
  }

  async #keepIdentified(signal: AbortSignal): Promise<void> {
    for (;;) {
      try {
        this.#uid = await readClusterUid(this.runtime.client, signal);
        this.#changed();
      } catch (error) {
        if (signal.aborted || !isKubeError(error)) throw error;
        this.#unidentified = error;
      }
      await sleep(this.runtime.clock, this.#uid === undefined ? UID_RETRY_MS : UID_READ_MS, signal);
    }
  }

  #unhealthy(message: string, code = this.nodes.problemCode): LinkHealth {
    if (code === "OverBudget") return { state: "disconnected", reason: code, message };
    const isRefused = code === "Unauthorized" || code === "Forbidden";
    return { state: "disconnected", reason: isRefused ? "Unauthorized" : "Unreachable", message };
  }
}
