import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { NAMESPACES } from "../../hack/kube-mock/controllers/cluster-types.ts";
import { startKubeMock } from "../../hack/kube-mock/kube-mock.ts";
import type { KubeMock } from "../../hack/kube-mock/kube-mock.ts";
import { startAgent } from "../../hack/lib/agent-process.ts";
import { freeLeases } from "../../hack/lib/free-leases.ts";
import { readCrds, readForeignCrds } from "../../hack/lib/crds.ts";
import type { Child } from "../../hack/lib/processes.ts";
import type { BareMetalRemediation } from "../../src/api/ironfence/bare-metal-remediation.ts";
import { BARE_METAL_REMEDIATIONS } from "../../src/api/ironfence/bare-metal-remediation.ts";
import { EVENTS, LEASES, NODES, SECRETS } from "../../src/api/kubernetes/core-types.ts";
import type { Lease } from "../../src/api/kubernetes/core.ts";
import { FENCING_TARGETS } from "../../src/api/ironfence/fencing-target.ts";
import type { KubeObject, ResourceType } from "../../src/kube/resource.ts";
import { systemClock, systemRandom } from "../../src/runtime/system.ts";
import { addressIn, until } from "./child-agent.ts";

// The agent as a separate process, started as users start it, with an API server over HTTPS.

const NAMESPACE = "ironfence-system";

describe("the agent", () => {
  let folder: string;
  let kube: KubeMock;
  let kubeconfig: string;

  before(async () => {
    folder = mkdtempSync(join(tmpdir(), "ironfence-agent-"));
    kube = await startKubeMock({ clock: systemClock, random: systemRandom, tls: true, token: "let-me-in" });
    for (const crd of [...(await readCrds()), ...(await readForeignCrds(["v1beta2"]))]) kube.server.load(crd);
    kube.server.collection(NAMESPACES).create({ metadata: { name: NAMESPACE } });
    for (const lease of freeLeases(NAMESPACE)) kube.server.collection(LEASES).create(lease);
    kubeconfig = join(folder, "kubeconfig");
    writeFileSync(kubeconfig, kube.kubeconfig);
  });
  after(async () => {
    await Promise.all(agents.map((agent) => agent.stop()));
    await kube.close();
    rmSync(folder, { recursive: true });
  });

  const agents: Child[] = [];
  const start = (name: string, ...flags: string[]): Child => {
    const agent = startAgent({ kubeconfig, logFile: join(folder, `${name}.log`), flags });
    agents.push(agent);
    return agent;
  };
  const holder = (): string =>
    kube.server.collection<Lease>(LEASES).get({ namespace: NAMESPACE, name: "ironfence" })?.spec.holderIdentity ?? "";

  it("the agent leads, serves probes and metrics, and releases its lease when asked to stop", async () => {
    const agent = start("first");
    await until(agent, "it leads", () => holder() !== "");
    const probes = await until(agent, "it serves probes", () => addressIn(agent, "serving probes"));
    const metrics = await until(agent, "it serves metrics", () => addressIn(agent, "serving metrics"));
    assert.equal((await fetch(`${probes}/healthz`)).status, 200);
    await until(agent, "it is ready", async () => (await fetch(`${probes}/readyz`)).status === 200);
    await until(agent, "both halves run by default", async () => {
      const page = await (await fetch(`${metrics}/metrics`)).text();
      return (
        page.includes("ironfence_remediations_in_flight 0") && page.includes("nodehealthcheck_ongoing_remediation")
      );
    });

    await agent.stop();
    assert.match(await agent.ended, /ended with 0/);
    assert.equal(holder(), "", "another one can lead at once");
    assert.match(readFileSync(agent.logFile, "utf8"), /ironfence has stopped/);
  });

  it("the agent is not ready while it may not watch what its families need, and says what that is", async () => {
    const match = { method: "GET", pathPrefix: "/apis/metal3.io/v1alpha1/baremetalhosts" };
    kube.server.faults.inject({ match, times: Infinity, action: { kind: "status", status: 403 } });
    const agent = start("refused", "--families", "bare-metal-host");
    const probes = await until(agent, "it serves probes", () => addressIn(agent, "serving probes"));
    const reported = await until(agent, "it is not ready", async () => {
      const answer = await fetch(`${probes}/readyz`);
      const text = await answer.text();
      return answer.status === 503 && text.startsWith("may not watch") && text;
    });
    assert.match(
      reported,
      /^may not watch baremetalhosts\.metal3\.io: .*\napply your installation \(deploy\/kustomize or the Helm chart\)/,
    );
    kube.server.faults.clear();
    await until(agent, "it is ready", async () => (await fetch(`${probes}/readyz`)).status === 200);
    await agent.stop();
  });

  it("the agent is not ready while a kind of its families is served only in a version that it does not read, and names both", async () => {
    const old = await startKubeMock({ clock: systemClock, random: systemRandom, tls: true, token: "let-me-in" });
    try {
      const crds = (await readForeignCrds(["v1beta1"])).map((text) =>
        text.replaceAll("name: v1beta1", "name: v1alpha5"),
      );
      for (const crd of [...(await readCrds()), ...crds]) old.server.load(crd);
      old.server.collection(NAMESPACES).create({ metadata: { name: NAMESPACE } });
      for (const lease of freeLeases(NAMESPACE)) old.server.collection(LEASES).create(lease);
      const file = join(folder, "old-kubeconfig");
      writeFileSync(file, old.kubeconfig);
      const flags = ["--families", "metal3-remediation"];
      const agent = startAgent({ kubeconfig: file, logFile: join(folder, "versions.log"), flags });
      agents.push(agent);
      const probes = await until(agent, "it serves probes", () => addressIn(agent, "serving probes"));
      const reported = await until(agent, "it says so", async () => {
        const text = await (await fetch(`${probes}/readyz`)).text();
        return text.startsWith("Metal3Remediation") && text;
      });
      const served = "Metal3Remediation is served as infrastructure.cluster.x-k8s.io/v1alpha5";
      const next = "Upgrade its provider, or remove the family from --families";
      const note = `${served}, and ironfence reads v1beta2 and v1beta1: family metal3-remediation does nothing. ${next}`;
      assert.equal(reported, `${note}\n`);
      const found = await until(agent, "there is an event", () =>
        [...old.server.collection<KubeObject & { reason: string; note: string }>(EVENTS).values()].find(
          ({ reason }) => reason === "VersionNotRead",
        ),
      );
      assert.equal(found.note, note);
      await agent.stop();
    } finally {
      await old.close();
    }
  });

  it("the agent runs the half that its options name, and ends with a failure when another takes its lease", async () => {
    const agent = start("half", "--components", "remediator");
    await until(agent, "it leads", () => holder() !== "");
    const metrics = await until(agent, "it serves metrics", () => addressIn(agent, "serving metrics"));
    const page = await until(agent, "its half runs", async () => {
      const text = await (await fetch(`${metrics}/metrics`)).text();
      return text.includes("ironfence_remediations_in_flight") && text;
    });
    assert.doesNotMatch(page, /nodehealthcheck_/);
    kube.server
      .collection(LEASES)
      .mergePatch({ namespace: NAMESPACE, name: "ironfence" }, { spec: { holderIdentity: "somebody-else" } });
    await until(agent, "it ends", () => !agent.running);
    assert.match(await agent.ended, /ended with 1/);
    assert.equal(holder(), "somebody-else");
    kube.server.collection(LEASES).delete({ namespace: NAMESPACE, name: "ironfence" });
  });

  it("the agent looks after the machines of a workload cluster if that family is chosen, through the cluster's own Secret", async () => {
    const workload = await startKubeMock({
      clock: systemClock,
      random: systemRandom,
      tls: true,
      token: "let-me-in-too",
    });
    try {
      workload.server.collection(NODES).create({ metadata: { name: "w1" }, spec: {}, status: { conditions: [] } });
      const data = { value: Buffer.from(workload.kubeconfig).toString("base64") };
      kube.server.collection(SECRETS).create({ metadata: { namespace: NAMESPACE, name: "prod-kubeconfig" }, data });
      const labels = { "cluster.x-k8s.io/cluster-name": "prod" };
      const create = (kind: string, name: string, spec: object, status: object): void => {
        const collection = kube.server.collection(clusterApi(kind));
        collection.create({ metadata: { namespace: NAMESPACE, name, labels }, spec });
        collection.mergePatch({ namespace: NAMESPACE, name }, { status }, "status");
      };
      create(
        "Cluster",
        "prod",
        {},
        { initialization: { infrastructureProvisioned: true, controlPlaneInitialized: true } },
      );
      const infrastructureRef = { apiGroup: "example.com", kind: "Host", name: "w1" };
      create("Machine", "w1", { clusterName: "prod", bootstrap: {}, infrastructureRef }, { nodeRef: { name: "w1" } });
      create("MachineHealthCheck", "workers", { clusterName: "prod", selector: { matchLabels: labels } }, {});

      const agent = start("machines", "--components", "detector", "--families", "machine-health-check");
      const key = { namespace: NAMESPACE, name: "workers" };
      await until(agent, "the machine is counted as healthy", () => {
        const check = kube.server.collection<MachineHealthCheckView>(clusterApi("MachineHealthCheck")).get(key);
        return check?.status?.currentHealthy === 1;
      });
      const metrics = addressIn(agent, "serving metrics");
      const page = await (await fetch(`${metrics}/metrics`)).text();
      assert.match(page, /ironfence_workload_clusters\{state="connected"\} 1/);
      assert.match(page, /^ironfence_leader 1$/m);
      assert.match(page, /^ironfence_build_info\{version="\d+\.\d+\.\d+"\} 1$/m);
      await agent.stop();
      assert.match(await agent.ended, /ended with 0/);
      assert.doesNotMatch(readFileSync(agent.logFile, "utf8"), /let-me-in/);
    } finally {
      await workload.close();
    }
  });

  it("the agent hands its lease to another one rather than power off the node that it runs on, which that one then fences", async () => {
    const metadata = { namespace: NAMESPACE, name: "n1" };
    kube.server.collection(NODES).create({ metadata: { name: "n1" }, spec: {}, status: {} });
    // A BMC without a listener on its port.
    const devices = [{ address: "redfish+http://127.0.0.1:9", credentialsSecretRef: { name: "bmc" } }];
    kube.server.collection(FENCING_TARGETS).create({ metadata, spec: { nodeName: "n1", devices } });
    const agent = start("own", "--components", "remediator", "--node-name", "n1");
    await until(agent, "it leads", () => holder() !== "");
    const first = holder();
    const other = start("other", "--components", "remediator", "--node-name", "n2");
    kube.server.collection(BARE_METAL_REMEDIATIONS).create({ metadata, spec: { strategy: {} } });
    await until(other, "the other one leads", () => ![first, ""].includes(holder()));
    const steps = await until(other, "the other one begins", () => {
      const { status } = kube.server.collection<BareMetalRemediation>(BARE_METAL_REMEDIATIONS).get(metadata) ?? {};
      return status?.phase === "Verifying" && status.timeline?.map(({ step }) => step);
    });
    // An agent that has just started may report first that it has not read the stop switch yet.
    const own = steps.filter((step) => step !== "PauseUnknown");
    assert.deepEqual(own.slice(0, 2), ["OwnNode", "HostClaimed"]);
    assert.match(readFileSync(agent.logFile, "utf8"), /handing the lease over/);
  });
});

interface MachineHealthCheckView extends KubeObject {
  status?: { currentHealthy?: number };
}

const clusterApi = (kind: string): ResourceType => ({
  group: "cluster.x-k8s.io",
  version: "v1beta2",
  kind,
  plural: `${kind.toLowerCase()}s`,
  namespaced: true,
});
