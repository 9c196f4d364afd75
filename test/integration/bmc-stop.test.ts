import assert from "node:assert/strict";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { startIpmiMock } from "../../hack/ipmi-mock/server.ts";
import type { IpmiMock } from "../../hack/ipmi-mock/server.ts";
import { NAMESPACES } from "../../hack/kube-mock/controllers/cluster-types.ts";
import { startKubeMock } from "../../hack/kube-mock/kube-mock.ts";
import { startAgent } from "../../hack/lib/agent-process.ts";
import { freeLeases } from "../../hack/lib/free-leases.ts";
import { readCrds } from "../../hack/lib/crds.ts";
import { startChild } from "../../hack/lib/processes.ts";
import type { Child } from "../../hack/lib/processes.ts";
import { createRack } from "../../hack/rack/rack.ts";
import type { Rack } from "../../hack/rack/rack.ts";
import { startRedfishMock } from "../../hack/redfish-mock/server.ts";
import type { RedfishMock } from "../../hack/redfish-mock/server.ts";
import { BARE_METAL_REMEDIATIONS } from "../../src/api/ironfence/bare-metal-remediation.ts";
import { LEASES, NODES, SECRETS } from "../../src/api/kubernetes/core-types.ts";
import { FENCING_TARGETS } from "../../src/api/ironfence/fencing-target.ts";
import type { ResourceType } from "../../src/kube/resource.ts";
import { Secret } from "../../src/runtime/secret.ts";
import { systemClock as clock, systemRandom as random } from "../../src/runtime/system.ts";
import { PASSWORD } from "./bmc-fixture.ts";

// Processes that are stopped during a fence. BMCs have few sessions, so the agent must leave none open.

const NAMESPACE = "ironfence-system";
const USERNAME = "fencing";
const DEADLINE_MS = 60_000;
const ARRIVAL_MS_MAX = 5_000;
const MAIN = fileURLToPath(new URL("../../src/main.ts", import.meta.url));

void describe("a process that gets SIGTERM while it waits for a host to go off ends its sessions", () => {
  let folder: string;
  let rack: Rack;
  let ipmi: IpmiMock;
  let redfish: RedfishMock;

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "ironfence-stop-"));
    const names = ["over-ipmi", "over-redfish"];
    rack = createRack({ clock, random, hosts: names.map((name) => ({ name, powerOffDelayMs: 600_000 })) });
    const login = { username: USERNAME, password: new Secret(PASSWORD) };
    ipmi = await startIpmiMock({ rack, clock, random, host: "over-ipmi", ...login });
    redfish = await startRedfishMock({ rack, clock, random, hosts: ["over-redfish"], ...login });
  });
  after(async () => {
    await Promise.all([ipmi.close(), redfish.close()]);
    rack.stop();
    await rm(folder, { recursive: true });
  });

  const address = (name: string): string => (name === "over-ipmi" ? ipmi.address : `redfish+${redfish.url}`);
  const sessions = (): number => ipmi.sessionCount + redfish.sessionCount;
  /** The last datagram of a process may still be in transit. BMCs end an idle session only after a minute. */
  const sessionsLeft = async (): Promise<number> => {
    const endMs = performance.now() + ARRIVAL_MS_MAX;
    while (sessions() > 0 && performance.now() < endMs) await delay(20);
    return sessions();
  };

  for (const name of ["over-ipmi", "over-redfish"]) {
    test(`ironfence power off ${name} ends its session when it is stopped`, async () => {
      const logFile = join(folder, `${name}.log`);
      const env = { IRONFENCE_BMC_USERNAME: USERNAME, IRONFENCE_BMC_PASSWORD: PASSWORD };
      const command = startChild(name, process.execPath, [MAIN, "power", "off", address(name), "--yes"], {
        logFile,
        env,
      });
      await until(command, "it waits", async () => (await readFile(logFile, "utf8")).includes("the BMC reports"));
      assert.equal(sessions(), 1);
      await command.stop();
      assert.match(await command.ended, /ended with 1/);
      assert.equal(await sessionsLeft(), 0);
    });
  }

  test("the agent ends the sessions of its fences over each protocol when it is stopped", async () => {
    const ordersBefore = rack.hosts.map(({ orders }) => orders.length);
    const kube = await startKubeMock({ clock, random, tls: true });
    for (const crd of await readCrds()) kube.server.load(crd);
    const create = (type: ResourceType, object: Record<string, unknown>): void => {
      kube.server.collection(type).create(object);
    };
    create(NAMESPACES, { metadata: { name: NAMESPACE } });
    for (const lease of freeLeases(NAMESPACE)) create(LEASES, lease);
    const data = { username: btoa(USERNAME), password: btoa(PASSWORD) };
    const annotations = { "ironfence.io/allowed-addresses": "http://127.0.0.1:*, ipmi://127.0.0.1:*" };
    create(SECRETS, { metadata: { namespace: NAMESPACE, name: "bmc", annotations }, data });
    for (const name of ["over-ipmi", "over-redfish"]) {
      const ready = { type: "Ready", status: "Unknown", lastTransitionTime: "2026-03-01T00:00:00Z" };
      create(NODES, { metadata: { name }, status: { conditions: [ready] } });
      const identity = { systemUUID: rack.host(name).spec.systemUUID };
      const devices = [{ address: address(name), allowPlainHTTP: true, credentialsSecretRef: { name: "bmc" } }];
      create(FENCING_TARGETS, {
        metadata: { namespace: NAMESPACE, name },
        spec: { nodeName: name, identity, devices },
      });
      create(BARE_METAL_REMEDIATIONS, { metadata: { namespace: NAMESPACE, name }, spec: {} });
    }
    const kubeconfig = join(folder, "kubeconfig");
    await writeFile(kubeconfig, kube.kubeconfig);
    const flags = ["--components", "remediator"];
    const agent = startAgent({ kubeconfig, logFile: join(folder, "agent.log"), flags });
    try {
      await until(agent, "both hosts were ordered off", () =>
        Promise.resolve(rack.hosts.every(({ orders }, index) => orders.length > (ordersBefore[index] ?? 0))),
      );
      assert.ok(sessions() > 0);
      await agent.stop();
      assert.match(await agent.ended, /ended with 0/);
      assert.equal(await sessionsLeft(), 0);
    } finally {
      await agent.stop();
      await kube.close();
    }
  });
});

/**
 * Waits until `holds` returns true. @throws Error with the last output of the process if it ends first, or after a
 * timeout.
 */
async function until(child: Child, what: string, holds: () => Promise<boolean>): Promise<void> {
  for (const endMs = Date.now() + DEADLINE_MS; Date.now() < endMs; await delay(50)) {
    if (await holds()) return;
    if (!child.running) break;
  }
  throw new Error(`not in time: ${what}; ${child.running ? await readFile(child.logFile, "utf8") : await child.ended}`);
}
