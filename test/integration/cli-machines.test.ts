import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import type { RequestRecord } from "../../hack/kube-mock/api-server.ts";
import { NAMESPACES } from "../../hack/kube-mock/controllers/cluster-types.ts";
import { startKubeMock } from "../../hack/kube-mock/kube-mock.ts";
import type { KubeMock } from "../../hack/kube-mock/kube-mock.ts";
import { readCrds, readForeignCrds } from "../../hack/lib/crds.ts";
import { NODES, SECRETS } from "../../src/api/core-types.ts";
import { systemClock, systemRandom } from "../../src/runtime/system.ts";
import { toTime } from "../../src/runtime/time.ts";
import { cli } from "./cli-fixture.ts";
import type { CliResult } from "./cli-fixture.ts";
import { vendorCrd, vendorType } from "./detector-fixture.ts";

// `ironfence status` and `explain` over health checks of machines, whose nodes are on an API server of their own.

const NAMESPACE = "tenant";
const MINUTE = 60_000;

describe("ironfence in a management cluster", () => {
  let folder: string;
  let management: KubeMock;
  let workload: KubeMock;
  let kubeconfig: string;
  const requests: RequestRecord[] = [];

  before(async () => {
    folder = mkdtempSync(join(tmpdir(), "ironfence-cli-"));
    const options = { clock: systemClock, random: systemRandom, tls: true, token: "let-me-in" };
    [management, workload] = await Promise.all([startKubeMock(options), startKubeMock(options)]);
    kubeconfig = join(folder, "kubeconfig");
    writeFileSync(kubeconfig, management.kubeconfig);
    const { server } = management;
    for (const crd of [...(await readCrds()), ...(await readForeignCrds())]) server.load(crd);
    for (const kind of ["Fence", "FenceTemplate"]) server.load(vendorCrd(kind));
    server.collection(NAMESPACES).create({ metadata: { name: NAMESPACE } });
    server.collection(vendorType("FenceTemplate")).create({
      metadata: { namespace: NAMESPACE, name: "fence-template" },
      spec: { template: { spec: {} } },
    });
    server.collection(SECRETS).create({
      metadata: { namespace: NAMESPACE, name: "prod-kubeconfig" },
      data: { value: Buffer.from(workload.kubeconfig).toString("base64") },
    });
    const ready = (type: string) => condition(type, "True", 60);
    create("Cluster", "prod", { paused: false }, [ready("ControlPlaneInitialized"), ready("InfrastructureReady")]);
    for (const name of ["w1", "w2", "w3"]) {
      const spec = {
        clusterName: "prod",
        bootstrap: { dataSecretName: name },
        infrastructureRef: { apiGroup: "infrastructure.cluster.x-k8s.io", kind: "Metal3Machine", name },
      };
      create("Machine", name, spec, [], { nodeRef: { name } });
      const nodes = workload.server.collection(NODES);
      nodes.create({ metadata: { name } });
      const conditions = [condition("Ready", name === "w2" ? "Unknown" : "True", 10)];
      nodes.mergePatch({ name }, { status: { conditions } }, "status");
    }
    const rule = { type: "Ready", status: "Unknown", timeoutSeconds: 300 };
    create("MachineHealthCheck", "workers", {
      clusterName: "prod",
      selector: { matchLabels: { "cluster.x-k8s.io/cluster-name": "prod" } },
      checks: { unhealthyNodeConditions: [rule] },
      remediation: { templateRef: { apiVersion: "fence.example/v1", kind: "FenceTemplate", name: "fence-template" } },
    });
    for (const { server: each } of [management, workload]) each.onRequest((record) => requests.push(record));
  });
  after(async () => {
    await Promise.all([management?.close(), workload?.close()]);
    rmSync(folder, { recursive: true });
  });

  const ironfence = (...inputs: string[]): Promise<CliResult> => cli([...inputs, "--kubeconfig", kubeconfig]);

  function create(kind: string, name: string, spec: object, conditions: object[] = [], status: object = {}): void {
    const plural = `${kind.toLowerCase()}s`;
    const type = { group: "cluster.x-k8s.io", version: "v1beta2", kind, plural, namespaced: true };
    const objects = management.server.collection(type);
    const labels = { "cluster.x-k8s.io/cluster-name": "prod" };
    objects.create({ metadata: { namespace: NAMESPACE, name, labels }, spec });
    objects.mergePatch({ namespace: NAMESPACE, name }, { status: { conditions, ...status } }, "status");
  }

  function condition(type: string, status: string, minutesAgo: number): object {
    const lastTransitionTime = toTime(systemClock.nowMs() - minutesAgo * MINUTE);
    return { type, status, reason: type, message: "", lastTransitionTime };
  }

  it("explains what a MachineHealthCheck does about its machines, and writes nothing", async () => {
    const { out, err, code } = await ironfence("explain", "mhc", "tenant/workers");
    assert.equal(err, "");
    assert.equal(code, 0);
    assert.match(out, /^MachineHealthCheck tenant\/workers at .*: remediations may start$/m);
    assert.match(out, /machines +3 covered, 2 healthy/);
    assert.match(out, /^w2 +create +a Fence is created for it$/m);
    assert.deepEqual([...management.server.collection(vendorType("Fence")).values()], []);
    assert.deepEqual(
      requests.filter(({ method }) => method !== "GET").map(({ method, path }) => `${method} ${path}`),
      [],
    );
    const { out: json } = await ironfence("explain", "mhc", "tenant/workers", "-o", "json");
    const { machines, expectedMachines } = JSON.parse(json) as { machines: object[]; expectedMachines: number };
    assert.equal(expectedMachines, 3);
    assert.equal(machines.length, 1);
  });

  it("says that there is no such health check", async () => {
    const { err, code } = await ironfence("explain", "mhc", "tenant/other");
    assert.match(err, /there is no MachineHealthCheck of Cluster API tenant\/other/);
    assert.equal(code, 1);
  });

  it("shows MachineHealthChecks beside its own kinds", async () => {
    management.server
      .collection({
        group: "cluster.x-k8s.io",
        version: "v1beta2",
        kind: "MachineHealthCheck",
        plural: "machinehealthchecks",
        namespaced: true,
      })
      .mergePatch(
        { namespace: NAMESPACE, name: "workers" },
        {
          status: {
            expectedMachines: 3,
            currentHealthy: 2,
            remediationsAllowed: 0,
            conditions: [{ ...condition("RemediationAllowed", "False", 1), message: "too many" }],
          },
        },
        "status",
      );
    const { out } = await ironfence("status");
    assert.match(out, /^MachineHealthCheck:$/m);
    assert.match(out, /^ *tenant +workers +3 +2 +0 +too many$/m);
  });

  it("says why nothing can be known where the workload cluster is away", async () => {
    await workload.close();
    const { out, code } = await ironfence("explain", "mhc", "tenant/workers");
    assert.equal(code, 0);
    assert.match(out, /Nothing new starts: how the machines' nodes are cannot be known: cluster tenant\/prod: /);
  });
});
