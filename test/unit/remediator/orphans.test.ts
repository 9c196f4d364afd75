import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { Registry } from "prom-client";
import { createApiServer } from "../../../hack/kube-mock/api-server.ts";
import { readCrds } from "../../../hack/lib/crds.ts";
import type { BareMetalRemediation } from "../../../src/api/bare-metal-remediation.ts";
import { BARE_METAL_REMEDIATIONS } from "../../../src/api/bare-metal-remediation.ts";
import { NODES } from "../../../src/api/core-types.ts";
import type { Node } from "../../../src/api/core.ts";
import type { FencingTarget } from "../../../src/api/fencing-target.ts";
import { FENCING_TARGETS } from "../../../src/api/fencing-target.ts";
import type { WorkloadClusters } from "../../../src/clusters/workload-clusters.ts";
import { createKubeRuntime } from "../../../src/kube/create-runtime.ts";
import { createMetrics } from "../../../src/remediator/metrics.ts";
import { NodeClusters } from "../../../src/remediator/node-clusters.ts";
import { tendOrphans } from "../../../src/remediator/orphans.ts";
import type { NodeId } from "../../../src/remediator/subject.ts";
import { createLogger } from "../../../src/telemetry/logger.ts";
import { seededRandom } from "../../lib/seeded-random.ts";
import { VirtualClock } from "../../lib/virtual-clock.ts";

const NODE: NodeId = { cluster: { namespace: "tenant", name: "w1" }, name: "n1" };

describe("a node of a workload cluster that may have been left in mid-way", () => {
  it("that is asked for while it is looked at is looked at once more, with its cluster kept connected until then", async () => {
    const clock = new VirtualClock();
    const random = seededRandom(1);
    const server = createApiServer({ clock, random });
    for (const text of await readCrds()) server.load(text);
    const transport = server.transport({ client: "agent" });
    const logger = createLogger("silent");
    const names = { controllerName: "ironfence.io/test", instance: "test" };
    const runtime = createKubeRuntime({ transport, clock, random, logger, ...names });
    const stop = new AbortController();
    const nodes = runtime.watch<Node>({ type: NODES, trim: (raw) => raw as Node }, stop.signal);
    let holders = 0;
    const workload: WorkloadClusters = {
      hold: (ref) => {
        holders += 1;
        return { ref, connection: { state: "connected", runtime, nodes }, release: () => void (holders -= 1) };
      },
    };
    let letGo: (node: NodeId) => void = () => assert.fail("nobody listens");
    let looks = 0;
    const ended = tendOrphans(
      {
        runtime,
        clusters: new NodeClusters({ runtime, nodes, clusters: workload }),
        targets: runtime.watch({ type: FENCING_TARGETS, trim: (raw) => raw as FencingTarget }, stop.signal),
        remediations: runtime.watch(
          { type: BARE_METAL_REMEDIATIONS, trim: (raw) => raw as BareMetalRemediation },
          stop.signal,
        ),
        isServed: (node) => {
          looks += 1;
          if (looks === 1) letGo(node);
          return false;
        },
        onLetGo: (listener) => {
          letGo = listener;
          return () => undefined;
        },
        metrics: createMetrics(new Registry()),
      },
      stop.signal,
    );
    await clock.advance(1_000);
    letGo(NODE);
    await clock.advance(60_000);
    assert.equal(looks, 2, "no look failed");
    assert.equal(holders, 0, "its cluster is let go");
    stop.abort(new Error("the test is over"));
    await clock.advance(1_000);
    await ended;
  });
});
