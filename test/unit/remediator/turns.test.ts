import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { BareMetalRemediation } from "../../../src/api/bare-metal-remediation.ts";
import { bareMetalRemediationSpecSchema } from "../../../src/api/bare-metal-remediation.ts";
import { Turns } from "../../../src/remediator/turns.ts";
import { VirtualClock } from "../../lib/virtual-clock.ts";

function remediation(name: string, status: BareMetalRemediation["status"] = {}): BareMetalRemediation {
  return {
    apiVersion: "ironfence.io/v1alpha1",
    kind: "BareMetalRemediation",
    metadata: { namespace: "ns", name, uid: `uid-${name}`, resourceVersion: "1" },
    spec: bareMetalRemediationSpecSchema.parse({}),
    status,
  };
}

/** Turns of which one may be taken at a time. */
function turnsAmong(stored: readonly BareMetalRemediation[]): Turns {
  return new Turns({
    clock: new VirtualClock(),
    limits: { hosts: 1, perZone: Infinity },
    zoneLabel: "zone",
    nodesOf: () => ({ get: () => undefined, values: () => [].values() }),
    remediations: () => stored,
    wake: () => undefined,
    onWaiting: () => undefined,
  });
}

describe("a turn", () => {
  it("that was granted takes its place at once, before its beginning is stored", () => {
    const [a, b] = [remediation("a"), remediation("b")];
    const turns = turnsAmong([a, b]);
    turns.ask(a);
    turns.ask(b);
    assert.deepEqual([turns.of("uid-a")?.granted, turns.of("uid-b")?.granted], [true, false]);
  });

  it("that is given up goes to the next one", () => {
    const [a, b] = [remediation("a"), remediation("b")];
    const turns = turnsAmong([a, b]);
    turns.ask(a);
    turns.ask(b);
    turns.leave("uid-a");
    assert.deepEqual([turns.of("uid-a"), turns.of("uid-b")?.granted], [undefined, true]);
  });

  it("is not to be had while another one has begun by what is stored", () => {
    const a = remediation("a");
    const turns = turnsAmong([a, remediation("b", { phase: "Releasing" })]);
    turns.ask(a);
    assert.equal(turns.of("uid-a")?.granted, false);
  });
});
