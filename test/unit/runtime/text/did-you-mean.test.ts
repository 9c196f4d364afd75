import assert from "node:assert/strict";
import { test } from "node:test";
import { didYouMean } from "../../../../src/runtime/text/did-you-mean.ts";

const NODES = ["worker-1", "worker-2", "worker-10", "control-plane-1"];

test("a misspelt name leads to the one name that is closest, whatever its case", () => {
  for (const [written, meant] of [
    ["wroker-10", "worker-10"],
    ["Worker-1", "worker-1"],
    ["control-plan-1", "control-plane-1"],
    ["controlplane1", "control-plane-1"],
  ] as const) {
    assert.equal(didYouMean(written, NODES), meant, written);
  }
});

test("nothing is proposed if two names are as close, if none is, or for the name itself", () => {
  for (const written of ["worker-3", "db-1", "x", "worker-1"]) {
    assert.equal(didYouMean(written, written === "worker-1" ? ["worker-1"] : NODES), undefined, written);
  }
});
