import type { Clock } from "../../runtime/clock.ts";
import type { Backup } from "../machine/node-patches/node-backup.ts";

/** Nodes whose saved fields are kept: the oldest go first. */
const NODES_MAX = 1_000;
/**
 * How long a backup is kept. If a Node joins later than that, the operator has to restore its labels. An Event has
 * asked for that.
 */
const KEPT_MS = 24 * 3_600_000;

/**
 * The saved fields of Nodes that were deleted for a remediation which is gone, by node. The status of that remediation
 * was the only other copy.
 */
export class LostBackups {
  readonly #clock: Pick<Clock, "monotonicMs">;
  /** The oldest stands first. */
  readonly #kept = new Map<string, { backup: Backup; untilMs: number }>();

  constructor(clock: Pick<Clock, "monotonicMs">) {
    this.#clock = clock;
  }

  keep(node: string, backup: Backup): void {
    this.#kept.delete(node);
    this.#kept.set(node, { backup, untilMs: this.#clock.monotonicMs() + KEPT_MS });
    const [oldest] = this.#kept.keys();
    if (this.#kept.size > NODES_MAX && oldest !== undefined) this.#kept.delete(oldest);
  }

  get(node: string): Backup | undefined {
    this.#dropOld();
    return this.#kept.get(node)?.backup;
  }

  drop(node: string): void {
    this.#kept.delete(node);
  }

  /** How many are kept. */
  get size(): number {
    this.#dropOld();
    return this.#kept.size;
  }

  /** Every access drops old entries. Nodes change all the time, so this needs no timer. */
  #dropOld(): void {
    for (const [node, { untilMs }] of this.#kept) {
      if (untilMs > this.#clock.monotonicMs()) return;
      this.#kept.delete(node);
    }
  }
}
