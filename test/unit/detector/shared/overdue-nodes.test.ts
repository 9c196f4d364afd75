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
    overdueNodes({ clock, contact: () => seen }, { get: () => undefined }, LEASES, signal).factsOf("n1")?.serverNowMs;
  assert.equal(serverNowMs(contact), nowMs - 20_000);
  assert.equal(serverNowMs(IN_CONTACT), nowMs, "our own clock, if no answer has a date");
});
