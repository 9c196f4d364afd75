/**
 * Does `work` for every item, at most `atOnceMax` at a time.
 *
 * @returns the results in the order of the items.
 * @throws the first failure, without waiting for work that has already started.
 */
export async function inParallel<T, R>(
  items: readonly T[],
  atOnceMax: number,
  work: (item: T) => Promise<R>,
): Promise<R[]> {
  const results: R[] = [];
  // One iterator for all workers: each item is taken once.
  const queue = items.entries();
  const takeItems = async (): Promise<void> => {
    for (const [index, item] of queue) results[index] = await work(item);
  };
  await Promise.all(Array.from({ length: Math.min(atOnceMax, items.length) }, takeItems));
  return results;
}
