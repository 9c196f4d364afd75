import assert from "node:assert/strict";
import { test } from "node:test";
import { hasMoved } from "../../../src/cli/enroll/moved-load.ts";

const HOST_W = 900;
const even = (outlets: number, parts = outlets): number[] => Array.from({ length: parts }, () => HOST_W / outlets);

test("the load of an outlet has moved if every other one takes over its part, of any number of supplies", () => {
  for (const outlets of [3, 4, 6, 8]) {
    const others = outlets - 1;
    const [before, without] = [even(outlets, others), even(others)];
    assert.ok(hasMoved({ before, without, after: before }), `${outlets} outlets`);
    // Meters with an error of 2 %, in whole W. In tenths of A, the share of one of many supplies would be less than two
    // steps.
    const noisy = before.map((load, index) => Math.round(load * (index % 2 === 0 ? 1.02 : 0.98)));
    assert.ok(hasMoved({ before: noisy, without, after: noisy }), `${outlets} outlets, with noise`);
    const amperes = (loads: readonly number[]): number[] => loads.map((load) => (load / 230) * 10);
    const isShown = hasMoved({ before: amperes(before), without: amperes(without), after: amperes(before) });
    assert.equal(isShown, outlets <= 4, `${outlets} outlets, in tenths of A`);
  }
});

test("a load has not moved if one outlet takes none of it over, has no meter, or keeps what it has got", () => {
  const before = [300, 300];
  const without = [450, 450];
  for (const [what, loads] of [
    ["none of it", { before, without: before, after: before }],
    ["one does not", { before, without: [600, 300], after: before }],
    ["noise", { before, without: [312, 312], after: before }],
    ["it stays", { before, without, after: without }],
    ["it was there before", { before: without, without, after: before }],
    ["no meter", { before: [300, undefined], without: [450, undefined], after: [300, undefined] }],
    ["a meter that comes", { before: [300, undefined], without, after: before }],
    ["one step of each meter", { before: [0, 3], without: [1, 4], after: [0, 3] }],
    ["no load at all", { before: [0, 0], without: [0, 0], after: [0, 0] }],
  ] as const) {
    assert.equal(hasMoved(loads), false, what);
  }
});
