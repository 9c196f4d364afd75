import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { Registry } from "prom-client";
import { createApiServer } from "../../../hack/kube-mock/api-server.ts";
import { NAMESPACES } from "../../../hack/kube-mock/controllers/cluster-types.ts";
import { readCrds } from "../../../hack/lib/crds.ts";
import { BARE_METAL_REMEDIATION_TEMPLATES } from "../../../src/api/ironfence/bare-metal-remediation.ts";
import { NODE_HEALTH_CHECKS } from "../../../src/api/ironfence/node-health-check.ts";
import { NODES } from "../../../src/api/kubernetes/core-types.ts";
import { trimNode } from "../../../src/api/kubernetes/trim.ts";
import { runComponents } from "../../../src/cli/agent/components.ts";
import { resolveRunOptions } from "../../../src/config/resolve-run-options.ts";
import { createKubeRuntime } from "../../../src/kube/connection/create-runtime.ts";
import { openDeviceOn } from "../../lib/open-device.ts";
import { seededRandom } from "../../lib/seeded-random.ts";
import { VirtualClock } from "../../lib/virtual-clock.ts";
import { silentLogger } from "../kube/support.ts";

const ALL_NODES = { matchExpressions: [{ key: "no", operator: "DoesNotExist" }] };
const NAMESPACE = "ironfence-system";

describe("the detector and the remediator", () => {
  it("the detector and the remediator of an agent share one watch of all remediations and one of all targets", async () => {
    const clock = new VirtualClock();
    const server = createApiServer({ clock, random: seededRandom(1) });
    for (const crd of await readCrds()) server.load(crd);
    for (const name of [NAMESPACE, "medik8s-leases"]) server.collection(NAMESPACES).create({ metadata: { name } });
    const template = { namespace: NAMESPACE, name: "reboot" };
    server.collection(BARE_METAL_REMEDIATION_TEMPLATES).create({ metadata: template, spec: { template: {} } });
    const kind = { apiVersion: "ironfence.io/v1alpha1", kind: "BareMetalRemediationTemplate" };
    const condition = { type: "Ready", status: "False", duration: "10s" };
    server.collection(NODE_HEALTH_CHECKS).create({
      metadata: { name: "all" },
      spec: {
        minHealthy: 0,
        selector: ALL_NODES,
        unhealthyConditions: [condition],
        remediationTemplate: { ...kind, ...template },
      },
    });
    server.collection(NODES).create({
      metadata: { name: "n1" },
      status: { conditions: [{ type: "Ready", status: "False", lastTransitionTime: "1970-01-01T00:00:00Z" }] },
    });
    const lists: string[] = [];
    const watches: string[] = [];
    const shared = /(baremetalremediations|fencingtargets)\?(?!.*Selector=)/;
    server.onRequest(({ method, path, watch }) => {
      const [, collection] = shared.exec(path) ?? [];
      if (method === "GET" && collection !== undefined) (watch ? watches : lists).push(collection);
    });
    const stop = new AbortController();
    const registry = new Registry();
    const options = resolveRunOptions({ namespace: NAMESPACE }, {});
    const transport = server.transport({ client: "agent" });
    const names = { controllerName: "ironfence.io/agent", instance: "test" };
    const runtime = createKubeRuntime({ transport, clock, random: seededRandom(2), logger: silentLogger, ...names });
    const nodes = runtime.watch({ type: NODES, trim: trimNode }, stop.signal);
    const unused = { recorder: undefined, tracer: undefined, kdump: undefined, withheld: undefined };
    const may = { isOrderAllowed: () => false, handOver: () => undefined };
    const openDevice = openDeviceOn(clock);
    const running = runComponents({ options, runtime, registry, nodes, openDevice, ...may, ...unused }, stop.signal);
    await clock.advance(60_000);
    const ongoing = await registry.getSingleMetricAsString("nodehealthcheck_ongoing_remediation");
    assert.match(ongoing, / 1$/m, "a remediation has begun, so the detector reads FencingTargets, too");
    assert.deepEqual(watches.toSorted(), ["baremetalremediations", "fencingtargets"]);
    assert.deepEqual(lists.toSorted(), ["baremetalremediations", "fencingtargets"]);
    stop.abort(new Error("the test is over"));
    await running;
    server.close();
  });
});
