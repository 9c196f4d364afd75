import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { afterEach, describe, it } from "node:test";
import { parse } from "yaml";
import { NODE_HEALTH_CHECKS } from "../../src/api/ironfence/node-health-check.ts";
import { crdOf, DetectorWorld, escalation, reference, vendorCrd, vendorType } from "./detector-fixture.ts";

let world: DetectorWorld;
afterEach(() => world.stop());

async function enabled(options: Parameters<DetectorWorld["enabled"]>[0] = {}): Promise<void> {
  world = new DetectorWorld(options);
  await world.enabled(options);
}

const fenced = (name?: string, kind?: string) => world.fenced(name, kind);
const fenceOf = (node: string, kind?: string) => world.fenceOf(node, kind);
const entry = (name: string) => world.entry(name);

describe("detector: what can be missing or broken", () => {
  it("a health check without its template is Disabled, is enabled when the template comes, and counts nodes meanwhile", async () => {
    world = new DetectorWorld();
    world.nodes(3);
    world.check();
    world.start();
    await world.until("disabled", () => world.status().phase === "Disabled");
    assert.equal(world.condition("Disabled")?.reason, "RemediationTemplateNotFound");
    assert.match(world.condition("Disabled")?.message ?? "", /FenceTemplate fencing\/fence-template not found/);
    world.ready("n1", "Unknown");
    await world.clock.advance(30_000);
    assert.deepEqual([world.status().observedNodes, world.status().healthyNodes], [3, 2]);
    world.template();
    await world.until("a CR", () => fenceOf("n1") !== undefined, 500);
    assert.equal(world.condition("Disabled")?.reason, "NodeHealthCheckEnabled");
    assert.equal(world.told("Disabled").length, 1);
  });

  it("no new remediation starts while a template is missing, and remediations in progress continue", async () => {
    await enabled();
    await fenced("n1");
    world.server.collection(vendorType("FenceTemplate")).delete({ namespace: "fencing", name: "fence-template" });
    await world.until("disabled", () => world.status().phase === "Disabled", 1_000);
    world.ready("n2", "Unknown");
    await world.clock.advance(30_000);
    assert.deepEqual([fenceOf("n1") !== undefined, fenceOf("n2")], [true, undefined]);
    assert.equal(entry("n1")?.remediations?.length, 1);
    world.template();
    await world.until("a CR", () => fenceOf("n2") !== undefined, 1_000);
    assert.equal(world.told("Enabled").length, 2);
  });

  it("the CRD of a template's kind is picked up when it arrives, without a restart", async () => {
    world = new DetectorWorld({ kinds: [] });
    world.nodes(3);
    world.check();
    world.start();
    await world.until("disabled", () => world.condition("Disabled")?.reason === "RemediationTemplateNotFound");
    world.server.load(vendorCrd("Fence"));
    world.server.load(vendorCrd("FenceTemplate"));
    world.template();
    await world.until("enabled", () => world.status().phase === "Enabled", 40_000);
  });

  it("the CRD of health checks is served when it arrives, without a restart", async () => {
    world = new DetectorWorld({ installed: false });
    world.template();
    world.nodes(3);
    world.start();
    await world.clock.advance(15_000);
    world.install();
    world.check();
    await world.until("enabled", () => world.status().phase === "Enabled", 15_000);
  });

  it("a malformed template disables its health check", async () => {
    world = new DetectorWorld();
    world.template("Fence", { spec: { template: {} } });
    world.nodes(1);
    world.check();
    world.start();
    await world.until("disabled", () => world.condition("Disabled")?.reason === "RemediationTemplateInvalid");
    assert.match(world.condition("Disabled")?.message ?? "", /no spec\.template\.spec/);
  });

  it("a template without a namespace, or a second template of a kind that does not support it, is refused", async () => {
    await enabled({ kinds: ["A", "B"], spec: escalation("A", "B") });
    world.template("A", { name: "more" });
    const steps = escalation("A", "B").escalatingRemediations;
    const { namespace: _, ...nowhere } = reference("A");
    world.edit({ escalatingRemediations: [{ ...steps[0], remediationTemplate: nowhere }] });
    await world.until("disabled", () => /no namespace/.test(world.condition("Disabled")?.message ?? ""), 1_000);
    world.edit({ escalatingRemediations: [steps[0], { ...steps[1], remediationTemplate: reference("A", "more") }] });
    await world.until("disabled", () => /more than once/.test(world.condition("Disabled")?.message ?? ""), 1_000);
  });

  it("a Metal3RemediationTemplate may lie outside OKD's own namespace, as Cluster API's do", async () => {
    const kind = "Metal3Remediation";
    await enabled({ kinds: [kind], spec: { remediationTemplate: reference(kind) } });
    await fenced("n1", kind);
  });

  it("a reference to a template in a version that is not served disables the health check, and names the served one", async () => {
    world = new DetectorWorld();
    world.template();
    world.nodes(1);
    world.check({ remediationTemplate: { ...reference("Fence"), apiVersion: "fence.example/v9" } });
    world.start();
    await world.until("disabled", () => world.condition("Disabled")?.reason === "RemediationTemplateNotFound");
    assert.match(
      world.condition("Disabled")?.message ?? "",
      /serves no FenceTemplate of fence\.example\/v9, only of fence\.example\/v1: set that version/,
    );
  });

  it("the detector reads templates one by one without the permission to list them", async () => {
    world = new DetectorWorld();
    const forbidden = { kind: "status", status: 403 } as const;
    const path = "/apis/fence.example/v1/fencetemplates";
    world.server.faults.inject({ match: { pathPrefix: path }, times: 1_000, action: forbidden });
    world.template();
    world.nodes(3);
    world.check();
    world.start();
    await world.until("enabled", () => world.status().phase === "Enabled");
    await fenced();
  });

  it("a health check whose template may not be read is disabled, and its message says how to grant the permission", async () => {
    world = new DetectorWorld();
    const forbidden = { kind: "status", status: 403 } as const;
    for (const pathPrefix of [
      "/apis/fence.example/v1/fencetemplates",
      "/apis/fence.example/v1/namespaces/fencing/fencetemplates",
    ]) {
      world.server.faults.inject({ match: { pathPrefix }, times: 1_000, action: forbidden });
    }
    world.template();
    world.nodes(3);
    world.check();
    world.start();
    await world.until("disabled", () => world.condition("Disabled")?.reason === "RemediationTemplateInvalid");
    assert.match(world.condition("Disabled")?.message ?? "", /cannot read it: .*403.*aggregate-to-ext-remediation/);
  });

  it("the content of a template is copied without a change: unknown fields, nulls in lists, order", async () => {
    const content = { z: [3, 1, 2], a: { deep: [{ x: 0.5 }, {}, []] }, "odd/key": "", n: 0, no: false };
    world = new DetectorWorld();
    world.template("Fence", { spec: { template: { spec: content } } });
    world.nodes(3);
    world.check();
    world.start();
    await world.until("enabled", () => world.status().phase === "Enabled");
    const cr = await fenced();
    assert.equal(JSON.stringify(cr.spec), JSON.stringify(content));
  });

  it("a CR that cannot be created is reported by an Event and tried again, and does not delay those of other nodes", async () => {
    await enabled();
    const path = "/api/v1/nodes/n0";
    world.server.faults.inject({ match: { pathPrefix: path }, times: 20, action: { kind: "status", status: 500 } });
    for (const name of ["n0", "n1"]) world.ready(name, "Unknown");
    await world.until("n1", () => fenceOf("n1") !== undefined);
    await world.until("n0", () => fenceOf("n0") !== undefined, 120_000);
  });

  it("a creation whose answer was lost leads to one object: it is found, and no second one is created", async () => {
    await enabled();
    const match = { method: "POST", pathPrefix: "/apis/fence.example/v1/namespaces/fencing/fences" };
    world.server.faults.inject({ match, times: 1, action: { kind: "loseAnswer" } });
    await fenced();
    await world.clock.advance(30_000);
    assert.equal(world.fences().length, 1);
    assert.equal(entry("n1")?.remediations?.[0]?.resource.uid, world.fences()[0]?.metadata.uid);
  });

  it("a CR that a user deletes while the watch on it lags is read live, and another CR is created", async () => {
    await enabled();
    world.server.faults.lagWatches({ pathPrefix: "/apis/fence.example/v1/fences" }, 3_600_000);
    world.ready("n1", "Unknown");
    await world.until("a CR", () => fenceOf("n1") !== undefined, 12_000);
    const first = fenceOf("n1")?.metadata;
    await world.until("recorded", () => entry("n1")?.remediations !== undefined);
    world.server.collection(vendorType("Fence")).delete({ namespace: "fencing", name: "n1" });
    await world.until("another CR", () => fenceOf("n1") !== undefined, 65_000);
    assert.notEqual(fenceOf("n1")?.metadata.uid, first?.uid);
  });

  it("a detector without the permission to create CRs reports that, and creates the CR once it has the permission", async () => {
    await enabled();
    const match = { method: "POST", pathPrefix: "/apis/fence.example/v1/namespaces/fencing/fences" };
    world.server.faults.inject({ match, times: 1, action: { kind: "status", status: 403 } });
    world.ready("n1", "Unknown");
    await world.until("told", () => world.told("RemediationSkipped").length === 1);
    await world.until("a CR", () => fenceOf("n1") !== undefined, 20_000);
  });

  it("the garbage collection of Kubernetes deletes the CRs of a health check that is deleted, and other health checks continue", async () => {
    await enabled();
    await fenced();
    world.server.collection(NODE_HEALTH_CHECKS).delete({ name: "check" });
    await world.clock.advance(2_000);
    world.check({}, "next");
    await world.until("enabled", () => world.status("next").phase !== undefined);
  });
});

describe("detector: another operator's CRD of health checks", () => {
  /** Installs a CRD without rules that keeps every field. */
  function bare(): void {
    world = new DetectorWorld({ installed: false });
    world.server.load(crdOf(NODE_HEALTH_CHECKS));
    world.template();
    world.nodes(3);
  }

  it("detector: a health check of another operator's CRD that breaks a rule is Disabled, with a message, until its spec is fixed", async () => {
    bare();
    world.check({ minHealthy: 1, maxUnhealthy: 1 });
    world.start();
    await world.until("disabled", () => world.status().phase === "Disabled");
    assert.equal(world.condition("Disabled")?.reason, "SpecInvalid");
    assert.match(world.status().reason ?? "", /minHealthy and spec\.maxUnhealthy are mutually exclusive/);
    world.ready("n1", "Unknown");
    await world.clock.advance(30_000);
    assert.deepEqual(world.fences(), []);
    world.edit({ maxUnhealthy: null });
    await world.until("a CR", () => fenceOf("n1") !== undefined, 1_000);
  });

  it("detector: status fields of another operator's CRD that ironfence does not know are kept", async () => {
    bare();
    world.check();
    world.start();
    await world.until("enabled", () => world.status().phase === "Enabled");
    world.server
      .collection(NODE_HEALTH_CHECKS)
      .mergePatch({ name: "check" }, { status: { later: { a: 1 } } }, "status");
    await fenced();
    world.ready("n1", "True");
    await world.until("clean", () => world.status().phase === "Enabled", 1_000);
    assert.deepEqual(Object.entries(world.status()).find(([field]) => field === "later")?.[1], { a: 1 });
  });

  it("detector: an older CRD of health checks without some status fields gets the other fields, and they are written only once", async () => {
    world = new DetectorWorld({ installed: false });
    const ours = readFileSync(
      new URL("../../deploy/node-health-check/remediation.medik8s.io_nodehealthchecks.yaml", import.meta.url),
    );
    const lacks = new Set(["templateName", "healthyDelayed", "observedGeneration"]);
    world.server.load(
      JSON.stringify(parse(ours.toString()), (key, value: unknown) => (lacks.has(key) ? undefined : value)),
    );
    world.template();
    world.nodes(3);
    world.check();
    world.start();
    await world.until("enabled", () => world.status().phase === "Enabled");
    const { metadata } = await fenced();
    assert.deepEqual(Object.keys(entry("n1")?.remediations?.[0] ?? {}).sort(), ["resource", "started"]);
    world.requests.length = 0;
    await world.clock.advance(30_000);
    const written = world.requests.filter(({ method }) => method !== "GET");
    assert.ok(written.length <= 2, `${written.length} writes at rest`);
    assert.equal(fenceOf("n1")?.metadata.uid, metadata.uid);
    world.ready("n1", "True");
    await world.until("deleted", () => world.fences().length === 0, 1_000);
  });
});
