const POLL_MS = 100;

/**
 * Asks until the answer is neither undefined nor false.
 *
 * @throws Error that names `what` once `timeoutMs` have passed, with what `describe` says of the state then.
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
