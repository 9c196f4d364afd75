import { NODES } from "../../../api/core-types.ts";
import type { Node } from "../../../api/core.ts";
import { trimNode } from "../../../api/trim.ts";
import type { KubeRuntime } from "../../../kube/runtime.ts";
import type { ViewFreshness } from "./view-freshness.ts";

/** How long a list of nodes is taken for how things are, for all that starts meanwhile: a rack may die within a second. */
const LIST_AGE_MAX_MS = 200;

/** Nodes as one list has shown them, by name. */
export type ListedNodes = ReadonlyMap<string, Node>;

/** The nodes as they are now: by the view if it is fresh, else by a live list, which evaluations and creations share. */
export class CurrentNodes {
  readonly #runtime: Pick<KubeRuntime, "client" | "clock">;
  readonly #freshness: ViewFreshness;
  #reading: Promise<void> | undefined;
  #listed: { nodes: ListedNodes; atMs: number } | undefined;

  constructor(runtime: Pick<KubeRuntime, "client" | "clock">, freshness: ViewFreshness) {
    this.#runtime = runtime;
    this.#freshness = freshness;
  }

  /** Whether the view, or a list, shows how things are. */
  get isKnown(): boolean {
    return this.#freshness.isFresh(this.#runtime.clock.monotonicMs()) || this.listed !== undefined;
  }

  /** What was listed a moment ago; undefined if nothing was. */
  get listed(): ListedNodes | undefined {
    if (this.#listed === undefined) return undefined;
    return this.#runtime.clock.monotonicMs() - this.#listed.atMs <= LIST_AGE_MAX_MS ? this.#listed.nodes : undefined;
  }

  /** Lists the nodes unless they are known. @throws KubeError if they cannot be listed. */
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
    this.#listed = { nodes: new Map(items.map((node) => [node.metadata.name, node])), atMs: clock.monotonicMs() };
  }
}
