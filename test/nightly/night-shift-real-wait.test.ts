import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { eventually } from "../../hack/e2e/eventually.ts";
import { repositoryPath } from "../../hack/e2e/world.ts";
import { applyManifests } from "../../hack/lib/apply.ts";
import { ALERTS } from "../../hack/monitoring/alerts.ts";
import { systemClock } from "../../src/runtime/system.ts";
import type { Night } from "../e2e/night.ts";
import { startNight } from "../e2e/night.ts";

// One alert with the waiting time of its rule. The other tests shorten it to one second.

const ALERT = "IronfenceNotReady";
/** A scrape, an evaluation, and the time between two reads of this test. */
const SLACK_MS = 20_000;

void describe("the night shift with the real waiting time of a rule", () => {
  let night: Night;
  before(async () => {
    night = await startNight({ realWait: [ALERT] });
  });
  after(() => night?.stop());

  void test(`the night shift sees ${ALERT} when the waiting time of its rule is over, not before, and not after it is fixed`, async (t) => {
    const waitMs = (ALERTS.find(({ name }) => name === ALERT)?.forMinutes ?? assert.fail()) * 60_000;
    const { world } = night;
    const flags = [`--metrics-bind-address=${night.metrics}`];
    await world.agents[0]?.stop();
    // The permissions of the family bare-metal-host are missing.
    await world.startAgent([...flags, "--families=node-health-check,bare-metal-host"]);
    const is = async (state: string): Promise<boolean> => (await night.stateOf(ALERT)) === state;
    await eventually(`${ALERT} is pending`, 60_000, () => is("pending"));
    const pendingMs = systemClock.nowMs();
    await night.answersAre("worker-1", "no NotReady");
    await eventually(`${ALERT} fires`, waitMs + SLACK_MS, () => is("firing"));
    const waitedMs = systemClock.nowMs() - pendingMs;
    t.diagnostic(`${ALERT} fired ${(waitedMs / 1_000).toFixed(0)} s after it was pending`);
    assert.ok(Math.abs(waitedMs - waitMs) < SLACK_MS, `${waitedMs} ms`);
    await applyManifests(world.api, repositoryPath("deploy/families/bare-metal-host"));
    await eventually(`${ALERT} ends`, 60_000, () => is("inactive"));
    await night.answersAre("worker-1", "yes");
  });
});
