import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { shortenTimes } from "../../hack/e2e/impatience.ts";
import { conditionForms, machinePaths } from "../../hack/e2e/machines.ts";
import { Metal3Look } from "../../hack/e2e/metal3-look.ts";
import type { Metal3World } from "../../hack/e2e/metal3-world.ts";
import { controlPlane, QUICK_HOST, startMetal3World, successorOf, workers } from "../../hack/e2e/metal3-world.ts";
import { repositoryPath } from "../../hack/e2e/world.ts";
import type { Manifest } from "../../hack/lib/apply.ts";
import { applyObject, readManifests } from "../../hack/lib/apply.ts";

// Metal3RemediationTemplates and MachineHealthChecks of v1beta2, the only served version. The stories of workers and of
// a control plane run to each possible end. Management and workload cluster are two real API servers.

const WHERE = { version: "v1beta2", namespace: "default", cluster: "capi-quickstart" } as const;
const PATHS = machinePaths(WHERE);
const STORY_TIMEOUT_MS = 150_000;
const WORKERS_CHECK = "capi-quickstart-metal3";
/** Replaces the 600 s of the examples for a reboot. A Metal3Remediation of v1beta2 itself allows no less than 100 s. */
const REBOOT_TIMEOUT = "15s";
const WORKERS = ["fails", "retries", "waits", "returns"];
const CONTROL_PLANE = ["cp-1", "cp-2", "cp-3"];

void describe("with Metal3RemediationTemplates of v1beta2, on two real API servers", { concurrency: true }, () => {
  let world: Metal3World;
  const look = new Metal3Look(() => world, STORY_TIMEOUT_MS);

  before(async () => {
    world = await startMetal3World(WHERE, {
      machines: [...workers("nodepool-1", WORKERS), ...controlPlane(CONTROL_PLANE)],
      spares: [{ ...QUICK_HOST, name: successorOf("fails") }],
    });
    await shortenTimes(world.api, { timeout: REBOOT_TIMEOUT });
    await applyExample("cluster-api-machine-health-check", [WORKERS_CHECK, "worker-remediation-request"]);
    await applyExample("machine-health-check", ["control-plane", "reboot"]);
    await world.startAgent(["--families=machine-health-check,metal3-remediation,bare-metal-host"]);
    await look.explain("all Machines are healthy", async () => {
      const checks = await Promise.all([WORKERS_CHECK, "control-plane"].map((name) => look.checkOf(name)));
      const healthy = checks.map(({ status }) => status?.currentHealthy);
      return healthy[0] === WORKERS.length && healthy[1] === CONTROL_PLANE.length;
    });
  });
  after(() => world?.stop());

  /** Applies objects of an example for this cluster, with shorter waiting times. */
  async function applyExample(file: string, names: readonly string[]): Promise<void> {
    for (const manifest of await readManifests(repositoryPath(`examples/${file}.yaml`))) {
      if (!names.includes(manifest.metadata.name)) continue;
      const text = JSON.stringify({ ...manifest, metadata: { ...manifest.metadata, namespace: WHERE.namespace } })
        .replaceAll('"clusterName":"prod"', `"clusterName":"${WHERE.cluster}"`)
        .replaceAll(/"timeoutSeconds":(?:120|300)/gu, '"timeoutSeconds":1');
      await applyObject(world.api, JSON.parse(text) as Manifest);
    }
  }

  /** Hangs a node, and hangs it again in the first boot of its host. */
  function hangTwice(name: string): void {
    const host = world.rack.host(name);
    const stop = world.rack.subscribe((event) => {
      if (event.host !== name || event.type !== "booted") return;
      stop();
      queueMicrotask(() => host.hang());
    });
    host.hang();
  }

  /** Lets a node fail and come back by itself before its power-off. */
  async function comeBackBeforePowerOff(name: string): Promise<void> {
    await look.pause(name, true);
    world.rack.host(name).hang();
    await look.explain("a request that is served", async () => {
      return (await look.requestOf(name))?.status?.phase === "Running";
    });
    world.rack.host(name).resume();
    await look.isBack(name);
    await look.pause(name, false);
    assert.deepEqual(await look.childrenOf(name), []);
    assert.deepEqual(look.ordersOf(name), []);
  }

  const reasonOf = async (check: string): Promise<string | undefined> => {
    const conditions = (await look.checkOf(check)).status?.conditions;
    return conditions?.find(({ type, status }) => type === "RemediationAllowed" && status === "False")?.reason;
  };
  const thirdIsOver = Promise.withResolvers<void>();

  void test("a worker that no reboot helps is replaced by its MachineSet, to which it is left", async () => {
    const name = "fails";
    world.rack.host(name).failDisk();
    const asked = await look.explain("a request", () => look.requestOf(name));
    assert.equal(asked.apiVersion, "infrastructure.cluster.x-k8s.io/v1beta2");
    assert.deepEqual(asked.spec, { strategy: { type: "Reboot", retryLimit: 1, timeoutSeconds: 600 } });
    await look.explain("the Machine is gone, and its request with it", async () => {
      const machine = await world.api.find(`${PATHS.machines}/${name}`);
      return machine === undefined && (await look.requestOf(name)) === undefined;
    });
    assert.deepEqual(look.ordersOf(name).slice(0, 4), ["ForceOff", "On", "ForceOff", "On"]);
    const { metadata } = await look.hostOf(name);
    assert.equal(metadata.annotations?.["capm3.metal3.io/unhealthy"], "capm3/UnhealthyNode");
    await look.explain("nothing is left of its remediation", async () => {
      return (await look.childrenOf(name)).length === 0 && (await look.holdsOf(name)).length === 0;
    });
    await look.explain("another one is healthy", async () => {
      const forms = conditionForms(await look.machineOf(successorOf(name)), "HealthCheckSucceeded");
      return forms.every((form) => form?.status === "True");
    });
  });

  void test("a worker under Metal3 v1beta2 whose first reboot does not help is rebooted again", async () => {
    const name = "retries";
    hangTwice(name);
    await look.explain("a request", () => look.requestOf(name));
    await look.isBack(name);
    assert.deepEqual(look.ordersOf(name), ["ForceOff", "On", "ForceOff", "On"]);
  });

  void test("a third worker waits while more are unhealthy than the range allows, and is rebooted then", async () => {
    const name = "waits";
    try {
      for (const other of ["fails", "retries"]) await look.explain("a request", () => look.requestOf(other));
      world.rack.host(name).hang();
      await look.explain("too many are unhealthy", async () => (await reasonOf(WORKERS_CHECK)) === "TooManyUnhealthy");
      assert.equal(await look.requestOf(name), undefined);
      await look.explain("a request", () => look.requestOf(name));
      await look.isBack(name);
      assert.deepEqual(look.ordersOf(name), ["ForceOff", "On"]);
    } finally {
      thirdIsOver.resolve();
    }
  });

  void test("a worker that is back before its power-off keeps its power, and the request goes", async () => {
    await thirdIsOver.promise;
    await comeBackBeforePowerOff("returns");
  });

  void describe("a node of the control plane", { concurrency: 1 }, () => {
    void test("a node of the control plane under Metal3 v1beta2 is rebooted, and its Machine stays", async () => {
      const name = "cp-1";
      const { uid } = (await look.machineOf(name)).metadata;
      world.rack.host(name).hang();
      await look.explain("a request", () => look.requestOf(name));
      await look.isBack(name);
      assert.deepEqual(look.ordersOf(name), ["ForceOff", "On"]);
      assert.equal((await look.machineOf(name)).metadata.uid, uid);
    });

    void test("a node of the control plane that is back before its power-off keeps its power, and the request goes", () =>
      comeBackBeforePowerOff("cp-2"));

    void test("a node of the control plane that no reboot helps is left to the control plane's own controller, in both forms of conditions", async () => {
      const name = "cp-3";
      world.rack.host(name).failDisk();
      await look.explain("the end", async () => (await look.requestOf(name))?.status?.phase === "Deleting machine");
      const machine = await look.machineOf(name);
      for (const handed of conditionForms(machine, "OwnerRemediated")) {
        assert.equal(handed?.status, "False");
        assert.equal(handed.reason, "WaitingForRemediation");
      }
      assert.equal(machine.metadata.deletionTimestamp, undefined);
      const { metadata } = await look.hostOf(name);
      assert.equal(metadata.annotations?.["capm3.metal3.io/unhealthy"], "capm3/UnhealthyNode");
      assert.deepEqual(look.ordersOf(name), ["ForceOff", "On", "ForceOff", "On"]);
    });
  });
});
