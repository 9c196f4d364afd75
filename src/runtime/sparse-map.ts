/**
 * A map that has a table only while it has entries. Use it for maps of thousands of objects that are nearly always
 * empty: the table of an empty Map takes 150 bytes.
 */
export class SparseMap<K, V> {
  #entries: Map<K, V> | undefined;

  get(key: K): V | undefined {
    return this.#entries?.get(key);
  }

  set(key: K, value: V): void {
    this.#entries ??= new Map();
    this.#entries.set(key, value);
  }

  delete(key: K): void {
    this.#entries?.delete(key);
    if (this.#entries?.size === 0) this.#entries = undefined;
  }

  clear(): void {
    this.#entries = undefined;
  }

  *values(): Generator<V> {
    if (this.#entries !== undefined) yield* this.#entries.values();
  }

  *[Symbol.iterator](): Generator<[K, V]> {
    if (this.#entries !== undefined) yield* this.#entries;
  }
}
