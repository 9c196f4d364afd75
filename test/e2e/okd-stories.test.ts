import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import type { ConsumerRef } from "../../hack/e2e/bare-metal-hosts.ts";
import {
  createBareMetalHost,
  createCredentials,
  giveHost,
  OPERATOR,
  takeHostBack,
} from "../../hack/e2e/bare-metal-hosts.ts";
import type { RemediationView } from "../../hack/e2e/chronicle.ts";
import { conditionOf } from "../../hack/e2e/chronicle.ts";
import { eventually } from "../../hack/e2e/eventually.ts";
import { shortenTimes } from "../../hack/e2e/impatience.ts";
import { MACHINE_FINALIZER, playMachineControllers } from "../../hack/e2e/machine-controllers.ts";
import type { ObjectView } from "../../hack/e2e/machines.ts";
import type { RackWorld } from "../../hack/e2e/rack-world.ts";
import { startRackWorld } from "../../hack/e2e/rack-world.ts";
import { TARGETS } from "../../hack/e2e/scenario.ts";
import { repositoryPath } from "../../hack/e2e/world.ts";
import type { Manifest } from "../../hack/lib/apply.ts";
import { applyManifests, applyObject, readManifests } from "../../hack/lib/apply.ts";
import { startBareMetalHostOperator } from "../../hack/rack/bare-metal-host-operator.ts";
import type { HostSpec } from "../../hack/rack/host.ts";
import { systemClock } from "../../src/runtime/system.ts";
import { createLogger } from "../../src/telemetry/logger.ts";

// MachineHealthChecks of OKD on a real API server, to each possible end: a retry, a final failure, an abort, with
// FencingTargets and with BareMetalHosts, with external-baremetal and without. The stories run in parallel, each on its
// own hosts.

const NAMESPACE = "openshift-machine-api";
const OKD = "machine.openshift.io/v1beta1";
const ROOT = `/apis/${OKD}/namespaces/${NAMESPACE}`;
const MACHINES = `${ROOT}/machines`;
const HEALTH_CHECKS = `${ROOT}/machinehealthchecks`;
const HOSTS = `/apis/metal3.io/v1alpha1/namespaces/${NAMESPACE}/baremetalhosts`;
const REQUEST = "host.metal3.io/external-remediation";
const STRATEGY = "machine.openshift.io/remediation-strategy";
const ROLE = "machine.openshift.io/cluster-api-machine-role";
const TYPE = "machine.openshift.io/cluster-api-machine-type";
const MASTER = "node-role.kubernetes.io/control-plane";
const STORY_TIMEOUT_MS = 180_000;
/** Replaces the ten minutes of the example for the start of a node. */
const STARTUP = "20s";
/** The template of examples/machine-health-check.yaml. */
const TEMPLATE = {
  apiVersion: "ironfence.io/v1alpha1",
  kind: "BareMetalRemediationTemplate",
  name: "reboot-then-replace",
};
const HOST: Omit<HostSpec, "name"> = {
  powerOffDelayMs: 1_000,
  powerOnDelayMs: 1_000,
  bootMs: 1_000,
  reprovisionMs: 1_000,
};
/** Delay of an order that is acknowledged and never reaches its host. */
const NEVER_MS = 3_600_000;

const FENCED = ["returns", "retries", "replaced", "stuck", "withdrawn"];
const BY_OPERATOR = ["host-recovers", "host-replaced", "host-external"];
const MASTERS = ["master-1", "master-2", "master-3"];
/** Machines with separate health checks. */
const LEFT = "left";
const TEMPLATED = "templated";
const DELETED = ["deleted", "spared", "healthy"];
/** Hosts that are off until their Machines are created. */
const SUCCESSORS = ["replaced", "deleted", "host-replaced"].map(successorOf);

void describe("health checks of OKD's form go through their whole stories", { concurrency: true }, () => {
  const living = new AbortController();
  const background: Promise<void>[] = [];
  let world: RackWorld;

  before(async () => {
    const host = (name: string): HostSpec => ({ ...HOST, name });
    const targets: HostSpec[] = [
      ...[...FENCED, LEFT, TEMPLATED, ...DELETED].map(host),
      ...MASTERS.map((name) => ({ ...host(name), labels: { [MASTER]: "" } })),
    ];
    const spares = SUCCESSORS.map((name): HostSpec => ({ ...host(name), power: "Off" }));
    world = await startRackWorld([...targets, ...BY_OPERATOR.map(host), ...spares], { targets });
    const { api, client, rack } = world;
    for (const group of ["machine.openshift.io", "metal3.io"]) {
      await applyManifests(api, repositoryPath(`hack/foreign-crds/${group}.yaml`));
    }
    await applyObject(api, { apiVersion: "v1", kind: "Namespace", metadata: { name: NAMESPACE } });
    for (const family of ["okd", "okd-machine", "okd-machine-health-check", "bare-metal-host"]) {
      await applyManifests(api, repositoryPath(`deploy/families/${family}`));
    }
    await applyManifests(api, repositoryPath("examples/bare-metal-host-credentials.yaml"), (manifest) => ({
      ...manifest,
      metadata: { ...manifest.metadata, namespace: NAMESPACE },
    }));
    // By default a power-off may take two minutes. This shortens the wait for one that never completes.
    await shortenTimes(api, { powerOffTimeout: "15s" }, "stuck-");
    await applyObject(api, machineSet());
    const operator = startBareMetalHostOperator(
      { client, clock: systemClock, logger: createLogger("silent"), rack },
      OPERATOR,
      living.signal,
    );
    const onError = (error: unknown): void => void process.stderr.write(`e2e: Machines: ${String(error)}\n`);
    const machines = playMachineControllers(
      {
        api,
        machines: MACHINES,
        nodes: api,
        replace,
        takeHostBack: async ({ metadata: { name } }) =>
          !BY_OPERATOR.includes(name) || takeHostBack(api, NAMESPACE, name),
      },
      onError,
      living.signal,
    );
    background.push(operator.settled, machines);
    const worker = { [ROLE]: "worker", [TYPE]: "worker" };
    for (const name of [...FENCED, ...BY_OPERATOR]) await createMachine(name, worker);
    for (const name of [LEFT, TEMPLATED]) await createMachine(name, { ...worker, [TYPE]: name });
    for (const name of DELETED) await createMachine(name, { ...worker, [TYPE]: "deleted" });
    for (const name of MASTERS) await createMachine(name, { [ROLE]: "master", [TYPE]: "master" });
    for (const manifest of await readManifests(repositoryPath("examples/machine-health-check.yaml"))) {
      if (manifest.metadata.name !== TEMPLATE.name) continue;
      await applyObject(api, { ...manifest, metadata: { ...manifest.metadata, namespace: NAMESPACE } });
    }
    await createCredentials(api, NAMESPACE, world.hosts);
    for (const name of BY_OPERATOR) {
      const consumerRef = consumerOf(name);
      const state = name === "host-external" ? "externally provisioned" : "provisioned";
      await createBareMetalHost(api, NAMESPACE, world.hosts, { name, state, consumerRef });
    }
    await createBareMetalHost(api, NAMESPACE, world.hosts, { name: successorOf("host-replaced"), state: "available" });

    await applyHealthCheck("workers", {});
    await applyHealthCheck("masters", { role: "master", type: "master" });
    await applyHealthCheck(LEFT, { type: LEFT });
    await applyHealthCheck(TEMPLATED, { type: TEMPLATED, remedy: "template" });
    await world.startAgent(["--families=okd-machine-health-check,okd-machine,bare-metal-host"]);
    await explain("all Machines are healthy", async () => {
      const checks = await api.list<ObjectView>(HEALTH_CHECKS);
      const healthy = checks.map(({ status }) => status?.currentHealthy ?? 0);
      return healthy.reduce((sum, count) => sum + count, 0) === FENCED.length + BY_OPERATOR.length + MASTERS.length + 2;
    });
  });
  after(async () => {
    living.abort();
    await Promise.all(background);
    await world?.stop();
  });

  const explain = <T>(what: string, ask: () => Promise<T | undefined | false>): Promise<T> =>
    eventually(what, STORY_TIMEOUT_MS, ask, async () => {
      const [machines, children] = await Promise.all([world.api.list(MACHINES), world.remediations()]);
      const objects = [...machines, ...children].map((object) => JSON.stringify(object));
      return [...objects, ...world.agents.map((agent) => agent.log())].join("\n");
    });
  const machineOf = (name: string): Promise<ObjectView | undefined> =>
    world.api.find<ObjectView>(`${MACHINES}/${name}`);
  const uidOf = async (name: string): Promise<string | undefined> => (await machineOf(name))?.metadata.uid;
  const isAsked = async (name: string): Promise<boolean> =>
    (await machineOf(name))?.metadata.annotations?.[REQUEST] !== undefined;
  const childOf = async (name: string): Promise<RemediationView | undefined> => {
    const { items } = await world.api.get<{ items: RemediationView[] }>(
      `/apis/ironfence.io/v1alpha1/namespaces/${NAMESPACE}/baremetalremediations`,
    );
    return items.find(({ metadata }) => new RegExp(`^${name}-[0-9a-f]{8}$`, "u").test(metadata.name));
  };
  const nodeOf = (name: string): Promise<ObjectView | undefined> => world.api.find<ObjectView>(`/api/v1/nodes/${name}`);
  const isReady = async (name: string): Promise<boolean> => {
    const conditions = (await nodeOf(name))?.status?.conditions;
    return conditions?.some(({ type, status }) => type === "Ready" && status === "True") === true;
  };
  /** The types of orders that had an effect on the host. */
  const ordersOf = (name: string): string[] => {
    const started = world.rack.host(name).orders.filter(({ outcome }) => outcome === "Started");
    return started.map(({ type }) => type);
  };
  const holdsOf = async (name: string): Promise<string[]> => {
    const { metadata } = await world.api.get<ObjectView>(`${HOSTS}/${name}`);
    return Object.keys(metadata.annotations ?? {}).filter((key) => key.startsWith("reboot.metal3.io/"));
  };
  /** The Events of a Machine. */
  const notesOf = async (name: string, reason: string): Promise<string[]> => {
    const events = await world.api.list<{ reason: string; note: string; regarding: { name: string } }>(
      `/apis/events.k8s.io/v1/namespaces/${NAMESPACE}/events`,
    );
    return events.filter((event) => event.regarding.name === name && event.reason === reason).map(({ note }) => note);
  };
  /** Waits until the child remediation waits or fails an attempt for this reason. */
  const saysWhy = (name: string, reason: string): Promise<unknown> =>
    explain(`the remediation of ${name} says ${reason}`, async () => {
      return conditionOf(await childOf(name), "Processing")?.reason === reason;
    });
  const isIn = (name: string, phase: string): Promise<unknown> =>
    explain(`the remediation of ${name} is ${phase}`, async () => (await childOf(name))?.status?.phase === phase);
  /** Waits until the node is Ready, the Machine has no annotation of its request, and the child remediation is gone. */
  const isOver = (name: string): Promise<unknown> =>
    explain(`${name} is back, and nothing is left of its remediation`, async () => {
      const annotations = Object.keys((await machineOf(name))?.metadata.annotations ?? {});
      if (annotations.some((key) => key === REQUEST || key.startsWith("remediation.metal3.io/"))) return false;
      return (await isReady(name)) && (await childOf(name)) === undefined;
    });

  async function createMachine(name: string, labels: Readonly<Record<string, string>>): Promise<void> {
    const { api } = world;
    const set = await api.get<ObjectView>(`${ROOT}/machinesets/workers`);
    const owner = { apiVersion: OKD, kind: "MachineSet", name: "workers", uid: set.metadata.uid, controller: true };
    const isMaster = labels[ROLE] === "master";
    await api.create(MACHINES, {
      apiVersion: OKD,
      kind: "Machine",
      metadata: {
        name,
        labels,
        finalizers: [MACHINE_FINALIZER],
        annotations: { "metal3.io/BareMetalHost": `${NAMESPACE}/${name}` },
        ...(!isMaster && { ownerReferences: [owner] }),
      },
      spec: {},
    });
    await api.mergePatch(`${MACHINES}/${name}/status`, { status: { phase: "Running" } });
  }

  /** Creates another Machine of the same kind on the spare host, as the MachineSet and the provider do. */
  async function replace({ metadata: { name, labels = {} } }: ObjectView): Promise<void> {
    const successor = successorOf(name);
    if ((await machineOf(successor)) === undefined) await createMachine(successor, labels);
    if (BY_OPERATOR.includes(name)) await giveHost(world.api, NAMESPACE, successor, consumerOf(successor));
    else world.rack.host(successor).order("On");
  }

  /** Applies the example under another name for other Machines, with shorter waiting times. */
  async function applyHealthCheck(
    name: string,
    {
      role = "worker",
      type = "worker",
      remedy = "fence",
    }: { role?: string; type?: string; remedy?: "fence" | "delete" | "template" },
  ): Promise<void> {
    const [example] = await readManifests(repositoryPath("examples/okd-machine-health-check.yaml"));
    assert.ok(example);
    let text = JSON.stringify(example)
      .replaceAll('"300s"', '"1s"')
      .replace('"10m"', `"${STARTUP}"`)
      .replace('"name":"workers"', `"name":"${name}"`)
      .replace(`"${ROLE}":"worker"`, `"${ROLE}":"${role}"`)
      .replace(`"${TYPE}":"worker"`, `"${TYPE}":"${type}"`);
    // All stories of power fencing run at once, which would exceed the threshold of the example.
    if (remedy !== "delete") text = text.replace('"40%"', '"100%"');
    if (remedy !== "fence") text = text.replace(`,"${STRATEGY}":"external-baremetal"`, "");
    if (remedy === "template")
      text = text.replace('"spec":{', `"spec":{"remediationTemplate":${JSON.stringify(TEMPLATE)},`);
    await applyObject(world.api, JSON.parse(text) as Manifest);
  }

  void test("a node that is back before its power-off keeps its power and its Node, and no longer has a request", async () => {
    const name = "returns";
    const maintain = (maintenance: boolean): Promise<unknown> =>
      world.api.mergePatch(`${TARGETS}/${name}`, { spec: { maintenance } });
    const before = await nodeOf(name);
    await maintain(true);
    world.rack.host(name).hang();
    await saysWhy(name, "Maintenance");
    world.rack.host(name).resume();
    await explain("the node is back", () => isReady(name));
    await maintain(false);
    await isOver(name);
    assert.deepEqual(ordersOf(name), []);
    assert.equal((await nodeOf(name))?.metadata.uid, before?.metadata.uid);
  });

  void test("a power-off that comes late and a power cycle that does not help are tried again", async () => {
    const name = "retries";
    const { host, bmc } = { host: world.rack.host(name), bmc: world.rack.bmc(name) };
    await world.api.mergePatch(`/api/v1/nodes/${name}`, { metadata: { labels: { "example.com/rack": "r7" } } });
    const uid = await uidOf(name);
    // The BMC does not answer, then loses an order, then the host hangs in its first boot.
    bmc.setReachability("refused");
    bmc.orderDelayMs = NEVER_MS;
    const stop = world.rack.subscribe((event) => {
      if (event.host !== name || event.type !== "booted") return;
      stop();
      queueMicrotask(() => host.hang());
    });
    host.hang();
    await saysWhy(name, "BMCUnreachable");
    bmc.setReachability("up");
    await explain("an order is lost", async () => {
      const attempt = (await childOf(name))?.status?.attempt;
      return attempt?.action === "ForceOff" && attempt.sent;
    });
    bmc.orderDelayMs = 0;
    await isOver(name);
    assert.deepEqual(ordersOf(name), ["ForceOff", "On", "ForceOff", "On"]);
    assert.equal(await uidOf(name), uid);
    assert.equal((await nodeOf(name))?.metadata.labels?.["example.com/rack"], "r7");
    await explain("the result is reported", async () => (await notesOf(name, "RemediationSucceeded")).length === 1);
  });

  void test("a Machine whose host does not come back is deleted while that is off, and another one takes its place", async () => {
    const name = "replaced";
    world.rack.host(name).failDisk();
    await explain("the Machine is gone", async () => (await machineOf(name)) === undefined);
    assert.equal(world.rack.host(name).power, "Off");
    assert.deepEqual(ordersOf(name), ["ForceOff", "On", "ForceOff", "On", "ForceOff"]);
    await explain("its remediation is gone", async () => (await childOf(name)) === undefined);
    await explain("another one is healthy", async () => isReady(successorOf(name)));
    assert.equal(world.rack.host(name).power, "Off", "no agent powers the host of a deleted Machine");
    assert.equal(await isAsked(successorOf(name)), false);
  });

  void test("a Machine whose power-off never completes stays, and an Event informs the operator; nothing is left once the node is back", async () => {
    const name = "stuck";
    const uid = await uidOf(name);
    world.rack.bmc(name).orderDelayMs = NEVER_MS;
    world.rack.host(name).hang();
    const [note = ""] = await explain("an Event informs the operator", async () => {
      const notes = await notesOf(name, "RemediationFailed");
      return notes.length > 0 && notes;
    });
    assert.match(note, /^PowerOffTimeout: .*not reprovisioned: only 0 of 2 reboots proved the host off/u);
    assert.ok(await isAsked(name), "the request still exists, for another try");
    assert.equal(await uidOf(name), uid);
    world.rack.host(name).resume();
    await isOver(name);
    assert.deepEqual(ordersOf(name), []);
  });

  void test("a request that is withdrawn during its fence is undone: the host is on, and the Node is as before", async () => {
    const name = "withdrawn";
    await world.api.mergePatch(`/api/v1/nodes/${name}`, { metadata: { labels: { "example.com/rack": "r7" } } });
    world.rack.host(name).spec.powerOnDelayMs = 8_000;
    world.rack.host(name).hang();
    await isIn(name, "PoweringOn");
    assert.equal(await nodeOf(name), undefined, "the Node was deleted");
    // Otherwise the health check would find the Machine unhealthy and request another remediation.
    await world.api.mergePatch(`${MACHINES}/${name}`, {
      metadata: { labels: { [TYPE]: "unchecked" }, annotations: { [REQUEST]: null } },
    });
    await isOver(name);
    assert.deepEqual(ordersOf(name), ["ForceOff", "On"]);
    assert.equal((await nodeOf(name))?.metadata.labels?.["example.com/rack"], "r7");
  });

  void test("a power fence whose health check is deleted meanwhile goes on to its end", async () => {
    const name = LEFT;
    world.rack.host(name).spec.powerOnDelayMs = 8_000;
    world.rack.host(name).hang();
    await isIn(name, "PoweringOn");
    await world.api.delete(`${HEALTH_CHECKS}/${LEFT}`);
    await isOver(name);
    assert.deepEqual(ordersOf(name), ["ForceOff", "On"]);
    await explain("the result is reported", async () => (await notesOf(name, "RemediationSucceeded")).length === 1);
  });

  void test("a master is power-fenced, and never deleted, with external-baremetal or without", async () => {
    const name = "master-1";
    const host = world.rack.host(name);
    host.failDisk();
    await explain("an Event informs the operator", async () => (await notesOf(name, "RemediationFailed")).length > 0);
    assert.deepEqual(ordersOf(name), ["ForceOff", "On", "ForceOff", "On"]);
    assert.equal(host.power, "On");
    await world.api.mergePatch(`${HEALTH_CHECKS}/masters`, { metadata: { annotations: { [STRATEGY]: null } } });
    await explain("the skipped master is reported", async () => (await notesOf(name, "SkippedMaster")).length > 0);
    assert.equal((await machineOf(name))?.metadata.deletionTimestamp, undefined);
    for (const other of MASTERS.slice(1)) assert.deepEqual(ordersOf(other), []);
  });

  void test("the host of a BareMetalHost is kept off by its operator, and released", async () => {
    const name = "host-recovers";
    const [uid, before] = await Promise.all([uidOf(name), nodeOf(name)]);
    world.rack.host(name).hang();
    await explain("its operator is asked", async () => (await holdsOf(name)).length > 0);
    await isOver(name);
    assert.deepEqual(await holdsOf(name), []);
    assert.deepEqual(ordersOf(name), ["ForceOff", "On"]);
    assert.equal(await uidOf(name), uid);
    assert.notEqual((await nodeOf(name))?.metadata.uid, before?.metadata.uid, "the Node was deleted");
  });

  void test("a Machine whose BareMetalHost does not come back is deleted while that is kept off, and another one gets a host", async () => {
    const name = "host-replaced";
    world.rack.host(name).failDisk();
    await explain("the Machine is gone", async () => (await machineOf(name)) === undefined);
    assert.deepEqual(ordersOf(name), ["ForceOff", "On", "ForceOff", "On", "ForceOff"]);
    await explain("nothing is left of its remediation", async () => {
      return (await childOf(name)) === undefined && (await holdsOf(name)).length === 0;
    });
    await explain("another one is healthy", async () => isReady(successorOf(name)));
    assert.equal(world.rack.host(name).power, "Off", "no agent powers a host that was released");
  });

  void test("a Machine on an externally provisioned host is never deleted, and its host is left on", async () => {
    const name = "host-external";
    world.rack.host(name).failDisk();
    const [note = ""] = await explain("an Event informs the operator", async () => {
      const notes = await notesOf(name, "RemediationFailed");
      return notes.length > 0 && notes;
    });
    assert.match(note, /externally provisioned/u);
    assert.doesNotMatch(note, /OwnerRemediated/u, "OKD knows no such condition");
    assert.equal((await machineOf(name))?.metadata.deletionTimestamp, undefined);
    assert.deepEqual(ordersOf(name), ["ForceOff", "On", "ForceOff", "On"]);
    assert.deepEqual(await holdsOf(name), []);
  });

  void test("the request from a template of ironfence is created, served, and deleted when the node is back", async () => {
    const name = TEMPLATED;
    const [machine, before] = await Promise.all([machineOf(name), nodeOf(name)]);
    const request = (): Promise<ObjectView | undefined> =>
      world.api.find<ObjectView>(`/apis/ironfence.io/v1alpha1/namespaces/${NAMESPACE}/baremetalremediations/${name}`);
    world.rack.host(name).hang();
    const asked = await explain("a request", request);
    assert.deepEqual(asked.metadata.ownerReferences, [
      { apiVersion: OKD, kind: "Machine", name, uid: machine?.metadata.uid },
    ]);
    await explain("the node is back, and the request gone", async () => {
      return (await isReady(name)) && (await request()) === undefined;
    });
    assert.deepEqual(ordersOf(name), ["ForceOff", "On"]);
    assert.equal(await uidOf(name), machine?.metadata.uid);
    assert.equal((await nodeOf(name))?.metadata.uid, before?.metadata.uid);
    assert.equal(await isAsked(name), false);
  });

  void test("no Machine is deleted without external-baremetal while too many are unhealthy, and none that is healthy again afterwards", async () => {
    const [dead, spared] = ["deleted", "spared"] as const;
    const uid = await uidOf(spared);
    const check = (): Promise<ObjectView> => world.api.get<ObjectView>(`${HEALTH_CHECKS}/deleted`);
    for (const name of [dead, spared]) world.rack.host(name).hang();
    for (const name of [dead, spared]) await explain(`${name} is dead`, async () => !(await isReady(name)));
    // 40 % of three allows one.
    await applyHealthCheck("deleted", { type: "deleted", remedy: "delete" });
    await explain("too many are unhealthy", async () => {
      const { conditions, currentHealthy, remediationsAllowed } = (await check()).status ?? {};
      const isShort = conditions?.some(({ type, status }) => type === "RemediationAllowed" && status === "False");
      return isShort === true && currentHealthy === 1 && remediationsAllowed === 0;
    });
    for (const name of [dead, spared]) assert.equal((await machineOf(name))?.metadata.deletionTimestamp, undefined);
    world.rack.host(spared).resume();
    await explain("the dead one is gone", async () => (await machineOf(dead)) === undefined);
    await explain("all are healthy", async () => (await check()).status?.currentHealthy === DELETED.length);
    assert.equal(await uidOf(spared), uid);
    assert.deepEqual([...ordersOf(dead), ...ordersOf(spared)], []);
  });
});

function consumerOf(name: string): ConsumerRef {
  return { apiVersion: OKD, kind: "Machine", namespace: NAMESPACE, name };
}

function successorOf(name: string): string {
  return `${name}-successor`;
}

function machineSet(): Manifest {
  return {
    apiVersion: OKD,
    kind: "MachineSet",
    metadata: { namespace: NAMESPACE, name: "workers" },
    spec: { replicas: FENCED.length + BY_OPERATOR.length + DELETED.length + 2 },
  };
}
