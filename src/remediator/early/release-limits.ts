// How many nodes are released before their durations are over. Pure.

/** Nodes at once, from their proof until their workloads are released. */
export const EARLY_AT_ONCE = 4;
/** Nodes within the time that follows. */
export const EARLY_NODES_MAX = 64;
export const EARLY_NODES_MS = 600_000;

/** Which remediations began early, by UID, and when this process first knew of each; monotonic. */
export class EarlyStarts {
  readonly #startedMs = new Map<string, number>();

  /** Takes note of all remediations that began early and still exist. One that exists for long is not new again. */
  note(present: ReadonlySet<string>, nowMs: number): void {
    for (const uid of present) if (!this.#startedMs.has(uid)) this.#startedMs.set(uid, nowMs);
    for (const [uid, startedMs] of this.#startedMs) {
      if (!present.has(uid) && !isRecent(startedMs, nowMs)) this.#startedMs.delete(uid);
    }
  }

  /**
   * Whether one more node may be released early.
   *
   * @param active.proven nodes that are proven off and wait for their remediation. @param active.releasing nodes whose
   * workloads are being released by one.
   */
  mayStart({ proven, releasing }: { proven: number; releasing: number }, nowMs: number): boolean {
    const recent = [...this.#startedMs.values()].filter((startedMs) => isRecent(startedMs, nowMs)).length;
    return proven + releasing < EARLY_AT_ONCE && recent + proven < EARLY_NODES_MAX;
  }
}

function isRecent(startedMs: number, nowMs: number): boolean {
  return nowMs - startedMs < EARLY_NODES_MS;
}
