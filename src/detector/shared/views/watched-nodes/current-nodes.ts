import { NODES } from "../../../../api/kubernetes/core-types.ts";
import type { Node } from "../../../../api/kubernetes/core.ts";
import { trimNode } from "../../../../api/kubernetes/trim.ts";
import type { KubeRuntime } from "../../../../kube/runtime.ts";
import { findObject } from "../../../../kube/objects/find-object.ts";
import type { Watched } from "../../../../kube/watched.ts";
import { keepEqualParts } from "../../../../kube/watch/equal-parts.ts";
import { reachesVersion } from "../../../../kube/watch/resource-version.ts";
import { sleep } from "../../../../runtime/clock.ts";
import type { ViewFreshness } from "./view-freshness.ts";

/**
 * How long a live list counts as current. All remediations that start in this time share it, because a whole rack may
 * fail within a second.
 */
const LIST_AGE_MAX_MS = 200;
/**
 * With more nodes than this, the agent first asks the API server only for its newest version, because a list of 5,000
 * nodes takes one second of CPU in the agent and in the API server. With fewer nodes, a list is faster than the next
 * report of a kubelet.
 */
const LISTED_AT_ONCE_MAX = 1_000;
/**
 * How long the view may take to reach that version. In a cluster of that size, several kubelets report in this time.
 */
const REACH_MAX_MS = 500;
const REACH_POLL_MS = 10;
/** How old a proof of the view may be to replace live reads of single nodes. */
const SHARED_READ_AGE_MAX_MS = 500;
/** How long nodes are read one by one after the view did not reach the newest version in time. */
const UNPROVEN_PAUSE_MS = 5_000;

/** The nodes of one live list, by name. */
export type LiveNodes = ReadonlyMap<string, Node>;

export interface CurrentNodesDeps extends Pick<KubeRuntime, "client" | "clock"> {
  /** The watched nodes. */
  nodes: Pick<Watched<Node>, "get" | "size" | "version">;
  freshness: ViewFreshness;
}

/**
 * The current nodes: those of the view if it is fresh, otherwise those of a live list, which evaluations and creations
 * share.
 */
export class CurrentNodes {
  readonly #deps: CurrentNodesDeps;
  #reading: Promise<void> | undefined;
  #proving: Promise<void> | undefined;
  /** The monotonic time as of which the view was last proven to be current. */
  #provenMs = Number.NEGATIVE_INFINITY;
  /** The monotonic time at which a proof last failed. */
  #unprovenMs = Number.NEGATIVE_INFINITY;
  #lastList: { nodes: LiveNodes; atMs: number } | undefined;

  constructor(deps: CurrentNodesDeps) {
    this.#deps = deps;
  }

  /** Whether the view or a live list is current. */
  get isKnown(): boolean {
    const { freshness, clock } = this.#deps;
    return freshness.isFresh(clock.monotonicMs()) || this.liveNodes !== undefined;
  }

  /** The nodes of a live list of the last `LIST_AGE_MAX_MS`; undefined if there is none. */
  get liveNodes(): LiveNodes | undefined {
    if (this.#lastList === undefined) return undefined;
    return this.#deps.clock.monotonicMs() - this.#lastList.atMs <= LIST_AGE_MAX_MS ? this.#lastList.nodes : undefined;
  }

  /**
   * Proves that the view is fresh, or lists the nodes, unless `isKnown`.
   *
   * @throws KubeError if they cannot be listed.
   */
  async confirm(signal: AbortSignal): Promise<void> {
    if (this.isKnown) return;
    this.#reading ??= this.#read(signal).finally(() => {
      this.#reading = undefined;
    });
    await this.#reading;
  }

  /**
   * A node as it is now; undefined if there is none.
   *
   * @param isOneOfMany whether many nodes are read at this moment. In a large cluster, the API server is then asked for
   * its newest version, once for all of them. If the view has reached that version, it replaces the live reads.
   */
  async readNode(name: string, isOneOfMany: boolean, signal: AbortSignal): Promise<Node | undefined> {
    const { client, nodes } = this.#deps;
    if (isOneOfMany && nodes.size > LISTED_AT_ONCE_MAX && (await this.#isJustProven(signal)))
      return nodes.get({ name });
    const node = await findObject(client, NODES, { name }, signal);
    return node && trimNode(node);
  }

  /** Whether the view is proven as of the last `SHARED_READ_AGE_MAX_MS`. All callers share the proofs. */
  async #isJustProven(signal: AbortSignal): Promise<boolean> {
    const ageMs = (): number => this.#deps.clock.monotonicMs() - this.#provenMs;
    if (ageMs() <= SHARED_READ_AGE_MAX_MS) return true;
    if (this.#deps.clock.monotonicMs() - this.#unprovenMs < UNPROVEN_PAUSE_MS) return false;
    this.#proving ??= this.#tryToProve(signal);
    await this.#proving;
    return ageMs() <= SHARED_READ_AGE_MAX_MS;
  }

  async #tryToProve(signal: AbortSignal): Promise<void> {
    // An error here is not reported: if the API server does not answer, the reads of single nodes fail as well and
    // report it.
    const isProven = await this.#prove(signal).catch(() => false);
    if (!isProven) this.#unprovenMs = this.#deps.clock.monotonicMs();
    this.#proving = undefined;
  }

  async #read(signal: AbortSignal): Promise<void> {
    const { client, clock, nodes } = this.#deps;
    this.#lastList = undefined;
    if (nodes.size > LISTED_AT_ONCE_MAX && (await this.#prove(signal))) return;
    const { items } = await client.list<Node>(NODES, { trim: (raw) => this.#shared(trimNode(raw)) }, signal);
    this.#lastList = { nodes: new Map(items.map((node) => [node.metadata.name, node])), atMs: clock.monotonicMs() };
  }

  /** Nearly every listed node is as the view shows it. What both have in common is kept once. */
  #shared(node: Node): Node {
    const watched = this.#deps.nodes.get({ name: node.metadata.name });
    if (watched !== undefined) keepEqualParts(node, watched);
    return node;
  }

  /**
   * Asks the API server for its newest version by a consistent read of a single node, and waits until the view has
   * reached that version. The view then shows everything that was stored when the request was sent. This does not
   * depend on the clock of another machine.
   *
   * @returns whether the view is proven to be fresh.
   */
  async #prove(signal: AbortSignal): Promise<boolean> {
    const { client, clock, nodes, freshness } = this.#deps;
    const askedMs = clock.monotonicMs();
    const before = nodes.version;
    const { resourceVersion } = await client.list(NODES, { pageSize: 1, pagesMax: 1 }, signal);
    // If the newest version is earlier than that of the view, the API server was restored from a backup.
    if (before === undefined || !reachesVersion(resourceVersion, before)) return false;
    const endMs = clock.monotonicMs() + REACH_MAX_MS;
    while (nodes.version === undefined || !reachesVersion(nodes.version, resourceVersion)) {
      if (clock.monotonicMs() >= endMs) return false;
      await sleep(clock, REACH_POLL_MS, signal);
    }
    this.#provenMs = askedMs;
    freshness.prove(askedMs, clock.monotonicMs());
    return freshness.isFresh(clock.monotonicMs());
  }
}
