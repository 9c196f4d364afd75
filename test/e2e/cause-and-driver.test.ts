import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { startExampleDriverServer } from "../../hack/e2e/driver-server.ts";
import type { ExampleDriverServer } from "../../hack/e2e/driver-server.ts";
import { createHealthCheck, startRackWorld } from "../../hack/e2e/rack-world.ts";
import type { RackWorld } from "../../hack/e2e/rack-world.ts";
import { TARGETS, REMEDIATION_TIMEOUT_MS, explain } from "../../hack/e2e/scenario.ts";
import { NAMESPACE } from "../../hack/e2e/world.ts";
import { freePorts } from "../../hack/lib/ports.ts";
import type { Evidence } from "../../src/api/ironfence/bare-metal-remediation.ts";
import type { FencingTarget } from "../../src/api/ironfence/fencing-target.ts";

// Two hosts that fail on a real control plane: the BMC of one has logged the cause, and a driver server powers the
// other.

const DELAYS = { powerOffDelayMs: 300, powerOnDelayMs: 100, bootMs: 1_000 };
const SECRETS = `/api/v1/namespaces/${NAMESPACE}/secrets`;
const LOGGED_BEFORE_MS = 5_000;

void describe("hosts that die in an unusual way", () => {
  let world: RackWorld;
  let server: ExampleDriverServer | undefined;
  let metricsPort = 0;

  before(async () => {
    const logged = { name: "logged", ...DELAYS };
    world = await startRackWorld([logged, { name: "driven", ...DELAYS }], { targets: [logged] });
    server = await startExampleDriverServer(world.rack, ["driven"]);
    const address = server.address("driven");
    await world.api.create(SECRETS, {
      apiVersion: "v1",
      kind: "Secret",
      type: "kubernetes.io/tls",
      metadata: { name: "driver", annotations: { "ironfence.io/allowed-addresses": "driver://127.0.0.1:*" } },
      stringData: server.secret,
    });
    const tls = { caSecretRef: { name: "driver" } };
    await world.api.create(TARGETS, {
      apiVersion: "ironfence.io/v1alpha1",
      kind: "FencingTarget",
      metadata: { name: "driven" },
      spec: { nodeName: "driven", devices: [{ address, credentialsSecretRef: { name: "driver" }, tls }] },
    });
    await createHealthCheck(world, {}, { minHealthy: 0 });
    [metricsPort = 0] = await freePorts(1);
    await world.startAgent([`--metrics-bind-address=127.0.0.1:${metricsPort}`]);
    await wait("both targets are ready", async () => {
      const targets = await world.api.list<FencingTarget>(TARGETS);
      const isReady = ({ status }: FencingTarget): boolean =>
        status?.conditions?.some((condition) => condition.type === "Ready" && condition.status === "True") === true;
      return targets.length === 2 && targets.every(isReady);
    });
  });
  after(async () => {
    await world?.stop();
    await server?.close();
  });

  const wait = <T>(what: string, ask: () => Promise<T | undefined | false>): Promise<T> =>
    explain({ world, agents: world.agents }, what, REMEDIATION_TIMEOUT_MS, ask);
  const ordersOf = (name: string): string[] => world.rack.host(name).orders.map(({ type }) => type);
  const isBack = async (name: string): Promise<boolean> => {
    const { spec, status } = await world.node(name);
    const isReady = status.conditions?.some((condition) => condition.type === "Ready" && condition.status === "True");
    return isReady === true && (spec.taints ?? []).length === 0 && (await world.remediations()).length === 0;
  };

  void test("what a BMC has logged before its host died is in the status, in an Event and in the metric of a real fence", async () => {
    world.rack.bmc("logged").logEvent("uncorrectableECC", LOGGED_BEFORE_MS);
    world.rack.host("logged").hang();
    const evidence = await wait("the cause is in the status", async (): Promise<Evidence | undefined> => {
      return (await world.remediations())[0]?.status?.evidence;
    });
    assert.equal(evidence.class, "Memory");
    assert.match(evidence.message, /^Uncorrectable ECC, DIMM B2, .*the node was lost$/);
    const found = await wait("the cause is in an Event", async () => {
      const events = await world.api.list<{ reason: string; type: string; note: string }>(
        "/apis/events.k8s.io/v1/events",
      );
      return events.find(({ reason }) => reason === "CauseOfDeath");
    });
    assert.deepEqual([found.type, found.note], ["Warning", evidence.message]);
    const metrics = await (await fetch(`http://127.0.0.1:${metricsPort}/metrics`)).text();
    assert.match(metrics, /^ironfence_causes_of_death_total\{class="Memory"\} 1$/m);
    await wait("the node is back", () => isBack("logged"));
    assert.deepEqual(ordersOf("logged"), ["ForceOff", "On"]);
    assert.deepEqual(ordersOf("driven"), []);
  });

  void test("a host behind the example of a driver server is fenced by its client certificate, and comes back", async () => {
    const { bootID } = world.rack.host("driven");
    world.rack.host("driven").hang();
    await wait("it was powered off", () => Promise.resolve(ordersOf("driven").includes("ForceOff")));
    await wait("the node is back", () => isBack("driven"));
    assert.deepEqual(ordersOf("driven"), ["ForceOff", "On"]);
    assert.notEqual(world.rack.host("driven").bootID, bootID);
  });
});
