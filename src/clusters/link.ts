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
 * A fault of the watch on nodes is reported when it has lasted this long: an API server that restarts is back sooner.
 */
const TROUBLE_MS = 15_000;
/** A server that has neither answered nor failed after this time is reported as one that does not answer. */
const FIRST_ANSWER_MS = 30_000;
/**
 * The API server sends a bookmark for a quiet collection about every minute. A view that has received nothing for this
 * long is not acted on.
 */
const CONTACT_AGE_MAX_MS = 180_000;
/** How often it is asked which cluster answers: another one may have come to be at the same address. */
const UID_READ_MS = 60_000;
/** The same until the first answer. */
const UID_RETRY_MS = 5_000;

/**
 * What is read of a workload cluster, whose API server is not trusted. What is kept of a node has about 1.2 KiB, so
 * this is a cluster of 3,000 nodes; the bounds of an answer and of a page leave 160 KiB for each object on its way.
 */
const WORKLOAD_BUDGET: ReadBudget = {
  pageSize: 25,
  objects: 50_000,
  textLength: 4 * 1024 * 1024,
  listTextLength: 16 * 1024 * 1024,
  listMs: 120_000,
  lineLength: 2 * 1024 * 1024,
  // A Node with 50 images and its managed fields has about 700 values, a Pod of ten containers 2,000.
  answerValues: 60_000,
  eventValues: 20_000,
  // 3,000 nodes with 50 images are 60 MiB, which take 1.3 s to receive and about a second to parse.
  busyMs: 5_000,
};

export interface LinkDeps {
  /** Of the management cluster: clock, chance and log are taken from it. */
  runtime: KubeRuntime;
  /** Opens the connection to a workload cluster, which charges `work` for what it reads. */
  openTransport: (cluster: ClusterAccess, work: WorkAllowance) => KubeTransport;
  /** Asked right before each write to a workload cluster: whether this process still holds the lease. */
  mayWrite: () => boolean;
  /** `reportingController` and `reportingInstance` of events in workload clusters. */
  controllerName: string;
  instance: string;
}

export type LinkHealth =
  | { state: "connecting" }
  | { state: "connected"; uid: string }
  | { state: "disconnected"; reason: "Unreachable" | "Unauthorized" | "OverBudget"; message: string };

/** The connections to one API server of a workload cluster, which cluster that is, and what is seen of its nodes. */
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
   * @param source names the cluster and its Secret, for messages.
   * @param on `refused` is called when the server refuses the credentials, and should take over newer ones before it
   * resolves; `changed` when more is known of `health`.
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
    // What a caller waits for is reported at once.
    this.nodes.whenSynced(signal).then(this.#changed, () => undefined);
  }

  /** Takes over newer credentials for the same server; false if they are for another one. */
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
    // What it was before it sent too much is as little worth as what it would be after it.
    if (problem !== undefined && nodes.problemCode === "OverBudget") return this.#unhealthy(problem);
    if (nodes.synced) {
      const isTroubled = nowMs - this.#wellMs >= TROUBLE_MS || nowMs - nodes.lastContactMs > CONTACT_AGE_MAX_MS;
      if (isTroubled) return this.#unhealthy(problem ?? "it has reported nothing about its nodes for minutes");
      if (this.#uid !== undefined) return { state: "connected", uid: this.#uid };
      if (this.#unidentified !== undefined) return this.#unhealthy(this.#unidentified.message, this.#unidentified.code);
    }
    if (problem !== undefined) return this.#unhealthy(problem);
    if (nowMs - this.#openedMs < FIRST_ANSWER_MS) return { state: "connecting" };
    return this.#unhealthy(`${this.kubeconfig.server} has not answered yet`);
  }

  /** Ends all that it has begun. */
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
