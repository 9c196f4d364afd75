import assert from "node:assert/strict";
import { test } from "node:test";
import { overdueNodes } from "../../../../src/detector/shared/views/overdue-nodes.ts";
import { VirtualClock } from "../../../lib/virtual-clock.ts";
import { IN_CONTACT } from "../../../lib/contact.ts";

const LEASES = {
  synced: true,
  start: () => undefined,
  of: () => undefined,
  overdue: () => [],
  readLive: () => Promise.resolve(undefined),
};

test("the time by which a wait before a node's duration ends is that of the API server whose clock is furthest behind", () => {
  const clock = new VirtualClock(Date.UTC(2026, 0, 1));
  const nowMs = clock.nowMs();
  const contact = { ...IN_CONTACT, serverTimeMs: nowMs + 40_000, earliestServerTimeMs: nowMs - 20_000 };
  const { signal } = new AbortController();
  const serverNowMs = (seen: typeof IN_CONTACT): number | undefined =>
    overdueNodes({ clock, contact: () => seen }, { get: () => undefined }, LEASES, signal).factsOf("n1").serverNowMs;
  assert.equal(serverNowMs(contact), nowMs - 20_000);
  assert.equal(serverNowMs(IN_CONTACT), nowMs, "our own clock, if no answer has a date");
});

test("the lease of a node is not known before the leases of all nodes are read, but the time is", () => {
  const clock = new VirtualClock();
  const lease = { uid: "1", resourceVersion: "1", durationMs: 40_000, gapsMs: [], sinceMs: 0 };
  const { signal } = new AbortController();
  const factsIf = (synced: boolean) =>
    overdueNodes(
      { clock, contact: () => IN_CONTACT },
      { get: () => undefined },
      { ...LEASES, synced, of: () => lease },
      signal,
    ).factsOf("n1");
  assert.equal(factsIf(false).lease, undefined);
  assert.equal(factsIf(false).serverNowMs, clock.nowMs());
  assert.equal(factsIf(true).lease, lease);
});
