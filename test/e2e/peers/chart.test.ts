import assert from "node:assert/strict";
import { before, describe, test } from "node:test";
import type { ChartTools } from "../../../hack/e2e/chart-tools.ts";
import { prepareChartTools } from "../../../hack/e2e/chart-tools.ts";
import { repositoryPath } from "../../../hack/e2e/world.ts";
import { renderChart, withHelmFolder } from "../../../hack/chart/render.ts";
import { leavesOf } from "../../../hack/chart/schema.ts";
import { VALUES } from "../../../hack/chart/values.ts";
import type { Manifest } from "../../../hack/lib/apply.ts";
import { readManifests } from "../../../hack/lib/apply.ts";
import { run } from "../../../hack/lib/run.ts";
import { agentPermissions } from "../../../src/cli/check/read/permissions.ts";
import type { Family } from "../../../src/config/parsers.ts";
import { FAMILIES } from "../../../src/config/parsers.ts";
import { CASES } from "../../lib/chart/cases.ts";
import { at, Rendered } from "../../lib/chart/rendered.ts";

// deploy/chart with the real helm, without a cluster.

const CHART = repositoryPath("deploy/chart");
/** The kinds that grant or limit permissions. */
const RIGHTS = /^(?:Cluster)?Role(?:Binding)?$|^ValidatingAdmissionPolicy/;

void describe("the chart", () => {
  let tools: ChartTools;
  let defaults: Rendered;
  const render = async (values: object = {}, namespace?: string): Promise<Rendered> =>
    new Rendered(
      await renderChart({ helm: tools.helm, chart: CHART, ...(namespace !== undefined && { namespace }) }, values),
    );

  before(async () => {
    const progress = (line: string): void => void process.stderr.write(`e2e: ${line}\n`);
    tools = await prepareChartTools(progress, new AbortController().signal);
    defaults = await render();
  });

  void test("the chart passes helm lint --strict with its defaults and with every family", async () => {
    const everything = `--set=families={${FAMILIES.join(",")}},reprovision=true`;
    for (const values of [[], [everything]]) {
      const printed = await withHelmFolder((options) =>
        run(tools.helm, ["lint", CHART, "--strict", ...values], options),
      );
      assert.match(printed, /1 chart\(s\) linted, 0 chart\(s\) failed/);
    }
  });

  void test("the test of the chart has a case for every value, and no case for a value that does not exist", () => {
    const paths = leavesOf(VALUES).map(({ path }) => path);
    assert.deepEqual(Object.keys(CASES).toSorted(), paths.toSorted());
  });

  for (const [path, { set, read, before: wantedBefore, after }] of Object.entries(CASES)) {
    void test(`the value ${path} of the chart has its documented effect`, async () => {
      assert.deepEqual(read(defaults), wantedBefore, "with the defaults");
      assert.deepEqual(read(await render(set)), after, `with ${JSON.stringify(set)}`);
    });
  }

  void test("the chart refuses a value that it does not know, in every group, and one of a wrong type", async () => {
    const groups = new Set(
      leavesOf(VALUES)
        .map(({ path }) => path.split(".").slice(0, -1))
        .map((keys) => keys.join(".")),
    );
    assert.ok(groups.size > 10);
    for (const group of groups) {
      const keys = group === "" ? [] : group.split(".");
      const unknown = keys.reduceRight<object>((inner, key) => ({ [key]: inner }), { notAValue: true });
      await assert.rejects(render(unknown), /notAValue/, group);
    }
    for (const wrong of [
      { replicas: "two" },
      { replicas: -1 },
      { families: ["no-such-family"] },
      { families: "node-health-check" },
      { image: { digest: "sha256:short" } },
      { networkPolicy: { bmc: { networks: ["10.0.0.0"] } } },
      { networkPolicy: { bmc: { networks: ["10.0.0.0/99"] } } },
      { networkPolicy: { bmc: { networks: ["999.1.0.0/8"] } } },
      { networkPolicy: { bmc: { networks: ["10.1/8"] } } },
      { image: { repository: "https://registry.example/ironfence" } },
      { agent: { otlpEndpoint: "https://user:password@collector.example:4318" } },
      { networkPolicy: { bmc: { ports: [{ port: 70_000, protocol: "UDP" }] } } },
      { metrics: { podMonitor: { interval: "often" } } },
      { agent: { ownCluster: "no-namespace" } },
    ]) {
      await assert.rejects(render(wrong), /values don't meet the specifications of the schema/, JSON.stringify(wrong));
    }
  });

  void test("the chart refuses values that contradict each other, and says what to change", async () => {
    const contradictions: [object, RegExp][] = [
      [{ bareMetalHostNamespaces: ["metal3"] }, /add it to families/],
      [{ workloadClusterNamespaces: ["caps"] }, /add machine-health-check or metal3-remediation to families/],
      [{ statusPage: { enabled: true } }, /needs statusPage\.existingSecret/],
      [{ metrics: { secure: { enabled: true } } }, /needs metrics\.secure\.existingSecret/],
      [{ metrics: { podMonitor: { enabled: true }, serviceMonitor: { enabled: true } } }, /enable one of them/],
      [{ metrics: { enabled: false, podMonitor: { enabled: true } } }, /metrics\.enabled is false/],
      [{ families: [], agent: { components: ["detector"] } }, /the detector alone has nothing to do/],
      [{ podDisruptionBudget: { minAvailable: 2 } }, /must be less than replicas/],
      [{ agent: { extraArgs: ["--lease-name=mine"] } }, /no Lease but `ironfence`/],
      [{ agent: { extraArgs: ["--log-level=debug"] } }, /--log-level, which another value sets already/],
    ];
    for (const [values, message] of contradictions) await assert.rejects(render(values), message);
  });

  void test("the chart refuses a namespace in which two of its Roles would have one name", async () => {
    for (const namespace of ["kube-system", "kube-node-lease", "medik8s-leases"])
      await assert.rejects(render({}, namespace), /install the chart into a namespace of its own/, namespace);
    await assert.rejects(render({ leaseNamespace: { name: "kube-system" } }), /name another namespace/);
  });

  void test("a label that both the values and the chart set is rendered once, with the value of the chart", async () => {
    const own = { "app.kubernetes.io/instance": "other", "app.kubernetes.io/component": "other", team: "metal" };
    const tls = { enabled: true, existingSecret: "tls" };
    const rendered = await render({
      commonLabels: own,
      statusPage: tls,
      metrics: {
        secure: tls,
        podMonitor: { enabled: true, labels: own, endpoint: { scheme: "http" } },
        prometheusRule: { enabled: true, labels: own },
        dashboard: { enabled: true, labels: own },
      },
    });
    const labels = (kind: string, name: string): Record<string, string> =>
      at(rendered.find(kind, name) ?? {}, "metadata.labels") as Record<string, string>;
    for (const kind of ["PodMonitor", "PrometheusRule"]) {
      assert.equal(labels(kind, "ironfence")["app.kubernetes.io/instance"], "ironfence");
      assert.equal(labels(kind, "ironfence")["team"], "metal");
    }
    assert.equal(labels("Service", "ironfence-status")["app.kubernetes.io/component"], "status");
  });

  void test("the chart has with its defaults the permissions and policies of deploy/kustomize, to the last rule", async () => {
    const wanted = [...(await shippedIn("kustomize")), ...(await shippedIn("check"))];
    assert.ok(wanted.length > 20);
    assert.deepEqual(rightsOf(defaults.objects), wanted.map(comparable).toSorted(byName));
  });

  void test("the chart has with every family the permissions and policies of every folder of deploy/families", async () => {
    const everything = {
      families: [...FAMILIES],
      reprovision: true,
      metrics: { secure: { enabled: true, existingSecret: "x" } },
    };
    const folders = ["kustomize", "check", "secure-metrics", "families"];
    const wanted = (await Promise.all(folders.map(shippedIn))).flat();
    assert.deepEqual(rightsOf((await render(everything)).objects), wanted.map(comparable).toSorted(byName));
  });

  void test("the chart grants each family alone what ironfence check expects of it", async () => {
    for (const family of FAMILIES) await assertGranted(family, await render({ families: [family] }));
  });

  void test("the chart has the kinds, the Deployment and the NetworkPolicy of deploy/kustomize but for labels and options", async () => {
    const shipped = new Rendered([
      ...(await readManifests(repositoryPath("deploy/node-health-check"))),
      ...(await readManifests(repositoryPath("deploy/kustomize"))),
    ]);
    for (const name of shipped.names("CustomResourceDefinition")) {
      const kind = "CustomResourceDefinition";
      assert.deepEqual(defaults.find(kind, name)?.["spec"], shipped.find(kind, name)?.["spec"], name);
    }
    const normal = (rendered: Rendered): object => {
      const spec = structuredClone(rendered.find("Deployment", "ironfence")?.["spec"]) as object;
      const container = at(spec, "template.spec.containers.0") as Record<string, unknown>;
      delete container["args"];
      delete container["imagePullPolicy"];
      return spec;
    };
    assert.deepEqual(normal(defaults), normal(shipped));
    const policyOf = (rendered: Rendered): unknown => rendered.find("NetworkPolicy", "ironfence")?.["spec"];
    assert.deepEqual(policyOf(defaults), policyOf(shipped));
    assert.deepEqual(
      defaults.names("Lease").map((name) => defaults.find("Lease", name)?.metadata.namespace),
      ["kube-system", "kube-system"],
    );
  });

  void test("the chart puts everything of the agent into the namespace of the release, and its policies follow", async () => {
    const { objects } = await render({ families: [...FAMILIES] }, "elsewhere");
    const text = JSON.stringify(objects);
    assert.doesNotMatch(text, /ironfence-system/);
    assert.match(text, /system:serviceaccount:elsewhere:ironfence/);
    const namespaces = new Set(objects.map(({ metadata }) => metadata.namespace).filter((name) => name !== undefined));
    assert.deepEqual([...namespaces].toSorted(), ["elsewhere", "kube-node-lease", "kube-system", "medik8s-leases"]);
  });

  void test("the chart renders for a namespace whose name is a number", async () => {
    const { objects } = await render({ statusPage: { enabled: true, existingSecret: "tls" } }, "123");
    for (const { metadata } of objects) assert.notEqual(typeof metadata.namespace, "number", metadata.name);
  });

  void test("the chart renders no object twice, and gives each its labels", async () => {
    for (const { objects } of [defaults, await render({ families: [...FAMILIES], reprovision: true })]) {
      const keys = objects.map(({ kind, metadata }) => `${kind} ${metadata.namespace ?? ""}/${metadata.name}`);
      assert.equal(new Set(keys).size, keys.length, keys.join("\n"));
      for (const { kind, metadata } of objects) {
        if (kind === "Namespace") continue;
        const labels = metadata["labels"] as Record<string, string>;
        assert.match(labels["app.kubernetes.io/name"] ?? "", /^ironfence(?:-check)?$/, metadata.name);
        assert.equal(labels["app.kubernetes.io/managed-by"], "Helm", metadata.name);
      }
    }
  });

  void test("the chart's example for External Secrets renders Secrets that say where a password may be sent", async () => {
    const values = repositoryPath("deploy/chart/examples/external-secrets.yaml");
    const args = ["template", "ironfence", CHART, "--values", values];
    const printed = await withHelmFolder((options) => run(tools.helm, args, options));
    assert.match(printed, /^kind: ExternalSecret$/m);
    assert.match(printed, /ironfence\.io\/allowed-addresses: redfish:\/\/bmc-1\.example/);
    assert.match(printed, /\{\{ \.username \}\}/);
  });
});

async function shippedIn(folder: string): Promise<Manifest[]> {
  const path = repositoryPath(`deploy/${folder}`);
  const manifests = folder === "families" ? await readFamilies(path) : await readManifests(path);
  return manifests.filter(({ kind }) => RIGHTS.test(kind));
}

async function readFamilies(path: string): Promise<Manifest[]> {
  const folders = [
    "cluster-api",
    "okd",
    "okd-machine-health-check",
    "metal3-remediation",
    "okd-machine",
    "bare-metal-host",
    "reprovision",
  ];
  return (await Promise.all(folders.map((folder) => readManifests(`${path}/${folder}`)))).flat();
}

function rightsOf(objects: readonly Manifest[]): object[] {
  return objects
    .filter(({ kind }) => RIGHTS.test(kind))
    .map(comparable)
    .toSorted(byName);
}

/** An object without the labels of the chart. */
function comparable({ metadata, ...object }: Manifest): { key: string; [field: string]: unknown } {
  const labels = Object.entries((metadata["labels"] ?? {}) as Record<string, string>).filter(
    ([name]) => !/^helm\.sh\/|^app\.kubernetes\.io\/(?:instance|managed-by|version)$/.test(name),
  );
  const key = `${object.kind} ${metadata.namespace ?? ""}/${metadata.name}`;
  return { ...object, key, metadata: { ...metadata, labels: Object.fromEntries(labels) } };
}

function byName(a: { key: string }, b: { key: string }): number {
  return a.key < b.key ? -1 : 1;
}

interface Rule {
  apiGroups: string[];
  resources: string[];
  verbs: string[];
}

/** Asserts that the roles of a rendering grant every permission that `ironfence check` requires. */
async function assertGranted(family: Family, { objects }: Rendered): Promise<void> {
  const rules = objects
    .filter(({ kind }) => kind.endsWith("Role"))
    .flatMap(({ metadata, ...role }) =>
      ((role["rules"] ?? []) as Rule[]).map((rule) => ({ ...rule, namespace: metadata.namespace })),
    );
  const scope = {
    families: [family],
    namespace: "ironfence-system",
    nodeLeaseNamespace: "medik8s-leases",
    reprovisions: false,
  };
  const wanted = agentPermissions(scope);
  assert.ok(wanted.length > 20);
  for (const { group = "", resource, verb, namespace } of wanted) {
    const isGranted = rules.some(
      (rule) =>
        rule.namespace === namespace &&
        rule.apiGroups.includes(group) &&
        rule.resources.includes(resource) &&
        rule.verbs.includes(verb),
    );
    assert.ok(isGranted, `${family}: ${verb} ${group}/${resource}`);
  }
}
