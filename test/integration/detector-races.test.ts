import assert from "node:assert/strict";
import { afterEach, beforeEach, describe, it } from "node:test";
import { LEASES, NODES } from "../../src/api/kubernetes/core-types.ts";
import type { Lease, Node } from "../../src/api/kubernetes/core.ts";
import { NODE_HEALTH_CHECKS } from "../../src/api/ironfence/node-health-check.ts";
import { sleep } from "../../src/runtime/clock.ts";
import { toMicroTime, toTime } from "../../src/runtime/time.ts";
import { DetectorWorld, escalation, reference, vendorType } from "./detector-fixture.ts";

// Changes between a decision and its action: while a watch is delayed, or while a request is in transit.

/** How long the delayed request is in transit. */
const HELD_MS = 1_000;
const TIMED_OUT = "remediation.medik8s.io/nhc-timed-out";

/** Selects requests by method and the beginning of the path. */
interface Match {
  method: string;
  path: string;
}
const NODE = { method: "GET", path: "/api/v1/nodes/n1" };
const LEASE = "/apis/coordination.k8s.io";
const NAMESPACED = "/apis/fence.example/v1/namespaces/fencing";
const FENCES = `${NAMESPACED}/fences`;

let world: DetectorWorld;
beforeEach(() => {
  world = new DetectorWorld({ kinds: ["Fence", "A", "B"] });
});
afterEach(() => world.stop());

/** Calls `cause`, and calls `change` while the first matching request after it is in transit. */
async function meanwhile(match: Match, cause: () => void, change: () => void): Promise<void> {
  let isOnItsWay = false;
  world.beforeSend = async (request) => {
    if (isOnItsWay || !fits(match, request)) return;
    isOnItsWay = true;
    change();
    await sleep(world.clock, HELD_MS, new AbortController().signal);
  };
  cause();
  await world.until("it is on its way", () => isOnItsWay, 12_000);
  await world.clock.advance(HELD_MS + 500);
}

const fits = ({ method, path }: Match, request: Match) => request.method === method && request.path.startsWith(path);

/** Gives the remediation lease of the node to a maintenance tool. */
function toolTakesLease(renewedMs = world.clock.nowMs()): void {
  const key = { namespace: "medik8s-leases", name: "node-n1" };
  const time = toMicroTime(renewedMs);
  const spec = { holderIdentity: "node-maintenance", leaseDurationSeconds: 60, acquireTime: time, renewTime: time };
  const leases = world.server.collection<Lease>(LEASES);
  if (leases.get(key) === undefined) leases.create({ metadata: key, spec });
  else leases.mergePatch(key, { spec });
}

function somebodysFence() {
  return world.server.collection(vendorType("Fence")).create({
    metadata: { namespace: "fencing", name: "n1" },
    spec: {},
  });
}

/** Changes of an unhealthy node, each of which is a reason not to remediate it now. */
const REPRIEVES: [string, () => void][] = [
  ["is Ready again", () => world.ready("n1", "True")],
  [
    "has failed again, long ago by a wrong clock",
    () => {
      const lastTransitionTime = toTime(world.clock.nowMs() - 3_600_000);
      const conditions = [{ type: "Ready", status: "False", lastTransitionTime }];
      world.server.collection<Node>(NODES).mergePatch({ name: "n1" }, { status: { conditions } }, "status");
    },
  ],
  ["is no longer selected", () => world.label("n1", { pool: "elsewhere" })],
  ["is excluded", () => world.label("n1", { "remediation.medik8s.io/exclude-from-remediation": "true" })],
  ["was deleted", () => world.server.collection(NODES).delete({ name: "n1" })],
  [
    "was replaced by another one with its name",
    () => {
      const nodes = world.server.collection<Node>(NODES);
      const { metadata, spec, status } = nodes.get({ name: "n1" }) ?? assert.fail();
      nodes.delete({ name: "n1" });
      nodes.create({ metadata: { name: "n1", labels: metadata.labels }, spec });
      nodes.mergePatch({ name: "n1" }, { status }, "status");
    },
  ],
];

describe("detector: a node whose change a lagging watch does not show", () => {
  for (const [what, change] of REPRIEVES) {
    it(`a node that ${what} is not remediated, even if a lagging watch does not show it`, async () => {
      await world.enabled();
      world.ready("n1", "Unknown");
      await world.clock.advance(5_000);
      world.server.faults.lagWatches({ pathPrefix: "/api/v1/nodes" }, 20_000);
      change();
      await world.clock.advance(14_000);
      assert.ok(
        world.requests.some((request) => fits(NODE, request)),
        "it was about to",
      );
      assert.deepEqual([world.fences(), world.leases()], [[], []]);
    });
  }
});

describe("detector: a change while the lease of a node is being taken", () => {
  const cases: [string, () => void][] = [
    ...REPRIEVES.map(([what, change]): [string, () => void] => [`the node ${what}`, change]),
    ["the health check is paused", () => world.edit({ pauseRequests: ["upgrade"] })],
    ["the health check is deleted", () => world.server.collection(NODE_HEALTH_CHECKS).delete({ name: "check" })],
  ];
  for (const [what, change] of cases) {
    it(`no remediation is created if ${what} while the lease of the node is being taken`, async () => {
      await world.enabled();
      await meanwhile({ method: "POST", path: LEASE }, () => world.ready("n1", "Unknown"), change);
      assert.deepEqual(world.told("RemediationCreated"), []);
    });
  }

  it("no remediation is created if the node is Ready again while its lease is being taken, even if a lagging watch does not show it", async () => {
    await world.enabled();
    await meanwhile(
      { method: "POST", path: LEASE },
      () => world.ready("n1", "Unknown"),
      () => {
        world.server.faults.lagWatches({ pathPrefix: "/api/v1/nodes" }, 20_000);
        world.ready("n1", "True");
      },
    );
    assert.deepEqual(world.told("RemediationCreated"), []);
  });

  for (const what of ["is Ready again", "is no longer selected", "was deleted"]) {
    it(`the lease of a node is released if the node ${what} while the lease is being taken`, async () => {
      const change = REPRIEVES.find(([name]) => name === what)?.[1] ?? assert.fail();
      await world.enabled();
      await meanwhile({ method: "POST", path: LEASE }, () => world.ready("n1", "Unknown"), change);
      await world.clock.advance(5_000);
      assert.deepEqual(world.leases(), []);
    });
  }

  it("the lease of a node stays with a maintenance tool that takes it at the same time", async () => {
    await world.enabled();
    toolTakesLease(world.clock.nowMs() - 3_600_000);
    await meanwhile({ method: "PATCH", path: LEASE }, () => world.ready("n1", "Unknown"), toolTakesLease);
    assert.deepEqual(world.fences(), []);
    assert.equal(world.leases()[0]?.spec.holderIdentity, "node-maintenance");
  });
});

describe("detector: a node that an older health check comes to select", () => {
  /** Creates two health checks. Leases are released, because they alone would keep the two apart. */
  async function twoChecks(): Promise<void> {
    const match = { method: "POST", pathPrefix: LEASE };
    world.server.faults.inject({ match, times: 100, action: { kind: "status", status: 404 } });
    await world.enabled();
    await world.clock.advance(1_000);
    world.template("A");
    const selector = { matchExpressions: [{ key: "pool", operator: "Exists" }] };
    world.check({ selector, remediationTemplate: reference("A") }, "younger");
    world.label("n1", { pool: "b" });
    await world.until("enabled", () => world.status("younger").phase === "Enabled");
  }

  it("detector: a node that an older health check comes to select is left to the younger one that is remediating it", async () => {
    await twoChecks();
    world.ready("n1", "Unknown");
    await world.until("a CR", () => world.fences("A").length > 0, 12_000);
    world.label("n1", { pool: "a" });
    await world.until("told", () => /younger is remediating it/.test(world.told("RemediationSkipped").join()));
    await world.clock.advance(20_000);
    assert.deepEqual(world.fences(), []);
  });

  it("detector: a node that an older health check comes to select is left to the younger one that is about to remediate it", async () => {
    await twoChecks();
    await meanwhile(
      { method: "POST", path: `${NAMESPACED}/as` },
      () => world.ready("n1", "Unknown"),
      // Late enough that the list that was used for the remediation, in which the node has its old label, has expired.
      () => void world.clock.schedule(300, () => world.label("n1", { pool: "a" })),
    );
    assert.deepEqual([world.fences().length, world.fences("A").length], [0, 1]);
  });
});

describe("detector: two control plane nodes under two health checks", () => {
  it("only one of two control plane nodes under two health checks is remediated, even if its CR does not exist yet", async () => {
    const role = { "node-role.kubernetes.io/control-plane": "" };
    world.node("cp0", role);
    world.node("cp1", { ...role, pool: "b" });
    world.check({ selector: { matchLabels: { pool: "b" } } }, "other");
    await world.enabled();
    const cause = () => ["cp0", "cp1"].forEach((name) => world.ready(name, "Unknown"));
    await meanwhile({ method: "POST", path: FENCES }, cause, () => undefined);
    assert.equal(world.fences().length, 1);
  });
});

describe("detector: a CR whose deletion was decided", () => {
  const cases: [string, () => Promise<void>, cause: () => void, change: () => void][] = [
    [
      "the node that had recovered has failed again",
      async () => undefined,
      () => world.ready("n1", "True"),
      () => world.ready("n1", "Unknown"),
    ],
    [
      "the node that was not selected is selected again",
      async () => world.label("n1", { pool: "elsewhere" }),
      () => report("False"),
      () => world.label("n1", { pool: "a" }),
    ],
    [
      "the node that was deleted is back and has failed",
      async () => undefined,
      () => world.server.collection(NODES).delete({ name: "n1" }),
      () => {
        world.node("n1");
        world.ready("n1", "Unknown");
      },
    ],
    [
      "its remediator that had failed works again",
      async () => {
        report("False");
        await world.clock.advance(595_000);
      },
      () => undefined,
      () => report("Unknown"),
    ],
  ];
  /** Sets the progress of the remediation, as its remediator would. */
  function report(status: string): void {
    const conditions = [{ type: "Succeeded", status }];
    const key = { namespace: "fencing", name: "n1" };
    world.server.collection(vendorType("Fence")).mergePatch(key, { status: { conditions } }, "status");
  }
  for (const [what, prepare, cause, change] of cases) {
    it(`a remediation whose deletion was decided is kept if ${what} before that`, async () => {
      await world.enabled();
      const { metadata } = await world.fenced();
      await prepare();
      await meanwhile(NODE, cause, change);
      assert.deepEqual(
        world.fences().map(({ metadata: { uid, deletionTimestamp } }) => [uid, deletionTimestamp]),
        [[metadata.uid, undefined]],
      );
    });
  }
});

describe("detector: an object that belongs to another client when a write arrives", () => {
  it("a remediation with the name of the one that is deleted is left alone", async () => {
    await world.enabled();
    const { metadata } = await world.fenced();
    let another = metadata.uid;
    await meanwhile(
      { method: "DELETE", path: FENCES },
      () => world.ready("n1", "True"),
      () => {
        world.server.collection(vendorType("Fence")).delete({ namespace: "fencing", name: "n1" });
        another = somebodysFence().metadata.uid;
      },
    );
    assert.deepEqual(
      world.fences().map(({ metadata: { uid } }) => uid),
      [another],
    );
  });

  it("a remediation with the name of the one that is created is left alone", async () => {
    await world.enabled();
    await meanwhile({ method: "POST", path: FENCES }, () => world.ready("n1", "Unknown"), somebodysFence);
    assert.equal(world.entry("n1")?.remediations, undefined);
    assert.match(world.told("RemediationSkipped").join(), /it has another owner/);
  });

  it("a CR that has succeeded is not marked as timed out", async () => {
    await world.enabled({ kinds: ["A", "B"], spec: escalation("A", "B") });
    const cr = await world.fenced("n1", "A");
    await world.clock.advance(55_000);
    await meanwhile(
      { method: "PATCH", path: "/apis/fence.example" },
      () => undefined,
      () => world.report(cr, "Succeeded", "True"),
    );
    assert.equal(world.fenceOf("n1", "A")?.metadata.annotations?.[TIMED_OUT], undefined);
  });

  it("a lease that a maintenance tool takes while the agent releases it stays with the tool", async () => {
    await world.enabled();
    await world.fenced();
    await meanwhile({ method: "DELETE", path: LEASE }, () => world.ready("n1", "True"), toolTakesLease);
    assert.equal(world.leases()[0]?.spec.holderIdentity, "node-maintenance");
  });
});
