import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { OUT_OF_SERVICE } from "../../hack/e2e/chronicle.ts";
import {
  assertOrder,
  configure,
  explain,
  marksOf,
  powerOffIsSent,
  startScenario,
  targetsReady,
  REMEDIATION_TIMEOUT_MS,
  remediationEnds,
} from "../../hack/e2e/scenario.ts";
import type { Scenario } from "../../hack/e2e/scenario.ts";
import { NAMESPACE, SERVICE_ACCOUNT } from "../../hack/e2e/world.ts";
import { applyObject } from "../../hack/lib/apply.ts";
import { freeLease } from "../../hack/lib/free-leases.ts";

const RBAC = "rbac.authorization.k8s.io";
const OTHER = "other";
const LEASES = "/apis/coordination.k8s.io/v1/namespaces";
const REMEDIATOR_LEASE = `${LEASES}/kube-system/leases/ironfence-remediator`;
const EVENTS = `/apis/events.k8s.io/v1/namespaces/${NAMESPACE}/events`;
const POWER_DELAY_MS = 5_000;

interface LeaseView {
  metadata: { uid: string };
  spec?: { holderIdentity?: string };
}

/** Adds what a user needs for a second installation with another name of the Lease. */
async function installAgain({ world: { api } }: Scenario): Promise<void> {
  const metadata = { namespace: NAMESPACE, name: OTHER };
  const rules = [
    { apiGroups: ["coordination.k8s.io"], resources: ["leases"], resourceNames: [OTHER], verbs: ["get", "patch"] },
  ];
  await applyObject(api, { apiVersion: `${RBAC}/v1`, kind: "Role", metadata, rules });
  await applyObject(api, {
    apiVersion: `${RBAC}/v1`,
    kind: "RoleBinding",
    metadata,
    roleRef: { apiGroup: RBAC, kind: "Role", name: OTHER },
    subjects: [{ kind: "ServiceAccount", name: SERVICE_ACCOUNT, namespace: NAMESPACE }],
  });
  await api.create(`${LEASES}/${NAMESPACE}/leases`, freeLease(NAMESPACE, OTHER));
}

void describe("two installations in one cluster", () => {
  let scenario: Scenario;
  before(async () => {
    scenario = await startScenario({ powerDelayMs: POWER_DELAY_MS });
    await configure(scenario);
    await installAgain(scenario);
  });
  after(() => scenario?.stop());

  const holder = async (): Promise<string> =>
    (await scenario.world.api.find<LeaseView>(REMEDIATOR_LEASE))?.spec?.holderIdentity ?? "";

  void test("two installations in one cluster do not act side by side: the second stands by, and finishes a fence once the first is gone", async () => {
    const { world } = scenario;
    const first = await scenario.startAgent();
    await targetsReady(scenario);
    const second = await scenario.startAgent([`--lease-name=${OTHER}`]);
    await explain(scenario, "the second one says that it stands by", REMEDIATION_TIMEOUT_MS, async () => {
      const events = await world.api.list<{ reason: string; note: string; regarding: { name: string } }>(EVENTS);
      return events.some(
        ({ reason, note, regarding }) =>
          reason === "AnotherInstallation" && regarding.name === OTHER && note.includes(`${NAMESPACE}/ironfence holds`),
      );
    });

    const victim = "worker-1";
    const marks = await marksOf(scenario, victim);
    await world.host(victim).hang();
    await powerOffIsSent(scenario, victim);
    assert.equal(await holder(), `${NAMESPACE}/ironfence`);
    await first.kill();
    const killedMs = Date.now();
    await explain(scenario, "the second one works", REMEDIATION_TIMEOUT_MS, async () =>
      (await holder()).endsWith(`/${OTHER}`),
    );
    const tookMs = Date.now() - killedMs;
    // The last renewal of the first agent was at most 2 s before the kill. The second agent tries every 2 to 4.4 s.
    assert.ok(tookMs > 12_000 && tookMs < 30_000, `it took over after ${tookMs} ms`);
    await remediationEnds(scenario, victim, marks);
    await assertOrder(scenario, victim, OUT_OF_SERVICE);
    assert.equal(await world.host(victim).orderCount("ForceOff"), 1);
    assert.equal(await world.host(victim).orderCount("On"), 1);
    assert.equal(second.running, true);
  });

  void test("two installations in one cluster keep apart though a user deletes the Lease that does so: the one that works makes it again", async () => {
    const { world } = scenario;
    const before = await world.api.get<LeaseView>(REMEDIATOR_LEASE);
    const again = await scenario.startAgent();
    await world.api.send("DELETE", REMEDIATOR_LEASE);
    await explain(scenario, "the Lease is there again", REMEDIATION_TIMEOUT_MS, async () => {
      const lease = await world.api.find<LeaseView>(REMEDIATOR_LEASE);
      return lease !== undefined && lease.metadata.uid !== before.metadata.uid;
    });
    assert.equal(await holder(), before.spec?.holderIdentity);
    assert.equal(again.running, true);
  });
});
