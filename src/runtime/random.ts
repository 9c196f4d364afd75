/**
 * The randomness for all modules. The entry point creates the real one (`system.ts`), and tests inject a seeded one.
 */
export interface Random {
  /** A number in [0, 1). */
  next(): number;
  /** A fresh RFC 9562 UUID (version 4 form). */
  uuid(): string;
  /** `size` unpredictable bytes. */
  bytes(size: number): Uint8Array;
}

/**
 * `baseMs`, doubled `failures` times and at most `maxMs`. The result is random between half of that and all of it, so
 * that clients that failed together do not try again together.
 */
export function backoffMs(random: Pick<Random, "next">, baseMs: number, maxMs: number, failures: number): number {
  const ceiling = Math.min(maxMs, baseMs * 2 ** Math.min(failures, 30));
  return ceiling / 2 + (ceiling / 2) * random.next();
}
