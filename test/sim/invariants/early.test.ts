import { describe, it } from "node:test";
import { toTime } from "../../../src/runtime/time.ts";
import type { Facts, Step } from "./facts.ts";
import { ORDER, assertBroken, assertHolds, remediation, remediations, world } from "./fixtures.ts";

describe("S16", () => {
  const early = (powerOnNotBefore: string | undefined, phase = "Releasing"): Pick<Facts, "remediations"> => {
    const { spec, ...rest } = remediation({ phase });
    return remediations({ ...rest, spec: { ...spec, ...(powerOnNotBefore !== undefined && { powerOnNotBefore }) } });
  };
  const off: Step = { type: "ordered", record: { ...ORDER, atMs: 100_000 } };
  const on: Step = { type: "ordered", record: { ...ORDER, atMs: 100_000, order: "On" } };
  const later = toTime(101_000);
  const back = (sinceMs: number): Pick<Facts, "notOffSinceMs"> => ({ notOffSinceMs: new Map([["n1", sinceMs]]) });

  it("S16 breaks if a host that has been back for a while is forced off before the end of the duration", () => {
    assertBroken("S16", world({ ...early(later), ...back(90_000) }), off, /forced off .* 10000 ms after it had come/);
    assertHolds("S16", world({ ...early(later), ...back(95_000) }), off);
    assertHolds("S16", world({ ...early(later), ...back(90_000), devicesWell: false }), off);
    assertHolds("S16", world({ ...early(toTime(99_000)), ...back(90_000) }), off);
    assertHolds("S16", world({ ...early(undefined), ...back(90_000) }), off);
  });

  it("S16 breaks if a host is powered on before the end of the duration, unless the remediation undoes what it did", () => {
    assertBroken("S16", world(early(later)), on, /powered on before the duration/);
    assertHolds("S16", world(early(later, "Undoing")), on);
    assertHolds("S16", world(early(toTime(99_000))), on);
  });
});
