/**
 * Runs `work` for each item, at most `parallelMax` at a time.
 *
 * @returns the errors. A failed item never prevents another one.
 */
export async function runInParallel<T>(
  items: readonly T[],
  parallelMax: number,
  work: (item: T) => Promise<void>,
): Promise<unknown[]> {
  const errors: unknown[] = [];
  const waiting = [...items];
  const worker = async (): Promise<void> => {
    for (let item = waiting.shift(); item !== undefined; item = waiting.shift()) {
      try {
        await work(item);
      } catch (error) {
        errors.push(error);
      }
    }
  };
  await Promise.all(Array.from({ length: Math.min(parallelMax, items.length) }, worker));
  return errors;
}
