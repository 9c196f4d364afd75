import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, beforeEach, describe, it } from "node:test";
import type { RequestRecord } from "../../hack/kube-mock/api-server.ts";
import { NAMESPACES } from "../../hack/kube-mock/controllers/cluster-types.ts";
import { startKubeMock } from "../../hack/kube-mock/kube-mock.ts";
import type { KubeMock } from "../../hack/kube-mock/kube-mock.ts";
import { readCrds } from "../../hack/lib/crds.ts";
import { LEASES, NODES } from "../../src/api/kubernetes/core-types.ts";
import type { Lease, Node } from "../../src/api/kubernetes/core.ts";
import { NODE_HEALTH_CHECKS } from "../../src/api/ironfence/node-health-check.ts";
import { EXIT_FAILURE, EXIT_USAGE } from "../../src/cli/errors/failures.ts";
import { readDecisions } from "../../src/cli/explain/read.ts";
import { createKubeRuntime } from "../../src/kube/connection/create-runtime.ts";
import type { ResourceType } from "../../src/kube/resource.ts";
import { systemClock, systemRandom } from "../../src/runtime/system.ts";
import { toMicroTime, toTime } from "../../src/runtime/time.ts";
import { createLogger } from "../../src/telemetry/logger.ts";
import { seededRandom } from "../lib/seeded-random.ts";
import { cli } from "./cli-fixture.ts";
import type { CliResult } from "./cli-fixture.ts";
import { crdOf, DetectorWorld, reference, vendorCrd, vendorType } from "./detector-fixture.ts";

// `ironfence explain` over HTTPS as users run it, compared with the controller whose decisions it explains.

const EXCLUDE = "remediation.medik8s.io/exclude-from-remediation";

describe("ironfence explain", () => {
  let folder: string;
  let kube: KubeMock;
  let kubeconfig: string;
  const requests: RequestRecord[] = [];

  before(async () => {
    folder = mkdtempSync(join(tmpdir(), "ironfence-cli-"));
    kube = await startKubeMock({ clock: systemClock, random: systemRandom, tls: true, token: "let-me-in" });
    kubeconfig = join(folder, "kubeconfig");
    writeFileSync(kubeconfig, kube.kubeconfig);
    for (const name of ["fencing", "medik8s-leases"]) kube.server.collection(NAMESPACES).create({ metadata: { name } });
    for (const crd of [...(await readCrds()), vendorCrd("Fence"), vendorCrd("FenceTemplate")]) kube.server.load(crd);
    kube.server
      .collection(vendorType("FenceTemplate"))
      .create({ metadata: { namespace: "fencing", name: "fence-template" }, spec: { template: { spec: {} } } });
    check("workers", { pool: "a" });
    check("others", { pool: "b" });
    for (const name of ["w1", "w2", "w3"]) {
      kube.server.collection<Node>(NODES).create({ metadata: { name, labels: { pool: "a" } }, spec: {} });
    }
    kube.server.onRequest((record) => requests.push(record));
  });
  beforeEach(() => {
    for (const name of ["w1", "w2", "w3"]) ready(name, "True", 600);
    requests.length = 0;
  });
  after(async () => {
    await kube.close();
    rmSync(folder, { recursive: true });
  });

  function check(name: string, labels: Record<string, string>): void {
    kube.server.collection(NODE_HEALTH_CHECKS).create({
      metadata: { name },
      spec: {
        selector: { matchLabels: labels },
        unhealthyConditions: [{ type: "Ready", status: "Unknown", duration: "5m" }],
        minHealthy: "51%",
        remediationTemplate: reference("Fence"),
      },
    });
  }
  function ready(name: string, status: string, forSeconds: number): void {
    const lastTransitionTime = toTime(systemClock.nowMs() - forSeconds * 1_000);
    const conditions = [{ type: "Ready", status, lastTransitionTime }];
    kube.server.collection<Node>(NODES).mergePatch({ name }, { status: { conditions } }, "status");
  }
  const explain = (...inputs: string[]): Promise<CliResult> => cli(["explain", ...inputs, "--kubeconfig", kubeconfig]);
  async function underWorkers(name: string): Promise<{ outcome: string; reason: string; [key: string]: unknown }> {
    const { out, err, code } = await explain("node", name, "-o", "json");
    assert.equal(code, 0, err);
    return JSON.parse(out).healthChecks.find(({ healthCheck }: { healthCheck: string }) => healthCheck === "workers");
  }

  it("ironfence explain says of a healthy node which conditions it was judged by, and names checks that do not cover it", async () => {
    const { out, code, err } = await explain("node", "w1");
    assert.equal(code, 0, err);
    assert.match(out, /^NodeHealthCheck workers: healthy: No condition makes it unhealthy$/m);
    assert.match(out, /^ {2}Ready=Unknown for 5m +True since 20/m);
    assert.match(out, /^ {2}threshold +3 of 3 are healthy; minHealthy is 51%$/m);
    assert.match(out, /^NodeHealthCheck others: Its selector does not cover the node$/m);
  });

  it("ironfence explain reports when a node will be unhealthy", async () => {
    ready("w1", "Unknown", 60);
    const { outcome, nextCheck, actions } = await underWorkers("w1");
    assert.equal(outcome, "soonUnhealthy");
    assert.deepEqual(actions, []);
    const inMs = Date.parse(String(nextCheck)) - systemClock.nowMs();
    assert.ok(inMs > 60_000 && inMs <= 240_000, `${inMs} ms`);
    assert.match((await explain("node", "w1")).out, /^ {2}next +\S+Z \(in (3m\d+s|4m)\), or when something changes$/m);
  });

  it("ironfence explain reports what would be created, and writes nothing", async () => {
    ready("w1", "Unknown", 600);
    const { outcome, actions } = await underWorkers("w1");
    assert.equal(outcome, "create");
    assert.match(String(actions), /^create a Fence from fence-template, if the node reads unhealthy live/);
    assert.deepEqual([...kube.server.collection(vendorType("Fence")).values()], []);
    assert.ok(requests.length > 0);
    assert.deepEqual(
      requests.filter(({ method, watch }) => method !== "GET" || watch),
      [],
    );
  });

  it("ironfence explain names who holds the node's lease, and until when", async () => {
    ready("w1", "Unknown", 600);
    const lease = { namespace: "medik8s-leases", name: "node-w1" };
    kube.server.collection<Lease>(LEASES).create({
      metadata: lease,
      spec: {
        holderIdentity: "node-maintenance",
        leaseDurationSeconds: 3_600,
        renewTime: toMicroTime(systemClock.nowMs()),
      },
    });
    try {
      const { outcome, reason, nextCheck } = await underWorkers("w1");
      assert.equal(outcome, "deferred");
      assert.match(reason, /already taken by node-maintenance$/);
      assert.ok(Date.parse(String(nextCheck)) > systemClock.nowMs() + 3_000_000);
    } finally {
      kube.server.collection(LEASES).delete(lease);
    }
  });

  it("ironfence explain names the label, the threshold and the pause that hold a remediation back", async () => {
    ready("w1", "Unknown", 600);
    const nodes = kube.server.collection<Node>(NODES);
    nodes.mergePatch({ name: "w1" }, { metadata: { labels: { [EXCLUDE]: "true" } } });
    assert.equal((await underWorkers("w1")).outcome, "excluded");
    ready("w1", "Unknown", 60);
    const notYet = (await explain("node", "w1")).out;
    assert.match(notYet, /^ {2}health check +BLOCKS +the node has the label .*; workers: soonUnhealthy: /m);
    ready("w1", "Unknown", 600);
    nodes.mergePatch({ name: "w1" }, { metadata: { labels: { [EXCLUDE]: null } } });

    ready("w2", "Unknown", 600);
    assert.equal((await underWorkers("w1")).outcome, "threshold");
    const ofNode = await explain("node", "w1");
    assert.match(ofNode.out, /^ {2}health check +BLOCKS +workers: threshold: Skipped remediation/m, "reported once");
    const ofCheck = await explain("nhc", "workers");
    assert.match(ofCheck.out, /^ {2}nodes +3 selected, 1 healthy$/m);
    assert.match(ofCheck.out, /^ {2}threshold +1 of 3 are healthy; minHealthy is 51%$/m);
    assert.match(ofCheck.out, /^w1 +threshold +- +Skipped remediation because the number of healthy nodes/m);
    ready("w2", "True", 600);

    const checks = kube.server.collection(NODE_HEALTH_CHECKS);
    checks.mergePatch({ name: "workers" }, { spec: { pauseRequests: ["upgrade"] } });
    const paused = JSON.parse((await explain("nhc", "workers", "-o", "json")).out);
    assert.deepEqual([paused.phase, paused.gate.outcome], ["Paused", "paused"]);
    assert.match(paused.gate.reason, /upgrade/);
    checks.mergePatch({ name: "workers" }, { spec: { pauseRequests: null } });
  });

  it("ironfence explain says that a template is not there", async () => {
    const key = { namespace: "fencing", name: "fence-template" };
    const templates = kube.server.collection(vendorType("FenceTemplate"));
    templates.delete(key);
    const { out } = await explain("nhc", "workers");
    assert.match(out, /Disabled: Remediation template not found: FenceTemplate fencing\/fence-template not found/);
    templates.create({ metadata: key, spec: { template: { spec: {} } } });
  });

  it("ironfence explain fails for names that are not there, and on a command line without one", async () => {
    for (const [kind, words] of [
      ["node", /there is no node nobody/],
      ["nhc", /there is no NodeHealthCheck nobody/],
    ] as const) {
      const { code, err, out } = await explain(kind, "nobody");
      assert.equal(code, EXIT_FAILURE);
      assert.match(err, words);
      assert.equal(out, "");
      assert.equal((await explain(kind)).code, EXIT_USAGE);
    }
  });

  it("ironfence explain fails rather than guess if it may not read what the agent reads", async () => {
    for (const pathPrefix of [
      "/apis/fence.example/v1/fences",
      "/apis/coordination.k8s.io/v1/namespaces/medik8s-leases/leases",
      "/api/v1/nodes",
      "/apis/remediation.medik8s.io/v1alpha1/nodehealthchecks",
    ]) {
      kube.server.faults.inject({ match: { pathPrefix }, times: 10, action: { kind: "status", status: 403 } });
      const { code, err } = await explain("node", "w1");
      assert.equal(code, EXIT_FAILURE);
      assert.match(err, /grant that permission/);
      kube.server.faults.clear();
    }
  });
});

/** Runs the reads and decisions of `explain` in the virtual time of a world. */
async function decisionsIn(world: DetectorWorld) {
  const runtime = createKubeRuntime({
    transport: world.server.transport({ client: "cli" }),
    clock: world.clock,
    random: seededRandom(3),
    logger: createLogger("silent"),
    controllerName: "ironfence.io/cli",
    instance: "cli",
  });
  const reading = readDecisions(
    runtime,
    { leaseNamespace: "medik8s-leases", namespace: "fencing" },
    new AbortController().signal,
  );
  let isOver = false;
  const over = () => (isOver = true);
  void reading.then(over, over);
  await world.until("the cluster is read", () => isOver);
  const [found] = (await reading).checks;
  assert.ok(found);
  return found.decision;
}

describe("an explanation and the controller", () => {
  it("an explanation and the controller decide the same", async () => {
    const world = new DetectorWorld();
    const decisions = () => decisionsIn(world);
    world.template();
    world.check({ minHealthy: 2 });
    world.nodes(5);
    for (const name of ["n1", "n3"]) world.ready(name, "Unknown");
    world.node("n9", { "node-role.kubernetes.io/control-plane": "" });
    await world.clock.advance(11_000);

    const before = await decisions();
    const foretold = before.actions.flatMap((action) => (action.type === "create" ? [action.node.metadata.name] : []));
    assert.deepEqual(foretold.sort(), ["n1", "n3"]);
    world.start();
    await world.until("two CRs are recorded", () => (world.status().unhealthyNodes ?? []).length === 2);
    assert.deepEqual(
      world
        .fences()
        .map(({ metadata }) => metadata.name)
        .sort(),
      foretold,
    );

    // Now nothing is left to do, and the status that would be written equals the stored one.
    await world.clock.advance(2_000);
    const after = await decisions();
    assert.deepEqual(after.actions, []);
    assert.deepEqual(after.status, world.status());
    await world.stop();
  });
});

describe("ironfence explain on OKD", () => {
  const kind = (group: string, name: string, version: string, namespaced: boolean): ResourceType => ({
    group,
    version,
    kind: name,
    plural: `${name.toLowerCase()}s`,
    namespaced,
  });
  const VERSIONS = kind("config.openshift.io", "ClusterVersion", "v1", false);
  const BUDGETS = kind("policy", "PodDisruptionBudget", "v1", true);

  async function okd(): Promise<DetectorWorld> {
    const world = new DetectorWorld();
    for (const type of [VERSIONS, BUDGETS]) world.server.load(crdOf(type));
    world.template();
    world.check();
    world.nodes(2);
    world.node("m0", { "node-role.kubernetes.io/master": "" });
    world.ready("m0", "Unknown");
    await world.clock.advance(11_000);
    return world;
  }

  it("ironfence explain on OKD fails if the user may not read whether an upgrade is running, since the agent may and acts on it", async () => {
    const world = await okd();
    const match = { pathPrefix: "/apis/config.openshift.io/v1/clusterversions" };
    world.server.faults.inject({ match, times: 10, action: { kind: "status", status: 403 } });
    await assert.rejects(decisionsIn(world), /403/);
    world.server.faults.clear();
    assert.equal((await decisionsIn(world)).gate, undefined);
    await world.stop();
  });

  it("ironfence explain on OKD reports that etcd's quorum holds a control plane node back, or fails if that may not be read", async () => {
    const world = await okd();
    const [verdict] = (await decisionsIn(world)).nodes;
    assert.equal(verdict?.outcome, "deferred");
    assert.match(verdict?.reason ?? "", /m0: cannot check etcd quorum: found 0 PodDisruptionBudgets/);
    const match = { pathPrefix: "/apis/policy/v1" };
    world.server.faults.inject({ match, times: 10, action: { kind: "status", status: 403 } });
    await assert.rejects(decisionsIn(world), /403/);
    await world.stop();
  });
});
