import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { BareMetalRemediation } from "../../src/api/ironfence/bare-metal-remediation.ts";
import { FENCING_TARGETS } from "../../src/api/ironfence/fencing-target.ts";
import { NODE_HEALTH_CHECKS } from "../../src/api/ironfence/node-health-check.ts";
import type { NodeHealthCheck } from "../../src/api/ironfence/node-health-check.ts";
import { kstatusOf } from "../lib/kstatus.ts";
import { createHealthCheck, createHealthCheckAlone, createTemplate } from "./health-check.ts";
import { NAMESPACE, World } from "./world.ts";

// What generic tools wait for: kstatus in GitOps controllers and Helm, and `kubectl wait --for=condition=…`.

/** Collects the distinct results for n1's remediation in all stored versions from its first step on. */
function follow(world: World): string[] {
  const said: string[] = [];
  world.server.onChange(({ type, object }) => {
    if (type === "DELETED" || object.kind !== "BareMetalRemediation" || object.metadata.name !== "n1") return;
    if ((object as BareMetalRemediation).status?.phase === undefined) return;
    const now = kstatusOf(object);
    if (said.at(-1) !== now) said.push(now);
  });
  return said;
}

const checkOf = (world: World): NodeHealthCheck =>
  world.server.collection<NodeHealthCheck>(NODE_HEALTH_CHECKS).get({ name: "all" }) ?? assert.fail("no health check");

describe("a wait for a remediation", () => {
  it("a wait for a remediation goes on while it is under way, and ends with its success", () =>
    World.run({}, async (world) => {
      const said = follow(world);
      await world.hang("n1");
      world.remediate("n1");
      await world.phase("n1", "Succeeded");
      await world.clock.advance(5_000);
      assert.deepEqual(said, ["InProgress", "Current"]);
      assert.equal(world.condition("n1", "Ready"), "True NodeRestored");
      assert.equal(world.condition("n1", "Stalled"), "False NodeRestored");
    }));

  it("a wait for a remediation ends with its failure", () =>
    World.run({}, async (world) => {
      const said = follow(world);
      await world.hang("n1");
      world.faults.password = "changed";
      world.remediate("n1");
      await world.phase("n1", "Failed");
      await world.clock.advance(5_000);
      assert.deepEqual(said, ["InProgress", "Failed"]);
      assert.equal(world.condition("n1", "Ready"), "False BMCAuthenticationFailed");
      assert.equal(world.condition("n1", "Succeeded"), "False BMCAuthenticationFailed");
      assert.equal(kstatusOf(world.target("n1") ?? assert.fail()), "Failed");
      assert.equal(kstatusOf(world.target("n2") ?? assert.fail()), "Current");
    }));
});

describe("a wait for a FencingTarget", () => {
  it("a wait for a FencingTarget ends while it is in maintenance, which a person has to end", () =>
    World.run({}, async (world) => {
      const key = { namespace: NAMESPACE, name: "n1" };
      world.server.collection(FENCING_TARGETS).mergePatch(key, { spec: { maintenance: true } });
      await world.clock.advance(10_000);
      assert.equal(kstatusOf(world.target("n1") ?? assert.fail()), "Failed");
      world.server.collection(FENCING_TARGETS).mergePatch(key, { spec: { maintenance: false } });
      assert.equal(kstatusOf(world.target("n1") ?? assert.fail()), "InProgress");
      await world.clock.advance(10_000);
      assert.equal(kstatusOf(world.target("n1") ?? assert.fail()), "Current");
    }));
});

describe("a wait for a health check", () => {
  it("a wait for a health check fails while a template is missing, and ends once it is there", () =>
    World.run({ detector: true }, async (world) => {
      createHealthCheckAlone(world);
      await world.clock.advance(5_000);
      assert.equal(kstatusOf(checkOf(world)), "Failed");
      createTemplate(world, {});
      await world.clock.advance(20_000);
      assert.equal(kstatusOf(checkOf(world)), "Current");
      world.server.collection(NODE_HEALTH_CHECKS).mergePatch({ name: "all" }, { spec: { minHealthy: 1 } });
      assert.equal(kstatusOf(checkOf(world)), "InProgress");
      await world.clock.advance(5_000);
      assert.equal(kstatusOf(checkOf(world)), "Current");
    }));

  it("a wait for a health check shows in its reason a selector that matches nothing, and a threshold that holds", () =>
    World.run({ detector: true }, async (world) => {
      createHealthCheck(world, {}, { spec: { minHealthy: 99 } });
      await world.clock.advance(5_000);
      assert.match(
        checkOf(world).status?.reason ?? "",
        /^NHC is enabled, no ongoing remediation\. Skipped remediation because the number of healthy nodes .* is \d and should equal or exceed 99$/,
      );
      const selector = { matchLabels: { "example.com/none": "" }, matchExpressions: null };
      world.server.collection(NODE_HEALTH_CHECKS).mergePatch({ name: "all" }, { spec: { selector, minHealthy: 0 } });
      await world.clock.advance(5_000);
      assert.equal(checkOf(world).status?.reason, "NHC is enabled, but its selector matches no node");
    }));
});
