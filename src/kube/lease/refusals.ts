/** Counts consecutive answers of Forbidden to calls on a lease. */
export class Refusals {
  readonly #gapMaxMs: number;
  readonly #lastingMs: number;
  #row: { sinceMs: number; lastMs: number; why: string } | undefined;

  /**
   * @param bounds refusals that are more than `gapMaxMs` apart do not belong together, because an API server that
   *   starts may refuse allowed calls for a moment. Refusals are lasting if they continue for more than `lastingMs`.
   */
  constructor({ gapMaxMs, lastingMs }: { gapMaxMs: number; lastingMs: number }) {
    this.#gapMaxMs = gapMaxMs;
    this.#lastingMs = lastingMs;
  }

  /** @param atMs when the call was sent, on the monotonic clock. */
  note(atMs: number, why: string): void {
    const before = this.#row;
    const goesOn = before !== undefined && atMs - before.lastMs < this.#gapMaxMs;
    this.#row = { sinceMs: goesOn ? before.sinceMs : atMs, lastMs: atMs, why };
  }

  clear(): void {
    this.#row = undefined;
  }

  /** Whether the API server has refused for so long that its start cannot be the reason. */
  get isLasting(): boolean {
    return this.#row !== undefined && this.#row.lastMs - this.#row.sinceMs > this.#lastingMs;
  }

  /** The message of the last refusal; empty if there is none. */
  get why(): string {
    return this.#row?.why ?? "";
  }
}
