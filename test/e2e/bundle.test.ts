import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { networkInterfaces, tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { gunzipSync } from "node:zlib";
import { parseTar } from "nanotar";
import { parseAllDocuments } from "yaml";
import type { FakeKubelet } from "../../hack/e2e/fake-kubelet.ts";
import { startFakeKubelet } from "../../hack/e2e/fake-kubelet.ts";
import { eventually } from "../../hack/e2e/eventually.ts";
import type { RackWorld } from "../../hack/e2e/rack-world.ts";
import { createHealthCheck, createMachineHealthCheck, startRackWorld } from "../../hack/e2e/rack-world.ts";
import { HEALTH_CHECK, TARGETS } from "../../hack/e2e/scenario.ts";
import { NAMESPACE, repositoryPath } from "../../hack/e2e/world.ts";
import type { Manifest } from "../../hack/lib/apply.ts";
import { applyManifests, applyObject, waitUntilEstablished } from "../../hack/lib/apply.ts";
import { readForeignCrds } from "../../hack/lib/crds.ts";
import { KubeApi } from "../../hack/lib/kube-api.ts";
import { freePorts } from "../../hack/lib/ports.ts";
import { base64, KEY_LINES, LOG, PLANTED, secretsIn } from "../lib/planted-secrets.ts";
import { cli } from "../integration/cli-fixture.ts";

// Runs `ironfence bundle` on a real API server during a fence, with only the permissions of deploy/bundle. Every object
// that it reads contains planted secrets.

const DEPLOYMENT = `/apis/apps/v1/namespaces/${NAMESPACE}/deployments/ironfence`;
const PODS = `/api/v1/namespaces/${NAMESPACE}/pods`;
const LABELS = { "app.kubernetes.io/name": "ironfence" };
const KUBELET_NODE = "node-of-the-agents";
/** Keeps the fence in progress for this time. */
const POWER_OFF_MS = 60_000;
const ORDERED_MS = 60_000;
const HARMLESS_LINE = "the last line, after everything";

/**
 * An address for a pod, which must not be a loopback address for the API server. Undefined if this machine has no other
 * address.
 */
const POD_ADDRESS = Object.values(networkInterfaces())
  .flat()
  .find((address) => address?.internal === false && address.family === "IPv4")?.address;

interface Deployment {
  spec: { template: { spec: { containers: object[] } } };
}

/**
 * Creates objects that contain secrets.
 *
 * @param metricsPort where the agent serves its metrics at the address of both pods.
 * @returns names that the bundle must contain, which proves that it has read the objects.
 */
async function plant(api: KubeApi, metricsPort: number): Promise<string[]> {
  const env = [
    { name: "BMC_PASSWORD", value: PLANTED.podVariable },
    { name: "SOMETHING", value: PLANTED.podVariableUnnamed },
  ];
  const { spec: deployment } = await api.get<Deployment>(DEPLOYMENT);
  const { containers, ...pod } = deployment.template.spec;
  const ports = [{ name: "metrics", containerPort: metricsPort }];
  const agent = { ...containers[0], ports, args: ["run", `--password=${PLANTED.podArgument}`], env };
  for (const [restartCount, name] of ["ironfence-a", "ironfence-b"].entries()) {
    const spec = { ...pod, containers: [agent], nodeName: KUBELET_NODE };
    await api.create(PODS, { apiVersion: "v1", kind: "Pod", metadata: { name, labels: LABELS }, spec });
    const state = { name: "ironfence", image: "ironfence:0.1.0", imageID: "", ready: true, restartCount };
    const address = POD_ADDRESS === undefined ? {} : { podIP: POD_ADDRESS, podIPs: [{ ip: POD_ADDRESS }] };
    const status = { ...address, phase: "Running", containerStatuses: [state] };
    await api.mergePatch(`${PODS}/${name}/status`, { status });
  }
  const token = { ...containers[0], env: [{ name: "TOKEN", value: PLANTED.deploymentVariable }] };
  await api.mergePatch(DEPLOYMENT, { spec: { template: { spec: { containers: [token] } } } });
  await annotate(api, "/api/v1/nodes/worker-1", { "example.com/join": PLANTED.nodeAnnotation });
  const lastApplied = JSON.stringify({ stringData: { x: PLANTED.lastApplied } });
  await annotate(api, HEALTH_CHECK, {
    "example.com/notes": PLANTED.annotationOfOthers,
    "ironfence.io/note": `password is ${PLANTED.conditionMessage}`,
    "kubectl.kubernetes.io/last-applied-configuration": lastApplied,
  });
  const credentialsSecretRef = { name: "bmc" };
  await api.create(TARGETS, {
    apiVersion: "ironfence.io/v1alpha1",
    kind: "FencingTarget",
    // The API server writes the name of an annotation into managedFields, with the prefix `f:`.
    metadata: { name: "planted", annotations: { [PLANTED.managedFields.slice(2)]: "x" } },
    spec: {
      nodeName: "worker-9",
      devices: [
        { address: `redfish://admin:${PLANTED.addressPassword}@bmc-1.example`, credentialsSecretRef },
        { address: `ipmi://admin:${PLANTED.addressWithSlash}@bmc-2.example`, credentialsSecretRef },
      ],
    },
  });
  const notes = [
    `cannot reach https://root:${PLANTED.eventUrl}@bmc-3.example/redfish`,
    `sent Authorization: Bearer ${PLANTED.eventBearer}`,
    `the login with password ${PLANTED.eventSentence} failed`,
  ];
  for (const [index, note] of notes.entries()) {
    await api.create("/apis/events.k8s.io/v1/namespaces/default/events", {
      apiVersion: "events.k8s.io/v1",
      kind: "Event",
      metadata: { name: `planted-${index}` },
      regarding: { apiVersion: "v1", kind: "Node", name: "worker-1" },
      eventTime: "2026-11-22T10:00:00.000000Z",
      reportingController: "ironfence.io/agent",
      reportingInstance: "a",
      action: "Probe",
      reason: "Planted",
      type: "Warning",
      note,
    });
  }
  // The pause has ended, so it holds nothing.
  const until = "2026-11-22T10:00:00Z";
  await api.create(`/api/v1/namespaces/${NAMESPACE}/configmaps`, {
    apiVersion: "v1",
    kind: "ConfigMap",
    metadata: { name: "ironfence-pause" },
    data: { paused: "true", until, reason: `rotated to password: ${PLANTED.pauseReason}` },
  });
  const kubeconfig = `users:\n- user:\n    token: ${PLANTED.kubeconfigToken}\n`;
  await api.create(`/api/v1/namespaces/${NAMESPACE}/secrets`, {
    apiVersion: "v1",
    kind: "Secret",
    metadata: { name: "planted" },
    data: { password: base64(PLANTED.secretData), value: base64(kubeconfig) },
  });
  const machine = { namespace: "default", name: "planted-machine" };
  await applyObject(api, {
    apiVersion: "cluster.x-k8s.io/v1beta1",
    kind: "Machine",
    metadata: { ...machine, annotations: { "cluster.x-k8s.io/token": PLANTED.labelOfMachine } },
    spec: { clusterName: "workload", bootstrap: {}, infrastructureRef: {} },
  });
  return ["ironfence-a", "worker-1", "planted-0", "planted-2", "bmc-1.example", "bmc-2.example", "planted-machine"];
}

const annotate = (api: KubeApi, path: string, annotations: Readonly<Record<string, string>>): Promise<unknown> =>
  api.mergePatch(path, { metadata: { annotations } });

void describe("ironfence bundle with the permissions of deploy/bundle", () => {
  let world: RackWorld;
  let kubelet: FakeKubelet;
  let kubeconfig: string;
  let folder: string;
  let planted: string[];
  let count = 0;

  const bundle = async (...flags: string[]) => {
    count += 1;
    const path = join(folder, `bundle-${count}.tar.gz`);
    const startedMs = performance.now();
    const { code, out, err } = await cli(["bundle", "-f", path, "--kubeconfig", kubeconfig, ...flags]);
    assert.equal(code, 0, err);
    // parseTar reads a pooled Buffer from the beginning of its pool, so it gets a copy.
    const files = parseTar(Uint8Array.from(gunzipSync(readFileSync(path)))).map(({ name, text }) => ({ name, text }));
    const contents = files.filter(({ name }) => !name.endsWith("/index.md"));
    return {
      printed: out + err,
      files,
      index: files.find(({ name }) => name.endsWith("/index.md"))?.text ?? "",
      bytes: contents.reduce((sum, { text }) => sum + Buffer.byteLength(text), 0),
      tookMs: performance.now() - startedMs,
    };
  };

  before(async () => {
    folder = mkdtempSync(join(tmpdir(), "ironfence-bundle-"));
    const delays = { powerOffDelayMs: POWER_OFF_MS, bootMs: 1_000 };
    world = await startRackWorld(["worker-1", "worker-2", "worker-3"].map((name) => ({ name, ...delays })));
    const { api } = world;
    await createHealthCheck(world, { type: "Reboot" }, { minHealthy: 1 });
    for (const text of await readForeignCrds()) {
      for (const document of parseAllDocuments(text)) {
        const crd = document.toJS() as Manifest;
        await applyObject(api, crd);
        await waitUntilEstablished(api, crd.metadata.name);
      }
    }
    await createMachineHealthCheck(api);
    await applyManifests(api, repositoryPath("deploy/families/okd"));
    await applyManifests(api, repositoryPath("deploy/bundle"));
    kubeconfig = await world.controlPlane.serviceAccountKubeconfig(NAMESPACE, "ironfence-bundle");
    kubelet = await startFakeKubelet(world, KUBELET_NODE);
    const [metricsPort = 0] = await freePorts(1);
    planted = await plant(api, metricsPort);
    await world.startAgent([`--metrics-bind-address=${POD_ADDRESS ?? "127.0.0.1"}:${metricsPort}`]);
    const ready = async (): Promise<boolean> =>
      (
        await api.get<{ status?: { conditions?: { type: string; status: string }[] } }>(`${TARGETS}/worker-2`)
      ).status?.conditions?.some(({ type, status }) => type === "Ready" && status === "True") === true;
    await eventually("the host can be fenced", ORDERED_MS, ready);
  });
  after(async () => {
    await world?.stop();
    await kubelet?.close();
    rmSync(folder, { recursive: true });
  });

  void test("ironfence bundle contains every part and none of the planted secrets if it runs with the permissions of deploy/bundle during a fence", async (context) => {
    // Without the secret in the metrics, which the API server cannot read here.
    assert.ok(Object.keys(PLANTED).length - 1 >= 30);
    kubelet.log = (_pod, isPrevious) =>
      isPrevious ? `password=${PLANTED.previousLog}\n` : `${LOG.join("\n")}\n${world.agents[0]?.log() ?? ""}`;
    const host = world.rack.host("worker-2");
    host.hang();
    await eventually("the host is ordered off", ORDERED_MS, () =>
      Promise.resolve(host.orders.some(({ type }) => type === "ForceOff")),
    );
    const { files, printed, index } = await bundle();
    assert.notEqual(host.power, "Off", "the fence was over before the bundle");

    for (const { name, text } of [...files, { name: "output", text: printed }]) {
      assert.deepEqual(secretsIn(text), [], name);
    }
    const all = files.map(({ text }) => text).join("\n");
    for (const word of [...planted, HARMLESS_LINE, '"phase":"PoweringOff"']) assert.ok(all.includes(word), word);
    for (const line of KEY_LINES) assert.ok(!all.includes(line));
    const explained = files.find(({ name }) => name.endsWith("explain/nodes.jsonl"))?.text ?? "";
    assert.match(explained, /"node":"worker-2"/);

    if (POD_ADDRESS === undefined) {
      // The error must not be 403, because the permission exists.
      assert.match(index, /^- metrics: /m);
      context.diagnostic("no metrics: this machine has no address but those of loopback");
    } else {
      assert.match(index, /Nothing: every part was read\./);
      for (const pod of ["ironfence-a", "ironfence-b"]) {
        const metrics = files.find(({ name }) => name.endsWith(`metrics/${pod}.txt`))?.text ?? "";
        assert.match(metrics, /^ironfence_leader 1$/m, pod);
        assert.match(metrics, /^ironfence_remediations_in_flight 1$/m, pod);
      }
    }
    assert.doesNotMatch(index, /403|forbidden/i);
  });

  void test("ironfence bundle stays within its size and its time with the permissions of deploy/bundle, however long and slow the logs are", async () => {
    const line = `${"x y z ".repeat(30)}password=${PLANTED.logKeyValue}\n`;
    kubelet.log = () => line.repeat(100_000);
    const small = await bundle("--max-size", "1Mi");
    assert.ok(small.bytes <= 2 ** 20, `${small.bytes} bytes`);
    assert.match(small.index, /logs\/ironfence-a\.log: \d+ lines were cut/);
    for (const { name, text } of small.files) assert.deepEqual(secretsIn(text), [], name);

    kubelet.log = () => undefined;
    const slow = await bundle("--timeout", "10s");
    assert.match(slow.index, /- logs: `cut off: /);
    assert.ok(slow.tookMs < 20_000, `${slow.tookMs} ms`);
  });

  void test("ironfence bundle with the permissions of deploy/bundle may not read a Secret, and may not write", async () => {
    const api = await KubeApi.fromKubeconfig(kubeconfig);
    await assert.rejects(api.get(`/api/v1/namespaces/${NAMESPACE}/secrets/planted`), /403/);
    await assert.rejects(api.get(`/api/v1/namespaces/${NAMESPACE}/secrets`), /403/);
    await assert.rejects(api.mergePatch("/api/v1/nodes/worker-1", { metadata: { labels: { x: "y" } } }), /403/);
    await assert.rejects(api.create(`${PODS}/ironfence-a/exec?command=true`, {}), /403/);
    await api.close();
  });
});
