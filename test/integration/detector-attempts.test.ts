import assert from "node:assert/strict";
import { afterEach, describe, it } from "node:test";
import { NODE_HEALTH_CHECKS } from "../../src/api/ironfence/node-health-check.ts";
import { DetectorWorld, escalation, vendorType } from "./detector-fixture.ts";

const ATTEMPTS = "ironfence.io/remediation-attempts";
const MINUTE_MS = 60_000;

let world: DetectorWorld;
afterEach(() => world.stop());

async function enabled(spec: Record<string, unknown>, annotations: Record<string, string>, kinds = ["Fence"]) {
  world = new DetectorWorld({ kinds });
  for (const kind of kinds) world.template(kind);
  world.nodes(3);
  world.check(spec, "check", annotations);
  world.start();
  await world.until("enabled", () => world.status().phase === "Enabled");
}

const uidOf = (kind = "Fence") => world.fences(kind)[0]?.metadata.uid;
const remembered = (name = "n1") => {
  const text = world.server.collection(NODE_HEALTH_CHECKS).get({ name: "check" })?.metadata.annotations?.[ATTEMPTS];
  return (JSON.parse(text ?? "{}") as Record<string, string>)[name]?.split(",") ?? [];
};

async function metric(series: string): Promise<string | undefined> {
  const lines = (await world.registry.metrics()).split("\n");
  return lines.find((line) => line.startsWith(`${series} `))?.slice(series.length + 1);
}

/** Lets the node fail, be remediated and recover. */
async function cycle(): Promise<void> {
  world.ready("n1", "Unknown");
  await world.until("a CR", () => world.fences().length > 0, 12_000);
  world.ready("n1", "True");
  await world.until("recovered", () => world.fences().length === 0 && world.status().phase === "Enabled");
}

describe("detector: attempts", () => {
  it("detector: attempts are remembered beyond recovery and restarts; when they are used up, the node is left to the operator", async () => {
    await enabled({}, { "ironfence.io/attempt-budget": "2/1h" });
    await cycle();
    assert.equal(remembered().length, 1);
    await world.stop();
    world.start();
    await cycle();
    assert.equal(remembered().length, 2);
    world.ready("n1", "Unknown");
    await world.until("left", () => world.condition("AttemptBudgetSpent")?.status === "True", 15_000);
    await world.clock.advance(5 * MINUTE_MS);
    assert.deepEqual(world.fences(), []);
    assert.equal(await metric("ironfence_attempt_budget_spent"), "1");
    assert.equal(await metric('ironfence_health_checks{state="Enabled",reason="AttemptBudgetSpent"}'), "1");
    assert.equal(world.told("RemediationSkipped").length, 1);
    assert.match(world.told("RemediationSkipped")[0] ?? "", /Giving up on node n1 until .*: it was remediated 2 times/);

    world.annotate({ "ironfence.io/attempt-budget": "3/1h" });
    await world.until("a CR", () => world.fences().length > 0, 2_000);
    assert.equal(world.condition("AttemptBudgetSpent")?.status, "False");
    assert.equal(await metric("ironfence_attempt_budget_spent"), "0");
  });

  it("detector: attempts that a webhook keeps from being recorded are reported once, and recorded when it is gone", async () => {
    await enabled({}, {});
    const match = { verbs: ["patch" as const], resource: "nodehealthchecks" };
    const answer = 'failed calling webhook "vnodehealthcheck.kb.io": connect: connection refused';
    const restore = world.server.faults.inject({
      match,
      times: 1_000,
      action: { kind: "status", status: 500, message: answer },
    });
    world.ready("n1", "Unknown");
    await world.until("a CR", () => world.fences().length > 0, 12_000);
    world.ready("n1", "True");
    await world.until("reported", () => world.reasons().includes("HealthCheckNotWritten"), 30_000);
    await world.clock.advance(MINUTE_MS);
    const [note = "", ...more] = world.told("HealthCheckNotWritten");
    assert.deepEqual(more, []);
    assert.match(note, /vnodehealthcheck\.kb\.io.*delete its webhook configuration/);
    assert.equal(world.fences().length, 1);
    restore();
    await world.until("deleted", () => world.fences().length === 0, 30_000);
  });

  for (const status of [403, 500]) {
    it(`detector: a remediation whose creation the API server answers with ${status} counts until it is created`, async () => {
      await enabled({}, {});
      const match = { verbs: ["create" as const], resource: "fences" };
      const action = { kind: "status" as const, status, message: "a webhook says no" };
      const restore = world.server.faults.inject({ match, times: 1_000, action });
      world.ready("n1", "Unknown");
      await world.clock.advance(MINUTE_MS);
      for (let seconds = 0; seconds < 60; seconds++) {
        await world.clock.advance(1_000);
        assert.equal(await metric("ironfence_nodes_not_started"), "1");
      }
      restore();
      await world.until("a CR", () => world.fences().length > 0, 5 * MINUTE_MS);
      assert.equal(await metric("ironfence_nodes_not_started"), "0");
    });
  }

  it("detector: attempts go on by themselves when the window has passed", async () => {
    await enabled({}, { "ironfence.io/attempt-budget": "1/10m" });
    await cycle();
    world.ready("n1", "Unknown");
    await world.until("left", () => world.condition("AttemptBudgetSpent")?.status === "True", 15_000);
    await world.until("a CR", () => world.fences().length > 0, 11 * MINUTE_MS);
  });

  it("detector: attempts start again 10 minutes after the last step has failed, on CRs of their own", async () => {
    await enabled(escalation("A", "B"), {}, ["A", "B"]);
    world.ready("n1", "Unknown");
    await world.until("A", () => world.fences("A").length > 0, 12_000);
    const first = uidOf("A");
    await world.until("none left", () => world.reasons().includes("NoTemplateLeft"), 130_000);
    const tookMs = await world.until("A again", () => ![undefined, first].includes(uidOf("A")), 11 * MINUTE_MS);
    assert.ok(tookMs >= 590_000 && tookMs <= 605_000, `${tookMs} ms`);
    assert.deepEqual(world.fences("B"), []);
    const second = uidOf("B");
    await world.until("B again", () => ![undefined, second].includes(uidOf("B")), 65_000);
    assert.equal(remembered().length, 4);
    world.ready("n1", "True");
    await world.until("clean", () => world.status().phase === "Enabled");
    assert.deepEqual([...world.fences("A"), ...world.fences("B")], []);
  });

  it("detector: attempts start again also if there is one step, which its remediator says has failed", async () => {
    await enabled({}, {});
    world.ready("n1", "Unknown");
    await world.until("a CR", () => world.fences().length > 0, 12_000);
    const [failed] = world.fences();
    assert.ok(failed);
    world.report(failed, "Succeeded", "False");
    await world.clock.advance(9 * MINUTE_MS);
    assert.equal(uidOf(), failed.metadata.uid);
    await world.until("another", () => ![undefined, failed.metadata.uid].includes(uidOf()), 2 * MINUTE_MS);
  });

  it("detector: attempts wait for the remediator that still undoes the round before", async () => {
    await enabled(escalation("A"), {}, ["A"]);
    world.ready("n1", "Unknown");
    await world.until("A", () => world.fences("A").length > 0, 12_000);
    const key = { namespace: "fencing", name: "n1" };
    const finalizers = (list: string[]) =>
      world.server.collection(vendorType("A")).mergePatch(key, { metadata: { finalizers: list } });
    finalizers(["fence.example/undo"]);
    const first = uidOf("A");
    await world.clock.advance(15 * MINUTE_MS);
    assert.equal(uidOf("A"), first);
    assert.ok(world.fences("A")[0]?.metadata.deletionTimestamp !== undefined);
    finalizers([]);
    await world.until("another", () => ![undefined, first].includes(uidOf("A")), 5_000);
  });

  it("detector: attempts are not started again if an annotation says so", async () => {
    await enabled(escalation("A"), { "ironfence.io/start-anew": "false" }, ["A"]);
    world.ready("n1", "Unknown");
    await world.until("A", () => world.fences("A").length > 0, 12_000);
    const first = uidOf("A");
    await world.clock.advance(200 * MINUTE_MS);
    assert.equal(uidOf("A"), first);
  });

  it("a setting that cannot be read disables the health check, in words", async () => {
    await enabled({}, {});
    world.annotate({ "ironfence.io/attempt-budget": "often" });
    await world.until("disabled", () => world.status().phase === "Disabled");
    assert.match(world.condition("Disabled")?.message ?? "", /attempt-budget: often must have the form 5\/24h/);
  });
});
