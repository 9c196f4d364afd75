/**
 * Values by key, in the order in which they were added. Nearly every key has one value. Such a key has no Set: with
 * thousands of keys, the Sets would take more memory than the values.
 */
export class MultiMap<V extends object> {
  readonly #values = new Map<string, V | Set<V>>();

  /** The values of a key. */
  get(key: string): Iterable<V> {
    const found = this.#values.get(key);
    if (found === undefined) return [];
    return found instanceof Set ? found : [found];
  }

  keys(): IterableIterator<string> {
    return this.#values.keys();
  }

  add(key: string, value: V): void {
    const found = this.#values.get(key);
    if (found instanceof Set) found.add(value);
    else this.#values.set(key, found === undefined || found === value ? value : new Set([found, value]));
  }

  delete(key: string, value: V): void {
    const found = this.#values.get(key);
    if (found instanceof Set) found.delete(value);
    if (found === value || (found instanceof Set && found.size === 0)) this.#values.delete(key);
  }
}
