import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, it } from "node:test";
import { NAMESPACES } from "../../hack/kube-mock/controllers/cluster-types.ts";
import { startKubeMock } from "../../hack/kube-mock/kube-mock.ts";
import type { KubeMock } from "../../hack/kube-mock/kube-mock.ts";
import { startAgent } from "../../hack/lib/agent-process.ts";
import { freeLease, freeLeases } from "../../hack/lib/free-leases.ts";
import { readCrds } from "../../hack/lib/crds.ts";
import type { Child } from "../../hack/lib/processes.ts";
import { EVENTS, LEASES } from "../../src/api/kubernetes/core-types.ts";
import type { KubeObject } from "../../src/kube/resource.ts";
import { systemClock, systemRandom } from "../../src/runtime/system.ts";
import { addressIn, until } from "./child-agent.ts";
import { cli } from "./cli-fixture.ts";

// What users see of the agents of two installations, which are separate processes with an API server over HTTPS.

const NAMESPACE = "ironfence-system";
const LEASE_OF = (component: string): string => `kube-system/ironfence-${component}`;

describe("two installations in one cluster", () => {
  let folder: string;
  let kube: KubeMock;
  let kubeconfig: string;
  const agents: Child[] = [];

  beforeEach(async () => {
    folder = mkdtempSync(join(tmpdir(), "ironfence-installations-"));
    kube = await startKubeMock({ clock: systemClock, random: systemRandom, tls: true, token: "let-me-in" });
    for (const crd of await readCrds()) kube.server.load(crd);
    kube.server.collection(NAMESPACES).create({ metadata: { name: NAMESPACE } });
    for (const lease of freeLeases(NAMESPACE)) kube.server.collection(LEASES).create(lease);
    kube.server.collection(LEASES).create(freeLease(NAMESPACE, "other"));
    kubeconfig = join(folder, "kubeconfig");
    writeFileSync(kubeconfig, kube.kubeconfig);
  });
  afterEach(async () => {
    await Promise.all(agents.splice(0).map((agent) => agent.stop()));
    await kube.close();
    rmSync(folder, { recursive: true });
  });

  const start = (leaseName: string): Child => {
    const flags = ["--lease-name", leaseName];
    const agent = startAgent({ kubeconfig, logFile: join(folder, `${leaseName}.log`), flags });
    agents.push(agent);
    return agent;
  };
  const holder = (namespace: string, name: string): string =>
    kube.server.collection<KubeObject & { spec: { holderIdentity?: string } }>(LEASES).get({ namespace, name })?.spec
      .holderIdentity ?? "";
  const readiness = async (agent: Child): Promise<string> => {
    const probes = await until(agent, "it serves probes", () => addressIn(agent, "serving probes"));
    return (await fetch(`${probes}/readyz`)).text();
  };
  const metrics = async (agent: Child): Promise<string> => {
    const address = await until(agent, "it serves metrics", () => addressIn(agent, "serving metrics"));
    return (await fetch(`${address}/metrics`)).text();
  };
  const notesOf = (wanted: string): string[] =>
    [...kube.server.collection<KubeObject & { reason: string; note: string }>(EVENTS).values()]
      .filter(({ reason }) => reason === wanted)
      .map(({ note }) => note)
      .sort();
  const status = async (leaseName: string): Promise<string> =>
    (await cli(["status", "--kubeconfig", kubeconfig, "--lease-name", leaseName])).out;

  it("the second of two installations in one cluster stands by, and each command names the first one and the next step", async () => {
    const first = start("ironfence");
    await until(first, "it leads", async () => /^ironfence_leader 1$/m.test(await metrics(first)));
    const second = start("other");
    await until(second, "it holds its own lease", () => holder(NAMESPACE, "other") !== "");
    const notes = ["detector", "remediator"].map(
      (component) =>
        `the installation ironfence-system/ironfence holds the Lease ${LEASE_OF(component)}, so this installation stands by: remove one of the two installations, or give them different --components`,
    );
    assert.deepEqual((await readiness(second)).trimEnd().split("\n").slice(0, 2), notes);
    await until(second, "there are events", () => notesOf("AnotherInstallation").length === 2);
    assert.deepEqual(notesOf("AnotherInstallation"), notes);
    const page = await metrics(second);
    assert.match(page, /^ironfence_cluster_lease\{lease="kube-system\/ironfence-remediator",state="taken"\} 1$/m);
    assert.match(page, /^ironfence_leader 0$/m);
    assert.doesNotMatch(page, /ironfence_remediations_in_flight/);
    assert.match(await metrics(first), /^ironfence_cluster_lease\{lease="[a-z/-]+remediator",state="ours"\} 1$/m);
    assert.equal(await readiness(first), "ok\n");
    const shown = await until(second, "status shows it", async () => {
      const out = await status("other");
      return out.includes("STANDS BY") && out;
    });
    assert.match(shown, /^agent: \S+ STANDS BY since /m);
    assert.ok(shown.includes(`StandsBy: ${notes.join("; ")}`), shown);
    assert.match(await status("ironfence"), /^agent: \S+ leads since /m);
  });

  it("the first of two installations leads without the Leases that it may not use, and each command says so", async () => {
    const match = { pathPrefix: "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases" };
    kube.server.faults.inject({ match, times: Infinity, action: { kind: "status", status: 403 } });
    const agent = start("ironfence");
    await until(agent, "it leads", async () => /^ironfence_leader 1$/m.test(await metrics(agent)));
    const notes = await until(agent, "both Leases are reported", async () => {
      const found = notesOf("ClusterLeaseRefused");
      return found.length === 2 && found;
    });
    for (const note of notes)
      assert.match(
        note,
        /^this agent has no permission to use the Lease kube-system\/\S+, .*: apply your installation \(deploy\/kustomize or the Helm chart\): /,
      );
    assert.match(
      await readiness(agent),
      /^this agent has no permission to use the Lease kube-system\/ironfence-detector,/,
    );
    assert.match(await metrics(agent), /^ironfence_cluster_lease\{lease="[a-z/-]+remediator",state="refused"\} 1$/m);
    const shown = await until(agent, "status shows it", async () => {
      const out = await status("ironfence");
      return out.includes("has no permission to use the Lease") && out;
    });
    assert.match(shown, /^agent: \S+ leads since /m);
    assert.match(
      shown,
      /! Agent \S+: NotReady: this agent has no permission to use the Lease kube-system\/ironfence-detector,/,
    );
  });
});
