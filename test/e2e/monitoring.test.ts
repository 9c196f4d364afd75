import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { applyFencingTarget } from "../../hack/e2e/examples.ts";
import { startPrometheus } from "../../hack/e2e/prometheus.ts";
import type { Prometheus } from "../../hack/e2e/prometheus.ts";
import {
  REMEDIATION_TIMEOUT_MS,
  configure,
  explain,
  marksOf,
  remediationOf,
  startScenario,
  targetsReady,
  remediationEnds,
} from "../../hack/e2e/scenario.ts";
import type { Scenario } from "../../hack/e2e/scenario.ts";
import { NAMESPACE } from "../../hack/e2e/world.ts";
import { applyObject } from "../../hack/lib/apply.ts";
import { freePorts } from "../../hack/lib/ports.ts";
import { ALERTS } from "../../hack/monitoring/alerts.ts";
import { ROWS } from "../../hack/monitoring/panels.ts";
import { systemClock } from "../../src/runtime/system.ts";
import { metricsIn } from "../unit/monitoring/promql.ts";

// Alerts and dashboard queries on a real Prometheus that has scraped two agents during three outages.

const PAUSE = `/api/v1/namespaces/${NAMESPACE}/configmaps/ironfence-pause`;
const SCRAPES_MS = 5_000;
/**
 * An agent without a family of MachineHealthChecks does not have this metric. test/unit/monitoring compares its name
 * and labels with the code.
 */
const OF_OTHER_FAMILIES = "ironfence_machine_health_checks";

void describe("the dashboard and the alerts on a real Prometheus", () => {
  let scenario: Scenario;
  let prometheus: Prometheus;
  let fromSeconds: number;
  let toSeconds: number;

  before(async () => {
    fromSeconds = now();
    scenario = await startScenario();
    const addresses = (await freePorts(2)).map((port) => `127.0.0.1:${port}`);
    for (const address of addresses) await scenario.startAgent([`--metrics-bind-address=${address}`]);
    prometheus = await startPrometheus(addresses, scenario.world.controlPlane.folder);
    await configure(scenario);
    await targetsReady(scenario);
    await fence("worker-1");
    await refusePassword("worker-4");
    await fenceAfterPause("worker-2");
    await fence("worker-3");
    await new Promise((resolve) => setTimeout(resolve, SCRAPES_MS));
    toSeconds = now();
  });
  after(async () => {
    await prometheus?.stop();
    await scenario?.stop();
  });

  async function fence(node: string, meanwhile: () => Promise<void> = () => Promise.resolve()): Promise<void> {
    const marks = await marksOf(scenario, node);
    await scenario.world.host(node).hang();
    await remediationOf(scenario, node);
    await meanwhile();
    await remediationEnds(scenario, node, marks);
  }

  async function fenceAfterPause(node: string): Promise<void> {
    const { api } = scenario.world;
    const metadata = { name: "ironfence-pause", namespace: NAMESPACE };
    await applyObject(api, { apiVersion: "v1", kind: "ConfigMap", metadata, data: { reason: "a test" } });
    await fence(node, async () => {
      await explain(
        scenario,
        "the metrics show that a remediation is held by the pause",
        REMEDIATION_TIMEOUT_MS,
        async () => {
          const held = await prometheus.range('sum(ironfence_remediations_held{reason="Paused"})', now() - 2, now());
          return held[0]?.values.at(-1)?.[1] === "1";
        },
      );
      await api.delete(PAUSE);
    });
  }

  /** Sets a wrong password for a BMC until the metrics show it. */
  async function refusePassword(node: string): Promise<void> {
    await applyFencingTarget(scenario.world, node, { password: "wrong" });
    const refused = 'sum(ironfence_fencing_targets{reason="AuthenticationFailed"})';
    await explain(scenario, "the metrics show the refused password", REMEDIATION_TIMEOUT_MS, async () => {
      const shown = await prometheus.range(refused, now() - 2, now());
      return shown[0]?.values.at(-1)?.[1] === "1";
    });
    await applyFencingTarget(scenario.world, node);
    await targetsReady(scenario);
  }

  /** Whether an expression has had a numeric value. */
  async function hasData(expr: string): Promise<boolean> {
    const filled = expr.replaceAll("$__range", `${toSeconds - fromSeconds}s`).replaceAll("$__rate_interval", "10s");
    const series = await prometheus.range(filled, fromSeconds, toSeconds);
    return series.some(({ values }) => values.some(([, value]) => Number.isFinite(Number(value))));
  }

  void test("both agents are scraped, and one leads", async () => {
    assert.equal(await prometheus.targetsUp(), 2);
    const leaders = await prometheus.range("sum(ironfence_leader)", toSeconds - 2, toSeconds);
    assert.equal(leaders[0]?.values.at(-1)?.[1], "1");
  });

  for (const { title, panels } of ROWS) {
    void test(`no query of the row "${title}" is empty`, async () => {
      const empty: string[] = [];
      for (const { expr } of panels.flatMap(({ queries }) => queries)) if (!(await hasData(expr))) empty.push(expr);
      assert.deepEqual(empty, []);
    });
  }

  void test("every alert is evaluated without an error, and every metric that it names exists", async () => {
    const rules = await prometheus.rules();
    assert.deepEqual(rules.map(({ name }) => name).sort(), ALERTS.map(({ name }) => name).sort());
    for (const { name, health, lastError } of rules) assert.equal(health, "ok", `${name}: ${lastError}`);
    const missing: string[] = [];
    for (const metric of new Set(ALERTS.flatMap(({ expr }) => metricsIn(expr))))
      if (!(await hasData(metric))) missing.push(metric);
    assert.deepEqual(missing, [OF_OTHER_FAMILIES]);
    assert.equal(await hasData("ironfence_no_metric"), false);
  });

  void test("the metrics count what has happened", async () => {
    const last = async (expr: string): Promise<string | undefined> =>
      (await prometheus.range(expr, toSeconds - 2, toSeconds))[0]?.values.at(-1)?.[1];
    assert.equal(await last('sum(ironfence_remediations_total{result="Succeeded"})'), "3");
    assert.equal(await last("sum(ironfence_time_to_release_seconds_count)"), "3");
    assert.equal(await last("sum(ironfence_time_to_restore_seconds_count)"), "3");
    assert.equal(await last('sum(ironfence_bmc_request_seconds_count{operation="forceOff",result="ok"})'), "3");
    assert.equal(await last('sum(ironfence_fencing_targets{reason="Usable"})'), "4");
    assert.equal(await last("sum(ironfence_paused)"), "0");
  });
});

function now(): number {
  return Math.floor(systemClock.nowMs() / 1_000);
}
