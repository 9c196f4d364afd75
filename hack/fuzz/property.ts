import * as fc from "fast-check";
import { tryInput } from "./target.ts";
import type { FuzzTarget } from "./target.ts";

const CHANGES_MAX = 6;
/** How often one change may repeat a part of the input, so that parsers also get long and deeply nested inputs. */
const REPEATS_MAX = 400;

/** Pieces of text that are difficult for parsers of any format. */
const TOKENS = [
  "\u0000",
  "ÿÿÿÿ",
  '"',
  "\\",
  "{",
  "[",
  "}",
  "]",
  '{"a":',
  "__proto__",
  '"Off"',
  "null",
  "1e999",
  "\ud800",
  "//",
  "@",
  ":",
  "%2f",
  "?",
  "#",
  "[::1]",
  "65536",
].map((text) => Buffer.from(text));

interface Change {
  kind: "flip" | "set" | "cut" | "drop" | "insert" | "splice" | "grow";
  at: number;
  value: number;
}

const change: fc.Arbitrary<Change> = fc.record({
  kind: fc.constantFrom("flip", "set", "cut", "drop", "insert", "splice", "grow"),
  at: fc.nat(4_095),
  value: fc.nat(65_535),
});

/** Inputs for a target: its seeds with a few changes, and random bytes. */
export function inputsFor(target: FuzzTarget): fc.Arbitrary<Buffer> {
  const bred = fc
    .tuple(fc.constantFrom(...target.seeds), fc.array(change, { maxLength: CHANGES_MAX }))
    .map(([seed, changes]) => changes.reduce((input, it) => apply(it, input, target.seeds), seed));
  const noise = fc.uint8Array({ maxLength: 80 }).map((bytes) => Buffer.from(bytes));
  return fc.oneof({ arbitrary: bred, weight: 9 }, { arbitrary: noise, weight: 1 });
}

/**
 * The property that no input makes the target fail. `fc.assert(fuzzProperty(target), { numRuns, seed })` checks it, and
 * on failure reports the seed and the smallest input that it finds.
 */
export function fuzzProperty(target: FuzzTarget): fc.IProperty<[Buffer]> {
  return fc.property(inputsFor(target), (input) => tryInput(target, input));
}

function apply({ kind, at, value }: Change, input: Buffer, seeds: readonly Buffer[]): Buffer {
  const offset = at % (input.length + 1);
  const [before, after] = [input.subarray(0, offset), input.subarray(offset)];
  const byte = value & 0xff;
  switch (kind) {
    case "flip":
      return Buffer.concat([before, flip(after.subarray(0, 1), 1 << (byte & 7)), after.subarray(1)]);
    case "set":
      return Buffer.concat([before, Buffer.of(byte), after.subarray(1)]);
    case "cut":
      return before;
    case "drop":
      return Buffer.concat([before, after.subarray(1 + (byte & 15))]);
    case "insert":
      return Buffer.concat([before, TOKENS[value % TOKENS.length] ?? Buffer.alloc(0), after]);
    case "splice": {
      const other = seeds[value % seeds.length] ?? Buffer.alloc(0);
      return Buffer.concat([before, other.subarray(at % (other.length + 1))]);
    }
    case "grow":
      return Buffer.concat([
        before,
        ...Array<Buffer>(value % REPEATS_MAX).fill(after.subarray(0, 1 + (byte & 7))),
        after,
      ]);
    default:
      return kind satisfies never;
  }
}

function flip(bytes: Buffer, bits: number): Buffer {
  return Buffer.from(bytes.map((byte) => byte ^ bits));
}
