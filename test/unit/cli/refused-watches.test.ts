import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { createApiServer } from "../../../hack/kube-mock/api-server.ts";
import { CONFIG_MAPS, NODES, SECRETS } from "../../../src/api/kubernetes/core-types.ts";
import { RefusedWatches } from "../../../src/cli/agent/refused-watches.ts";
import { createKubeRuntime } from "../../../src/kube/connection/create-runtime.ts";
import type { ResourceType } from "../../../src/kube/resource.ts";
import { createLogger } from "../../../src/telemetry/logger.ts";
import { seededRandom } from "../../lib/seeded-random.ts";
import { VirtualClock } from "../../lib/virtual-clock.ts";

const infrastructure = (kind: string): ResourceType => ({
  group: "infrastructure.cluster.x-k8s.io",
  version: "v1beta2",
  kind,
  plural: `${kind.toLowerCase()}s`,
  namespaced: true,
});

describe("watches that are refused", () => {
  it("watches that are refused are reported while they are, of kinds that a family works with, and of no vendor's", async () => {
    const clock = new VirtualClock();
    const server = createApiServer({ clock, random: seededRandom(1) });
    server.faults.inject({ match: {}, times: Infinity, action: { kind: "status", status: 403 } });
    const names = { controllerName: "ironfence.io/test", instance: "test" };
    const transport = server.transport({ client: "test" });
    const deps = { transport, clock, random: seededRandom(2), logger: createLogger("silent") };
    const refused = new RefusedWatches();
    const runtime = refused.observe(createKubeRuntime({ ...deps, ...names }));
    const stop = new AbortController();
    for (const type of [NODES, SECRETS, infrastructure("Metal3Machine"), infrastructure("OtherRemediation")]) {
      runtime.watch({ type, trim: (raw) => raw }, stop.signal);
    }
    await clock.advance(1_000);
    const told = refused.lines.map((line) => line.split(":")[0]);
    assert.deepEqual(told, ["may not watch metal3machines.infrastructure.cluster.x-k8s.io", "may not watch nodes"]);
    stop.abort(new Error("the test is over"));
    assert.deepEqual(refused.lines, []);
    server.close();
  });

  it("a watch that is refused is reported differently from a collection that could never be listed", async () => {
    const clock = new VirtualClock();
    const server = createApiServer({ clock, random: seededRandom(1) });
    const names = { controllerName: "ironfence.io/test", instance: "test" };
    const transport = server.transport({ client: "test" });
    const deps = { transport, clock, random: seededRandom(2), logger: createLogger("silent") };
    const refused = new RefusedWatches();
    const runtime = refused.observe(createKubeRuntime({ ...deps, ...names }));
    const stop = new AbortController();
    runtime.watch({ type: NODES, trim: (raw) => raw }, stop.signal);
    await clock.advance(1_000);
    server.faults.inject({ match: {}, times: Infinity, action: { kind: "status", status: 500 } });
    server.faults.cutWatches({});
    runtime.watch({ type: CONFIG_MAPS, trim: (raw) => raw }, stop.signal);
    await clock.advance(1_000);
    assert.deepEqual(
      refused.unread.map((line) => line.split(":")[0]),
      ["cannot list configmaps"],
    );
    assert.deepEqual(refused.lines, []);
    stop.abort(new Error("the test is over"));
    server.close();
  });
});
