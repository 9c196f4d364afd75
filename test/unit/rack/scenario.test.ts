import assert from "node:assert/strict";
import { test } from "node:test";
import { FAULTS_HELP as IPMI_HELP, faultRuleSchema as ipmiRules } from "../../../hack/ipmi-mock/faults.ts";
import { startIpmiMock } from "../../../hack/ipmi-mock/server.ts";
import { controlHelp, startControlEndpoint } from "../../../hack/rack/control.ts";
import { createRack } from "../../../hack/rack/rack.ts";
import { parseScenario, playScenario } from "../../../hack/rack/scenario.ts";
import { FAULTS_HELP as REDFISH_HELP, faultRuleSchema as redfishRules } from "../../../hack/redfish-mock/faults.ts";
import { systemClock, systemRandom } from "../../../src/runtime/system.ts";
import { seededRandom } from "../../lib/seeded-random.ts";
import { VirtualClock } from "../../lib/virtual-clock.ts";

test("a scenario plays its steps at their times, reports those that fail, and can be stopped", async () => {
  const clock = new VirtualClock();
  const rack = createRack({ clock, random: seededRandom(1), hosts: [{ name: "a" }] });
  const faults: unknown[] = [];
  const front = {
    addFault: (rule: unknown) => faults.push(rule),
    clearFaults: () => faults.splice(0),
    requests: [],
    sessionCount: 0,
  };
  const steps = parseScenario(`
    - { afterMs: 100, host: a, command: { do: hang } }
    - { afterMs: 200, bmc: a, fault: { action: { type: drop } } }
    - { afterMs: 300, bmc: a, fault: null }
    - { afterMs: 300, bmc: b, fault: null }
    - { afterMs: 900, host: a, command: { do: resume } }
  `);
  const failed: unknown[] = [];
  const stop = playScenario({ clock, rack, bmcs: new Map([["a", front]]) }, steps, (step, error) => {
    if (error !== undefined) failed.push([step, error instanceof Error ? error.message : error]);
  });
  await clock.advance(99);
  assert.equal(rack.host("a").os, "running");
  await clock.advance(1);
  assert.equal(rack.host("a").os, "hung");
  await clock.advance(100);
  assert.deepEqual(faults, [{ action: { type: "drop" } }]);
  await clock.advance(100);
  assert.deepEqual(faults, []);
  assert.deepEqual(failed, [[steps[3], "no BMC is named b"]]);
  stop();
  await clock.advance(1_000);
  assert.equal(rack.host("a").os, "hung");
  rack.stop();
});

test("a scenario with a step that makes no sense is refused as a whole", () => {
  for (const text of [
    "{",
    "a: 1",
    "- { afterMs: 1, host: a, command: { do: fly } }",
    "- { afterMs: -1, bmc: a, fault: null }",
  ]) {
    assert.throws(() => parseScenario(text), text);
  }
});

test("the IPMI mock is controlled as the Redfish mock is", async () => {
  const deps = { clock: systemClock, random: systemRandom };
  const rack = createRack({ ...deps, hosts: [{ name: "a" }] });
  const mock = await startIpmiMock({ ...deps, rack, host: "a" });
  const control = await startControlEndpoint({ rack, bmcs: new Map([["a", mock]]), help: controlHelp({}) });
  try {
    const post = async (body: string): Promise<number> => {
      const { status } = await fetch(`${control.url}/bmcs/a/faults`, { method: "POST", body });
      return status;
    };
    assert.equal(await post('{"steps":["ChassisControl"],"action":{"type":"loseAnswer"}}'), 200);
    assert.equal(await post('{"steps":["Dance"],"action":{"type":"loseAnswer"}}'), 400);
    assert.equal(await post("null"), 400);
    const sessions = await fetch(`${control.url}/bmcs/a/sessions`);
    assert.deepEqual(await sessions.json(), { sessions: 0 });
  } finally {
    await control.close();
    await mock.close();
    rack.stop();
  }
});

test("--help names every fault", () => {
  for (const [schema, help] of [
    [redfishRules, REDFISH_HELP],
    [ipmiRules, IPMI_HELP],
  ] as const) {
    for (const option of schema.shape.action.options) {
      const [type] = option.shape.type.values;
      assert.match(help, new RegExp(`\\b${type}\\b`), `${type} is not in the help`);
    }
  }
});
