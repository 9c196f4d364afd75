import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestContext } from "node:test";
import { setTimeout as wait } from "node:timers/promises";
import type { ApiServer } from "../../hack/kube-mock/api-server.ts";
import { startClusterControllers } from "../../hack/kube-mock/controllers/cluster-controllers.ts";
import { NAMESPACES } from "../../hack/kube-mock/controllers/cluster-types.ts";
import { startKubeMock } from "../../hack/kube-mock/kube-mock.ts";
import { readCrds, readForeignCrds } from "../../hack/lib/crds.ts";
import { freeLeases } from "../../hack/lib/free-leases.ts";
import { createCertificateAuthority } from "../../hack/lib/pki.ts";
import { startKubelets } from "../../hack/rack/kubelet.ts";
import type { Host, HostSpec } from "../../hack/rack/host.ts";
import { createRack } from "../../hack/rack/rack.ts";
import type { Rack } from "../../hack/rack/rack.ts";
import { startRedfishMock } from "../../hack/redfish-mock/server.ts";
import { ALLOWED_ADDRESSES } from "../../src/api/names/annotations.ts";
import { LEASES, NODES, SECRETS } from "../../src/api/kubernetes/core-types.ts";
import type { Node } from "../../src/api/kubernetes/core.ts";
import { FENCING_TARGETS } from "../../src/api/ironfence/fencing-target.ts";
import { createKubeRuntime } from "../../src/kube/connection/create-runtime.ts";
import { loadCluster } from "../../src/kube/connection/credentials/credentials.ts";
import { createHttpTransport } from "../../src/kube/connection/transport/http-transport.ts";
import type { KubeRuntime } from "../../src/kube/runtime.ts";
import { Secret } from "../../src/runtime/secret.ts";
import { systemClock, systemRandom } from "../../src/runtime/system.ts";
import { createLogger } from "../../src/telemetry/logger.ts";

// A small cluster with real sockets and real time: HTTPS to an API server, and Redfish over HTTPS to BMCs.

export const NAMESPACE = "ironfence-system";
const PASSWORD = "correct-horse";
const DEADLINE_MS = 60_000;

export interface SocketWorld {
  server: ApiServer;
  rack: Rack;
  /** Kubeconfig for the agent. */
  kubeconfig: string;
  runtime: KubeRuntime;
  /** Random bytes that the BMCs have used, in hex. They include the tokens of sessions. */
  tokens: readonly string[];
  /** Status of the node's Ready condition. */
  ready: (name: string) => string | undefined;
}

export interface SocketOptions {
  hosts: readonly HostSpec[];
  /** Silence after which a node is Ready=Unknown. */
  monitorGracePeriodMs: number;
  /** The password in the Secret of the BMCs; the right one by default. */
  password?: string;
  /**
   * The namespace of that Secret, and a function that creates the object for a host's BMC; by default FencingTargets in
   * ironfence's namespace.
   */
  describe?: { namespace: string; host(server: ApiServer, host: Host, address: string): void };
}

/**
 * Starts hosts with their BMCs and nodes, and an API server. All of them end with the test.
 *
 * @param start starts the tested program, which must end soon after `signal` aborts.
 */
export async function startSocketWorld(
  t: TestContext,
  options: SocketOptions,
  start: (world: SocketWorld, signal: AbortSignal) => Promise<void>,
): Promise<SocketWorld> {
  const stop = new AbortController();
  const deps = { clock: systemClock, random: systemRandom };
  const logger = createLogger("silent");
  const delays = { powerOffDelayMs: 200, powerOnDelayMs: 200, bootMs: 300 };
  const rack = createRack({ ...deps, hosts: options.hosts.map((spec) => ({ ...spec, ...delays })) });
  const authority = await createCertificateAuthority(systemClock, "test BMCs");
  const tls = await authority.issue({ commonName: "bmc", ipAddresses: ["127.0.0.1"], usage: "server" });
  const login = { username: "fencing", password: new Secret(PASSWORD) };
  const tokens: string[] = [];
  const random = {
    ...systemRandom,
    bytes: (length: number): Uint8Array => {
      const bytes = systemRandom.bytes(length);
      tokens.push(Buffer.from(bytes).toString("hex"));
      return bytes;
    },
  };
  const redfish = await startRedfishMock({ ...deps, random, rack, tls, ...login });
  const mock = await startKubeMock({ ...deps, tls: true });
  const { server } = mock;
  for (const crd of [...(await readCrds()), ...(await readForeignCrds())]) server.load(crd);
  const { password = PASSWORD, describe = FENCING_TARGET } = options;
  for (const name of new Set([NAMESPACE, describe.namespace, "kube-node-lease", "medik8s-leases"])) {
    if (server.collection(NAMESPACES).get({ name }) === undefined)
      server.collection(NAMESPACES).create({ metadata: { name } });
  }
  for (const lease of freeLeases(NAMESPACE)) server.collection(LEASES).create(lease);
  const data = { username: base64("fencing"), password: base64(password), "ca.crt": base64(authority.certPem) };
  const annotations = { [ALLOWED_ADDRESSES]: "https://127.0.0.1:*" };
  server.collection(SECRETS).create({ metadata: { namespace: describe.namespace, name: "bmc", annotations }, data });
  for (const host of rack.hosts) {
    describe.host(server, host, redfish.url.replace(/^https/, "redfish+https") + redfish.systemPath(host.name));
  }
  const nodeLifecycle = { monitorPeriodMs: 100, monitorGracePeriodMs: options.monitorGracePeriodMs };
  const stopControllers = startClusterControllers(
    { server, clock: systemClock },
    { statefulSets: false, scheduler: false, nodeLifecycle },
  );
  const folder = await mkdtemp(join(tmpdir(), "ironfence-sockets-"));
  const kubeconfig = join(folder, "kubeconfig");
  await writeFile(kubeconfig, mock.kubeconfig);
  const transport = createHttpTransport(await loadCluster({ kubeconfig }), { clock: systemClock });
  const names = { controllerName: "ironfence.io/agent", instance: "test" };
  const runtime = createKubeRuntime({ ...deps, transport, logger, ...names });
  const kubelets = startKubelets(
    { rack, client: runtime.client, clock: systemClock, logger },
    { leasePeriodMs: 300, leaseDurationSeconds: 1, statusPeriodMs: 300, podPeriodMs: 200 },
    stop.signal,
  );
  const ready = (name: string): string | undefined =>
    server
      .collection<Node>(NODES)
      .get({ name })
      ?.status.conditions?.find(({ type }) => type === "Ready")?.status;
  const world = { server, rack, kubeconfig, runtime, tokens, ready };
  const started = start(world, stop.signal);
  t.after(async () => {
    stop.abort(new Error("the test is over"));
    await started;
    await kubelets;
    stopControllers();
    await transport.close();
    await mock.close();
    await redfish.close();
    rack.stop();
    await rm(folder, { recursive: true });
  });
  return world;
}

const FENCING_TARGET: NonNullable<SocketOptions["describe"]> = {
  namespace: NAMESPACE,
  host: (server, { name, spec }, address) => {
    const device = { address, credentialsSecretRef: { name: "bmc" }, tls: { caSecretRef: { name: "bmc" } } };
    server.collection(FENCING_TARGETS).create({
      metadata: { namespace: NAMESPACE, name },
      spec: { nodeName: name, identity: { systemUUID: spec.systemUUID }, devices: [device] },
    });
  },
};

/** Waits until `holds` returns true. */
export async function until(what: string, holds: () => boolean | Promise<boolean>): Promise<void> {
  const endMs = performance.now() + DEADLINE_MS;
  while (!(await holds())) {
    if (performance.now() > endMs) assert.fail(`not in time: ${what}`);
    await wait(20);
  }
}

function base64(text: string): string {
  return Buffer.from(text).toString("base64");
}
