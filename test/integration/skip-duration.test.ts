import assert from "node:assert/strict";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import type { TestContext } from "node:test";
import { SKIP_DURATION_IF_OFF } from "../../src/api/names/annotations.ts";
import {
  BARE_METAL_REMEDIATIONS,
  BARE_METAL_REMEDIATION_TEMPLATES,
} from "../../src/api/ironfence/bare-metal-remediation.ts";
import { EVENTS } from "../../src/api/kubernetes/core-types.ts";
import type { FencingTarget } from "../../src/api/ironfence/fencing-target.ts";
import { FENCING_TARGETS } from "../../src/api/ironfence/fencing-target.ts";
import { NODE_HEALTH_CHECKS } from "../../src/api/ironfence/node-health-check.ts";
import { openDeviceOn } from "../lib/open-device.ts";
import { runAgent } from "../../src/cli/agent/agent.ts";
import { resolveRunOptions } from "../../src/config/resolve-run-options.ts";
import { systemMemory } from "../../src/runtime/memory.ts";
import { systemClock, systemRandom } from "../../src/runtime/system.ts";
import { createLogger } from "../../src/telemetry/logger.ts";
import { NAMESPACE, startSocketWorld, until } from "./agent-fixture.ts";
import { cli } from "./cli-fixture.ts";

// The whole agent with real sockets, in real time.

const HOSTS = ["n1", "n2"];

async function setUp(t: TestContext) {
  const hosts = HOSTS.map((name) => ({ name }));
  const folder = await mkdtemp(join(tmpdir(), "ironfence-decisions-"));
  t.after(() => rm(folder, { recursive: true }));
  const log = join(folder, "decisions.jsonl");
  const stop = new AbortController();
  let running: Promise<void> = Promise.resolve();
  const world = await startSocketWorld(t, { hosts, monitorGracePeriodMs: 2_000 }, ({ server, kubeconfig }, signal) => {
    const template = { namespace: NAMESPACE, name: "reboot" };
    server
      .collection(BARE_METAL_REMEDIATION_TEMPLATES)
      .create({ metadata: template, spec: { template: { spec: {} } } });
    server.collection(NODE_HEALTH_CHECKS).create({
      metadata: { name: "all", annotations: { [SKIP_DURATION_IF_OFF]: "true" } },
      spec: {
        selector: { matchExpressions: [{ key: "no", operator: "DoesNotExist" }] },
        minHealthy: 0,
        remediationTemplate: {
          apiVersion: "ironfence.io/v1alpha1",
          kind: "BareMetalRemediationTemplate",
          ...template,
        },
      },
    });
    const addresses = { metricsBindAddress: "0", healthProbeBindAddress: "0" };
    const options = resolveRunOptions({ kubeconfig, namespace: NAMESPACE, recordDecisions: log, ...addresses }, {});
    const logger = createLogger("silent");
    const openDevice = openDeviceOn(systemClock);
    const memory = systemMemory();
    const deps = { clock: systemClock, random: systemRandom, logger, openDevice, memory };
    running = runAgent(options, deps, AbortSignal.any([signal, stop.signal]));
    return running;
  });
  const { server } = world;
  const target = (name: string) =>
    server.collection<FencingTarget>(FENCING_TARGETS).get({ namespace: NAMESPACE, name })?.status;
  const remediated = (): string[] =>
    [...server.collection(BARE_METAL_REMEDIATIONS).values()].map(({ metadata }) => metadata.name);
  const end = async (): Promise<void> => {
    stop.abort(new Error("the agent is asked to stop"));
    await running;
  };
  return { ...world, target, remediated, log, end };
}

test("a host that is switched off is proven off and its node restored at once; one that hangs waits its duration", async (t) => {
  const { server, rack, kubeconfig, target, ready, remediated, log, end } = await setUp(t);
  await until("all are Ready and probed", () =>
    HOSTS.every((name) => ready(name) === "True" && target(name)?.powerState === "On"),
  );
  rack.host("n2").hang();
  rack.host("n1").order("ForceOff");
  await until("n1 is remediated", () => remediated().length > 0);
  assert.deepEqual(remediated(), ["n1"]);
  await until("n1 is back", () => remediated().length === 0 && ready("n1") === "True");
  const orders = rack.host("n1").orders.map(({ type, outcome }) => `${type} ${outcome}`);
  assert.equal(orders.at(-1), "On Started");
  const events = [...server.collection(EVENTS).values()].filter((event) =>
    JSON.stringify(event).includes("DurationSkipped"),
  );
  assert.equal(events.length, 1);

  await until("n2 is seen to hang", () => ready("n2") === "Unknown");
  assert.equal(target("n2")?.offProof, undefined);
  assert.deepEqual(rack.host("n2").orders, []);
  const explained = await cli(["explain", "node", "n2", "--kubeconfig", kubeconfig, "--namespace", NAMESPACE]);
  assert.equal(explained.code, 0, explained.err);
  assert.match(explained.out, /soonUnhealthy: Unhealthy at .* not earlier, because FencingTarget ironfence-system\/n2/);
  assert.match(explained.out, /^ {2}host +FencingTarget ironfence-system\/n2 (reads On|has no proof)/m);

  // Both halves write one log, from which all their decisions can be replayed.
  await end();
  const replayed = await cli(["replay", log]);
  assert.equal(replayed.code, 0, replayed.err);
  assert.match(replayed.out, /every decision is the same/);
  const lines = (await readFile(log, "utf8")).split("\n");
  assert.ok(lines.some((line) => line.includes('"by":"node-health-check"') && line.includes('"type":"create"')));
  assert.ok(lines.some((line) => line.includes('"by":"decide"') && line.includes('"do":"powerOn"')));
});
