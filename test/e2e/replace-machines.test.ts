import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { after, before, describe, test } from "node:test";
import { parse } from "yaml";
import { IMAGE } from "../../hack/e2e/bare-metal-hosts.ts";
import { ALL_SIMULATED } from "../../hack/e2e/simulated-hosts.ts";
import type { NodeView, RemediationView } from "../../hack/e2e/chronicle.ts";
import { conditionOf, readyOf } from "../../hack/e2e/chronicle.ts";
import type { ObjectView } from "../../hack/e2e/machines.ts";
import { conditionForms, machinePaths } from "../../hack/e2e/machines.ts";
import { Metal3Look } from "../../hack/e2e/metal3-look.ts";
import type { Metal3World } from "../../hack/e2e/metal3-world.ts";
import { controlPlane, QUICK_HOST, startMetal3World, successorOf, workers } from "../../hack/e2e/metal3-world.ts";
import type { TargetView } from "../../hack/e2e/scenario.ts";
import { TARGETS } from "../../hack/e2e/scenario.ts";
import { NAMESPACE, repositoryPath } from "../../hack/e2e/world.ts";
import type { Manifest } from "../../hack/lib/apply.ts";
import { applyObject, readManifests } from "../../hack/lib/apply.ts";

// What follows reboots that do not help, on real API servers and with the examples: a Machine is deleted and its
// MachineSet creates another one, or Metal3 reinstalls a host that no Machine uses.

const WHERE = { version: "v1beta2", namespace: "tenant", cluster: "prod" } as const;
const PATHS = machinePaths(WHERE);
const STORY_TIMEOUT_MS = 150_000;
/** Replaces the ten minutes of the examples for the return of a node. */
const REBOOT_TIMEOUT = "15s";
const WORKERS = ["recovers", "replaced", "returns", "detached"];
const CONTROL_PLANE = ["cp-1", "cp-2", "cp-3"];
const BARE = ["bare-1", "bare-2", "bare-3"];

void describe("after reboots that do not help", { concurrency: true }, () => {
  let world: Metal3World;
  const look = new Metal3Look(() => world, STORY_TIMEOUT_MS);

  before(async () => {
    world = await startMetal3World(WHERE, {
      machines: [...workers("nodepool-0", WORKERS), ...controlPlane(CONTROL_PLANE)],
      spares: [{ ...QUICK_HOST, name: successorOf("replaced") }],
      bare: BARE.map((name) => ({ ...QUICK_HOST, name })),
    });
    // All stories begin at once, which would exceed the threshold of the example.
    await applyExample("machine-health-check", ["reboot-then-replace", "workers"], (text) =>
      text.replace('"40%"', '"100%"').replaceAll('"timeoutSeconds":120', '"timeoutSeconds":1'),
    );
    await applyExample("reprovision", ["install-again"]);
    await applyExample("node-health-check-with-reprovision", ["reboot", "workers"], (text) =>
      text.replaceAll('"duration":"300s"', '"duration":"1s"').replace('"name":"reprovision"', '"name":"install-again"'),
    );
    await world.startAgent(["--families=node-health-check,machine-health-check,bare-metal-host"]);
    await look.explain("all workers are healthy", async () => {
      return (await look.checkOf("workers")).status?.currentHealthy === WORKERS.length;
    });
  });
  after(() => world?.stop());

  /** Applies objects of an example with shorter waiting times. */
  async function applyExample(
    file: string,
    names: readonly string[],
    change: (text: string) => string = (same) => same,
  ): Promise<void> {
    for (const manifest of await readManifests(repositoryPath(`examples/${file}.yaml`))) {
      if (!names.includes(manifest.metadata.name)) continue;
      const text = JSON.stringify(manifest).replaceAll('"timeout":"600s"', `"timeout":"${REBOOT_TIMEOUT}"`);
      await applyObject(world.api, JSON.parse(change(text)) as Manifest);
    }
  }

  /** Applies the FencingTarget of docs/reference/cluster-api.md for a node of the workload cluster. */
  async function applyTarget(name: string): Promise<void> {
    const document = await readFile(repositoryPath("docs/reference/cluster-api.md"), "utf8");
    const block = [...document.matchAll(/```yaml\n([^`]*clusterRef:[^`]*)```/gu)].map(([, yaml = ""]) => yaml)[0];
    const text = JSON.stringify(parse(block ?? ""))
      .replace('"worker-3"', `"${name}"`)
      .replace('{"namespace":"caps","name":"w1"}', JSON.stringify({ namespace: WHERE.namespace, name: WHERE.cluster }));
    const { spec } = JSON.parse(text) as { spec: object };
    const metadata = { namespace: NAMESPACE, name };
    const annotations = { "ironfence.io/allowed-addresses": ALL_SIMULATED };
    const secret = { apiVersion: "v1", kind: "Secret", metadata: { ...metadata, annotations } };
    await applyObject(world.api, { ...secret, stringData: world.hosts.login });
    const device = {
      address: world.hosts.address(name),
      credentialsSecretRef: { name },
      tls: { caSecretRef: { name } },
    };
    await applyObject(world.api, {
      apiVersion: "ironfence.io/v1alpha1",
      kind: "FencingTarget",
      metadata,
      spec: { ...spec, devices: [device] },
    });
  }

  const remediationOf = (name: string): Promise<RemediationView | undefined> =>
    world.api.find<RemediationView>(`${PATHS.remediations}/${name}`);
  /** Waits until the node is Ready without taints, and its remediation and the off requests of the host are gone. */
  const isBack = (name: string): Promise<unknown> =>
    look.explain(`${name} is back, and nothing is left of its remediation`, async () => {
      const node = await look.nodeOf(name);
      if (readyOf(node) !== "True" || (node.spec.taints ?? []).length > 0) return false;
      return (await remediationOf(name)) === undefined && (await look.holdsOf(name)).length === 0;
    });

  void test("a worker that a reboot helps keeps its Machine", async () => {
    const name = "recovers";
    const { uid } = (await look.machineOf(name)).metadata;
    world.rack.host(name).hang();
    await look.explain("a request", () => remediationOf(name));
    await isBack(name);
    assert.deepEqual(look.ordersOf(name), ["ForceOff", "On"]);
    assert.equal((await look.machineOf(name)).metadata.uid, uid);
  });

  void test("a worker that no reboot helps has its Machine deleted by the same remediation, and another one takes its place", async () => {
    const name = "replaced";
    const powerWhenDeleted: string[] = [];
    const remediations = new Set<string>();
    const watching = new AbortController();
    const watch = (path: string, see: (object: ObjectView) => void): Promise<void> =>
      world.api.watch<ObjectView>(
        `${path}?fieldSelector=metadata.name=${name}`,
        ({ object }) => see(object),
        watching.signal,
      );
    const watched = [
      watch(PATHS.machines, ({ metadata }) => {
        if (metadata.deletionTimestamp !== undefined) powerWhenDeleted.push(world.rack.host(name).power);
      }),
      watch(PATHS.remediations, ({ metadata }) => remediations.add(metadata.uid)),
    ];
    world.rack.host(name).failDisk();
    await look.explain("the Machine is gone", async () => {
      return (await world.api.find(`${PATHS.machines}/${name}`)) === undefined;
    });
    watching.abort();
    await Promise.all(watched);
    assert.equal(remediations.size, 1, "one remediation did it all");
    assert.equal(powerWhenDeleted[0], "Off", "it is deleted while its host is proven off");
    assert.deepEqual(look.ordersOf(name), ["ForceOff", "On", "ForceOff", "On", "ForceOff"]);
    await look.explain("another one is healthy", async () => {
      const forms = conditionForms(await look.machineOf(successorOf(name)), "HealthCheckSucceeded");
      return forms.every((form) => form?.status === "True");
    });
    await look.explain("nothing is left of its remediation", async () => {
      return (await remediationOf(name)) === undefined && (await look.holdsOf(name)).length === 0;
    });
    assert.equal(world.rack.host(name).power, "Off", "no agent powers a host that was released");
  });

  void test("a worker that is back before its power-off keeps its power and its Machine", async () => {
    const name = "returns";
    await look.pause(name, true);
    world.rack.host(name).hang();
    await look.explain("a request that waits", async () => {
      return conditionOf(await remediationOf(name), "Processing")?.reason === "Maintenance";
    });
    world.rack.host(name).resume();
    await isBack(name);
    await look.pause(name, false);
    assert.deepEqual(look.ordersOf(name), []);
  });

  void test("a worker whose host Metal3 has detached is rebooted through the FencingTarget of the guide", async () => {
    const name = "detached";
    const host = `${PATHS.hosts}/${name}`;
    await world.api.mergePatch(host, { metadata: { annotations: { "baremetalhost.metal3.io/detached": "" } } });
    await look.explain("the operator has let go", async () => {
      const { status } = await world.api.get<{ status: { operationalStatus: string } }>(host);
      return status.operationalStatus === "detached";
    });
    await applyTarget(name);
    await look.explain("the target is Ready: its host is the node's", async () => {
      const { status } = await world.api.get<TargetView>(`${TARGETS}/${name}`);
      return status?.conditions?.some(({ type, status: value }) => type === "Ready" && value === "True");
    });
    world.rack.host(name).hang();
    const asked = await look.explain("a request that has its host", async () => {
      const found = await remediationOf(name);
      return found?.status?.target !== undefined && found;
    });
    assert.equal(asked.status?.target?.kind, "FencingTarget");
    await isBack(name);
    assert.deepEqual(look.ordersOf(name), ["ForceOff", "On"]);
  });

  void test("a Machine of the control plane is left to its owner, in both forms of conditions, and its host is on", async () => {
    const name = "cp-1";
    world.rack.host(name).failDisk();
    await look.explain("the node is dead", async () => readyOf(await look.nodeOf(name)) === "Unknown");
    // The health check of Cluster API does the same with such a template.
    const { apiVersion, metadata } = await look.machineOf(name);
    const template = await world.api.get<{ spec: { template: { spec: object } } }>(
      `/apis/ironfence.io/v1alpha1/namespaces/${WHERE.namespace}/baremetalremediationtemplates/reboot-then-replace`,
    );
    await world.api.create(PATHS.remediations, {
      apiVersion: "ironfence.io/v1alpha1",
      kind: "BareMetalRemediation",
      metadata: { name, ownerReferences: [{ apiVersion, kind: "Machine", name, uid: metadata.uid }] },
      spec: template.spec.template.spec,
    });
    const verdict = await look.explain("the end", async () => {
      const succeeded = conditionOf(await remediationOf(name), "Succeeded");
      return succeeded?.status === "False" && succeeded;
    });
    assert.equal(verdict.reason, "ControlPlaneNode");
    const machine = await look.machineOf(name);
    for (const handed of conditionForms(machine, "OwnerRemediated")) {
      assert.equal(handed?.status, "False");
      assert.equal(handed.reason, "WaitingForRemediation");
    }
    assert.equal(machine.metadata.deletionTimestamp, undefined);
    assert.deepEqual(look.ordersOf(name), ["ForceOff", "On", "ForceOff", "On"]);
    assert.equal(world.rack.host(name).power, "On");
  });

  void test("a host that no Machine uses is reinstalled by Metal3, and its node joins with what it carried", async () => {
    const name = "bare-1";
    const node = (): Promise<NodeView | undefined> => world.api.find<NodeView>(`/api/v1/nodes/${name}`);
    await world.api.mergePatch(`/api/v1/nodes/${name}`, { metadata: { labels: { "example.com/rack": "r7" } } });
    const before = await node();
    const { machineID } = world.rack.host(name);
    world.rack.host(name).failDisk();
    await look.explain("the node has joined again, and nothing is left of its remediations", async () => {
      const found = await node();
      if (found === undefined || readyOf(found) !== "True" || found.metadata.uid === before?.metadata.uid) return false;
      const left = await world.api.list(`/apis/ironfence.io/v1alpha1/namespaces/${NAMESPACE}/baremetalremediations`);
      return left.length === 0 && (found.spec.taints ?? []).length === 0;
    });
    assert.equal((await node())?.metadata.labels?.["example.com/rack"], "r7");
    assert.notEqual(world.rack.host(name).machineID, machineID, "it was reinstalled");
    const host = await look.hostOf(name);
    assert.deepEqual(host.spec["image"], IMAGE);
    assert.deepEqual(await look.holdsOf(name), []);
    for (const other of BARE.slice(1)) assert.deepEqual(look.ordersOf(other), []);
  });
});
