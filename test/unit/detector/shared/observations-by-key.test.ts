import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { ObservationsByKey } from "../../../../src/detector/shared/views/observations-by-key.ts";

interface Counted {
  count: number | undefined;
}
type CountEvent = { type: "add"; by: number } | { type: "reset" };

function counts(): { observations: ObservationsByKey<Counted, CountEvent>; calls: () => number } {
  let calls = 0;
  const observations = new ObservationsByKey<Counted, CountEvent>({ count: undefined }, (before, event) => {
    calls += 1;
    if (event.type === "timePassed") return before;
    return { count: event.type === "reset" ? undefined : (before.count ?? 0) + event.by };
  });
  return { observations, calls: () => calls };
}

describe("observations by key", () => {
  it("an event replaces the observations of its key, and leaves those of the others", () => {
    const { observations } = counts();
    observations.add("a", { type: "add", by: 1 });
    const before = observations.of("a");
    observations.add("b", { type: "add", by: 2 });
    assert.equal(observations.of("a"), before);
    observations.add("a", { type: "add", by: 3 });
    assert.deepEqual(
      [before, observations.of("a"), observations.of("c")],
      [{ count: 1 }, { count: 4 }, { count: undefined }],
    );
  });

  it("an event of one key is interpreted once, however many keys there are", () => {
    const { observations, calls } = counts();
    for (let key = 0; key < 5_000; key += 1) observations.add(String(key), { type: "add", by: 1 });
    const before = calls();
    observations.add("17", { type: "add", by: 1 });
    assert.equal(calls() - before, 1);
  });

  it("a key is kept no longer if its last observation has gone", () => {
    const { observations } = counts();
    observations.add("a", { type: "add", by: 1 });
    observations.add("b", { type: "add", by: 1 });
    observations.add("a", { type: "reset" });
    assert.deepEqual([...observations.entries()], [["b", { count: 1 }]]);
    observations.addToAll({ type: "timePassed", nowMs: 0 });
    assert.deepEqual([...observations.entries()], [["b", { count: 1 }]]);
    observations.addToAll({ type: "reset" });
    assert.deepEqual([...observations.entries()], []);
  });
});
