import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { describe, it } from "node:test";
import {
  countNodes,
  edgesOf,
  healthCheckSummary,
  nodeText,
  remediationSummary,
  targetSummary,
} from "../../../plugins/headlamp/src/objects.ts";
import { BARE_METAL_REMEDIATIONS } from "../../../src/api/ironfence/bare-metal-remediation.ts";
import { FENCING_TARGETS } from "../../../src/api/ironfence/fencing-target.ts";
import { NODE_HEALTH_CHECKS } from "../../../src/api/ironfence/node-health-check.ts";
import { judgeTarget } from "../../../src/cli/status/could-fence/target-readiness.ts";
import { healthCheck, node, remediation, target } from "../cli/dashboard/fixture.ts";
import { OVERVIEW } from "../cli/overview-fixture.ts";

// Tests the parts of the Headlamp plugin that do not need its packages, which are not installed here. Objects of our
// API types are passed to the plugin's functions, so this file does not compile if a field is renamed. `npm run
// headlamp` runs the other tests.

const PLUGIN = new URL("../../../plugins/headlamp/", import.meta.url);
const read = (path: string): Promise<string> => readFile(new URL(path, PLUGIN), "utf8");

const verdict = (status: "True" | "False", reason: string) => ({
  conditions: [{ type: "Succeeded", status, reason, message: "said", lastTransitionTime: "2026-01-01T00:00:00Z" }],
});

describe("the Headlamp plugin", () => {
  it("the Headlamp plugin asks for the kinds that ironfence serves", async () => {
    const kinds = await read("src/kinds.ts");
    for (const { group, version, kind, plural, singular, namespaced } of [
      FENCING_TARGETS,
      BARE_METAL_REMEDIATIONS,
      NODE_HEALTH_CHECKS,
    ]) {
      const [definition] = kinds.match(new RegExp(`\\{[^}]*\\}\\],\\s*kind: "${kind}",[^}]*\\}`)) ?? [];
      assert.ok(definition !== undefined, kind);
      const api = `group: "${group}", version: "${version}"`;
      for (const text of [
        api,
        `pluralName: "${plural}"`,
        `singularName: "${singular}"`,
        `isNamespaced: ${namespaced}`,
      ]) {
        assert.ok(definition.includes(text), `${kind}: ${text}`);
      }
    }
  });

  it("the Headlamp plugin shows whether each target could be fenced, and never counts what is not known as a yes", () => {
    const targets = [
      target("a"),
      target("b", { reason: "AuthenticationFailed", message: "password refused" }),
      target("c", { maintenance: true }),
      target("d", { status: { conditions: [] } }),
      target("e", { reason: "Degraded" }),
    ];
    assert.deepEqual(
      targets.map((each) => targetSummary(each).state),
      ["yes", "no", "no", "unknown", "yes"],
    );
    assert.deepEqual(
      targets.map((each) => targetSummary(each).health),
      ["success", "error", "warning", "warning", "warning"],
    );
    assert.match(JSON.stringify(targetSummary(target("b", { reason: "BMCTimeout" }))), /BMCTimeout/);
  });

  it("the Headlamp plugin counts each node once, by its worst target, includes nodes without a target, and leaves out nodes of other clusters", () => {
    const away = target("a", { status: {} });
    away.spec.clusterRef = { namespace: "tenants", name: "blue" };
    const targets = [target("a"), target("a", { reason: "BMCTimeout" }), target("b"), target("gone"), away];
    const nodes = ["a", "b", "c"].map((name) => node(name));
    assert.deepEqual(countNodes(nodes, targets), { usable: 1, unusable: 1, missing: 1, unknown: 0 });
    assert.deepEqual(countNodes(nodes, [away, target("b", { status: { conditions: [] } })]), {
      usable: 0,
      unusable: 0,
      missing: 2,
      unknown: 1,
    });
  });

  it("the Headlamp plugin says of a target what ironfence itself says, if the last probe is new", () => {
    const clock = { nowMs: OVERVIEW.nowMs, oldMs: 3_600_000 };
    for (const reason of ["Usable", "Degraded", "AuthenticationFailed", "Maintenance"]) {
      for (const maintenance of [true, false]) {
        for (const observed of [1, 2]) {
          const each = target("a", { reason, maintenance, observed });
          const { state, reason: shown } = targetSummary(each);
          const { answer, reason: judged } = judgeTarget(each, clock);
          assert.deepEqual([state, shown], [answer, judged], JSON.stringify({ reason, maintenance, observed }));
        }
      }
    }
    const unprobed = target("a", { status: { conditions: [] } });
    assert.equal(targetSummary(unprobed).state, judgeTarget(unprobed, clock).answer);
  });

  it("the Headlamp plugin shows what a remediation waits for, and its verdict", () => {
    const underWay = remediationSummary(remediation("a", "PoweringOff", "BMCTimeout"));
    assert.deepEqual(underWay, { health: "warning", state: "PoweringOff", reason: "BMCTimeout", message: "said" });
    const failed = remediationSummary(remediation("a", "Failed", "", verdict("False", "PowerOffTimeout")));
    assert.deepEqual([failed.health, failed.reason], ["error", "PowerOffTimeout"]);
    assert.equal(remediationSummary(remediation("a", "Succeeded", "", verdict("True", "Done"))).health, "success");
  });

  it("the Headlamp plugin shows a health check that is disabled or finds nodes unhealthy", () => {
    const disabled = { type: "Disabled", status: "True", reason: "TemplateMissing", message: "said" } as const;
    const conditions = [{ ...disabled, lastTransitionTime: "2026-01-01T00:00:00Z" }];
    assert.equal(healthCheckSummary(healthCheck({ phase: "Disabled", conditions })).health, "error");
    assert.equal(healthCheckSummary(healthCheck({ phase: "Enabled" })).health, "success");
    assert.equal(
      healthCheckSummary(healthCheck({ phase: "Enabled", unhealthyNodes: [{ name: "a" }] })).health,
      "warning",
    );
  });

  it("the Headlamp plugin connects checks, remediations, targets and nodes, and no node of another cluster", () => {
    const away = target("a", { status: {} });
    away.spec.clusterRef = { namespace: "tenants", name: "blue" };
    const started = remediation("a", "PoweringOff", "PoweringOff");
    started.metadata.ownerReferences = [{ apiVersion: "v1", kind: "NodeHealthCheck", name: "workers", uid: "h" }];
    const edges = edgesOf({
      nodes: [node("a"), node("b")],
      targets: [target("a"), away],
      remediations: [started],
      checks: [healthCheck({ unhealthyNodes: [{ name: "b" }] })],
    });
    assert.deepEqual(
      edges.map(({ source, label, target: to }) => `${source} ${label} ${to}`),
      ["t-a powers uid-a", "r-a remediates uid-a", "h has started r-a", "h finds unhealthy uid-b"],
    );
    assert.equal(nodeText(away), "tenants/blue/a");
  });

  it("the Headlamp plugin is installed by no command of the repository itself, and its lock file names no registry", async () => {
    const { workspaces } = JSON.parse(await read("../../package.json")) as { workspaces?: unknown };
    assert.equal(workspaces, undefined);
    const { packages } = JSON.parse(await read("package-lock.json")) as {
      packages: Record<string, { version?: string; resolved?: string; integrity?: string }>;
    };
    const { devDependencies } = JSON.parse(await read("package.json")) as { devDependencies: Record<string, string> };
    for (const [name, version] of Object.entries(devDependencies)) {
      assert.equal(packages[`node_modules/${name}`]?.version, version, name);
    }
    for (const [path, { resolved, integrity }] of Object.entries(packages)) {
      assert.equal(resolved, undefined, path);
      assert.ok(path === "" || integrity !== undefined || path.includes("/"), path);
    }
  });
});
