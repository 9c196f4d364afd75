import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Node } from "../../../../src/api/kubernetes/core.ts";
import { decideNodeCheck } from "../../../../src/detector/nodes/decide/decide.ts";
import type { NodeActionContext, NodeActionDeps } from "../../../../src/detector/nodes/effects/action-context.ts";
import { createRemediation } from "../../../../src/detector/nodes/effects/create-remediation.ts";
import type { EarlyFacts } from "../../../../src/detector/shared/model/early-facts.ts";
import type { ObservedHost } from "../../../../src/detector/shared/model/observed-host.ts";
import { createLogger } from "../../../../src/telemetry/logger.ts";
import { factsOf, snapshotOf, T0 } from "./builders.ts";
import { EARLY, hostWith, ours, policy, ready } from "./early-fixtures.ts";

interface Live {
  node: Node;
  host: ObservedHost;
  early: EarlyFacts;
  mayStartEarly: boolean;
}

/**
 * Executes the decision to remediate a Ready node. @param live differences between the live reads and the facts of the
 * decision.
 */
async function create(live: Partial<Live>): Promise<{ created: number; events: string[] }> {
  const templates = ours();
  const facts = factsOf(policy, ready(), T0, { host: hostWith(), early: EARLY, leaseRenewAtMs: undefined });
  const [action] = decideNodeCheck(snapshotOf(policy, [facts], { templates }), T0).actions;
  assert.ok(action?.type === "create");
  const { node = ready(), host = hostWith(), mayStartEarly = true } = live;
  let early = EARLY;
  let created = 0;
  const deps = {
    clock: { nowMs: () => T0 },
    logger: createLogger("silent"),
    client: {
      create: async () => {
        created += 1;
        return { kind: "BareMetalRemediation", metadata: { name: "a", uid: "r", resourceVersion: "1" } };
      },
    },
    remediations: { wrote: () => undefined },
    leases: { take: async () => ({ held: true }) },
    fencingTargets: { readHost: async () => host },
    overdue: {
      names: () => [],
      factsOf: () => early,
      // The result of a live read is known from then on.
      confirm: async () => {
        early = live.early ?? EARLY;
      },
    },
  } as unknown as NodeActionDeps;
  const context = {
    check: { apiVersion: "v1", kind: "NodeHealthCheck", metadata: { name: "check", uid: "check-1" } },
    policy,
    tracker: { judge: () => ({ state: "healthy" }) },
    isOkd: false,
    readNode: async () => node,
    confirmNodes: async () => undefined,
    mayStart: () => true,
    mayStartEarly: () => mayStartEarly,
    nodesNamed: () => [node],
    hostOf: () => host,
  } as unknown as NodeActionContext;
  const events: string[] = [];
  for await (const { type } of createRemediation(deps, context, action, new AbortController().signal)) {
    events.push(type);
  }
  return { created, events };
}

describe("an early remediation", () => {
  it("an early remediation is created if a live read shows what it was decided by", async () => {
    assert.deepEqual(await create({}), { created: 1, events: ["leaseTaken", "created"] });
  });

  const lease = { ...EARLY.lease!, resourceVersion: "8" };
  const changes: [string, Partial<Live>][] = [
    ["a live read shows that its node has renewed its lease", { early: { ...EARLY, lease } }],
    ["its node is excluded now", { node: ready({}, { "remediation.medik8s.io/exclude-from-remediation": "true" }) }],
    ["its node is cordoned now", { node: ready({ spec: { unschedulable: true } }) }],
    ["its target is in maintenance now", { host: hostWith({ maintenance: true }) }],
    ["power-offs are stopped now", { host: hostWith({}, { stopped: "a test" }) }],
  ];
  for (const [what, live] of changes) {
    it(`an early remediation is not created if ${what}`, async () => {
      assert.deepEqual(await create(live), { created: 0, events: ["deferred"] });
    });
  }

  it("an early remediation is not created if more nodes have stopped renewing their leases than the threshold permits", async () => {
    assert.deepEqual(await create({ mayStartEarly: false }), { created: 0, events: ["leaseTaken"] });
  });
});
