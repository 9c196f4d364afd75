/**
 * Runs `work` for each item, at most `parallelMax` at a time.
 *
 * @returns what failed; one failure never keeps the others from running.
 */
export async function runInParallel<T>(
  items: readonly T[],
  parallelMax: number,
  work: (item: T) => Promise<void>,
): Promise<unknown[]> {
  const errors: unknown[] = [];
  const waiting = [...items];
  const lane = async (): Promise<void> => {
    for (let item = waiting.shift(); item !== undefined; item = waiting.shift()) {
      try {
        await work(item);
      } catch (error) {
        errors.push(error);
      }
    }
  };
  await Promise.all(Array.from({ length: Math.min(parallelMax, items.length) }, lane));
  return errors;
}
