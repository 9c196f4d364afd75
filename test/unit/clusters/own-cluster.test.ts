import assert from "node:assert/strict";
import { test } from "node:test";
import { createApiServer } from "../../../hack/kube-mock/api-server.ts";
import { NODES } from "../../../src/api/kubernetes/core-types.ts";
import { trimNode } from "../../../src/api/kubernetes/trim.ts";
import { ownCluster } from "../../../src/clusters/own-cluster.ts";
import { createKubeRuntime } from "../../../src/kube/connection/create-runtime.ts";
import type { KubeTransport } from "../../../src/kube/transport.ts";
import { createLogger } from "../../../src/telemetry/logger.ts";
import { seededRandom } from "../../lib/seeded-random.ts";
import { VirtualClock } from "../../lib/virtual-clock.ts";

test("the agent's own cluster is connected once its nodes are listed, and disconnected once nothing more is reported about them", async () => {
  const clock = new VirtualClock(Date.UTC(2026, 0, 1));
  const server = createApiServer({ clock, random: seededRandom(1) });
  server.collection(NODES).create({ metadata: { name: "n1" } });
  const inner = server.transport({ client: "agent" });
  let isSilent = false;
  const transport: KubeTransport = {
    ...inner,
    stream: async (request, signal) => {
      const stream = await inner.stream(request, signal);
      return {
        ...stream,
        body: (async function* () {
          for await (const chunk of stream.body) if (!isSilent) yield chunk;
        })(),
      };
    },
    send: (request, signal) => (isSilent ? new Promise<never>(() => undefined) : inner.send(request, signal)),
  };
  const runtime = createKubeRuntime({
    transport,
    clock,
    random: seededRandom(2),
    logger: createLogger("silent"),
    controllerName: "ironfence.io/agent",
    instance: "test",
  });
  const stop = new AbortController();
  const nodes = runtime.watch({ type: NODES, trim: trimNode }, stop.signal);
  let told = 0;
  const held = ownCluster(runtime, nodes, stop.signal).hold({ namespace: "", name: "" }, () => {
    told += 1;
  });
  try {
    const state = () => held.connection.state;
    assert.equal(state(), "connecting");
    await clock.advance(1_000);
    assert.equal(told, 1);
    assert.equal(state(), "connected");
    isSilent = true;
    await clock.advance(400_000);
    assert.equal(state(), "disconnected");
  } finally {
    held.release();
    stop.abort();
    await clock.advance(0);
    server.close();
  }
});
