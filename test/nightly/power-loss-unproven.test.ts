import assert from "node:assert/strict";
import { setTimeout as delay } from "node:timers/promises";
import { after, before, describe, test } from "node:test";
import { OUT_OF_SERVICE, hasTaint } from "../../hack/e2e/chronicle.ts";
import { HEALTH_CHECK_SPEC, losePower, ordersSince, startPowerLossWorld } from "../../hack/e2e/power-loss.ts";
import type { EarlyRemediation, PowerLossWorld } from "../../hack/e2e/power-loss.ts";
import { createHealthCheck } from "../../hack/e2e/rack-world.ts";
import type { RackWorld } from "../../hack/e2e/rack-world.ts";
import { REMEDIATIONS, explain } from "../../hack/e2e/scenario.ts";
import type { PodView } from "../../hack/e2e/workload.ts";
import { applyObject } from "../../hack/lib/apply.ts";
import { SKIP_DURATION_IF_OFF } from "../../src/api/names/annotations.ts";

// Hosts that lose power and are not released before their durations are over, with the default flags of Kubernetes.

const DEAD_BMC = ["dead-1", "dead-2", "dead-3", "dead-4", "dead-5", "dead-6"];
const ALIVE = ["healthy-1", "healthy-2", "healthy-3"];
/** Strategies that release workloads in another way, and a health check that forbids early releases. */
const OTHERS: Readonly<Record<string, { strategy: object; annotations?: Record<string, string> }>> = {
  collected: { strategy: { podRelease: "GarbageCollector" } },
  deleted: { strategy: { workloadRelease: "DeleteNode" } },
  reprovisioned: { strategy: { type: "Reprovision" } },
  refused: { strategy: {}, annotations: { [SKIP_DURATION_IF_OFF]: "false" } },
  cordoned: { strategy: {} },
};
/** At this time two renewals of the lease are missing, but Kubernetes has not noticed the loss yet. */
const BEFORE_UNKNOWN_MS = 38_000;
/** The grace period, which begins at the last renewal at most 10 s before the loss, plus the duration. */
const ORDINARY_MIN_MS = 340_000;
const ORDINARY_MAX_MS = 375_000;
const BETWEEN_MS = 1_700;
const TIMEOUT_MS = 450_000;

void describe("hosts that lose their power without a proof that counts", () => {
  let world: PowerLossWorld;
  before(async () => {
    const names = [...DEAD_BMC, ...Object.keys(OTHERS), ...ALIVE];
    const cover = (values: string[]) => ({
      ...HEALTH_CHECK_SPEC,
      selector: { matchExpressions: [{ key: "example.com/host", operator: "In", values }] },
    });
    const configure = async (rack: RackWorld): Promise<void> => {
      await createHealthCheck(rack, {}, cover([...DEAD_BMC, ...ALIVE]));
      for (const [name, { strategy, ...other }] of Object.entries(OTHERS)) {
        await createHealthCheck(rack, strategy, cover([name]), { name, template: name, ...other });
      }
    };
    world = await startPowerLossWorld(names, configure, (name) => OTHERS[name]?.annotations === undefined);
  });
  after(() => world?.stop());

  const remediations = (): Promise<EarlyRemediation[]> => world.api.list<EarlyRemediation>(REMEDIATIONS);
  const podPath = (node: string): string => `/api/v1/namespaces/default/pods/on-${node}`;

  void test(
    "hosts whose BMC dies with them, or whose health check releases workloads in another way, wait for their duration",
    { timeout: TIMEOUT_MS },
    async (t) => {
      const { api } = world;
      await api.mergePatch("/api/v1/nodes/cordoned", { spec: { unschedulable: true } });
      const pods = new Map<string, string>();
      for (const node of [...DEAD_BMC, ...Object.keys(OTHERS)]) {
        const spec = { nodeName: node, containers: [{ name: "main", image: "fake" }] };
        await applyObject(api, {
          apiVersion: "v1",
          kind: "Pod",
          metadata: { namespace: "default", name: `on-${node}` },
          spec,
        });
        pods.set(node, (await api.get<PodView>(podPath(node))).metadata.uid);
      }
      const lost = new Map<string, number>();
      for (const node of Object.keys(OTHERS)) lost.set(node, losePower(world, node));
      for (const node of DEAD_BMC) {
        await delay(BETWEEN_MS);
        world.rack.host(node).cutMains();
        lost.set(node, Date.now());
      }
      await delay(BEFORE_UNKNOWN_MS);
      assert.deepEqual(await remediations(), []);
      for (const [node, lostMs] of lost) assert.deepEqual([node, ...ordersSince(world, node, lostMs)], [node]);

      const begun = new Map<string, number>();
      await explain(
        { world, agents: world.agents },
        "every host without a BMC has a remediation",
        ORDINARY_MAX_MS,
        async () => {
          for (const { metadata } of await remediations()) {
            if (!begun.has(metadata.name))
              begun.set(metadata.name, Date.now() - (lost.get(metadata.name) ?? Date.now()));
          }
          return DEAD_BMC.every((node) => begun.has(node));
        },
      );
      const afterMs = DEAD_BMC.map((node) => begun.get(node) ?? 0);
      t.diagnostic(`dead BMC, remediation created after the loss of power: ${afterMs.join(", ")} ms`);
      assert.ok(Math.min(...begun.values()) >= ORDINARY_MIN_MS, JSON.stringify([...begun]));
      assert.ok(Math.max(...afterMs) <= ORDINARY_MAX_MS, JSON.stringify([...begun]));
      for (const { spec, metadata } of await remediations()) {
        assert.deepEqual([metadata.name, spec.powerOnNotBefore], [metadata.name, undefined]);
      }
      for (const node of DEAD_BMC) {
        assert.equal((await api.get<PodView>(podPath(node))).metadata.uid, pods.get(node));
        const tainted = world.nodes.filter(
          ({ object }) => object.metadata.name === node && hasTaint(object, OUT_OF_SERVICE),
        );
        assert.equal(tainted.length, 0, node);
      }
    },
  );
});
