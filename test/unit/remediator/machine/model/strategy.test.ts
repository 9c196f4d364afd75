import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { bareMetalRemediationSpecSchema } from "../../../../../src/api/ironfence/bare-metal-remediation.ts";
import { strategyOf } from "../../../../../src/remediator/machine/model/decision/strategy.ts";

describe("the duration of a step", () => {
  const strategyWith = (strategy: object) => strategyOf(bareMetalRemediationSpecSchema.parse({ strategy }));

  it("the duration of a step is never too short to power the host on again, nor so long that it cannot be written", () => {
    assert.equal(strategyWith({ powerOnTimeout: "0s" }).powerOnTimeoutMs, 30_000);
    for (const field of ["powerOffTimeout", "drainTimeout", "powerOnTimeout", "timeout"] as const) {
      assert.equal(strategyWith({ [field]: "9999999999h" })[`${field}Ms`], 24 * 3_600_000);
    }
  });
});
