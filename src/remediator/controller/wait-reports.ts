import type { Decision } from "../machine/model/decision/decision.ts";
import type { State } from "../machine/model/decision/state.ts";

/** How many reports are stored at the same time. */
const AT_ONCE = 4;
/** When a remediation that was not woken tries again. */
const TRY_AGAIN_MS = 60_000;

/**
 * Limits how many remediations that only wait store their reports at the same time. If half of all nodes fail together,
 * the reports of thousands of waiting remediations must delay neither the creation of others nor the power-offs of
 * those that begin.
 */
export class WaitReports {
  readonly #wake: (key: string) => void;
  readonly #waiting = new Set<string>();
  /** Remediations that were woken and not reconciled since. */
  readonly #woken = new Set<string>();
  #count = 0;

  constructor(wake: (key: string) => void) {
    this.#wake = wake;
  }

  /**
   * Whether the remediation may store its report now. If so, the caller must call `end`. If not, the remediation is
   * woken when another report is stored, and decides again.
   */
  begin(key: string): { granted: true } | { granted: false; tryAgainMs: number } {
    this.#woken.delete(key);
    if (this.#count >= AT_ONCE) {
      this.#waiting.add(key);
      return { granted: false, tryAgainMs: TRY_AGAIN_MS };
    }
    this.#waiting.delete(key);
    this.#count += 1;
    return { granted: true };
  }

  end(): void {
    this.#count -= 1;
    this.#wakeNext();
  }

  /** To be called after each reconcile: a remediation that was woken may have ended, or have something else to do. */
  reconciled(key: string): void {
    if (this.#woken.delete(key)) this.#wakeNext();
  }

  #wakeNext(): void {
    for (const key of this.#waiting) {
      this.#waiting.delete(key);
      this.#woken.add(key);
      this.#wake(key);
      return;
    }
  }
}

/**
 * Whether a decision only reports what a remediation that has not begun waits for. The report of one that may inherit a
 * host is not postponed, because the owner of the host looks for it before it powers the host on.
 */
export function isWaitReport({ name }: State, { status, effects }: Decision): boolean {
  const { phase, attempt } = status ?? {};
  return name === "Resolving" && phase === "Resolving" && attempt?.action === "None" && effects.length === 0;
}
