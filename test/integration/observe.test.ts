import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { freeLease } from "../../hack/lib/free-leases.ts";
import { startAgent } from "../../hack/lib/agent-process.ts";
import { BARE_METAL_REMEDIATION_TEMPLATES } from "../../src/api/ironfence/bare-metal-remediation.ts";
import { FENCING_TARGETS } from "../../src/api/ironfence/fencing-target.ts";
import { NODE_HEALTH_CHECKS } from "../../src/api/ironfence/node-health-check.ts";
import { readWithheldRemediations } from "../../src/api/ironfence/withheld-remediation.ts";
import { EVENTS, LEASES, NODES } from "../../src/api/kubernetes/core-types.ts";
import type { KubeObject } from "../../src/kube/resource.ts";
import { NAMESPACE, startSocketWorld } from "./agent-fixture.ts";
import { addressIn, until } from "./child-agent.ts";
import { cli } from "./cli-fixture.ts";

// Runs `ironfence run --observe` as a separate process. API server and BMCs use HTTPS.

/** The writes of the fixture's kubelets. */
const OF_KUBELETS =
  /^(POST \/api\/v1\/nodes$|PATCH \/api\/v1\/nodes\/[^/]+\/status|\w+ .*\/kube-node-lease\/|.*\/pods)/;
const OWN = [
  /^POST \/apis\/coordination\.k8s\.io\/v1\/namespaces\/ironfence-system\/leases$/,
  /^PATCH \/apis\/coordination\.k8s\.io\/v1\/namespaces\/ironfence-system\/leases\/ironfence-observe$/,
  /^(POST|PATCH) \/apis\/events\.k8s\.io\/v1\/namespaces\/[^/]+\/events/,
  /^POST \/apis\/auth\w+\.k8s\.io\/v1\/\w+reviews$/,
];

function observing(name: string): boolean {
  return OWN.some((path) => path.test(name));
}

test("ironfence run --observe writes only its Lease and Events through an outage, and ironfence status shows what it would have fenced", async (t) => {
  const folder = await mkdtemp(join(tmpdir(), "ironfence-observe-"));
  const hosts = [{ name: "n1" }, { name: "n2" }];
  const world = await startSocketWorld(t, { hosts, monitorGracePeriodMs: 1_500 }, async () => undefined);
  const { server, rack, kubeconfig } = world;
  server.collection(LEASES).create(freeLease(NAMESPACE, "ironfence-observe"));
  const { kind } = BARE_METAL_REMEDIATION_TEMPLATES;
  const template = { namespace: NAMESPACE, name: "reboot" };
  server
    .collection(BARE_METAL_REMEDIATION_TEMPLATES)
    .create({ metadata: template, spec: { template: { spec: { strategy: { type: "Reboot" } } } } });
  server.collection(NODE_HEALTH_CHECKS).create({
    metadata: { name: "all" },
    spec: {
      selector: { matchExpressions: [{ key: "no", operator: "DoesNotExist" }] },
      minHealthy: 1,
      remediationTemplate: { apiVersion: "ironfence.io/v1alpha1", kind, ...template },
      unhealthyConditions: [{ type: "Ready", status: "Unknown", duration: "1s" }],
    },
  });
  const writes: string[] = [];
  server.onRequest(({ method, path }) => {
    const [plain = ""] = path.split("?");
    if (method !== "GET" && !OF_KUBELETS.test(`${method} ${plain}`)) writes.push(`${method} ${plain}`);
  });
  const orders: string[] = [];
  rack.subscribe((event) => {
    if (event.type === "ordered") orders.push(`${event.host} ${event.order}`);
  });
  const start = (name: string) =>
    startAgent({ kubeconfig, logFile: join(folder, `${name}.log`), flags: ["--observe"] });
  const lease = (): KubeObject | undefined =>
    server.collection(LEASES).get({ namespace: NAMESPACE, name: "ironfence-observe" });
  const observations = () => readWithheldRemediations(lease()?.metadata.annotations);
  const status = async (): Promise<string> => (await cli(["status", "--kubeconfig", kubeconfig])).out;
  const events = (): string[] =>
    [...server.collection<KubeObject & { reason: string; note: string }>(EVENTS).values()].map(
      ({ reason, note }) => `${reason}: ${note}`,
    );
  const agent = start("first");
  t.after(async () => {
    await agent.stop();
    await rm(folder, { recursive: true });
  });

  await until(agent, "the nodes are Ready", () => world.ready("n1") === "True" && world.ready("n2") === "True");
  const metrics = await until(agent, "it serves metrics", () => addressIn(agent, "serving metrics"));
  const page = async (): Promise<string> => (await fetch(`${metrics}/metrics`)).text();
  rack.host("n1").hang();
  const [found] = await until(agent, "it would have fenced n1", () => observations().length > 0 && observations());
  assert.deepEqual(
    [found?.node, found?.healthCheck, found?.remedy, found?.until],
    ["n1", "NodeHealthCheck all", `BareMetalRemediation ${NAMESPACE}/n1`, undefined],
  );
  assert.match(await status(), /observer: .* leads[^]*it would have remediated[^]*not yet +n1 /);
  assert.match(await status(), /Observes: ironfence only observes/);
  assert.match(await status(), /^all +- +- +- +an agent that observes stores no status$/m);
  assert.doesNotMatch(await status(), /no agent/, "it does not ask for another agent");
  await until(agent, "there is an Event", () => events().some((text) => text.startsWith("WouldRemediate: ")));
  const shown = await page();
  assert.match(shown, /^ironfence_would_have_remediated_total 1$/m);
  assert.doesNotMatch(shown, /^ironfence_bmc_request_seconds_count/m, "it asks no BMC");

  // Restarts the agent during the outage, which must count as the same outage.
  await agent.stop();
  assert.equal(observations().length, 1, "the Lease keeps them");
  const second = start("second");
  t.after(() => second.stop());
  await until(
    second,
    "it leads",
    () => ((lease() as { spec?: { holderIdentity?: string } } | undefined)?.spec?.holderIdentity ?? "") !== "",
  );
  rack.host("n1").order("PowerCycle");
  await until(second, "the outage is over", () => observations()[0]?.until !== undefined);
  assert.deepEqual([observations().length, observations()[0]?.at], [1, found?.at]);
  await second.stop();
  assert.match(await status(), /^observer: none runs any more\n  it would have remediated \(last 1/m);

  assert.deepEqual(
    writes.filter((write) => !observing(write)),
    [],
  );
  assert.deepEqual(orders, ["n1 PowerCycle"], "only the one of this test");
  const targets = [...server.collection<KubeObject & { status?: unknown }>(FENCING_TARGETS).values()];
  assert.deepEqual(
    targets.map(({ status }) => status),
    [undefined, undefined],
  );
  assert.ok(!events().some((text) => /RemediationCreated|RemediationRemoved/.test(text)), events().join("\n"));
  const [check] = server.collection<KubeObject & { status?: unknown }>(NODE_HEALTH_CHECKS).values();
  assert.equal(check?.status, undefined);
  const taints = [...server.collection<KubeObject & { spec?: { taints?: { key: string }[] } }>(NODES).values()];
  const keys = taints.flatMap(({ spec }) => spec?.taints?.map(({ key }) => key) ?? []);
  assert.ok(
    keys.every((key) => !key.includes("ironfence") && !key.includes("out-of-service")),
    keys.join(),
  );
  assert.deepEqual(
    ["ironfence-detector", "ironfence-remediator"].map(
      (name) =>
        server
          .collection<KubeObject & { spec?: { holderIdentity?: string } }>(LEASES)
          .get({ namespace: "kube-system", name })?.spec?.holderIdentity ?? "",
    ),
    ["", ""],
    "it takes no other installation's place",
  );
});
