import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import type { BareMetalRemediation } from "../../src/api/ironfence/bare-metal-remediation.ts";
import {
  BARE_METAL_REMEDIATIONS,
  BARE_METAL_REMEDIATION_TEMPLATES,
} from "../../src/api/ironfence/bare-metal-remediation.ts";
import type { FencingTarget } from "../../src/api/ironfence/fencing-target.ts";
import { FENCING_TARGETS } from "../../src/api/ironfence/fencing-target.ts";
import { NODE_HEALTH_CHECKS } from "../../src/api/ironfence/node-health-check.ts";
import type { Node } from "../../src/api/kubernetes/core.ts";
import { LEASES, NODES, SECRETS } from "../../src/api/kubernetes/core-types.ts";
import { ALLOWED_ADDRESSES, SKIP_DURATION_IF_OFF } from "../../src/api/names/annotations.ts";
import type { ResourceType } from "../../src/kube/resource.ts";
import { apiVersionOf } from "../../src/kube/resource.ts";
import { Secret } from "../../src/runtime/secret.ts";
import { systemClock, systemRandom } from "../../src/runtime/system.ts";
import type { ApiServer } from "../kube-mock/api-server.ts";
import { NAMESPACES } from "../kube-mock/controllers/cluster-types.ts";
import { startKubeMock } from "../kube-mock/kube-mock.ts";
import { readCrds } from "../lib/crds.ts";
import { freeLeases } from "../lib/free-leases.ts";
import { createCertificateAuthority } from "../lib/pki.ts";
import type { Rack } from "../rack/rack.ts";
import { createRack } from "../rack/rack.ts";
import type { RedfishMock } from "../redfish-mock/server.ts";
import { startRedfishMock } from "../redfish-mock/server.ts";
import { startBenchAgent } from "./bench-agent.ts";
import { nodeStatus } from "./nodes.ts";
import { figure, median, row, spread } from "./report.ts";

const NAMESPACE = "ironfence-system";
const ROUNDS = 8;
/** How long a BMC takes for each answer. */
const ANSWER_MS = 10;
const DURATION_S = 8;
/** The largest size of all writes before an order together: a little more than what they have now. */
const WRITTEN_KIB_MAX = 6;
const COVERED = { "example.com/covered": "true" };
const NOT_AWAITED = /\/events|\/leases\/ironfence|\/nodehealthchecks/u;
const WAIT_MS_MAX = 30_000;

/** One fence, from the creation of its remediation to the arrival of the order at the BMC. */
interface Order {
  tookMs: number;
  /** Requests to the BMC in between, the order not counted. */
  bmcRequests: string[];
  connections: number;
  /** Requests to the API server in between, and the bytes of their bodies. */
  apiRequests: string[];
  apiBytes: number;
}

interface BenchWorld {
  server: ApiServer;
  rack: Rack;
  mocks: ReadonlyMap<string, RedfishMock>;
}

/**
 * Measures the time and the requests between the creation of a remediation and the arrival of its power-off at the BMC,
 * over Redfish with TLS and an in-memory API server. Hosts that a health check covers are prepared. The same run also
 * measures hosts that no health check covers, so nothing announces their remediations.
 */
export async function benchOrder(): Promise<void> {
  const names = Array.from({ length: 2 * ROUNDS }, (_, index) => `node-${index}`);
  const folder = await mkdtemp(join(tmpdir(), "ironfence-bench-"));
  const kube = await startKubeMock({ clock: systemClock, random: systemRandom });
  const rack = createRack({
    clock: systemClock,
    random: systemRandom,
    hosts: names.map((name) => ({ name, powerOffDelayMs: 500 })),
  });
  const mocks = await startBmcs(rack, names);
  try {
    const { server } = kube;
    for (const yaml of await readCrds()) server.load(yaml);
    fill(server, rack, mocks);
    const kubeconfig = join(folder, "kubeconfig");
    await writeFile(kubeconfig, kube.kubeconfig, { mode: 0o600 });
    const agent = await startBenchAgent(folder, kubeconfig, ["--max-hosts", "100"]);
    try {
      const world = { server, rack, mocks };
      const ended = await Promise.race([agent.ended, probed(server, names)]);
      if (ended !== undefined) throw new Error(ended);
      const [prepared, unprepared]: [Order[], Order[]] = [[], []];
      for (const [index, name] of names.entries()) {
        const isCovered = index % 2 === 0;
        (isCovered ? prepared : unprepared).push(await measure(world, name, isCovered));
      }
      // The first fence of each kind does not count: V8 compiles the code during it.
      report(prepared.slice(1), unprepared.slice(1));
    } finally {
      await agent.stop();
    }
  } finally {
    await Promise.all([...mocks.values()].map((mock) => mock.close()));
    rack.stop();
    await kube.close();
    await rm(folder, { recursive: true });
  }
}

function report(prepared: readonly Order[], unprepared: readonly Order[]): void {
  const took = (orders: readonly Order[]): number[] => orders.map(({ tookMs }) => tookMs);
  const most = (orders: readonly Order[], count: (order: Order) => number): number => Math.max(...orders.map(count));
  const what = "remediation created → ForceOff at the BMC";
  const [last] = unprepared.slice(-1);
  row(`${what}, unprepared`, spread(took(unprepared)));
  row("… requests to the BMC before it", last?.bmcRequests.join(", ") ?? "");
  row("… connections to the BMC", `${most(unprepared, ({ connections }) => connections)}`);
  row("… requests to the API server", last?.apiRequests.join(", ") ?? "");
  row(`${what}, prepared`, spread(took(prepared)));
  figure({ what: `${what}, prepared`, value: median(took(prepared)), unit: "ms", aim: 50, fails: false });
  figure({
    what: "… requests to the BMC before it",
    value: most(prepared, ({ bmcRequests }) => bmcRequests.length),
    unit: "",
    aim: 1,
    fails: true,
  });
  figure({
    what: "… connections to the BMC",
    value: most(prepared, ({ connections }) => connections),
    unit: "",
    aim: 0,
    fails: true,
  });
  const writes = ({ apiRequests }: Order): number =>
    apiRequests.filter((request) => request.startsWith("patch")).length;
  figure({ what: "… writes to the API server", value: most(prepared, writes), unit: "", aim: 4, fails: true });
  const kib = most(prepared, ({ apiBytes }) => apiBytes) / 1_024;
  figure({ what: "… size of these writes", value: kib, unit: "KiB", aim: WRITTEN_KIB_MAX, fails: true });
  row("… requests to the API server", prepared.at(-1)?.apiRequests.join(", ") ?? "");
}

/** Lets a node become Unknown, and follows its remediation until the order. */
async function measure({ server, mocks }: BenchWorld, name: string, isCovered: boolean): Promise<Order> {
  const mock = mocks.get(name);
  if (mock === undefined) throw new Error(`no BMC for ${name}`);
  const seen = { created: Number.NaN, requests: 0, connections: 0 };
  const apiRequests: string[] = [];
  let apiBytes = 0;
  const unsubscribe = [
    server.collection<BareMetalRemediation>(BARE_METAL_REMEDIATIONS).subscribe(({ type, object }) => {
      if (type !== "ADDED" || object.metadata.name !== name) return;
      seen.created = systemClock.nowMs();
      seen.requests = mock.requests.length;
      seen.connections = mock.connectionCount;
    }),
    server.onRequest(({ method, watch, path, bytes }) => {
      // The order does not wait for these requests of the detector and the probes.
      if (watch || method === "POST" || NOT_AWAITED.test(path)) return;
      if (Number.isNaN(seen.created) || orderOf(mock, seen.requests) !== undefined) return;
      apiBytes += bytes;
      apiRequests.push(
        `${method.toLowerCase()} ${path
          .split("/")
          .slice(path.endsWith("/status") ? -3 : -2)
          .join("/")}`,
      );
    }),
  ];
  try {
    const nodeInfo = server.collection<Node>(NODES).get({ name })?.status.nodeInfo;
    server.collection(NODES).mergePatch({ name }, { status: { ...nodeStatus("Unknown"), nodeInfo } }, "status");
    if (!isCovered) {
      await delay(1_500);
      server.collection(BARE_METAL_REMEDIATIONS).create({
        apiVersion: apiVersionOf(BARE_METAL_REMEDIATIONS),
        kind: BARE_METAL_REMEDIATIONS.kind,
        metadata: { namespace: NAMESPACE, name },
        spec: {},
      });
    }
    const endMs = systemClock.monotonicMs() + WAIT_MS_MAX;
    while (Number.isNaN(seen.created) || orderOf(mock, seen.requests) === undefined) {
      if (systemClock.monotonicMs() > endMs) throw new Error(`${name} was not powered off`);
      await delay(20);
    }
  } finally {
    for (const end of unsubscribe) end();
  }
  const order = orderOf(mock, seen.requests) ?? { atMs: Number.NaN, index: 0 };
  const between = mock.requests.slice(seen.requests, order.index);
  return {
    tookMs: order.atMs - seen.created,
    bmcRequests: between.map(({ method, path }) => `${method} ${path.replace("/redfish/v1", "")}`),
    connections: mock.connectionCount - seen.connections,
    apiRequests,
    apiBytes,
  };
}

/** The first power-off after the first `from` requests. */
function orderOf(mock: RedfishMock, from: number): { atMs: number; index: number } | undefined {
  const index = mock.requests.findIndex(
    ({ path, body }, at) => at >= from && path.endsWith("ComputerSystem.Reset") && body.includes("ForceOff"),
  );
  const atMs = mock.requests[index]?.atMs;
  return atMs === undefined ? undefined : { atMs, index };
}

async function startBmcs(rack: Rack, names: readonly string[]): Promise<Map<string, RedfishMock>> {
  const authority = await createCertificateAuthority(systemClock, "bench CA");
  const tls = await authority.issue({ commonName: "bmc", ipAddresses: ["127.0.0.1"], usage: "server" });
  const mocks = new Map<string, RedfishMock>();
  for (const name of names) {
    const login = { username: "u", password: new Secret("p") };
    const mock = await startRedfishMock({
      rack,
      clock: systemClock,
      random: systemRandom,
      hosts: [name],
      tls,
      ...login,
    });
    mock.addFault({ match: {}, action: { type: "delay", delayMs: ANSWER_MS } });
    mocks.set(name, mock);
  }
  return mocks;
}

function fill(server: ApiServer, rack: Rack, mocks: ReadonlyMap<string, RedfishMock>): void {
  const create = (type: ResourceType, metadata: object, body: object = {}): void => {
    server.collection(type).create({ apiVersion: apiVersionOf(type), kind: type.kind, metadata, ...body });
  };
  for (const name of [NAMESPACE, "medik8s-leases"]) create(NAMESPACES, { name });
  for (const lease of freeLeases(NAMESPACE)) server.collection(LEASES).create(lease);
  const annotations = { [ALLOWED_ADDRESSES]: [...mocks.values()].map(({ url }) => url).join(",") };
  create(
    SECRETS,
    { namespace: NAMESPACE, name: "bmc", annotations },
    { data: { username: btoa("u"), password: btoa("p") } },
  );
  for (const [index, [name, mock]] of [...mocks].entries()) {
    const { systemUUID } = rack.host(name).spec;
    const status = nodeStatus("True");
    Object.assign(status, { nodeInfo: { bootID: systemRandom.uuid(), systemUUID, machineID: systemRandom.uuid() } });
    create(NODES, { name, labels: index % 2 === 0 ? COVERED : {} }, { spec: {}, status });
    const address = `${mock.url}${mock.systemPath(name)}`;
    const devices = [{ address, credentialsSecretRef: { name: "bmc" }, tls: { insecureSkipVerify: true } }];
    create(
      FENCING_TARGETS,
      { namespace: NAMESPACE, name },
      { spec: { nodeName: name, identity: { systemUUID }, devices } },
    );
  }
  const template = { namespace: NAMESPACE, name: "reboot" };
  create(BARE_METAL_REMEDIATION_TEMPLATES, template, { spec: { template: { spec: {} } } });
  create(
    NODE_HEALTH_CHECKS,
    { name: "all", annotations: { [SKIP_DURATION_IF_OFF]: "false" } },
    {
      spec: {
        selector: { matchLabels: COVERED },
        unhealthyConditions: [{ type: "Ready", status: "Unknown", duration: `${DURATION_S}s` }],
        minHealthy: 0,
        remediationTemplate: {
          apiVersion: apiVersionOf(BARE_METAL_REMEDIATION_TEMPLATES),
          kind: BARE_METAL_REMEDIATION_TEMPLATES.kind,
          ...template,
        },
      },
    },
  );
}

/** Resolves when every target is Ready. */
async function probed(server: ApiServer, names: readonly string[]): Promise<undefined> {
  const targets = server.collection<FencingTarget>(FENCING_TARGETS);
  const endMs = systemClock.monotonicMs() + WAIT_MS_MAX;
  for (const name of names) {
    const isReady = (): boolean =>
      targets
        .get({ namespace: NAMESPACE, name })
        ?.status?.conditions?.some(({ type, status }) => type === "Ready" && status === "True") === true;
    while (!isReady()) {
      if (systemClock.monotonicMs() > endMs) throw new Error(`the target of ${name} is not Ready`);
      await delay(100);
    }
  }
}
