import assert from "node:assert/strict";
import { test } from "node:test";
import { BmcError } from "../../../../../src/bmc/interface/errors.ts";
import { toTime } from "../../../../../src/runtime/time.ts";
import { startController, uuid, World } from "../../hosts/targets-fixture.ts";

const MINUTE_MS = 60_000;
const DAY_MS = 86_400_000;

test("the end of a BMC's certificate is stored, kept while the BMC does not answer, and replaced by a new one", async (t) => {
  const world = new World();
  const untilMs = world.clock.nowMs() + 5 * DAY_MS;
  const bmc = world.host("n1", uuid(1));
  bmc.certificateUntilMs = untilMs;
  await startController(t, world);
  const stored = (): string | undefined => world.liveTarget("n1").status?.certificateNotAfter;
  assert.equal(stored(), toTime(untilMs));

  bmc.certificateUntilMs = undefined;
  bmc.failure = new BmcError("Unreachable", "no route");
  await world.clock.advance(30 * MINUTE_MS);
  assert.equal(world.liveTarget("n1").status?.conditions?.find(({ type }) => type === "Ready")?.reason, "Unreachable");
  assert.equal(stored(), toTime(untilMs));

  bmc.certificateUntilMs = untilMs + 365 * DAY_MS;
  bmc.failure = undefined;
  await world.clock.advance(30 * MINUTE_MS);
  assert.equal(stored(), toTime(untilMs + 365 * DAY_MS));
});

test("a certificate that is not trusted is stored as well, and a BMC without TLS has none", async (t) => {
  const world = new World();
  const untilMs = world.clock.nowMs() - DAY_MS;
  const refusing = world.host("n1", uuid(1));
  refusing.certificateUntilMs = untilMs;
  refusing.failure = new BmcError("TlsUntrusted", "expired");
  const plain = world.host("n2", uuid(2));
  plain.certificateUntilMs = untilMs;
  await startController(t, world);
  assert.equal(world.liveTarget("n1").status?.certificateNotAfter, toTime(untilMs));
  plain.certificateUntilMs = undefined;
  await world.clock.advance(30 * MINUTE_MS);
  assert.equal(world.liveTarget("n2").status?.certificateNotAfter, undefined);
});
