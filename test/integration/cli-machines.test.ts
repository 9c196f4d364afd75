import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { connect, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import type { RequestRecord } from "../../hack/kube-mock/api-server.ts";
import { NAMESPACES } from "../../hack/kube-mock/controllers/cluster-types.ts";
import { startKubeMock } from "../../hack/kube-mock/kube-mock.ts";
import type { KubeMock } from "../../hack/kube-mock/kube-mock.ts";
import { PROVISIONED_STATUS } from "../../hack/rack/bare-metal-host-status.ts";
import { readCrds, readForeignCrds } from "../../hack/lib/crds.ts";
import { REFUSED } from "../../src/api/names/annotations.ts";
import { BARE_METAL_REMEDIATIONS } from "../../src/api/ironfence/bare-metal-remediation.ts";
import { NODES, SECRETS } from "../../src/api/kubernetes/core-types.ts";
import { systemClock, systemRandom } from "../../src/runtime/system.ts";
import { BARE_METAL_HOSTS } from "../../src/remediator/hosts/bare-metal-host/store/host-store.ts";
import { toTime } from "../../src/runtime/time.ts";
import { cli } from "./cli-fixture.ts";
import type { CliResult } from "./cli-fixture.ts";
import { vendorCrd, vendorType } from "./detector-fixture.ts";

// Runs `ironfence status` and `explain` for MachineHealthChecks whose nodes are on a separate API server.

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
    server.collection(SECRETS).create({ metadata: { namespace: NAMESPACE, name: "prod-kubeconfig" } });
    publish(workload.kubeconfig);
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

  function publish(text: string): void {
    const data = { value: Buffer.from(text).toString("base64") };
    management.server.collection(SECRETS).mergePatch({ namespace: NAMESPACE, name: "prod-kubeconfig" }, { data });
  }

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

  it("ironfence in a management cluster explains a MachineHealthCheck, and writes nothing", async () => {
    const { out, err, code } = await ironfence("explain", "mhc", "tenant/workers");
    assert.equal(err, "");
    assert.equal(code, 0);
    assert.match(out, /^MachineHealthCheck tenant\/workers at .*: remediations may start$/m);
    assert.match(out, /machines +3 covered, 2 healthy/);
    assert.match(out, /^w2 +create +creating a Fence for it$/m);
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

  it("ironfence in a management cluster reports that the health check does not exist", async () => {
    const { err, code } = await ironfence("explain", "mhc", "tenant/other");
    assert.match(err, /there is no MachineHealthCheck tenant\/other of Cluster API or OKD/);
    assert.equal(code, 1);
  });

  it("ironfence in a management cluster shows MachineHealthChecks in addition to its own kinds", async () => {
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

  it("ironfence in a management cluster shows what a MachineHealthCheck says though remediation is allowed", async () => {
    create("MachineHealthCheck", "misspelt", { clusterName: "prod", selector: { matchLabels: {} } }, [
      { ...condition("RemediationAllowed", "True", 1), message: "No Machine is selected: compare" },
    ]);
    assert.match((await ironfence("status")).out, /^ *tenant +misspelt +- +- +- +No Machine is selected: compare$/m);
  });

  it("ironfence in a management cluster does not call a cluster disconnected whose first connection breaks", async () => {
    const { hostname, port } = new URL(workload.url);
    let connections = 0;
    const door = createServer((socket) => {
      connections += 1;
      socket.on("error", () => undefined);
      if (connections === 1) return socket.destroy();
      const inner = connect({ host: hostname, port: Number(port) });
      inner.on("error", () => socket.destroy());
      socket.on("close", () => inner.destroy());
      return socket.pipe(inner).pipe(socket);
    });
    await new Promise<void>((resolve) => door.listen(0, "127.0.0.1", resolve));
    const address = door.address();
    const doorPort = typeof address === "object" && address !== null ? address.port : 0;
    publish(workload.kubeconfig.replace(`:${port}`, `:${doorPort}`));
    try {
      const { out } = await ironfence("explain", "mhc", "tenant/workers");
      assert.match(out, /^w2 +create +creating a Fence for it$/m);
      assert.ok(connections > 1, String(connections));
    } finally {
      door.close();
      publish(workload.kubeconfig);
    }
  });

  it("ironfence in a management cluster shows why a health check without its Cluster has no counts, and what keeps hosts from being fenced", async () => {
    create("MachineHealthCheck", "lost", { clusterName: "gone", selector: { matchLabels: {} } });
    const hosts = management.server.collection(BARE_METAL_HOSTS);
    for (const [name, online] of [
      ["h1", true],
      ["h2", false],
    ] as const) {
      const bmc = { address: `redfish://${name}`, credentialsName: "bmc" };
      hosts.create({ metadata: { namespace: NAMESPACE, name }, spec: { online, bmc } });
      const status = { ...PROVISIONED_STATUS, poweredOn: online };
      hosts.mergePatch({ namespace: NAMESPACE, name }, { status }, "status");
    }
    const { out } = await ironfence("status");
    assert.match(out, /^ *tenant +lost +- +- +- +its Cluster does not exist$/m);
    assert.match(out, /^BareMetalHost:$/m);
    assert.match(out, /^ *tenant +h1 +- +provisioned +On +- *$/m);
    assert.match(
      out,
      /^ *tenant +h2 +- +provisioned +Off +- +HostOffline +BareMetalHost tenant\/h2 has spec.online: false/m,
    );
    const { out: json } = await ironfence("status", "-o", "json");
    const { withoutCluster, bareMetalHosts } = JSON.parse(json) as {
      withoutCluster: string[];
      bareMetalHosts: object[];
    };
    assert.deepEqual([withoutCluster, bareMetalHosts.length], [["tenant/lost"], 2]);
  });

  it("ironfence in a management cluster shows the rest if the caller is not allowed to list a family's kind", async () => {
    const match = { pathPrefix: "/apis/metal3.io/v1alpha1/baremetalhosts" };
    management.server.faults.inject({ match, times: Infinity, action: { kind: "status", status: 403 } });
    const { out, code } = await ironfence("status");
    management.server.faults.clear();
    assert.equal(code, 0);
    assert.match(out, /^BareMetalHost: cannot be shown: .*403/m);
    assert.match(out, /^FencingTarget: none$/m);
  });

  it("ironfence in a management cluster shows what happens to requests of other projects", async () => {
    const requests = management.server.collection({
      group: "infrastructure.cluster.x-k8s.io",
      version: "v1beta2",
      kind: "Metal3Remediation",
      plural: "metal3remediations",
      namespaced: true,
    });
    const refused = "NoMachine: no Machine owns it";
    const strategy = { type: "Reboot", retryLimit: 1, timeoutSeconds: 600 };
    requests.create({
      metadata: { namespace: NAMESPACE, name: "r1", annotations: { [REFUSED]: refused } },
      spec: { strategy },
    });
    const { metadata } = requests.create({ metadata: { namespace: NAMESPACE, name: "r2" }, spec: { strategy } });
    requests.mergePatch(
      { namespace: NAMESPACE, name: "r2" },
      { status: { phase: "Running", retryCount: 1 } },
      "status",
    );
    const child = `r2-${metadata.uid.slice(0, 8)}`;
    management.server
      .collection(BARE_METAL_REMEDIATIONS)
      .create({ metadata: { namespace: NAMESPACE, name: child }, spec: { strategy: {} } });
    const { out } = await ironfence("status");
    assert.match(out, /^ *tenant +r1 +- +- +- +NoMachine: no Machine owns it$/m);
    assert.match(out, new RegExp(`^ *tenant +r2 +Running +1 +${child} *$`, "m"));
  });

  it("ironfence in a management cluster explains a MachineHealthCheck of OKD, by the nodes of its own cluster", async () => {
    const okd = (kind: string) => ({
      group: "machine.openshift.io",
      version: "v1beta1",
      kind,
      plural: `${kind.toLowerCase()}s`,
      namespaced: true,
    });
    const labels = { role: "worker" };
    for (const [name, status] of [
      ["o1", "True"],
      ["o2", "Unknown"],
    ] as const) {
      const nodes = management.server.collection(NODES);
      nodes.create({ metadata: { name } });
      nodes.mergePatch({ name }, { status: { conditions: [condition("Ready", status, 10)] } }, "status");
      const machines = management.server.collection(okd("Machine"));
      machines.create({ metadata: { namespace: NAMESPACE, name, labels }, spec: {} });
      machines.mergePatch({ namespace: NAMESPACE, name }, { status: { nodeRef: { kind: "Node", name } } }, "status");
    }
    management.server.collection(okd("MachineHealthCheck")).create({
      metadata: { namespace: NAMESPACE, name: "okd-workers" },
      spec: {
        selector: { matchLabels: labels },
        unhealthyConditions: [{ type: "Ready", status: "Unknown", timeout: "300s" }],
      },
    });
    const { out, err } = await ironfence("explain", "mhc", "tenant/okd-workers");
    assert.equal(err, "");
    assert.match(out, /^MachineHealthCheck tenant\/okd-workers at .*: remediations may start$/m);
    assert.match(out, /machines +2 covered, 1 healthy/);
    assert.match(out, /^o2 +/m);
  });

  it("ironfence in a management cluster says why nothing can be known if the workload cluster cannot be reached", async () => {
    await workload.close();
    const { out, code } = await ironfence("explain", "mhc", "tenant/workers");
    assert.equal(code, 0);
    assert.match(out, /No new remediation starts: cannot read the Nodes of the Machines: cluster tenant\/prod: /);
  });
});
