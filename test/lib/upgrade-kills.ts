import assert from "node:assert/strict";
import { randomInt } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import type { Agent } from "../../hack/e2e/agent.ts";
import { conditionOf, readyOf } from "../../hack/e2e/chronicle.ts";
import type { NodeView, RemediationView } from "../../hack/e2e/chronicle.ts";
import { applyFencingTarget } from "../../hack/e2e/examples.ts";
import { checkOutFirstVersion } from "../../hack/e2e/first-version.ts";
import {
  WALK_TIMEOUT_MS,
  WORKERS,
  explain,
  leaderOf,
  marksOf,
  startScenario,
  targetsReady,
} from "../../hack/e2e/scenario.ts";
import type { Scenario } from "../../hack/e2e/scenario.ts";
import { NAMESPACE, repositoryPath } from "../../hack/e2e/world.ts";
import { applyManifests, applyObject } from "../../hack/lib/apply.ts";
import { ALLOWED_ADDRESSES } from "../../src/api/names/annotations.ts";
import { seededRandom } from "./seeded-random.ts";

// 0.1.0, installed by its own manifests, and this version take fences over from each other, killed at random moments.
// The rounds of a seed are the same each time: IRONFENCE_SEED=… npm run test:e2e -- FILE

const SEED = Number(process.env["IRONFENCE_SEED"] ?? randomInt(2 ** 31));
const KILLS_MAX = 3;
/** Within this time after an agent leads it is killed; a fence takes about 10 s. */
const KILL_WITHIN_MS = 8_000;

const VERSIONS = ["0.1.0", "this version"] as const;
type Version = (typeof VERSIONS)[number];

interface Kill {
  version: Version;
  afterMs: number;
  signal: "SIGKILL" | "SIGTERM";
}

/** Which agents run in a round: each is killed but the last one. */
function planRounds(rounds: number): { kills: Kill[]; last: Version }[] {
  const random = seededRandom(SEED);
  const version = (): Version => VERSIONS[Math.floor(random.next() * VERSIONS.length)] ?? "0.1.0";
  return Array.from({ length: rounds }, (_, round) => {
    const kills = Array.from({ length: 1 + Math.floor(random.next() * KILLS_MAX) }, (): Kill => ({
      version: version(),
      afterMs: Math.floor(random.next() * KILL_WITHIN_MS),
      signal: random.next() < 0.7 ? "SIGKILL" : "SIGTERM",
    }));
    // Each round changes the version at least once: forward and back in turn.
    const last = VERSIONS[(round + 1) % 2] ?? "0.1.0";
    const first = kills[0];
    if (first !== undefined) first.version = VERSIONS[round % 2] ?? "0.1.0";
    return { kills, last };
  });
}

/** Tests this many rounds; the first one is an upgrade. */
export function testUpgradeKills(rounds: number): void {
  void describe(`0.1.0 and this version, killed at random moments of a fence (IRONFENCE_SEED=${SEED})`, () => {
    let scenario: Scenario;
    let firstVersion: string;

    before(async () => {
      process.stderr.write(`upgrade-kills: IRONFENCE_SEED=${SEED}\n`);
      firstVersion = await mkdtemp(join(tmpdir(), "ironfence-0.1.0-"));
      await checkOutFirstVersion(firstVersion);
      scenario = await startScenario({ install: false });
      await applyManifests(scenario.world.api, join(firstVersion, "deploy/kustomize"), withoutReplicas);
      for (const node of WORKERS) await applyFencingTarget(scenario.world, node);
      // 0.1.0 knows no such annotation.
      for (const node of WORKERS) await annotate(node, null);
    });
    after(async () => {
      await scenario?.stop();
      await rm(firstVersion, { recursive: true, force: true });
    });

    const annotate = (node: string, value: string | null): Promise<unknown> =>
      scenario.world.api.mergePatch(`/api/v1/namespaces/${NAMESPACE}/secrets/${node}-bmc`, {
        metadata: { annotations: { [ALLOWED_ADDRESSES]: value } },
      });

    /** The steps of docs/how-to/upgrade.md that come before the new image, in their order. */
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
      const plan = kills.map(({ version, afterMs, signal }) => `${version} ${signal} after ${afterMs} ms`).join(", ");
      void test(`round ${round}: a fence ends well and leaves nothing: ${plan}, then ${last}`, async () => {
        const { world } = scenario;
        const { api, bmc } = world;
        const victim = WORKERS[round % WORKERS.length] ?? "";
        const path = `/apis/ironfence.io/v1alpha1/namespaces/${NAMESPACE}/baremetalremediations/${victim}`;
        const node = (): Promise<NodeView> => api.get<NodeView>(`/api/v1/nodes/${victim}`);
        const remediation = (): Promise<RemediationView> => api.get<RemediationView>(path);

        let agent = await start(kills[0]?.version ?? last);
        await targetsReady(scenario);
        const [marks, before] = [await marksOf(scenario, victim), await ordersOf("ForceOff")];
        await world.host(victim).hang();
        await explain(
          scenario,
          `${victim} is Unknown`,
          WALK_TIMEOUT_MS,
          async () => readyOf(await node()) === "Unknown",
        );
        await applyObject(api, {
          apiVersion: "ironfence.io/v1alpha1",
          kind: "BareMetalRemediation",
          metadata: { name: victim, namespace: NAMESPACE },
          spec: { strategy: { retryLimit: 3 } },
        });
        let isPrepared = round > 0;
        for (const [index, { afterMs, signal }] of kills.entries()) {
          await sleep(afterMs);
          await (signal === "SIGKILL" ? agent.kill() : agent.stop());
          const next = kills[index + 1]?.version ?? last;
          if (next !== "0.1.0" && !isPrepared) await prepareUpgrade();
          isPrepared ||= next !== "0.1.0";
          agent = await start(next);
          await leaderOf(scenario, [agent]);
        }

        await explain(scenario, `the remediation of ${victim} has its verdict`, 2 * WALK_TIMEOUT_MS, async () => {
          const { status } = conditionOf(await remediation(), "Succeeded") ?? {};
          return status === "True" || status === "False";
        });
        const verdict = conditionOf(await remediation(), "Succeeded");
        assert.equal(verdict?.status, "True", `${verdict?.message ?? ""}\n${agent.log()}`);
        assert.equal(await bmc.powerState(world.host(victim).systemUuid), "On");
        const others = (counts: readonly number[]): number[] => counts.filter((_, index) => WORKERS[index] !== victim);
        assert.deepEqual(others(await ordersOf("ForceOff")), others(before), "no other host was powered off");
        const offs = (await world.host(victim).orderCount("ForceOff")) - (before[WORKERS.indexOf(victim)] ?? 0);
        assert.ok(offs >= 1 && offs <= 1 + kills.length, `${offs} power-offs`);

        if (last === "0.1.0") {
          await agent.stop();
          agent = await start("this version");
        }
        await explain(scenario, `${victim} is as before`, WALK_TIMEOUT_MS, async () => {
          return JSON.stringify(await marksOf(scenario, victim)) === JSON.stringify(marks);
        });
        await api.delete(path);
        await explain(scenario, "no finalizer keeps the remediation", WALK_TIMEOUT_MS, async () => {
          return (await api.find(path)) === undefined;
        });
        await agent.stop();
      });
    }
  });
}

/** No pod of the Deployment runs: each agent is a process of its own. */
function withoutReplicas(manifest: Parameters<NonNullable<Parameters<typeof applyManifests>[2]>>[0]): typeof manifest {
  return manifest.kind === "Deployment"
    ? { ...manifest, spec: { ...Object(manifest["spec"]), replicas: 0 } }
    : manifest;
}
