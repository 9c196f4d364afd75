import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { afterEach, describe, it } from "node:test";
import { SKIP_DURATION_IF_OFF } from "../../src/api/names/annotations.ts";
import { CONFIG_MAPS, NODES } from "../../src/api/kubernetes/core-types.ts";
import type { Node } from "../../src/api/kubernetes/core.ts";
import { FENCING_TARGETS } from "../../src/api/ironfence/fencing-target.ts";
import { outageOf } from "../../src/api/kubernetes/outage.ts";
import { STOP_SWITCH_NAME } from "../../src/api/ironfence/stop-switch.ts";
import { toTime } from "../../src/runtime/time.ts";
import { DetectorWorld } from "./detector-fixture.ts";

// The detector alone, with the remediator of another project and with off proofs that another process writes.

const ASKS = { [SKIP_DURATION_IF_OFF]: "true" };
const NAMESPACE = "fencing";
const DURATIONS = {
  unhealthyConditions: ["False", "Unknown"].map((status) => ({ type: "Ready", status, duration: "300s" })),
};
const FORBIDDEN = { kind: "status", status: 403 } as const;

let world: DetectorWorld;
afterEach(() => world.stop());

function installTargets(): void {
  const crd = new URL("../../deploy/crds/ironfence.io_fencingtargets.yaml", import.meta.url);
  world.server.load(readFileSync(crd, "utf8"));
}

function target(name = "n1", spec: Record<string, unknown> = {}): void {
  const devices = [{ address: `redfish://${name}.example`, credentialsSecretRef: { name: "bmc" } }];
  world.server
    .collection(FENCING_TARGETS)
    .create({ metadata: { namespace: NAMESPACE, name }, spec: { nodeName: name, devices, ...spec } });
}

/** Writes what the controller of FencingTargets writes when it has proven the host of a node off. */
function prove(name = "n1"): void {
  const outage = outageOf(world.server.collection<Node>(NODES).get({ name }));
  const key = { namespace: NAMESPACE, name };
  const { generation } = world.server.collection(FENCING_TARGETS).get(key)?.metadata ?? {};
  const time = toTime(world.clock.nowMs());
  const conditions = ["Ready", "IdentityVerified"].map((type) => ({
    type,
    status: "True",
    reason: "Test",
    message: "",
    lastTransitionTime: time,
  }));
  const status = { observedGeneration: generation, powerState: "Off", conditions, offProof: { time, ...outage } };
  world.server.collection(FENCING_TARGETS).mergePatch(key, { status }, "status");
}

async function enabled(options: { crd?: boolean; targets?: string[] } = {}): Promise<void> {
  world = new DetectorWorld();
  if (options.crd !== false) {
    installTargets();
    for (const name of options.targets ?? ["n1"]) target(name);
  }
  world.template();
  world.nodes(3);
  world.check(DURATIONS, "check", ASKS);
  world.start();
  await world.until("enabled", () => world.status().phase === "Enabled");
}

/** Asserts that there is no remediation before the duration is over, and one after it. */
async function waitsItsWholeDuration(): Promise<void> {
  await world.clock.advance(298_000);
  assert.deepEqual(world.fences(), []);
  await world.until("a CR", () => world.fences().length > 0, 3_000);
}

describe("detector: a host that is proven off", () => {
  it("detector: a node whose host is proven off is remediated at once by every kind, with three reads and one lease", async () => {
    await enabled();
    world.ready("n1", "Unknown");
    await world.clock.advance(1_000);
    assert.deepEqual(world.fences(), []);
    world.requests.length = 0;
    prove();
    await world.until("a CR", () => world.fences().length > 0, 100);
    assert.deepEqual(
      world.requests
        .map(({ method, path }) => `${method} ${path.split("?")[0]?.split("/").at(-1)}`)
        .slice(0, 5)
        .toSorted(),
      ["GET ironfence-pause", "GET n1", "GET n1", "POST fences", "POST leases"],
    );
    assert.deepEqual(world.told("DurationSkipped").length, 1);
    assert.match(world.told("DurationSkipped")[0] ?? "", /Node n1 is remediated 299 s before its duration is over/);
    await world.clock.advance(400_000);
    assert.equal(world.fences().length, 1);
    assert.equal(world.told("DurationSkipped").length, 1);
    assert.equal(world.told("DetectedUnhealthy").length, 1);
  });

  it("detector: a proof of Off is ignored if the live target or the pause says otherwise, even if the watches lag", async () => {
    const edits: [string, () => void][] = [
      [
        "/apis/ironfence.io",
        () =>
          void world.server
            .collection(FENCING_TARGETS)
            .mergePatch({ namespace: NAMESPACE, name: "n1" }, { spec: { maintenance: true } }),
      ],
      [
        `/api/v1/namespaces/${NAMESPACE}/configmaps`,
        () =>
          void world.server
            .collection(CONFIG_MAPS)
            .create({ metadata: { namespace: NAMESPACE, name: STOP_SWITCH_NAME }, data: {} }),
      ],
      // Another proof, whose appearance no agent has seen.
      ["/apis/ironfence.io", prove],
    ];
    for (const [index, [pathPrefix, edit]] of edits.entries()) {
      await enabled();
      world.ready("n1", "Unknown");
      await world.clock.advance(1_000);
      // A pause delays the decision of the detector until its watch is behind.
      world.edit({ pauseRequests: ["a test"] });
      prove();
      await world.clock.advance(1_000);
      world.server.faults.lagWatches({ pathPrefix }, 25_000);
      edit();
      world.edit({ pauseRequests: [] });
      await world.clock.advance(20_000);
      assert.deepEqual(world.fences(), [], pathPrefix);
      assert.ok(
        world.requests.some(({ method, path, watch }) => method === "GET" && !watch && path.endsWith("/n1")),
        "it was about to",
      );
      if (index < edits.length - 1) await world.stop();
    }
  });

  it("detector: a host that is proven off is not believed by a proof that was there before the agent, but by the next one", async () => {
    await enabled();
    await world.stop();
    world.ready("n1", "Unknown");
    prove();
    world.start();
    await world.clock.advance(10_000);
    assert.deepEqual(world.fences(), []);
    prove();
    await world.until("a CR", () => world.fences().length > 0, 1_000);
  });

  it("detector: a proof of Off does not count for a node of the same name in another cluster", async () => {
    await enabled();
    target("far", { nodeName: "n1", clusterRef: { namespace: NAMESPACE, name: "edge" } });
    world.ready("n1", "Unknown");
    await world.clock.advance(1_000);
    prove();
    await world.until("a CR", () => world.fences().length > 0, 100);
  });

  it("detector: a proof of Off does not count for a node if its target is in another namespace", async () => {
    await enabled({ targets: [] });
    const devices = [{ address: "redfish://n1.example", credentialsSecretRef: { name: "bmc" } }];
    const metadata = { namespace: "medik8s-leases", name: "n1" };
    world.server.collection(FENCING_TARGETS).create({ metadata, spec: { nodeName: "n1", devices } });
    world.ready("n1", "Unknown");
    const time = toTime(world.clock.nowMs());
    const outage = outageOf(world.server.collection<Node>(NODES).get({ name: "n1" }));
    const status = { observedGeneration: 1, powerState: "Off", offProof: { time, ...outage } };
    world.server.collection(FENCING_TARGETS).mergePatch(metadata, { status }, "status");
    await waitsItsWholeDuration();
  });
});

describe("a detector that cannot get proofs", () => {
  it("a detector that cannot get proofs continues without their CRD, says so once, and uses the CRD when it exists", async () => {
    await enabled({ crd: false });
    await world.until("told", () => world.told("OffProofUnavailable").length > 0);
    assert.match(world.told("OffProofUnavailable")[0] ?? "", /does not serve FencingTargets: apply deploy\/crds/);
    world.ready("n1", "Unknown");
    await waitsItsWholeDuration();
    assert.equal(world.told("OffProofUnavailable").length, 1);

    installTargets();
    target("n2");
    world.ready("n2", "Unknown");
    await world.clock.advance(70_000);
    prove("n2");
    await world.until("a second CR", () => world.fences().length === 2, 1_000);
  });

  for (const [what, path] of [
    ["FencingTargets", `/apis/ironfence.io/v1alpha1/namespaces/${NAMESPACE}/fencingtargets`],
    ["the stop switch", `/api/v1/namespaces/${NAMESPACE}/configmaps`],
  ] as const) {
    it(`a detector that cannot get proofs continues without the permission to read ${what}, and says so once`, async () => {
      await enabled({ targets: [] });
      await world.stop();
      target();
      world.server.faults.inject({ match: { pathPrefix: path, client: "detector" }, times: 10_000, action: FORBIDDEN });
      world.start();
      await world.until("told", () => world.told("OffProofUnavailable").length > 0);
      world.ready("n1", "Unknown");
      prove();
      await waitsItsWholeDuration();
      assert.equal(world.told("OffProofUnavailable").length, 1);
    });
  }

  it("a detector that cannot get proofs makes one list and one watch of each kind at rest, and no call if no health check asks for proofs", async () => {
    await enabled();
    await world.clock.advance(30_000);
    world.requests.length = 0;
    await world.clock.advance(240_000);
    assert.deepEqual(
      world.requests.filter(({ watch }) => !watch),
      [],
    );
    world.annotate({ [SKIP_DURATION_IF_OFF]: "maybe" });
    await world.until("disabled", () => world.status().phase === "Disabled");
    assert.match(world.condition("Disabled")?.message ?? "", /skip-duration-if-off: maybe is neither true nor false/);
    await world.stop();
    world.annotate({ [SKIP_DURATION_IF_OFF]: "false" });
    world.requests.length = 0;
    world.start();
    await world.until("enabled", () => world.status().phase === "Enabled");
    world.ready("n1", "Unknown");
    await world.clock.advance(10_000);
    assert.deepEqual(
      world.requests.filter(({ path }) => /fencingtargets|configmaps/.test(path)),
      [],
    );
  });
});
