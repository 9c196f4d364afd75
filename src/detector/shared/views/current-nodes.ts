import { NODES } from "../../../api/kubernetes/core-types.ts";
import type { Node } from "../../../api/kubernetes/core.ts";
import { trimNode } from "../../../api/kubernetes/trim.ts";
import type { KubeRuntime } from "../../../kube/runtime.ts";
import type { ViewFreshness } from "./view-freshness.ts";

/**
 * How long a live list counts as current, for all remediations that start in this time. A whole rack may fail within a
 * second.
 */
const LIST_AGE_MAX_MS = 200;

/** The nodes of one live list, by name. */
export type LiveNodes = ReadonlyMap<string, Node>;

/**
 * The current nodes: those of the view if it is fresh, otherwise those of a live list, which evaluations and creations
 * share.
 */
export class CurrentNodes {
  readonly #runtime: Pick<KubeRuntime, "client" | "clock">;
  readonly #freshness: ViewFreshness;
  #reading: Promise<void> | undefined;
  #lastList: { nodes: LiveNodes; atMs: number } | undefined;

  constructor(runtime: Pick<KubeRuntime, "client" | "clock">, freshness: ViewFreshness) {
    this.#runtime = runtime;
    this.#freshness = freshness;
  }

  /** Whether the view or a live list is current. */
  get isKnown(): boolean {
    return this.#freshness.isFresh(this.#runtime.clock.monotonicMs()) || this.liveNodes !== undefined;
  }

  /** The nodes of a live list of the last `LIST_AGE_MAX_MS`; undefined if there is none. */
  get liveNodes(): LiveNodes | undefined {
    if (this.#lastList === undefined) return undefined;
    return this.#runtime.clock.monotonicMs() - this.#lastList.atMs <= LIST_AGE_MAX_MS
      ? this.#lastList.nodes
      : undefined;
  }

  /** Lists the nodes unless the current ones are known. @throws KubeError if they cannot be listed. */
  async confirm(signal: AbortSignal): Promise<void> {
    if (this.isKnown) return;
    this.#reading ??= this.#read(signal).finally(() => {
      this.#reading = undefined;
    });
    await this.#reading;
  }

  async #read(signal: AbortSignal): Promise<void> {
    const { client, clock } = this.#runtime;
    const { items } = await client.list<Node>(NODES, { trim: trimNode }, signal);
    this.#lastList = { nodes: new Map(items.map((node) => [node.metadata.name, node])), atMs: clock.monotonicMs() };
  }
}
