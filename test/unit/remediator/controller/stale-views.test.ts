import assert from "node:assert/strict";
import { beforeEach, describe, it } from "node:test";
import type { BareMetalRemediation } from "../../../../src/api/ironfence/bare-metal-remediation.ts";
import type { EventNote } from "../../../../src/kube/events.ts";
import { reportStaleViews } from "../../../../src/remediator/controller/stale-views.ts";
import { createLogger } from "../../../../src/telemetry/logger.ts";
import { VirtualClock } from "../../../lib/virtual-clock.ts";

function remediation(name: string, phase: string | undefined): BareMetalRemediation {
  const metadata = { namespace: "ironfence", name, uid: name, resourceVersion: "1" };
  // Only its name and state are read.
  return { metadata, spec: {}, ...(phase !== undefined && { status: { phase } }) } as unknown as BareMetalRemediation;
}

describe("a view that may be stale", () => {
  let clock: VirtualClock;
  let notes: EventNote[];
  let counts: number[];
  let view: { synced: boolean; lastContactMs: number; problem: string | undefined };
  let stop: AbortController;
  let ended: Promise<void>;

  beforeEach(() => {
    clock = new VirtualClock();
    notes = [];
    counts = [];
    view = { synced: true, lastContactMs: 0, problem: undefined };
    stop = new AbortController();
    const remediations = [remediation("a", "Releasing"), remediation("b", undefined), remediation("c", "Succeeded")];
    const runtime = {
      clock,
      logger: createLogger("silent"),
      events: { record: (note: EventNote) => notes.push(note) },
    };
    ended = reportStaleViews(
      {
        runtime,
        views: new Map([["Nodes", view]]),
        remediations: { values: () => remediations.values() },
        metrics: { staleViews: (count) => counts.push(count) },
      },
      stop.signal,
    );
  });

  const noted = (): string[] => notes.map(({ reason, regarding }) => `${reason} ${regarding.metadata.name}`);

  it("a view that may be stale is reported within a minute of a problem that lasts, once, on each remediation without a verdict", async () => {
    view.problem = "nothing received on the watch for 90000 ms";
    await clock.advance(40_000);
    assert.deepEqual(noted(), []);
    await clock.advance(20_000);
    assert.deepEqual(noted(), ["ViewStale a", "ViewStale b"]);
    assert.match(notes[0]?.note ?? "", /^the agent's view of Nodes may be minutes old: nothing received/);
    await clock.advance(600_000);
    assert.equal(notes.length, 2);
    assert.equal(counts.at(-1), 1);
    stop.abort();
    await ended;
  });

  it("a view that may be stale is reported if nothing was received for minutes though nothing failed, and again after it was well", async () => {
    await clock.advance(140_000);
    assert.equal(notes.length, 0);
    await clock.advance(10_000);
    assert.equal(notes.length, 2);
    view.lastContactMs = clock.monotonicMs();
    await clock.advance(10_000);
    assert.equal(counts.at(-1), 0);
    await clock.advance(150_000);
    assert.equal(notes.length, 4);
    stop.abort();
    await ended;
  });

  it("a view that may be stale is not reported if its problem passes, or if it was never read, which is reported as a wait", async () => {
    view.problem = "the server ended the watch at once";
    await clock.advance(45_000);
    view.problem = undefined;
    view.lastContactMs = clock.monotonicMs();
    await clock.advance(60_000);
    view.synced = false;
    await clock.advance(600_000);
    assert.deepEqual(noted(), []);
    stop.abort();
    await ended;
  });
});
