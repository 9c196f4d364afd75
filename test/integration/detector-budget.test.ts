import assert from "node:assert/strict";
import { afterEach, describe, it } from "node:test";
import { NODES } from "../../src/api/kubernetes/core-types.ts";
import type { Node } from "../../src/api/kubernetes/core.ts";
import { toTime } from "../../src/runtime/time.ts";
import { DetectorWorld, escalation, reference, vendorType } from "./detector-fixture.ts";

const TIMED_OUT = "remediation.medik8s.io/nhc-timed-out";

let world: DetectorWorld;
afterEach(() => world.stop());

async function enabled(options: Parameters<DetectorWorld["enabled"]>[0] = {}): Promise<void> {
  world = new DetectorWorld(options);
  await world.enabled(options);
}

const fenced = (name?: string, kind?: string) => world.fenced(name, kind);
const fenceOf = (node: string, kind?: string) => world.fenceOf(node, kind);
const entry = (name: string) => world.entry(name);
const label = (name: string, labels: Record<string, string | null>) => world.label(name, labels);

describe("detector: escalation", () => {
  it("detector: escalation goes through the steps by time-out, marks each, and says when none is left", async () => {
    await enabled({ kinds: ["A", "B", "C", "D"], spec: escalation("A", "B", "C", "D") });
    const first = await fenced("n1", "A");
    const tookMs = await world.until("B", () => fenceOf("n1", "B") !== undefined, 70_000);
    assert.ok(tookMs <= 61_100, `${tookMs} ms`);
    const marked = fenceOf("n1", "A");
    assert.equal(marked?.metadata.uid, first.metadata.uid);
    assert.ok(marked?.metadata.annotations?.[TIMED_OUT] !== undefined);
    await world.until("C", () => fenceOf("n1", "C") !== undefined, 70_000);
    await world.until("D", () => fenceOf("n1", "D") !== undefined, 70_000);
    await world.until("none left", () => world.reasons().includes("NoTemplateLeft"), 70_000);
    await world.clock.advance(120_000);
    assert.equal(world.told("NoTemplateLeft").length, 1);
    assert.deepEqual(
      entry("n1")?.remediations?.map(({ resource, timedOut }) => [resource.kind, timedOut !== undefined]),
      [
        ["A", true],
        ["B", true],
        ["C", true],
        ["D", true],
      ],
    );
    world.ready("n1", "True");
    await world.until("clean", () => world.status().phase === "Enabled");
    assert.deepEqual(
      ["A", "B", "C", "D"].flatMap((kind) => world.fences(kind)),
      [],
    );
  });

  it("detector: escalation escalates at once when a CR says that it failed", async () => {
    await enabled({ kinds: ["A", "B"], spec: escalation("A", "B") });
    world.report(await fenced("n1", "A"), "Succeeded", "False");
    await world.until("B", () => fenceOf("n1", "B") !== undefined, 500);
    assert.ok(fenceOf("n1", "A")?.metadata.annotations?.[TIMED_OUT] !== undefined);
  });

  it("detector: escalation does not mark a succeeded CR whose time is over, and goes on to the next", async () => {
    await enabled({ kinds: ["A", "B"], spec: escalation("A", "B") });
    world.report(await fenced("n1", "A"), "Succeeded", "True");
    await world.until("B", () => fenceOf("n1", "B") !== undefined, 70_000);
    assert.equal(fenceOf("n1", "A")?.metadata.annotations?.[TIMED_OUT], undefined);
  });

  it("detector: escalation does not advance while a change of conditions makes the node soon unhealthy again", async () => {
    await enabled({ kinds: ["A", "B"], spec: escalation("A", "B") });
    await fenced("n1", "A");
    await world.clock.advance(55_000);
    world.ready("n1", "False");
    await world.clock.advance(9_000);
    assert.equal(fenceOf("n1", "B"), undefined);
    assert.equal(fenceOf("n1", "A")?.metadata.annotations?.[TIMED_OUT], undefined);
    await world.until("B", () => fenceOf("n1", "B") !== undefined, 2_000);
  });

  it("an attempt times out below the threshold as well, and the next step starts only above it", async () => {
    await enabled({ kinds: ["A", "B"], nodes: 4, spec: { ...escalation("A", "B"), minHealthy: 2 } });
    await fenced("n1", "A");
    for (const name of ["n2", "n3"]) world.ready(name, "Unknown");
    await world.until("marked", () => fenceOf("n1", "A")?.metadata.annotations?.[TIMED_OUT] !== undefined, 61_000);
    await world.clock.advance(5_000);
    assert.deepEqual(world.fences("B"), []);
    for (const name of ["n2", "n3"]) world.ready(name, "True");
    await world.until("B", () => fenceOf("n1", "B") !== undefined, 1_000);
  });

  it("detector: escalation takes two templates of one kind if both say that they support it", async () => {
    world = new DetectorWorld();
    const annotations = { "remediation.medik8s.io/multiple-templates-support": "true" };
    world.template("Fence", { name: "soft", annotations });
    world.template("Fence", { name: "hard", annotations });
    world.nodes(3);
    const step = (name: string, order: number) => ({
      remediationTemplate: reference("Fence", name),
      order,
      timeout: "60s",
    });
    world.check({ escalatingRemediations: [step("soft", 1), step("hard", 2)] });
    world.start();
    const first = await fenced();
    assert.match(first.metadata.name, /^n1-.+/);
    world.report(first, "Succeeded", "False");
    await world.until("the second", () => world.fences().length === 2, 1_000);
    await world.until("both recorded", () => entry("n1")?.remediations?.length === 2, 1_000);
    await world.clock.advance(30_000);
    assert.equal(world.fences().length, 2);
    assert.deepEqual(
      entry("n1")?.remediations?.map(({ templateName }) => templateName),
      ["soft", "hard"],
    );
  });
});

describe("detector: budget", () => {
  it("detector: a health check starts nothing below minHealthy, reports correct counts and the reason once, and continues when enough nodes are healthy", async () => {
    await enabled({ nodes: 4, spec: { minHealthy: "75%" } });
    for (const name of ["n1", "n2"]) world.ready(name, "Unknown");
    await world.until("told", () => world.reasons().includes("RemediationSkipped"));
    await world.clock.advance(60_000);
    assert.deepEqual(world.fences(), []);
    assert.equal(world.told("RemediationSkipped").length, 1);
    assert.match(world.told("RemediationSkipped")[0] ?? "", /is 2 and should equal or exceed 3/);
    assert.deepEqual([world.status().observedNodes, world.status().healthyNodes], [4, 2]);
    assert.deepEqual(
      world.status().unhealthyNodes?.map(({ name }) => name),
      ["n1", "n2"],
      "as upstream lists them, remediated or not",
    );
    assert.match(world.status().reason ?? "", /^NHC is enabled, no ongoing remediation\. .* should equal or exceed 3$/);
    world.ready("n2", "True");
    await world.until("a CR", () => fenceOf("n1") !== undefined, 500);
  });

  it("detector: budget never starts more at once than the threshold allows, though the nodes fail one after the other", async () => {
    await enabled({ nodes: 6, spec: { maxUnhealthy: 2 } });
    for (const name of ["n0", "n1"]) world.ready(name, "Unknown");
    await world.until("two", () => world.fences().length === 2);
    for (const name of ["n2", "n3"]) world.ready(name, "Unknown");
    await world.clock.advance(30_000);
    assert.equal(world.fences().length, 2);
  });

  it("detector: budget starts nothing that was decided a moment too early: the threshold is looked at again before the CR", async () => {
    await enabled({ nodes: 4, spec: { minHealthy: 3 } });
    const match = { method: "POST", pathPrefix: "/apis/coordination.k8s.io" };
    world.server.faults.inject({ match, times: 1, action: { kind: "delay", delayMs: 4_000 } });
    world.ready("n1", "Unknown");
    await world.clock.advance(11_000);
    world.ready("n2", "Unknown");
    await world.clock.advance(30_000);
    assert.deepEqual(world.fences(), []);
    world.ready("n2", "True");
    await world.until("a CR", () => fenceOf("n1") !== undefined, 1_000);
  });

  it("detector: budget counts again for each CR of an evaluation: a node that fails between two of them holds the second back", async () => {
    await enabled({ nodes: 6, spec: { minHealthy: 4 } });
    const match = { method: "POST", pathPrefix: "/apis/coordination.k8s.io" };
    world.server.faults.inject({ match, times: 1, action: { kind: "delay", delayMs: 4_000 } });
    for (const name of ["n1", "n2"]) world.ready(name, "Unknown");
    await world.until("the first CR", () => world.fences().length === 1, 12_000);
    world.ready("n3", "Unknown");
    await world.clock.advance(30_000);
    assert.equal(world.fences().length, 1);
    world.ready("n3", "True");
    await world.until("the second CR", () => world.fences().length === 2, 1_000);
  });

  it("detector: budget counts what it has just created, though the watch does not show it yet", async () => {
    world = new DetectorWorld();
    world.template("Fence", { annotations: { "remediation.medik8s.io/multiple-templates-support": "true" } });
    world.nodes(3);
    world.check();
    world.start();
    await world.until("enabled", () => world.status().phase === "Enabled");
    world.server.faults.lagWatches({ pathPrefix: "/apis/fence.example" }, 8_000);
    world.ready("n1", "Unknown");
    await world.until("a CR", () => world.fences().length > 0, 12_000);
    label("n1", { touched: "yes" });
    await world.clock.advance(6_000);
    label("n1", { touched: "again" });
    await world.clock.advance(20_000);
    assert.equal(world.fences().length, 1);
    assert.equal(entry("n1")?.remediations?.length, 1);
  });

  it("detector: budget remediates no control plane node while another client's CR is there for another one", async () => {
    await enabled({ nodes: 1 });
    const role = { "node-role.kubernetes.io/control-plane": "" };
    for (const name of ["cp0", "cp1"]) world.node(name, role);
    const fences = world.server.collection(vendorType("Fence"));
    // A control plane remediation is recognized by its label if the node is gone, and by the node if it has no label.
    const labels = { "remediation.medik8s.io/isControlPlaneNode": "" };
    fences.create({ metadata: { namespace: "fencing", name: "cp9", labels }, spec: {} });
    world.ready("cp0", "Unknown");
    await world.clock.advance(30_000);
    assert.equal(world.fences().length, 1);
    fences.create({ metadata: { namespace: "fencing", name: "cp1" }, spec: {} });
    fences.delete({ namespace: "fencing", name: "cp9" });
    await world.clock.advance(30_000);
    assert.equal(world.fences().length, 1);
    fences.delete({ namespace: "fencing", name: "cp1" });
    await world.until("its admission", () => fenceOf("cp0") !== undefined, 1_000);
  });

  it("detector: budget guards against storms: cooldown after regaining, ended by a new breach", async () => {
    await enabled({ nodes: 4, spec: { minHealthy: 3, stormCooldownDuration: "60s" } });
    for (const name of ["n1", "n2"]) world.ready(name, "Unknown");
    await world.until("storm", () => world.condition("StormActive")?.status === "True");
    world.ready("n2", "True");
    await world.until("cooldown", () => world.condition("StormCooldownActive")?.status === "True");
    await world.clock.advance(50_000);
    assert.deepEqual(world.fences(), []);
    world.ready("n2", "Unknown");
    await world.until("cooldown over", () => world.condition("StormCooldownActive")?.status === "False");
    assert.equal(world.condition("StormActive")?.status, "True");
    world.ready("n2", "True");
    await world.until("cooldown", () => world.condition("StormCooldownActive")?.status === "True");
    await world.clock.advance(59_000);
    assert.deepEqual(world.fences(), []);
    await world.until("a CR", () => fenceOf("n1") !== undefined, 2_000);
    assert.deepEqual(
      world.reasons().filter((reason) => reason.startsWith("Storm")),
      [
        "StormRecoveryStarted",
        "StormRecoveryCooldownStarted",
        "StormRecoveryStarted",
        "StormRecoveryCooldownStarted",
        "StormRecoveryEnded",
      ],
    );
  });

  it("detector: budget ends a storm that recovers in full, so that a lone failure later does not wait (upstream leaves StormActive)", async () => {
    await enabled({ nodes: 4, spec: { minHealthy: 3, stormCooldownDuration: "60s" } });
    for (const name of ["n1", "n2"]) world.ready(name, "Unknown");
    await world.until("storm", () => world.condition("StormActive")?.status === "True");
    for (const name of ["n1", "n2"]) world.ready(name, "True");
    await world.until("calm", () => world.condition("StormActive")?.status === "False", 62_000);
    await fenced("n3");
  });

  it("detector: budget remediates one control plane node at a time, over all health checks", async () => {
    await enabled({ nodes: 1 });
    world.check({ selector: { matchLabels: { pool: "b" } } }, "other");
    const role = { "node-role.kubernetes.io/control-plane": "" };
    world.node("cp0", role);
    world.node("cp1", { ...role, pool: "b" });
    for (const name of ["cp0", "cp1"]) world.ready(name, "Unknown");
    await world.until("one", () => world.fences().length > 0);
    await world.clock.advance(120_000);
    assert.equal(world.fences().length, 1);
    const [first] = world.fences();
    assert.equal(first?.metadata.labels?.["remediation.medik8s.io/isControlPlaneNode"], "");
    assert.ok(world.told("RemediationSkipped").some((note) => /control plane/.test(note)));
    world.ready(first?.metadata.name ?? "", "True");
    await world.until(
      "the other",
      () => world.fences().length === 1 && world.fences()[0]?.metadata.uid !== first?.metadata.uid,
    );
  });

  it("detector: budget fences 60 of 300 nodes that die at once, all within a second", async () => {
    await enabled({ nodes: 300, spec: { minHealthy: "51%" } });
    for (let index = 0; index < 60; index += 1) world.ready(`n${index}`, "Unknown");
    world.requests.length = 0;
    await world.until("all", () => world.fences().length === 60, 11_000);
    const asked = world.requests.filter(({ watch, path }) => !watch && !path.includes("/status")).length;
    assert.ok(asked <= 4 * 60, `${asked} requests`);
  });

  it("detector: the API server gets no call at rest, with 5,000 nodes that report and two templates of two kinds", async () => {
    await enabled({ kinds: ["A", "B"], nodes: 5_000, spec: escalation("A", "B") });
    await world.clock.advance(5_000);
    assert.equal(world.status().observedNodes, 5_000);
    world.requests.length = 0;
    const nodes = world.server.collection<Node>(NODES);
    for (let minute = 0; minute < 10; minute += 1) {
      for (let index = minute; index < 5_000; index += 10) {
        const name = `n${index}`;
        const conditions = (nodes.get({ name })?.status.conditions ?? []).map((condition) => ({
          ...condition,
          lastHeartbeatTime: toTime(world.clock.nowMs()),
        }));
        nodes.mergePatch({ name }, { status: { conditions } }, "status");
      }
      await world.clock.advance(60_000);
    }
    assert.deepEqual(
      world.requests.filter(({ watch }) => !watch),
      [],
    );
  });
});
