import assert from "node:assert/strict";
import { randomInt } from "node:crypto";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import type { Agent } from "../../hack/e2e/agent.ts";
import { OUT_OF_SERVICE, conditionOf, hasTaint, readyOf } from "../../hack/e2e/chronicle.ts";
import type { NodeView, RemediationView } from "../../hack/e2e/chronicle.ts";
import { applyFencingTarget } from "../../hack/e2e/examples.ts";
import { installFirstVersion } from "../../hack/e2e/first-version.ts";
import {
  TARGETS,
  REMEDIATION_TIMEOUT_MS,
  WORKERS,
  explain,
  leaderOf,
  marksOf,
  revisionOf,
  startScenario,
  targetsReady,
} from "../../hack/e2e/scenario.ts";
import type { Scenario, TargetView } from "../../hack/e2e/scenario.ts";
import { NAMESPACE, repositoryPath } from "../../hack/e2e/world.ts";
import { applyManifests, applyObject } from "../../hack/lib/apply.ts";
import { ALLOWED_ADDRESSES } from "../../src/api/names/annotations.ts";
import { seededRandom } from "./seeded-random.ts";

// Agents of 0.1.0, installed by its own manifests, and of this version are killed at random moments and take over
// fences from each other. The same seed gives the same rounds: IRONFENCE_SEED=… npm run test:e2e -- FILE

const SEED = Number(process.env["IRONFENCE_SEED"] ?? randomInt(2 ** 31));
const KILLS_MAX = 3;
/**
 * An agent is killed within this time after a fence has reached a state. With these hosts, each state lasts at least
 * that long.
 */
const KILL_WITHIN_MS = { Verifying: 200, PoweringOff: 3_000, Releasing: 500, PoweringOn: 3_000, Rejoining: 1_000 };
const PHASES = Object.entries(KILL_WITHIN_MS);
const SLOW_HOSTS = { powerDelayMs: 3_000, bootMs: 2_000 };

const VERSIONS = ["0.1.0", "this version"] as const;
type Version = (typeof VERSIONS)[number];

interface Kill {
  version: Version;
  phase: string;
  afterMs: number;
  signal: "SIGKILL" | "SIGTERM";
}

/** Draws the agents of each round. All but the last one are killed. The first kill changes the version. */
function planRounds(rounds: number): { kills: Kill[]; last: Version }[] {
  const random = seededRandom(SEED);
  return Array.from({ length: rounds }, (_, round) => {
    const [from, to] = round % 2 === 0 ? VERSIONS : ([VERSIONS[1], VERSIONS[0]] as const);
    const kills = Array.from({ length: 1 + Math.floor(random.next() * KILLS_MAX) }, (__, index): Kill => {
      const [phase, withinMs] = PHASES[Math.floor(random.next() * PHASES.length)] ?? assert.fail();
      return {
        version: [from, to][index] ?? (random.next() < 0.5 ? from : to),
        phase,
        afterMs: Math.floor(random.next() * withinMs),
        signal: random.next() < 0.7 ? "SIGKILL" : "SIGTERM",
      };
    });
    return { kills, last: to };
  });
}

/** Tests this many rounds, alternately upgrades and rollbacks. */
export function testUpgradeKills(rounds: number): void {
  void describe(`0.1.0 and this version, killed at random moments of a fence (IRONFENCE_SEED=${SEED})`, () => {
    let scenario: Scenario;
    let firstVersion: string;

    before(async () => {
      process.stderr.write(`upgrade-kills: IRONFENCE_SEED=${SEED}\n`);
      firstVersion = await installFirstVersion();
      scenario = await startScenario({ install: false, ...SLOW_HOSTS });
      await applyManifests(scenario.world.api, join(firstVersion, "deploy/kustomize"), withoutReplicas);
      for (const node of WORKERS) await applyFencingTarget(scenario.world, node);
      // 0.1.0 does not have this annotation.
      for (const node of WORKERS) await annotate(node, null);
    });
    after(async () => {
      await scenario?.stop();
    });

    const annotate = (node: string, value: string | null): Promise<unknown> =>
      scenario.world.api.mergePatch(`/api/v1/namespaces/${NAMESPACE}/secrets/${node}-bmc`, {
        metadata: { annotations: { [ALLOWED_ADDRESSES]: value } },
      });

    /** The steps of docs/how-to/upgrade.md before the new image, in order. */
    async function prepareUpgrade(): Promise<void> {
      const { api, bmc } = scenario.world;
      for (const node of WORKERS) await annotate(node, bmc.url.replace("https:", "redfish:"));
      await applyManifests(api, repositoryPath("deploy/node-health-check"));
      await applyManifests(api, repositoryPath("deploy/kustomize"), withoutReplicas);
    }

    const start = (version: Version): Promise<Agent> =>
      version === "0.1.0"
        ? scenario.startAgent([], { program: join(firstVersion, "src/main.ts") })
        : scenario.startAgent();

    const ordersOf = (resetType: "On" | "ForceOff"): Promise<number[]> =>
      Promise.all(WORKERS.map((node) => scenario.world.host(node).orderCount(resetType)));

    for (const [round, { kills, last }] of planRounds(rounds).entries()) {
      const plan = kills
        .map(({ version, phase, afterMs, signal }) => `${version} ${signal} ${afterMs} ms after ${phase}`)
        .join(", ");
      void test(`a fence ends well and leaves nothing on the node in round ${round}: ${plan}, then ${last}`, async (context) => {
        const { world } = scenario;
        const { api, bmc } = world;
        const victim = WORKERS[round % WORKERS.length] ?? "";
        const path = `/apis/ironfence.io/v1alpha1/namespaces/${NAMESPACE}/baremetalremediations/${victim}`;
        const node = (): Promise<NodeView> => api.get<NodeView>(`/api/v1/nodes/${victim}`);
        const remediation = (): Promise<RemediationView> => api.get<RemediationView>(path);

        let agent = await start(kills[0]?.version ?? last);
        await targetsReady(scenario);
        const [marks, before] = [await marksOf(scenario, victim), await ordersOf("ForceOff")];
        const sinceMs = Date.now();
        await world.host(victim).hang();
        await explain(
          scenario,
          `${victim} is Unknown`,
          REMEDIATION_TIMEOUT_MS,
          async () => readyOf(await node()) === "Unknown",
        );
        await applyObject(api, {
          apiVersion: "ironfence.io/v1alpha1",
          kind: "BareMetalRemediation",
          metadata: { name: victim, namespace: NAMESPACE },
          spec: { strategy: { retryLimit: 3 } },
        });
        let isPrepared = round > 0;
        for (const [index, { phase: until, afterMs, signal }] of kills.entries()) {
          await explain(scenario, `the fence has come to ${until}`, REMEDIATION_TIMEOUT_MS, async () =>
            hasReached((await remediation()).status?.phase, until),
          );
          await sleep(afterMs);
          await (signal === "SIGKILL" ? agent.kill() : agent.stop());
          const { phase = "no phase" } = (await remediation()).status ?? {};
          context.diagnostic(`${signal} of ${agent.instance} in ${phase}`);
          if (index === 0) assert.notEqual(phase, "Succeeded", "the version changes in the middle of the fence");
          const next = kills[index + 1]?.version ?? last;
          if (next !== "0.1.0" && !isPrepared) await prepareUpgrade();
          isPrepared ||= next !== "0.1.0";
          agent = await start(next);
          await leaderOf(scenario, [agent]);
        }

        await explain(
          scenario,
          `the remediation of ${victim} has its verdict`,
          2 * REMEDIATION_TIMEOUT_MS,
          async () => {
            const { status } = conditionOf(await remediation(), "Succeeded") ?? {};
            return status === "True" || status === "False";
          },
        );
        const verdict = conditionOf(await remediation(), "Succeeded");
        assert.equal(verdict?.status, "True", `${verdict?.message ?? ""}\n${agent.log()}`);
        assert.equal(await bmc.powerState(world.host(victim).systemUuid), "On");
        const others = (counts: readonly number[]): number[] => counts.filter((_, index) => WORKERS[index] !== victim);
        assert.deepEqual(others(await ordersOf("ForceOff")), others(before), "no other host was powered off");
        await assertOneFence(scenario, victim, { sinceMs, kills: kills.length });

        if (last === "0.1.0") {
          await agent.stop();
          agent = await start("this version");
        }
        await explain(scenario, `${victim} is as before`, REMEDIATION_TIMEOUT_MS, async () => {
          return JSON.stringify(await marksOf(scenario, victim)) === JSON.stringify(marks);
        });
        await api.delete(path);
        await explain(scenario, "no finalizer keeps the remediation", REMEDIATION_TIMEOUT_MS, async () => {
          return (await api.find(path)) === undefined;
        });
        const target = await api.get<TargetView & { metadata: { finalizers?: string[] } }>(`${TARGETS}/${victim}`);
        assert.equal(target.status?.owner, undefined, "no remediation owns the host");
        assert.equal(target.metadata.finalizers, undefined, "no finalizer keeps the FencingTarget");
        assert.equal(await bmc.powerState(world.host(victim).systemUuid), "On");
        await agent.stop();
      });
    }
  });
}

function hasReached(phase: string | undefined, wanted: string): boolean {
  if (phase === undefined || phase === "Resolving") return false;
  const names = PHASES.map(([name]) => name);
  // All other phases come after these.
  return !names.includes(phase) || names.indexOf(phase) >= names.indexOf(wanted);
}

/**
 * Asserts that all agents together power-cycled a host once: it got no power-off after the power-on, it booted once,
 * and its node had the out-of-service taint only in between.
 */
async function assertOneFence(
  { chronicle }: Scenario,
  victim: string,
  { sinceMs, kills }: { sinceMs: number; kills: number },
): Promise<void> {
  const records = (await chronicle.bmc(victim)).filter(({ atMs }) => atMs >= sinceMs);
  const orders = records.filter(({ kind }) => kind === "order").map(({ value }) => value);
  assert.match(orders.join(" "), /^(ForceOff )+On( On)*$/);
  // An order may be repeated only if a killed agent has not recorded it as sent.
  for (const type of ["ForceOff", "On"]) {
    const count = orders.filter((value) => value === type).length;
    assert.ok(count <= 1 + kills, `${type} was ordered ${count} times`);
  }
  const nodes = chronicle.nodes(victim).filter(({ atMs }) => atMs >= sinceMs);
  const boots = new Set(nodes.map(({ object }) => object.status.nodeInfo?.bootID));
  assert.equal(boots.size, 2, "it booted once");
  const tainted = nodes.filter(({ object }) => hasTaint(object, OUT_OF_SERVICE));
  const [first, last] = [tainted[0], tainted.at(-1)];
  assert.ok(first && last, "its workloads were released");
  assert.ok(
    records.some(({ kind, atMs }) => kind === "read" && atMs < first.atMs),
    "it was read Off before the taint",
  );
  const intent = chronicle
    .remediations(victim)
    .find(({ atMs, object }) => atMs >= sinceMs && object.status?.attempt?.action === "On");
  assert.ok(intent, "the intent to power it on was stored");
  const next = nodes[nodes.indexOf(last) + 1];
  assert.ok(next && revisionOf(next.object) < revisionOf(intent.object), "the taint went before it was ordered on");
}

/** No pod of the Deployment runs: each agent is a separate process. */
function withoutReplicas(manifest: Parameters<NonNullable<Parameters<typeof applyManifests>[2]>>[0]): typeof manifest {
  return manifest.kind === "Deployment"
    ? { ...manifest, spec: { ...Object(manifest["spec"]), replicas: 0 } }
    : manifest;
}
