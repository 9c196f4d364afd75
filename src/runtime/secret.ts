import { inspect } from "node:util";

const HIDDEN = "[secret]";

/**
 * A value that must never be printed: a password, a token, a key. It shows as `[secret]` in strings, JSON,
 * `util.inspect` and logs; `reveal()` is the one way to its value, so every use can be found by name.
 */
export class Secret {
  readonly #value: string;

  constructor(value: string) {
    this.#value = value;
  }

  /** The value itself. Call it only to send or hash the bytes. */
  reveal(): string {
    return this.#value;
  }

  /** Whether both hold the same value. */
  equals(other: Secret): boolean {
    return this.#value === other.#value;
  }

  toString(): string {
    return HIDDEN;
  }

  toJSON(): string {
    return HIDDEN;
  }

  [inspect.custom](): string {
    return HIDDEN;
  }
}
