import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { Registry } from "prom-client";
import { createApiServer } from "../../../../hack/kube-mock/api-server.ts";
import { readCrds } from "../../../../hack/lib/crds.ts";
import type { BareMetalRemediation } from "../../../../src/api/ironfence/bare-metal-remediation.ts";
import { BARE_METAL_REMEDIATIONS } from "../../../../src/api/ironfence/bare-metal-remediation.ts";
import { NODES } from "../../../../src/api/kubernetes/core-types.ts";
import type { Node } from "../../../../src/api/kubernetes/core.ts";
import { createKubeRuntime } from "../../../../src/kube/connection/create-runtime.ts";
import { isMarked, markPatch, signature } from "../../../../src/remediator/machine/node-patches/marks.ts";
import { createMetrics } from "../../../../src/remediator/telemetry/metrics.ts";
import { NodeClusters } from "../../../../src/remediator/clusters/node-clusters.ts";
import { tendUnvouchedTaints } from "../../../../src/remediator/orphans/unvouched-taints.ts";
import { patchNode } from "../../../../src/remediator/clusters/node-writes.ts";
import { createLogger } from "../../../../src/telemetry/logger.ts";
import { seededRandom } from "../../../lib/seeded-random.ts";
import { VirtualClock } from "../../../lib/virtual-clock.ts";

const TENANT = { namespace: "tenant", name: "w1" };
const names = { controllerName: "ironfence.io/test", instance: "test" };

/** One API server, and the agent's view of it. */
async function cluster(clock: VirtualClock, signal: AbortSignal) {
  const random = seededRandom(1);
  const server = createApiServer({ clock, random });
  for (const text of await readCrds()) server.load(text);
  const transport = server.transport({ client: "agent" });
  const runtime = createKubeRuntime({ transport, clock, random, logger: createLogger("silent"), ...names });
  const nodes = runtime.watch<Node>({ type: NODES, trim: (raw) => raw as Node }, signal);
  const taint = async (name: string, of: typeof TENANT | undefined): Promise<void> => {
    server.collection(NODES).create({ metadata: { name }, spec: {} });
    const signedBy = signature("gone", "a1", of);
    const patchFor = (node: Node) => markPatch(node, { outOfService: "on" }, signedBy);
    await patchNode(runtime.client, name, patchFor, signal);
  };
  const isTainted = (name: string): boolean => isMarked(server.collection<Node>(NODES).get({ name }) ?? assert.fail());
  return { server, runtime, nodes, taint, isTainted };
}

/** A management cluster and a tenant's, and the controller of their taints. */
async function tending() {
  const clock = new VirtualClock();
  const stop = new AbortController();
  const own = await cluster(clock, stop.signal);
  const tenant = await cluster(clock, stop.signal);
  const { runtime, nodes } = own;
  const connection = { state: "connected", runtime: tenant.runtime, nodes: tenant.nodes, uid: "t" } as const;
  const workload = { hold: (ref: typeof TENANT) => ({ ref, connection, release: () => undefined }) };
  const clusters = new NodeClusters({ runtime, nodes, clusters: workload });
  clusters.hold(TENANT);
  const trim = (raw: unknown): BareMetalRemediation => raw as BareMetalRemediation;
  const remediations = runtime.watch({ type: BARE_METAL_REMEDIATIONS, trim }, stop.signal);
  const vouching = { powerOf: () => [], onTakenOff: () => undefined };
  const metrics = createMetrics(new Registry());
  const ended = tendUnvouchedTaints({ runtime, clusters, remediations, metrics, ...vouching }, stop.signal);
  const end = async (): Promise<void> => {
    stop.abort(new Error("the test is over"));
    await clock.advance(1_000);
    await ended;
  };
  return { clock, own, tenant, end };
}

describe("an unvouched out-of-service taint", () => {
  it("an unvouched out-of-service taint is removed although a workload cluster lists many such nodes and then answers no call", async () => {
    const { clock, own, tenant, end } = await tending();
    for (let index = 0; index < 200; index += 1) await tenant.taint(`t${index}`, TENANT);
    const match = { pathPrefix: "/api/v1/nodes/" };
    tenant.server.faults.inject({ match, times: Infinity, action: { kind: "hang" } });
    await clock.advance(2_000);
    await own.taint("n1", undefined);
    await clock.advance(12_000);
    assert.equal(own.isTainted("n1"), false);
    assert.equal(tenant.isTainted("t0"), true);
    await end();
  });

  it("an unvouched out-of-service taint is tried again after 3 s if a call hangs, and given more time at each further try", async () => {
    const { clock, own, end } = await tending();
    await own.taint("n1", undefined);
    await clock.advance(1_000);
    const match = { path: "/api/v1/nodes/n1" };
    own.server.faults.inject({ match, times: 1, action: { kind: "hang" } });
    await clock.advance(14_000);
    assert.equal(own.isTainted("n1"), false, "one call that hangs costs 3 s");
    await end();
    const slow = await tending();
    await slow.own.taint("n1", undefined);
    await slow.clock.advance(1_000);
    slow.own.server.faults.inject({ match, times: Infinity, action: { kind: "delay", delayMs: 5_000 } });
    await slow.clock.advance(40_000);
    assert.equal(slow.own.isTainted("n1"), false, "an API server that takes 5 s is waited for");
    await slow.end();
  });
});
