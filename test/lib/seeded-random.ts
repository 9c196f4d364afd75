import type { Random } from "../../src/runtime/random.ts";

/** Deterministic randomness (mulberry32): the same seed gives the same numbers, UUIDs and bytes. */
export function seededRandom(seed: number): Random {
  let state = seed >>> 0;
  const next = (): number => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  const bytes = (size: number): Buffer => {
    const drawn = Buffer.allocUnsafe(size);
    for (let at = 0; at < size; at += 1) drawn[at] = Math.floor(next() * 256);
    return drawn;
  };
  return {
    next,
    bytes,
    uuid: () => {
      const hex = bytes(16).toString("hex");
      const variant = "89ab"[Math.floor(next() * 4)];
      return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}-${variant}${hex.slice(17, 20)}-${hex.slice(20)}`;
    },
  };
}
