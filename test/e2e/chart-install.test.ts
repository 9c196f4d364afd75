import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import type { ChartTools } from "../../hack/e2e/chart-tools.ts";
import { prepareChartTools } from "../../hack/e2e/chart-tools.ts";
import { conditionOf, hasTaint, OUT_OF_SERVICE } from "../../hack/e2e/chronicle.ts";
import type { NodeView, RemediationView } from "../../hack/e2e/chronicle.ts";
import { eventually } from "../../hack/e2e/eventually.ts";
import { tryDelete, untilRefused } from "../../hack/e2e/removal.ts";
import { SCHEMA_LOCATION, writeSchemas } from "../../hack/e2e/openapi-schemas.ts";
import type { Scenario } from "../../hack/e2e/scenario.ts";
import {
  configure,
  explain,
  HEALTH_CHECK,
  holdFence,
  marksOf,
  startScenario,
  targetsReady,
  remediationEnds,
  REMEDIATION_TIMEOUT_MS,
} from "../../hack/e2e/scenario.ts";
import { install, NAMESPACE, repositoryPath } from "../../hack/e2e/world.ts";
import { manifestsIn, withHelmFolder } from "../../hack/chart/render.ts";
import type { Manifest } from "../../hack/lib/apply.ts";
import { applyManifests, applyObject, deleteManifests, readManifests } from "../../hack/lib/apply.ts";
import { freeLease } from "../../hack/lib/free-leases.ts";
import { findGo, moduleSource } from "../../hack/lib/go.ts";
import { run } from "../../hack/lib/run.ts";
import { FAMILIES } from "../../src/config/parsers.ts";
import { cli } from "../integration/cli-fixture.ts";
import { runHelm } from "../lib/chart/helm.ts";

// Installs deploy/chart on a real control plane, checks it, runs a fence, upgrades it during another fence, uninstalls
// it, installs it again, and installs it instead of deploy/kustomize.

const CHART = repositoryPath("deploy/chart");
const HELM_TIMEOUT_MS = 120_000;
const GONE_WITHIN_MS = 60_000;
const DEPLOYMENT = `/apis/apps/v1/namespaces/${NAMESPACE}/deployments/ironfence`;
const CLUSTER_ROLES = "/apis/rbac.authorization.k8s.io/v1/clusterroles";
const AGGREGATED = `${CLUSTER_ROLES}/ironfence-remediators`;
const LEASES = `/apis/coordination.k8s.io/v1/namespaces/${NAMESPACE}/leases`;
const OPERATOR_MODULE = "github.com/prometheus-operator/prometheus-operator";

/** Values that enable as much of the chart as one release can have. */
const EVERYTHING = {
  families: [...FAMILIES],
  reprovision: true,
  bareMetalHostNamespaces: ["default"],
  workloadClusterNamespaces: ["default"],
  rbac: { operators: [{ kind: "User", apiGroup: "rbac.authorization.k8s.io", name: "ann" }] },
  agent: { maxHosts: 10, extraEnv: [{ name: "NO_PROXY", value: "10.0.0.0/8" }] },
  metrics: {
    secure: { enabled: true, existingSecret: "metrics-tls" },
    podMonitor: { enabled: true, scrapeTimeout: "10s", relabelings: [{ action: "labeldrop", regex: "pod" }] },
    prometheusRule: { enabled: true, labels: { release: "prometheus" } },
    dashboard: { enabled: true },
  },
  statusPage: { enabled: true, existingSecret: "status-tls", from: [{ podSelector: {} }] },
  networkPolicy: { bmc: { networks: ["10.20.0.0/16", "fd00:20::/64"] } },
  commonLabels: { team: "storage" },
  serviceAccount: { annotations: { "example.com/a": "b" } },
};

void describe("the chart on a real control plane", () => {
  let scenario: Scenario;
  let tools: ChartTools;
  let folder: string;

  const helm = (args: readonly string[], values: object = {}): Promise<string> =>
    runHelm(tools.helm, scenario.world.controlPlane.kubeconfig, args, values);

  /** Starts an agent with the options of the installed Deployment. */
  const startAgent = async (): Promise<void> => {
    const { spec } = await scenario.world.api.get<{
      spec: { template: { spec: { containers: { args: string[] }[] } } };
    }>(DEPLOYMENT);
    const [command, ...flags] = spec.template.spec.containers[0]?.args ?? [];
    assert.equal(command, "run");
    await scenario.startAgent(flags);
  };

  const rulesOf = async (path: string): Promise<unknown[]> =>
    (await scenario.world.api.get<{ rules?: unknown[] | null }>(path)).rules ?? [];

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "ironfence-chart-install-"));
    const progress = (line: string): void => void process.stderr.write(`e2e: ${line}\n`);
    tools = await prepareChartTools(progress, new AbortController().signal);
    scenario = await startScenario({ install: false });
  });
  after(async () => {
    await scenario?.stop();
    await rm(folder, { recursive: true });
  });

  void test("the chart installs and says the next step; its agent fences a node with the permissions of the chart alone", async () => {
    const { world } = scenario;
    const notes = await helm(["install", "ironfence", CHART, "--create-namespace", "--wait"]);
    assert.match(notes, /get fencingtargets/);
    assert.doesNotMatch(notes, /OKD/);
    assert.match(notes, /helm test ironfence -n ironfence-system --logs/);
    assert.match(notes, /ironfence check --namespace ironfence-system/);
    await world.api.create(LEASES, freeLease(NAMESPACE));
    await configure(scenario);
    await startAgent();
    await targetsReady(scenario);
    const marks = await marksOf(scenario, "worker-1");
    await world.host("worker-1").hang();
    await eventually("worker-1 has the out-of-service taint", 120_000, async () =>
      hasTaint(await world.api.get<NodeView>("/api/v1/nodes/worker-1"), OUT_OF_SERVICE),
    );
    await remediationEnds(scenario, "worker-1", marks);
  });

  void test("the chart's check reads everything with its own permissions and finds the installation complete", async () => {
    const kubeconfig = await scenario.world.controlPlane.serviceAccountKubeconfig(NAMESPACE, "ironfence-check");
    const { out, err } = await cli(["check", "-o", "json", "--kubeconfig", kubeconfig]);
    assert.match(out, /^\{/, err);
    const { checks } = JSON.parse(out) as { checks: { id: string; level: string; message: string }[] };
    const complaints = checks.filter(({ level }) => level !== "ok").map(({ id }) => id);
    // The Deployment has no pods, because the agent is a process of this test.
    assert.deepEqual(complaints, ["replicas"], out);
    for (const id of ["custom-resources", "admission-policies", "agent-permissions"])
      assert.ok(
        checks.some((check) => check.id === id),
        id,
      );
  });

  void test("the chart upgrades in the middle of a fence, which a new agent continues, and changes nothing if nothing differs", async () => {
    const { world } = scenario;
    const marks = await marksOf(scenario, "worker-2");
    const letPodGo = await holdFence(scenario, "worker-2");
    await untilRefused(world.api, "Releasing");
    const everything = await namesLeft();
    await assert.rejects(
      helm(["uninstall", "ironfence"]),
      /BareMetalRemediation ironfence-system\/worker-2 \(Releasing\), and its host may be OFF/,
      "an uninstall is refused before it deletes anything",
    );
    assert.deepEqual(await namesLeft(), everything);
    // Helm does not upgrade a release whose uninstall has begun.
    await helm(["rollback", "ironfence", "1", "--wait"]);
    const values = { families: ["node-health-check", "bare-metal-host"], agent: { maxHosts: 10 } };
    for (const group of ["metal3.io", "cluster.x-k8s.io", "infrastructure.cluster.x-k8s.io"])
      await applyManifests(world.api, repositoryPath(`hack/foreign-crds/${group}.yaml`));
    // Without the family okd, the chart grants no permission to read the kinds of OKD. So no agent may run while they
    // are served.
    await Promise.all(scenario.agents.map((agent) => agent.stop()));
    const okd = repositoryPath("hack/foreign-crds/machine.openshift.io.yaml");
    await applyManifests(world.api, okd);
    assert.match(await helm(["upgrade", "ironfence", CHART, "--wait"], values), /This cluster is OKD: set okd to true/);
    await deleteManifests(world.api, await readManifests(okd), GONE_WITHIN_MS);
    await assert.rejects(
      helm(["upgrade", "ironfence", CHART], { ...values, observe: true }),
      /observe would leave BareMetalRemediation ironfence-system\/worker-2 unfinished/,
    );
    await startAgent();
    await letPodGo();
    const remediation = `/apis/ironfence.io/v1alpha1/namespaces/${NAMESPACE}/baremetalremediations/worker-2`;
    // If the health check creates the remediation before the test does, it deletes it as well.
    await explain(
      scenario,
      "the remediation of worker-2 has succeeded, or its health check has deleted it",
      REMEDIATION_TIMEOUT_MS,
      async () => {
        const found = await world.api.find<RemediationView>(remediation);
        return found === undefined || conditionOf(found, "Succeeded")?.status === "True";
      },
    );
    await tryDelete(world.api, remediation);
    await remediationEnds(scenario, "worker-2", marks);
    assert.equal(await world.host("worker-2").orderCount("ForceOff"), 1);
    assert.ok((await rulesOf(`${CLUSTER_ROLES}/ironfence-bare-metal-host`)).length > 0);

    const generation = async (): Promise<unknown> =>
      (await world.api.get<{ metadata: { generation: number } }>(DEPLOYMENT)).metadata.generation;
    const earlier = [await generation(), await rulesOf(AGGREGATED)];
    await helm(["upgrade", "ironfence", CHART, "--wait"], values);
    assert.deepEqual([await generation(), await rulesOf(AGGREGATED)], earlier);
    assert.ok((await rulesOf(AGGREGATED)).length > 0);
  });

  void test("the chart removes the permission of a family that is no longer chosen", async () => {
    await helm(["upgrade", "ironfence", CHART]);
    assert.equal(await scenario.world.api.find(`${CLUSTER_ROLES}/ironfence-bare-metal-host`), undefined);
  });

  void test("the chart's objects have, in every form, no field that the API server's own schemas do not have", async () => {
    const { api } = scenario.world;
    await applyManifests(api, await prometheusOperatorCrds());
    const target = (await readManifests(repositoryPath("examples/fencing-target.yaml"))).find(
      ({ kind }) => kind === "FencingTarget",
    );
    const { podMonitor: _, ...metrics } = EVERYTHING.metrics;
    const forms = {
      defaults: {},
      everything: { ...EVERYTHING, extraObjects: [target] },
      "service-monitor": { ...EVERYTHING, metrics: { ...metrics, serviceMonitor: { enabled: true } } },
    };
    const texts = await Promise.all(
      Object.values(forms).map((values) => helm(["template", "ironfence", CHART], { replicas: 2, ...values })),
    );
    const kinds = new Set(texts.flatMap(manifestsIn).map(({ kind }) => kind));
    const schemas = join(folder, "schemas");
    await eventually("the API server describes every kind of the chart", 60_000, async () => {
      const missing = await writeSchemas(api, schemas, kinds);
      return missing.size === 0;
    });
    for (const [index, text] of texts.entries()) {
      const file = join(folder, `form-${index}.yaml`);
      await writeFile(file, text);
      assert.match(await kubeconform(file, schemas), /Invalid: 0, Errors: 0, Skipped: 0/);
      // The API server validates each object in a dry run, with its admission policies.
      for (const manifest of manifestsIn(text)) await applyObject(api, withoutHook(manifest), { dryRun: true });
    }
    const broken = join(folder, "broken.yaml");
    await writeFile(broken, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndatum: {}\n");
    await assert.rejects(kubeconform(broken, schemas), /additional properties 'datum' not allowed/);
  });

  const kubeconform = (file: string, schemas: string): Promise<string> =>
    withHelmFolder((options) =>
      run(
        tools.kubeconform,
        ["-strict", "-summary", "-schema-location", join(schemas, SCHEMA_LOCATION), file],
        options,
      ),
    );

  void test("the chart leaves kinds, health checks and their Leases behind when it is uninstalled, and takes them over again", async () => {
    const { api } = scenario.world;
    await Promise.all(scenario.agents.map((agent) => agent.stop()));
    await helm(["uninstall", "ironfence", "--wait"]);
    assert.deepEqual(await namesLeft(), []);
    const crds = await names("/apis/apiextensions.k8s.io/v1/customresourcedefinitions");
    assert.equal(crds.filter((name) => name.endsWith(".ironfence.io")).length, 3);
    assert.ok((await api.find(HEALTH_CHECK)) !== undefined);
    assert.ok((await api.find("/api/v1/namespaces/medik8s-leases")) !== undefined);
    const targets = await names("/apis/ironfence.io/v1alpha1/fencingtargets");
    assert.equal(targets.length, 4);

    await helm(["install", "ironfence", CHART]);
    await startAgent();
    await targetsReady(scenario);
    await Promise.all(scenario.agents.map((agent) => agent.stop()));
    await helm(["uninstall", "ironfence", "--wait"]);
  });

  void test("the chart takes over an installation of deploy/kustomize without deleting it, and a second release is refused", async () => {
    const { api } = scenario.world;
    await install(api).catch((error: unknown) => {
      // The Lease of the first installation still exists.
      assert.match(String(error), /leases|AlreadyExists/i);
    });
    const uid = async (): Promise<string> => (await api.get<{ metadata: { uid: string } }>(DEPLOYMENT)).metadata.uid;
    const earlier = await uid();
    await assert.rejects(helm(["install", "ironfence", CHART]), /cannot be imported into the current release/);
    await helm(["upgrade", "--install", "ironfence", CHART, "--take-ownership"]);
    assert.equal(await uid(), earlier);
    await assert.rejects(helm(["install", "second", CHART]), /cannot be imported into the current release/);
    await startAgent();
    await targetsReady(scenario);
  });

  void test("the chart without keep deletes its own kinds, and never those of others", async () => {
    const { api } = scenario.world;
    await Promise.all(scenario.agents.map((agent) => agent.stop()));
    await helm(["upgrade", "ironfence", CHART], { crds: { keep: false } });
    await assert.rejects(
      helm(["upgrade", "ironfence", CHART], { crds: { keep: true, install: false } }),
      /crds\.install is false: Helm would delete baremetalremediations\.ironfence\.io/,
    );
    await helm(["uninstall", "ironfence", "--wait"]);
    const crds = await names("/apis/apiextensions.k8s.io/v1/customresourcedefinitions");
    assert.deepEqual(
      crds.filter((name) => name.endsWith(".ironfence.io")),
      [],
    );
    assert.ok((await api.find(HEALTH_CHECK)) !== undefined);
    const namespace = { apiVersion: "v1", kind: "Namespace", metadata: { name: NAMESPACE } };
    await deleteManifests(api, [namespace], GONE_WITHIN_MS);
  });

  async function names(path: string): Promise<string[]> {
    const objects = await scenario.world.api.list<{ metadata: { name: string } }>(path);
    return objects.map(({ metadata }) => metadata.name);
  }

  /** The objects that an uninstall must delete. */
  async function namesLeft(): Promise<string[]> {
    const rbac = "/apis/rbac.authorization.k8s.io/v1";
    const admission = "/apis/admissionregistration.k8s.io/v1";
    const paths = [
      `${rbac}/clusterroles`,
      `${rbac}/clusterrolebindings`,
      `${rbac}/roles`,
      `${rbac}/rolebindings`,
      `${admission}/validatingadmissionpolicies`,
      `${admission}/validatingadmissionpolicybindings`,
      "/api/v1/serviceaccounts",
      "/apis/apps/v1/deployments",
      "/apis/networking.k8s.io/v1/networkpolicies",
      "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases",
    ];
    const found = await Promise.all(paths.map(async (path) => (await names(path)).map((name) => `${path}/${name}`)));
    return found.flat().filter((name) => /\/ironfence[^/]*$/.test(name));
  }
});

/** The folder with the CRDs of the Prometheus Operator, in the version that a go.mod pins. */
async function prometheusOperatorCrds(): Promise<string> {
  const go = findGo();
  assert.ok(go !== undefined, "install Go 1.26 or newer (https://go.dev/dl/)");
  const peer = repositoryPath("hack/peers/prometheus-operator");
  const signal = AbortSignal.timeout(HELM_TIMEOUT_MS);
  await run(go, ["mod", "download", OPERATOR_MODULE], { cwd: peer, env: {}, timeoutMs: HELM_TIMEOUT_MS, signal });
  const source = await moduleSource(go, peer, OPERATOR_MODULE, signal);
  return join(source, "example/prometheus-operator-crd");
}

/** An object as Helm applies it. */
function withoutHook(manifest: Manifest): Manifest {
  return manifest.kind === "Pod" ? { ...manifest, metadata: { ...manifest.metadata, name: "dry-run" } } : manifest;
}
