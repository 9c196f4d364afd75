import type { KubeObject } from "../../../kube/resource.ts";
import { nameOf } from "../../../kube/watched.ts";
import type { ObservationsByKey } from "./observations-by-key.ts";

/**
 * What the agent knows about one health check in addition to its status. It is not stored: after a restart, the agent
 * learns it again.
 */
export interface CheckState {
  /** Identifies the health check and everything that its policy is compiled from. */
  readonly key: string;
  /** By the name of the node, or the UID of the Machine. */
  readonly observations: Pick<ObservationsByKey<never, never>, "addToAll">;
  /** Keys of the standing announcements that were recorded. */
  announced: ReadonlySet<string>;
}

/** How a family creates the state of a health check. */
export interface StateMaker<C extends KubeObject, S extends CheckState> {
  keyOf: (check: C) => string;
  /** @param before the state that the new one replaces, as after an edit. */
  make: (check: C, before: S | undefined) => S;
}

/** The states of a family's health checks, by `namespace/name`. */
export class CheckStates<C extends KubeObject, S extends CheckState> {
  readonly #maker: StateMaker<C, S>;
  readonly #states = new Map<string, S>();

  constructor(maker: StateMaker<C, S>) {
    this.#maker = maker;
  }

  /** The state of this health check with this spec; a new one if there is none. */
  of(check: C): S {
    const name = nameOf(check);
    const known = this.#states.get(name);
    if (known?.key === this.#maker.keyOf(check)) return known;
    const state = this.#maker.make(check, known);
    this.#states.set(name, state);
    return state;
  }

  get(name: string): S | undefined {
    return this.#states.get(name);
  }

  entries(): IterableIterator<[string, S]> {
    return this.#states.entries();
  }

  forget(name: string): void {
    this.#states.delete(name);
  }
}
