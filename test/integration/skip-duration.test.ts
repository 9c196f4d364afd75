import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import type { TestContext } from "node:test";
import { setTimeout as wait } from "node:timers/promises";
import { startClusterControllers } from "../../hack/kube-mock/controllers/cluster-controllers.ts";
import { NAMESPACES } from "../../hack/kube-mock/controllers/cluster-types.ts";
import { startKubeMock } from "../../hack/kube-mock/kube-mock.ts";
import { createCertificateAuthority } from "../../hack/lib/pki.ts";
import { readCrds } from "../../hack/lib/crds.ts";
import { startKubelets } from "../../hack/rack/kubelet.ts";
import { createRack } from "../../hack/rack/rack.ts";
import { startRedfishMock } from "../../hack/redfish-mock/server.ts";
import { SKIP_DURATION_IF_OFF } from "../../src/api/annotations.ts";
import { BARE_METAL_REMEDIATIONS, BARE_METAL_REMEDIATION_TEMPLATES } from "../../src/api/bare-metal-remediation.ts";
import { EVENTS, NODES, SECRETS } from "../../src/api/core-types.ts";
import type { Node } from "../../src/api/core.ts";
import type { FencingTarget } from "../../src/api/fencing-target.ts";
import { FENCING_TARGETS } from "../../src/api/fencing-target.ts";
import { NODE_HEALTH_CHECKS } from "../../src/api/node-health-check.ts";
import { runAgent } from "../../src/cli/agent.ts";
import { resolveRunOptions } from "../../src/config/run-options.ts";
import { createKubeRuntime } from "../../src/kube/create-runtime.ts";
import { loadCluster } from "../../src/kube/credentials.ts";
import { createHttpTransport } from "../../src/kube/http-transport.ts";
import { Secret } from "../../src/runtime/secret.ts";
import { systemClock, systemRandom } from "../../src/runtime/system.ts";
import { createLogger } from "../../src/telemetry/logger.ts";
import { cli } from "./cli-fixture.ts";

// The whole agent on sockets: HTTPS to an API server, Redfish over HTTPS to the BMCs, real time.

const NAMESPACE = "ironfence-system";
const PASSWORD = "correct-horse";
const HOSTS = ["n1", "n2"];
const DEADLINE_MS = 60_000;

async function setUp(t: TestContext) {
  const stop = new AbortController();
  const deps = { clock: systemClock, random: systemRandom };
  const logger = createLogger("silent");
  const delays = { powerOffDelayMs: 200, powerOnDelayMs: 200, bootMs: 300 };
  const rack = createRack({ ...deps, hosts: HOSTS.map((name) => ({ name, ...delays })) });
  const authority = await createCertificateAuthority(systemClock, "test BMCs");
  const tls = await authority.issue({ commonName: "bmc", ipAddresses: ["127.0.0.1"], usage: "server" });
  const login = { username: "fencing", password: new Secret(PASSWORD) };
  const redfish = await startRedfishMock({ ...deps, rack, hosts: HOSTS, tls, ...login });
  const mock = await startKubeMock({ ...deps, tls: true });
  const { server } = mock;
  for (const crd of await readCrds()) server.load(crd);
  for (const name of [NAMESPACE, "kube-node-lease", "medik8s-leases"]) {
    if (server.collection(NAMESPACES).get({ name }) === undefined)
      server.collection(NAMESPACES).create({ metadata: { name } });
  }
  const data = { username: base64("fencing"), password: base64(PASSWORD), "ca.crt": base64(authority.certPem) };
  server.collection(SECRETS).create({ metadata: { namespace: NAMESPACE, name: "bmc" }, data });
  for (const { name } of rack.hosts) {
    const address = redfish.url.replace(/^https/, "redfish+https") + redfish.systemPath(name);
    const device = { address, credentialsSecretRef: { name: "bmc" }, tls: { caSecretRef: { name: "bmc" } } };
    const identity = { systemUUID: rack.host(name).spec.systemUUID };
    const spec = { nodeName: name, identity, devices: [device] };
    server.collection(FENCING_TARGETS).create({ metadata: { namespace: NAMESPACE, name }, spec });
  }
  const template = { namespace: NAMESPACE, name: "reboot" };
  server.collection(BARE_METAL_REMEDIATION_TEMPLATES).create({ metadata: template, spec: { template: { spec: {} } } });
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
  const stopControllers = startClusterControllers(
    { server, clock: systemClock },
    {
      statefulSets: false,
      scheduler: false,
      nodeLifecycle: { monitorPeriodMs: 100, monitorGracePeriodMs: 2_000 },
    },
  );
  const folder = await mkdtemp(join(tmpdir(), "ironfence-skip-"));
  const kubeconfig = join(folder, "kubeconfig");
  await writeFile(kubeconfig, mock.kubeconfig);
  const transport = createHttpTransport(await loadCluster({ kubeconfig }), { clock: systemClock });
  const names = { controllerName: "kubelet", instance: "test" };
  const { client } = createKubeRuntime({ ...deps, transport, logger, ...names });
  const kubelets = startKubelets(
    { rack, client, clock: systemClock, logger },
    { leasePeriodMs: 300, leaseDurationSeconds: 1, statusPeriodMs: 300, podPeriodMs: 200 },
    stop.signal,
  );
  const addresses = { metricsBindAddress: "0", healthProbeBindAddress: "0" };
  const options = resolveRunOptions({ kubeconfig, namespace: NAMESPACE, ...addresses }, {});
  const agent = runAgent(options, { ...deps, logger }, stop.signal);
  t.after(async () => {
    stop.abort(new Error("the test is over"));
    await agent;
    await kubelets;
    stopControllers();
    await transport.close();
    await mock.close();
    await redfish.close();
    rack.stop();
    await rm(folder, { recursive: true });
  });
  const target = (name: string) =>
    server.collection<FencingTarget>(FENCING_TARGETS).get({ namespace: NAMESPACE, name })?.status;
  const ready = (name: string) =>
    server
      .collection<Node>(NODES)
      .get({ name })
      ?.status.conditions?.find(({ type }) => type === "Ready")?.status;
  const remediated = (): string[] =>
    [...server.collection(BARE_METAL_REMEDIATIONS).values()].map(({ metadata }) => metadata.name);
  return { server, rack, kubeconfig, target, ready, remediated };
}

const base64 = (text: string): string => Buffer.from(text).toString("base64");

async function until(what: string, holds: () => boolean | Promise<boolean>): Promise<void> {
  const endMs = performance.now() + DEADLINE_MS;
  while (!(await holds())) {
    if (performance.now() > endMs) assert.fail(`not in time: ${what}`);
    await wait(20);
  }
}

test("a host that is switched off is proven off and its node restored at once; one that hangs waits its duration", async (t) => {
  const { server, rack, kubeconfig, target, ready, remediated } = await setUp(t);
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
  assert.match(explained.out, /soonUnhealthy: Unhealthy from .* not sooner, since FencingTarget ironfence-system\/n2/);
  assert.match(
    explained.out,
    /^ {2}proven off +no: FencingTarget ironfence-system\/n2 (reads its host On|has no proof)/m,
  );
});
