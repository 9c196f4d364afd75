const POLL_MS = 100;

/**
 * Calls `ask` until it returns neither undefined nor false.
 *
 * @throws Error after `timeoutMs`, which names `what` and includes the state as `describe` returns it.
 */
export async function eventually<T>(
  what: string,
  timeoutMs: number,
  ask: () => Promise<T | undefined | false>,
  describe?: () => Promise<string>,
): Promise<T> {
  const deadlineMs = performance.now() + timeoutMs;
  for (;;) {
    const answer = await ask();
    if (answer !== undefined && answer !== false) return answer;
    if (performance.now() > deadlineMs) {
      const state = describe === undefined ? "" : `\n${await describe()}`;
      throw new Error(`not within ${timeoutMs / 1000} s: ${what}${state}`);
    }
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
}
