import type { Clock } from "../../runtime/clock.ts";
import type { Backup } from "../machine/node-patches/node-backup.ts";

/** The most nodes whose backups are kept; the oldest is dropped first. */
const NODES_MAX = 1_000;
/**
 * How long a backup is kept. If a Node joins later than that, the operator must restore its labels. The Event
 * RemediationLost has the command.
 */
const KEPT_MS = 24 * 3_600_000;

/**
 * The backups of Nodes that were deleted by a remediation that is gone, by node. The only other copy was in the status
 * of that remediation.
 */
export class LostBackups {
  readonly #clock: Pick<Clock, "monotonicMs">;
  /** Oldest first. */
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
