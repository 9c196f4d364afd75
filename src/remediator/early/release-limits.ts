// Limits how many nodes are released before their durations are over. Pure.

/** The most nodes at the same time, from their proof until their workloads are released. */
const EARLY_AT_ONCE = 4;
/** The most nodes within EARLY_NODES_MS. */
const EARLY_NODES_MAX = 64;
const EARLY_NODES_MS = 600_000;

/** Which remediations began early, by UID, and when this process first knew of each; monotonic. */
export class EarlyStarts {
  readonly #startedMs = new Map<string, number>();

  /**
   * Notes all remediations that began early and still exist. An old one stays noted while it exists, so that it does
   * not count as new again.
   */
  note(present: ReadonlySet<string>, nowMs: number): void {
    for (const uid of present) if (!this.#startedMs.has(uid)) this.#startedMs.set(uid, nowMs);
    for (const [uid, startedMs] of this.#startedMs) {
      if (!present.has(uid) && !isRecent(startedMs, nowMs)) this.#startedMs.delete(uid);
    }
  }

  /**
   * Whether one more node may be released early.
   *
   * @param active.proven the number of nodes that are proven off and wait for a remediation.
   * @param active.releasing the number of nodes whose workloads a remediation is releasing.
   */
  mayStart({ proven, releasing }: { proven: number; releasing: number }, nowMs: number): boolean {
    const recent = [...this.#startedMs.values()].filter((startedMs) => isRecent(startedMs, nowMs)).length;
    return proven + releasing < EARLY_AT_ONCE && recent + proven < EARLY_NODES_MAX;
  }
}

function isRecent(startedMs: number, nowMs: number): boolean {
  return nowMs - startedMs < EARLY_NODES_MS;
}
