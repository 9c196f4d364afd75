import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { parseAllDocuments } from "yaml";
import { eventually } from "../../hack/e2e/eventually.ts";
import type { RackWorld } from "../../hack/e2e/rack-world.ts";
import { createHealthCheck, createMachineHealthCheck, startRackWorld } from "../../hack/e2e/rack-world.ts";
import { HEALTH_CHECK, TARGETS } from "../../hack/e2e/scenario.ts";
import { ALL_SIMULATED } from "../../hack/e2e/simulated-hosts.ts";
import { NAMESPACE, repositoryPath } from "../../hack/e2e/world.ts";
import type { Manifest } from "../../hack/lib/apply.ts";
import { applyManifests, applyObject, waitUntilEstablished } from "../../hack/lib/apply.ts";
import { readForeignCrds } from "../../hack/lib/crds.ts";
import type { RedfishMock } from "../../hack/redfish-mock/server.ts";
import { startRedfishMock } from "../../hack/redfish-mock/server.ts";
import type { CheckResult, Level } from "../../src/cli/check/check.ts";
import { Secret } from "../../src/runtime/secret.ts";
import { systemClock, systemRandom } from "../../src/runtime/system.ts";
import { cli } from "../integration/cli-fixture.ts";

// Runs `ironfence check` on a real API server with the permissions of its Job. Everything passes, nine faults appear in
// their lines, and everything passes again when they are fixed.

const DEPS = { clock: systemClock, random: systemRandom };
const WORKERS = ["worker-1", "worker-2", "worker-3", "worker-4"];
const DEPLOYMENT = `/apis/apps/v1/namespaces/${NAMESPACE}/deployments/ironfence`;
const TEMPLATES = `/apis/ironfence.io/v1alpha1/namespaces/${NAMESPACE}/baremetalremediationtemplates`;
const AGENT_ROLE = "/apis/rbac.authorization.k8s.io/v1/clusterroles/ironfence-agent";
const SECRETS = `/api/v1/namespaces/${NAMESPACE}/secrets`;
const POLICY_BINDINGS = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings";
/** A target is probed at most every 5 s. */
const SHOWN_MS = 30_000;

void describe("ironfence check", () => {
  let world: RackWorld;
  let expired: RedfishMock;
  let kubeconfig: string;

  const run = async (...flags: string[]): Promise<Map<string, CheckResult>> => {
    const { out, err } = await cli(["check", "-o", "json", ...flags]);
    assert.match(out, /^\{"time"/, err);
    const { checks } = JSON.parse(out) as { checks: CheckResult[] };
    return new Map(checks.map((result) => [result.id, result]));
  };
  const asJob = (): Promise<Map<string, CheckResult>> => run("--kubeconfig", kubeconfig);
  const complaints = (results: Map<string, CheckResult>): string =>
    JSON.stringify(
      [...results.values()].filter(({ level }) => level !== "ok"),
      undefined,
      1,
    );
  const everythingPasses = (what: string): Promise<boolean> =>
    eventually(
      what,
      SHOWN_MS,
      async () => complaints(await asJob()) === "[]",
      async () => complaints(await asJob()),
    );

  before(async () => {
    world = await startRackWorld(WORKERS.map((name) => ({ name, labels: { role: "worker" }, bootMs: 1_000 })));
    const { api, rack, authority, hosts } = world;
    const tls = await authority.issue({
      commonName: "bmc",
      ipAddresses: ["127.0.0.1"],
      usage: "server",
      validDays: -1,
    });
    const { username, password } = hosts.login;
    expired = await startRedfishMock({ ...DEPS, rack, tls, username, password: new Secret(password) });
    await createHealthCheck(world, { type: "Reboot" }, { minHealthy: 1 });
    // Kinds of other projects, which the command reads if they are served.
    for (const text of await readForeignCrds()) {
      for (const document of parseAllDocuments(text)) {
        const crd = document.toJS() as Manifest;
        await applyObject(api, crd);
        await waitUntilEstablished(api, crd.metadata.name);
      }
    }
    // An agent reads the health checks of OKD as soon as they are served.
    await applyManifests(api, repositoryPath("deploy/families/okd"));
    await createMachineHealthCheck(api);
    await applyManifests(api, repositoryPath("deploy/check"));
    kubeconfig = await world.controlPlane.serviceAccountKubeconfig(NAMESPACE, "ironfence-check");
    await api.mergePatch(DEPLOYMENT, { spec: { replicas: 2 } });
    await world.startAgent([]);
  });
  after(async () => {
    await expired?.close();
    await world?.stop();
  });

  void test("ironfence check passes every line of a healthy installation, with the permissions of its Job", async () => {
    await everythingPasses("every check passes");
    const { out, err, code } = await cli(["check", "--kubeconfig", kubeconfig, "--fail-on", "warning"]);
    assert.equal(code, 0, out + err);
    const live = await run("--live", "--kubeconfig", world.controlPlane.kubeconfig);
    assert.equal(complaints(live), "[]");
    const before = await run("--pre", "--kubeconfig", world.controlPlane.kubeconfig);
    assert.equal(complaints(before), "[]");
  });

  void test("ironfence check names the permissions that an installer lacks", async () => {
    const found = await run("--pre", "--kubeconfig", kubeconfig);
    assert.equal(found.get("installer-permissions")?.level, "failed");
    assert.match(found.get("installer-permissions")?.findings[0]?.message ?? "", /you lack get namespaces/);
  });

  void test("ironfence check shows each of nine faults in its line, and passes again when they are fixed", async () => {
    const { api, hosts } = world;
    const role = await api.get<{ rules: { resources: string[] }[] }>(AGENT_ROLE);
    const policy = await api.get<Manifest>(`${POLICY_BINDINGS}/ironfence-agent-pods`);
    const template = await api.get<Manifest>(`${TEMPLATES}/reboot`);
    const device = (address: string, secret: string) => ({
      address,
      credentialsSecretRef: { name: secret },
      tls: { caSecretRef: { name: "bmc" } },
    });
    const devices = (node: string, address: string, secret = "bmc"): Promise<unknown> =>
      api.mergePatch(`${TARGETS}/${node}`, { spec: { devices: [device(address, secret)] } });

    await api.create(SECRETS, {
      apiVersion: "v1",
      kind: "Secret",
      metadata: { name: "bmc-wrong", annotations: { "ironfence.io/allowed-addresses": ALL_SIMULATED } },
      stringData: { ...hosts.login, password: "not-the-password" },
    });
    await devices("worker-1", hosts.address("worker-1"), "bmc-wrong");
    await devices("worker-2", expired.url.replace(/^https/, "redfish") + expired.systemPath("worker-2"));
    await api.mergePatch(`${TARGETS}/worker-3`, { spec: { maintenance: true } });
    await api.delete(`${TARGETS}/worker-4`);
    await api.delete(`${TEMPLATES}/reboot`);
    await cli(["pause", "--reason", "a test", "--kubeconfig", world.controlPlane.kubeconfig]);
    const taint = { key: "node.kubernetes.io/out-of-service", value: "nodeshutdown", effect: "NoSchedule" };
    await api.mergePatch("/api/v1/nodes/worker-4", { spec: { taints: [taint] } });
    // Only a fence uses this permission, so agents would not notice its absence before an outage.
    const rules = role.rules.filter(({ resources }) => !resources.includes("volumeattachments"));
    await api.mergePatch(AGENT_ROLE, { rules });
    await api.delete(`${POLICY_BINDINGS}/ironfence-agent-pods`);

    const expected: readonly [id: string, level: Level, says: RegExp][] = [
      ["fencing-targets", "failed", /AuthenticationFailed: ironfence-system\/worker-1: .*refused user or password/],
      ["fencing-targets", "failed", /TlsUntrusted: ironfence-system\/worker-2: .*CERT_HAS_EXPIRED/],
      ["maintenance", "warning", /node worker-3 is in maintenance/],
      // The agent has stored this, so `check` shows it without --live.
      ["bmc-certificates", "warning", /worker-2 has been invalid since/],
      ["nodes-covered", "failed", /NoTarget: .*worker-4/],
      ["could-fence", "failed", /^no: RemediationTemplateNotFound \(4\): /],
      ["templates", "failed", /reboot/],
      ["pause", "warning", /no power-off is sent for .*: a test$/],
      ["leftovers", "warning", /node worker-4 is Ready, and has an out-of-service taint that is not ironfence's/],
      ["agent-permissions", "failed", /:ironfence lacks list volumeattachments\.storage\.k8s\.io$/],
      ["admission-policies", "warning", /no binding enforces ironfence-agent-pods/],
    ];
    const missing = (results: Map<string, CheckResult>): unknown[] =>
      expected.filter(([id, level, says]) => {
        const findings = results.get(id)?.findings ?? [];
        return !findings.some((finding) => finding.level === level && says.test(finding.message));
      });
    await eventually(
      "each fault shows in its line",
      SHOWN_MS,
      async () => missing(await asJob()).length === 0,
      async () => `${JSON.stringify(missing(await asJob()).map(String))}\n${complaints(await asJob())}`,
    );
    const live = await run("--live", "--kubeconfig", world.controlPlane.kubeconfig);
    assert.match(live.get("bmc-certificates")?.findings[0]?.message ?? "", /has been invalid since/);
    const { code, out } = await cli(["check", "--kubeconfig", kubeconfig]);
    assert.equal(code, 1, out);

    await devices("worker-1", hosts.address("worker-1"));
    await devices("worker-2", hosts.address("worker-2"));
    await api.mergePatch(`${TARGETS}/worker-3`, { spec: { maintenance: false } });
    const { systemUUID } = world.rack.host("worker-4").spec;
    await api.create(TARGETS, {
      apiVersion: "ironfence.io/v1alpha1",
      kind: "FencingTarget",
      metadata: { name: "worker-4" },
      spec: {
        nodeName: "worker-4",
        identity: { systemUUID },
        devices: [device(hosts.address("worker-4"), "bmc")],
      },
    });
    await api.create(TEMPLATES, { ...template, metadata: { name: "reboot" } });
    await cli(["resume", "--kubeconfig", world.controlPlane.kubeconfig]);
    await api.mergePatch("/api/v1/nodes/worker-4", { spec: { taints: null } });
    await api.mergePatch(AGENT_ROLE, { rules: role.rules });
    await api.create(POLICY_BINDINGS, {
      ...policy,
      metadata: { name: "ironfence-agent-pods", labels: policy.metadata["labels"] },
    });
    await everythingPasses("every check passes again");
  });

  void test("ironfence check fails for a health check that selects nothing, and without an agent", async () => {
    const { api } = world;
    const { spec } = await api.get<{ spec: { selector: object } }>(HEALTH_CHECK);
    const nobody = { matchExpressions: [{ key: "role", operator: "In", values: ["nobody"] }] };
    await api.mergePatch(HEALTH_CHECK, { spec: { selector: nobody } });
    const found = await asJob();
    assert.match(found.get("health-checks")?.findings[0]?.message ?? "", /^SelectsNothing: workers: /);
    await api.mergePatch(HEALTH_CHECK, { spec });
    await world.agents[0]?.stop();
    assert.equal((await asJob()).get("leader")?.level, "failed");
  });
});
