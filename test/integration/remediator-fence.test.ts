import assert from "node:assert/strict";
import { test } from "node:test";
import type { TestContext } from "node:test";
import { Registry } from "prom-client";
import type { ApiServer } from "../../hack/kube-mock/api-server.ts";
import { startBareMetalHostOperator } from "../../hack/rack/bare-metal-host-operator.ts";
import { PROVISIONED_STATUS } from "../../hack/rack/bare-metal-host-status.ts";
import type { Host } from "../../hack/rack/host.ts";
import type { BareMetalRemediation } from "../../src/api/ironfence/bare-metal-remediation.ts";
import { BARE_METAL_REMEDIATIONS } from "../../src/api/ironfence/bare-metal-remediation.ts";
import { ALLOWED_ADDRESSES } from "../../src/api/names/annotations.ts";
import { NODES, PODS, SECRETS } from "../../src/api/kubernetes/core-types.ts";
import type { Node } from "../../src/api/kubernetes/core.ts";
import type { FencingTarget } from "../../src/api/ironfence/fencing-target.ts";
import { FENCING_TARGETS } from "../../src/api/ironfence/fencing-target.ts";
import { trimNode } from "../../src/api/kubernetes/trim.ts";
import { openDeviceOn } from "../lib/open-device.ts";
import { runRemediator } from "../../src/remediator/remediator.ts";
import { BARE_METAL_HOSTS } from "../../src/remediator/hosts/bare-metal-host/store/host-store.ts";
import { systemClock } from "../../src/runtime/system.ts";
import { createLogger } from "../../src/telemetry/logger.ts";
import { NO_WORKLOAD_CLUSTERS } from "../lib/workload-clusters.ts";
import { NAMESPACE, startSocketWorld, until } from "./agent-fixture.ts";
import type { SocketOptions, SocketWorld } from "./agent-fixture.ts";
import { KEY, KEY_ID, startFakeDriver } from "./driver-fixture.ts";
import type { FakeDriver } from "./driver-fixture.ts";

// The remediator with real sockets, in real time.

interface Options {
  password?: string;
  /** A BareMetalHost with a running operator describes the host, instead of a FencingTarget. */
  bareMetalHost?: boolean;
  /** The host has a driver server instead of a BMC. */
  driver?: FakeDriver;
}

function setUp(t: TestContext, { password, bareMetalHost = false, driver }: Options = {}): Promise<SocketWorld> {
  const options = {
    hosts: [{ name: "n1", providerID: "metal3://metal3/n1/m1" }],
    monitorGracePeriodMs: 1_500,
    ...(password !== undefined && { password }),
    ...(driver !== undefined && { describe: describeByDriver(driver) }),
    ...(bareMetalHost && { describe: { namespace: "metal3", host: describeHost } }),
  };
  return startSocketWorld(t, options, async (world, signal) => {
    if (driver !== undefined) driver.bmc = world.rack.bmc("n1");
    await Promise.all([remediate(world, bareMetalHost, signal), bareMetalHost && operate(world, signal)]);
  });
}

async function operate({ runtime: { client }, rack }: SocketWorld, signal: AbortSignal): Promise<void> {
  const operator = startBareMetalHostOperator(
    { client, clock: systemClock, logger: createLogger("silent"), rack },
    { lookMs: 100, orderDelayMs: 100, mirrorDelayMs: 500 },
    signal,
  );
  await operator.settled;
}

function remediate({ runtime }: SocketWorld, bareMetalHosts: boolean, signal: AbortSignal): Promise<void> {
  const nodes = runtime.watch<Node>({ type: NODES, trim: trimNode }, signal);
  const targets = runtime.watch<FencingTarget>(
    { type: FENCING_TARGETS, namespace: NAMESPACE, trim: (raw) => raw as FencingTarget },
    signal,
  );
  return runRemediator(
    {
      runtime,
      nodes,
      clusters: NO_WORKLOAD_CLUSTERS,
      targets,
      namespace: NAMESPACE,
      openDevice: openDeviceOn(systemClock),
      registry: new Registry(),
      bareMetalHosts,
      options: {
        concurrency: 10,
        limits: { hosts: Infinity, perCluster: Infinity, perZone: Infinity },
        zoneLabel: "topology.kubernetes.io/zone",
        ownNode: undefined,
        handOver: () => assert.fail("no lease is to be handed over"),
      },
    },
    signal,
  );
}

function describeHost(server: ApiServer, { spec: { serialNumber } }: Host, address: string): void {
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
  const status = { ...PROVISIONED_STATUS, hardware: { systemVendor: { serialNumber } } };
  hosts.mergePatch(key, { status }, "status");
}

function describeByDriver({ address, origin }: FakeDriver): NonNullable<SocketOptions["describe"]> {
  return {
    namespace: NAMESPACE,
    host: (server, { name, spec }) => {
      const annotations = { [ALLOWED_ADDRESSES]: `driver+${origin}` };
      const base64 = (text: string): string => Buffer.from(text).toString("base64");
      const data = { username: base64(KEY_ID), password: base64(KEY) };
      server.collection(SECRETS).create({ metadata: { namespace: NAMESPACE, name: "driver", annotations }, data });
      const device = { address, allowPlainHTTP: true, credentialsSecretRef: { name: "driver" } };
      server.collection(FENCING_TARGETS).create({
        metadata: { namespace: NAMESPACE, name },
        spec: { nodeName: name, identity: { systemUUID: spec.systemUUID }, devices: [device] },
      });
    },
  };
}

function remediation({ server }: SocketWorld): BareMetalRemediation | undefined {
  return server.collection<BareMetalRemediation>(BARE_METAL_REMEDIATIONS).get({ namespace: NAMESPACE, name: "n1" });
}

function succeeded(fixture: SocketWorld): string | undefined {
  const condition = remediation(fixture)?.status?.conditions?.find(({ type }) => type === "Succeeded");
  return condition === undefined || condition.status === "Unknown"
    ? undefined
    : `${condition.status} ${condition.reason}`;
}

/** Fails a node with a pod, and creates its remediation. */
async function order(fixture: SocketWorld, strategy: Record<string, unknown> = {}): Promise<void> {
  const { server, rack, ready } = fixture;
  await until("the node is Ready", () => ready("n1") === "True");
  const spec = { nodeName: "n1", containers: [{ name: "main", image: "none" }] };
  server.collection(PODS).create({ metadata: { namespace: "default", name: "db" }, spec });
  rack.host("n1").hang();
  await until("the node is Unknown", () => ready("n1") === "Unknown");
  server
    .collection(BARE_METAL_REMEDIATIONS)
    .create({ metadata: { namespace: NAMESPACE, name: "n1" }, spec: { strategy } });
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
  assert.equal(fixture.ready("n1"), "True");
  for (const { step, time } of remediation(fixture)?.status?.timeline ?? []) t.diagnostic(`${time} ${step}`);
});

test("a dead node is fenced, freed and restored through a driver server that answers nothing at times", async (t) => {
  await using driver = await startFakeDriver();
  const fixture = await setUp(t, { driver });
  let requests = 0;
  driver.override = () => ((requests += 1) % 7 === 0 ? { status: 503, signed: true } : undefined);
  await order(fixture);
  await until("there is a verdict", () => succeeded(fixture) !== undefined);
  assert.equal(succeeded(fixture), "True NodeRestored");
  assert.deepEqual(
    fixture.rack.host("n1").orders.map(({ type }) => type),
    ["ForceOff", "On"],
  );
  assert.equal(fixture.ready("n1"), "True");
});

test("a driver server whose Off is an earlier answer frees no workload", async (t) => {
  await using driver = await startFakeDriver();
  const fixture = await setUp(t, { driver });
  const bmc = driver.bmc;
  assert.ok(bmc !== undefined);
  await order(fixture, { powerOffTimeout: "5s", retryLimit: 0 });
  const off = JSON.stringify({ state: "Off", identity: bmc.identity() });
  driver.tamper = ({ method }) => (method === "GET" ? { status: 200, body: off } : undefined);
  await until("there is a verdict", () => succeeded(fixture) !== undefined);
  assert.match(succeeded(fixture) ?? "", /^False /);
  const pod = fixture.server.collection(PODS).get({ namespace: "default", name: "db" });
  assert.ok(pod !== undefined && pod.metadata.deletionTimestamp === undefined);
});

test("a BareMetalHost is fenced through its operator over real connections, and proven off by readings of ironfence", async (t) => {
  const fixture = await setUp(t, { bareMetalHost: true });
  await order(fixture);
  await until("there is a verdict", () => succeeded(fixture) !== undefined);
  assert.equal(succeeded(fixture), "True NodeRestored");
  assert.deepEqual(
    fixture.rack.host("n1").orders.map(({ type, outcome }) => `${type} ${outcome}`),
    ["ForceOff Started", "On Started"],
    "the operator's, one each",
  );
  const host = fixture.server.collection(BARE_METAL_HOSTS).get({ namespace: "metal3", name: "n1" });
  assert.deepEqual(Object.keys(host?.metadata.annotations ?? {}), ["ironfence.io/last-reboot"]);
});

/** The default size limit of a request to etcd (`--max-request-bytes`). */
const ETCD_REQUEST_BYTES_MAX = 1.5 * 1024 * 1024;

test("a node with 200 labels and 100 KiB of annotations is deleted, and has all of them when it has joined again", async (t) => {
  const fixture = await setUp(t);
  const { server, ready } = fixture;
  const nodes = server.collection<Node>(NODES);
  await until("the node is Ready", () => ready("n1") === "True");
  const many = (count: number, value: string): Record<string, string> =>
    Object.fromEntries(Array.from({ length: count }, (_, index) => [`example.com/of-the-owner-${index}`, value]));
  const [labels, annotations] = [many(200, "x".repeat(63)), many(10, "x".repeat(10 * 1024))];
  nodes.mergePatch({ name: "n1" }, { metadata: { labels, annotations }, spec: { unschedulable: true } });
  const before = nodes.get({ name: "n1" })?.metadata.uid;
  let largest = 0;
  const stop = server.onChange(({ object }) => {
    if (object.kind === "BareMetalRemediation") largest = Math.max(largest, Buffer.byteLength(JSON.stringify(object)));
  });
  await order(fixture, { workloadRelease: "DeleteNode" });
  await until("there is a verdict", () => succeeded(fixture) !== undefined);
  stop();
  assert.equal(succeeded(fixture), "True NodeRestored");
  const { metadata, spec } = nodes.get({ name: "n1" }) ?? assert.fail("the node has joined again");
  assert.notEqual(metadata.uid, before);
  assert.deepEqual({ ...metadata.labels, ...labels }, metadata.labels);
  assert.deepEqual({ ...metadata.annotations, ...annotations }, metadata.annotations);
  assert.equal(spec.unschedulable, true);
  t.diagnostic(`the remediation had ${largest} bytes at most`);
  assert.ok(largest > 100 * 1024 && largest < ETCD_REQUEST_BYTES_MAX / 2, `${largest} bytes`);
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
