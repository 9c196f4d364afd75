import assert from "node:assert/strict";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import type { TestContext } from "node:test";
import { setTimeout as wait } from "node:timers/promises";
import { Registry } from "prom-client";
import { NAMESPACES } from "../../hack/kube-mock/controllers/cluster-types.ts";
import { startClusterControllers } from "../../hack/kube-mock/controllers/cluster-controllers.ts";
import { startKubeMock } from "../../hack/kube-mock/kube-mock.ts";
import type { KubeMock } from "../../hack/kube-mock/kube-mock.ts";
import { createCertificateAuthority } from "../../hack/lib/pki.ts";
import { readForeignCrds } from "../../hack/lib/crds.ts";
import { startBareMetalHostOperator } from "../../hack/rack/bare-metal-host-operator.ts";
import { startKubelets } from "../../hack/rack/kubelet.ts";
import { createRack } from "../../hack/rack/rack.ts";
import type { Rack } from "../../hack/rack/rack.ts";
import { startRedfishMock } from "../../hack/redfish-mock/server.ts";
import type { BareMetalRemediation } from "../../src/api/bare-metal-remediation.ts";
import { BARE_METAL_REMEDIATIONS } from "../../src/api/bare-metal-remediation.ts";
import { NODES, PODS, SECRETS } from "../../src/api/core-types.ts";
import type { Node } from "../../src/api/core.ts";
import type { FencingTarget } from "../../src/api/fencing-target.ts";
import { FENCING_TARGETS } from "../../src/api/fencing-target.ts";
import { trimNode } from "../../src/api/trim.ts";
import { openDevice } from "../../src/bmc/open-device.ts";
import { createKubeRuntime } from "../../src/kube/create-runtime.ts";
import { loadCluster } from "../../src/kube/credentials.ts";
import { createHttpTransport } from "../../src/kube/http-transport.ts";
import { BARE_METAL_HOSTS } from "../../src/remediator/targets/bare-metal-host/host-store.ts";
import { runRemediator } from "../../src/remediator/remediator.ts";
import { NO_WORKLOAD_CLUSTERS } from "../lib/workload-clusters.ts";
import { Secret } from "../../src/runtime/secret.ts";
import { systemClock, systemRandom } from "../../src/runtime/system.ts";
import { createLogger } from "../../src/telemetry/logger.ts";

// The remediator on sockets: HTTPS to an API server, Redfish over HTTPS to the BMC, real time.

const NAMESPACE = "ironfence";
const PASSWORD = "correct-horse";
const DEADLINE_MS = 30_000;

interface Fixture {
  mock: KubeMock;
  rack: Rack;
}

interface Options {
  password?: string;
  /** The host is described by a BareMetalHost, with its operator at work, in place of a FencingTarget. */
  bareMetalHost?: boolean;
}

async function setUp(t: TestContext, { password = PASSWORD, bareMetalHost = false }: Options = {}): Promise<Fixture> {
  const stop = new AbortController();
  const deps = { clock: systemClock, random: systemRandom };
  const logger = createLogger("silent");
  const rack = createRack({
    ...deps,
    hosts: [
      { name: "n1", providerID: "metal3://metal3/n1/m1", powerOffDelayMs: 200, powerOnDelayMs: 200, bootMs: 300 },
    ],
  });
  const authority = await createCertificateAuthority(systemClock, "test BMCs");
  const tls = await authority.issue({ commonName: "bmc", ipAddresses: ["127.0.0.1"], usage: "server" });
  const redfish = await startRedfishMock({
    ...deps,
    rack,
    hosts: ["n1"],
    tls,
    username: "fencing",
    password: new Secret(PASSWORD),
  });
  const mock = await startKubeMock({ ...deps, tls: true });
  const { server } = mock;
  for (const crd of ["baremetalremediations", "fencingtargets"]) {
    server.load(await readFile(new URL(`../../deploy/crds/ironfence.io_${crd}.yaml`, import.meta.url), "utf8"));
  }
  for (const text of await readForeignCrds()) server.load(text);
  for (const name of [NAMESPACE, "metal3", "kube-node-lease"]) {
    if (server.collection(NAMESPACES).get({ name }) === undefined)
      server.collection(NAMESPACES).create({ metadata: { name } });
  }
  const data = { username: base64("fencing"), password: base64(password), "ca.crt": base64(authority.certPem) };
  const address = redfish.url.replace(/^https/, "redfish+https");
  const namespace = bareMetalHost ? "metal3" : NAMESPACE;
  server.collection(SECRETS).create({ metadata: { namespace, name: "bmc" }, data });
  if (bareMetalHost) {
    const { serialNumber } = rack.host("n1").spec;
    describeHost(mock, `${address}${redfish.systemPath("n1")}`, serialNumber);
  } else {
    server.collection(FENCING_TARGETS).create({
      metadata: { namespace, name: "n1" },
      spec: {
        nodeName: "n1",
        identity: { systemUUID: rack.host("n1").spec.systemUUID },
        devices: [{ address, credentialsSecretRef: { name: "bmc" }, tls: { caSecretRef: { name: "bmc" } } }],
      },
    });
  }
  const stopControllers = startClusterControllers(
    { server, clock: systemClock },
    {
      statefulSets: false,
      scheduler: false,
      nodeLifecycle: { monitorPeriodMs: 100, monitorGracePeriodMs: 1_500 },
    },
  );
  const folder = await mkdtemp(join(tmpdir(), "ironfence-remediator-"));
  const kubeconfig = join(folder, "kubeconfig");
  await writeFile(kubeconfig, mock.kubeconfig);
  const transport = createHttpTransport(await loadCluster({ kubeconfig }), { clock: systemClock });
  const runtime = createKubeRuntime({
    ...deps,
    transport,
    logger,
    controllerName: "ironfence.io/agent",
    instance: "test",
  });
  const kubelets = startKubelets(
    { rack, client: runtime.client, clock: systemClock, logger },
    { leasePeriodMs: 300, leaseDurationSeconds: 1, statusPeriodMs: 300, podPeriodMs: 200 },
    stop.signal,
  );
  const operator = bareMetalHost
    ? startBareMetalHostOperator(
        { client: runtime.client, clock: systemClock, logger, rack },
        { lookMs: 100, orderDelayMs: 100, mirrorDelayMs: 500 },
        stop.signal,
      )
    : undefined;
  const nodes = runtime.watch<Node>({ type: NODES, trim: trimNode }, stop.signal);
  const targets = runtime.watch<FencingTarget>(
    { type: FENCING_TARGETS, namespace: NAMESPACE, trim: (raw) => raw as FencingTarget },
    stop.signal,
  );
  const remediator = runRemediator(
    {
      runtime,
      nodes,
      clusters: NO_WORKLOAD_CLUSTERS,
      targets,
      namespace: NAMESPACE,
      openDevice,
      registry: new Registry(),
      bareMetalHosts: bareMetalHost,
      options: {
        concurrency: 10,
        limits: { hosts: Infinity, perZone: Infinity },
        zoneLabel: "topology.kubernetes.io/zone",
        ownNode: undefined,
        handOver: () => assert.fail("no lease is to be handed over"),
      },
    },
    stop.signal,
  );
  t.after(async () => {
    stop.abort(new Error("the test is over"));
    await remediator;
    await kubelets;
    await operator?.settled;
    stopControllers();
    await transport.close();
    await mock.close();
    await redfish.close();
    rack.stop();
    await rm(folder, { recursive: true });
  });
  return { mock, rack };
}

function describeHost({ server }: KubeMock, address: string, serialNumber: string): void {
  const key = { namespace: "metal3", name: "n1" };
  const apiVersion = "infrastructure.cluster.x-k8s.io/v1beta1";
  const hosts = server.collection(BARE_METAL_HOSTS);
  hosts.create({
    metadata: key,
    spec: {
      online: true,
      bmc: { address, credentialsName: "bmc" },
      image: { url: "http://image" },
      consumerRef: { apiVersion, kind: "Metal3Machine", namespace: "metal3", name: "m1" },
    },
  });
  const status = {
    operationalStatus: "OK",
    poweredOn: true,
    errorCount: 0,
    errorMessage: "",
    hardwareProfile: "unknown",
    provisioning: { ID: "1", state: "provisioned" },
    hardware: { systemVendor: { serialNumber } },
  };
  hosts.mergePatch(key, { status }, "status");
}

function base64(text: string): string {
  return Buffer.from(text).toString("base64");
}

async function until(what: string, holds: () => boolean): Promise<void> {
  const endMs = performance.now() + DEADLINE_MS;
  while (!holds()) {
    if (performance.now() > endMs) assert.fail(`not in time: ${what}`);
    await wait(20);
  }
}

function remediation({ mock }: Fixture): BareMetalRemediation | undefined {
  return mock.server
    .collection<BareMetalRemediation>(BARE_METAL_REMEDIATIONS)
    .get({ namespace: NAMESPACE, name: "n1" });
}

function ready({ mock }: Fixture): string | undefined {
  const node = mock.server.collection<Node>(NODES).get({ name: "n1" });
  return node?.status.conditions?.find(({ type }) => type === "Ready")?.status;
}

function succeeded(fixture: Fixture): string | undefined {
  const condition = remediation(fixture)?.status?.conditions?.find(({ type }) => type === "Succeeded");
  return condition === undefined || condition.status === "Unknown"
    ? undefined
    : `${condition.status} ${condition.reason}`;
}

/** A dead node with a pod, and the order to remediate it. */
async function order(fixture: Fixture): Promise<void> {
  const { mock, rack } = fixture;
  await until("the node is Ready", () => ready(fixture) === "True");
  const spec = { nodeName: "n1", containers: [{ name: "main", image: "none" }] };
  mock.server.collection(PODS).create({ metadata: { namespace: "default", name: "db" }, spec });
  rack.host("n1").hang();
  await until("the node is Unknown", () => ready(fixture) === "Unknown");
  mock.server.collection(BARE_METAL_REMEDIATIONS).create({ metadata: { namespace: NAMESPACE, name: "n1" }, spec: {} });
}

test("a dead node is fenced, freed and restored over real connections", async (t) => {
  const fixture = await setUp(t);
  await order(fixture);
  await until("there is a verdict", () => succeeded(fixture) !== undefined);
  assert.equal(succeeded(fixture), "True NodeRestored");
  assert.deepEqual(
    fixture.rack.host("n1").orders.map(({ type, outcome }) => `${type} ${outcome}`),
    ["ForceOff Started", "On Started"],
  );
  assert.equal(ready(fixture), "True");
  for (const { step, time } of remediation(fixture)?.status?.timeline ?? []) t.diagnostic(`${time} ${step}`);
});

test("a BareMetalHost is fenced through its operator over real connections, and proven by our own look", async (t) => {
  const fixture = await setUp(t, { bareMetalHost: true });
  await order(fixture);
  await until("there is a verdict", () => succeeded(fixture) !== undefined);
  assert.equal(succeeded(fixture), "True NodeRestored");
  assert.deepEqual(
    fixture.rack.host("n1").orders.map(({ type, outcome }) => `${type} ${outcome}`),
    ["ForceOff Started", "On Started"],
    "the operator's, one each",
  );
  const host = fixture.mock.server.collection(BARE_METAL_HOSTS).get({ namespace: "metal3", name: "n1" });
  assert.deepEqual(Object.keys(host?.metadata.annotations ?? {}), ["ironfence.io/last-reboot"]);
});

test("a BMC that refuses the password gets no power order, and the verdict says what to correct", async (t) => {
  const fixture = await setUp(t, { password: "wrong-battery" });
  await order(fixture);
  await until("there is a verdict", () => succeeded(fixture) !== undefined);
  assert.equal(succeeded(fixture), "False BMCAuthenticationFailed");
  assert.deepEqual(fixture.rack.host("n1").orders, []);
  const text = JSON.stringify(remediation(fixture));
  assert.ok(!text.includes("wrong-battery"), "no secret in the status");
});
