import assert from "node:assert/strict";
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { test } from "node:test";
import type { BareMetalRemediation } from "../../src/api/ironfence/bare-metal-remediation.ts";
import { BARE_METAL_REMEDIATIONS } from "../../src/api/ironfence/bare-metal-remediation.ts";
import { NODES } from "../../src/api/kubernetes/core-types.ts";
import type { Node } from "../../src/api/kubernetes/core.ts";
import { openDeviceOn } from "../lib/open-device.ts";
import { runAgent } from "../../src/cli/agent/agent.ts";
import { resolveRunOptions } from "../../src/config/resolve-run-options.ts";
import { systemMemory } from "../../src/runtime/memory.ts";
import { systemClock, systemRandom } from "../../src/runtime/system.ts";
import { createLogger } from "../../src/telemetry/logger.ts";
import { NAMESPACE, startSocketWorld, until } from "./agent-fixture.ts";

const MESSAGE = Buffer.from("402a301b01000000", "hex");

/** A free UDP port. */
async function freePort(): Promise<number> {
  const socket = createSocket("udp4").bind(0, "127.0.0.1");
  await once(socket, "listening");
  const { port } = socket.address();
  const closed = once(socket, "close");
  socket.close();
  await closed;
  return port;
}

test("a crash kernel that sends messages over UDP after an NMI over Redfish is reported, and its node comes back", async (t) => {
  const port = await freePort();
  const hosts = [{ name: "n1", dumpMs: 3_000 }, { name: "n2" }];
  const { server, rack, ready } = await startSocketWorld(
    t,
    { hosts, monitorGracePeriodMs: 2_000 },
    ({ kubeconfig }, signal) => {
      const addresses = {
        metricsBindAddress: "0",
        healthProbeBindAddress: "0",
        kdumpBindAddress: `127.0.0.1:${port}`,
      };
      const options = resolveRunOptions({ kubeconfig, namespace: NAMESPACE, ...addresses }, {});
      const logger = createLogger("silent");
      const openDevice = openDeviceOn(systemClock);
      return runAgent(
        options,
        { clock: systemClock, random: systemRandom, logger, openDevice, memory: systemMemory() },
        signal,
      );
    },
  );
  await until("n1 is Ready", () => ready("n1") === "True");
  const addresses = [{ type: "InternalIP", address: "127.0.0.1" }];
  server.collection<Node>(NODES).mergePatch({ name: "n1" }, { status: { addresses } }, "status");
  rack.host("n1").hang();
  await until("n1 is seen to hang", () => ready("n1") === "Unknown");
  server.collection(BARE_METAL_REMEDIATIONS).create({
    metadata: { namespace: NAMESPACE, name: "n1" },
    spec: { strategy: { diagnostics: "NMI", diagnosticsTimeout: "50s" } },
  });
  const status = () =>
    server.collection<BareMetalRemediation>(BARE_METAL_REMEDIATIONS).get({ namespace: NAMESPACE, name: "n1" })?.status;
  const steps = () => (status()?.timeline ?? []).map(({ step }) => step);
  await until("the NMI is sent", () => steps().includes("NmiSent"));
  const crashKernel = createSocket("udp4");
  await until("the agent reports the messages", () => {
    crashKernel.send(MESSAGE, port, "127.0.0.1");
    return steps().includes("CrashKernelRuns");
  });
  crashKernel.close();
  await until("the node is back", () => status()?.phase === "Succeeded");
  assert.deepEqual(
    rack.host("n1").orders.map(({ type }) => type),
    ["Nmi"],
  );
});
