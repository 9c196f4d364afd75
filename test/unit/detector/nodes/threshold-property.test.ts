import assert from "node:assert/strict";
import { describe, it } from "node:test";
import * as fc from "fast-check";
import type { NodeHealthCheckStatus } from "../../../../src/api/ironfence/node-health-check.ts";
import type { Threshold } from "../../../../src/detector/nodes/decide/threshold.ts";
import { decideNodeCheck } from "../../../../src/detector/nodes/decide/decide.ts";
import type { NodePolicy } from "../../../../src/detector/nodes/decide/policy.ts";
import type { Remediation } from "../../../../src/detector/shared/model/remediation.ts";
import { entryIn, factsOf, nodeOf, policyOf, remediationOf, snapshotOf, T0 } from "./builders.ts";

const NODES_MAX = 8;
const STEP_MS = 4_000;

/** One step of the world: what happens to one node. */
const happening = fc.record({
  node: fc.nat(NODES_MAX - 1),
  what: fc.constantFrom("fails", "recovers", "changes", "crEnds", "deletedByRemediator", "relabelled", "time"),
});

/** The maximum number of nodes in remediation, calculated independently. */
function mostAllowed(threshold: Threshold, total: number): number {
  const { amount, kind } = threshold;
  const scaled = amount.unit === "nodes" ? amount.count : Math.ceil((total * amount.percent) / 100);
  return Math.max(0, kind === "minHealthy" ? total - scaled : Math.min(total, scaled));
}

interface Model {
  ready: "True" | "False" | "Unknown";
  sinceMs: number;
  exists: boolean;
  selected: boolean;
  cr: Remediation | undefined;
}

describe("budget", () => {
  it("the budget is never exceeded by remediations that start, however nodes flap, vanish and are relabelled", () => {
    fc.assert(
      fc.property(
        fc.constantFrom(
          { minHealthy: "51%" },
          { minHealthy: 5 },
          { minHealthy: undefined, maxUnhealthy: 2 },
          { minHealthy: undefined, maxUnhealthy: "30%" },
        ),
        fc.array(happening, { minLength: 10, maxLength: 120 }),
        (spec, happenings) => {
          const policy = policyOf(spec);
          const models = Array.from({ length: NODES_MAX }, (): Model => ({
            ready: "True",
            sinceMs: T0 - 600_000,
            exists: true,
            selected: true,
            cr: undefined,
          }));
          let status: NodeHealthCheckStatus = {};
          let nowMs = T0;
          let crs = 0;
          for (const { node, what } of happenings) {
            nowMs += STEP_MS;
            const model = models[node];
            assert.ok(model);
            happen(model, what, nowMs);
            const { actions, status: after } = decideNodeCheck(snapshotFor(policy, models, status, nowMs), nowMs);
            status = after;
            const starting = actions.filter(({ type }) => type === "create");
            if (starting.length > 0) {
              const counted = models.filter(({ exists, selected, cr }) => (exists && selected) || cr !== undefined);
              const busy = models.filter(({ cr }) => cr !== undefined).length;
              assert.ok(
                busy + starting.length <= mostAllowed(policy.threshold, counted.length),
                `${busy} + ${starting.length} of ${counted.length}`,
              );
            }
            for (const action of actions) {
              if (action.type === "create") {
                const target = models[Number(action.node.metadata.name)];
                assert.ok(target && target.cr === undefined);
                crs += 1;
                target.cr = remediationOf(action.node.metadata.name, { uid: `cr-${crs}`, createdMs: nowMs });
              }
              if (action.type === "delete") {
                const target = models[Number(action.remediation.nodeName)];
                assert.ok(target);
                target.cr = { ...action.remediation, terminating: true };
              }
            }
          }
        },
      ),
      { numRuns: 400, seed: Number(process.env["SEED"] ?? 42) },
    );
  });
});

function happen(model: Model, what: string, nowMs: number): void {
  switch (what) {
    case "fails":
      Object.assign(model, { ready: "Unknown", sinceMs: nowMs, exists: true });
      break;
    case "changes":
      Object.assign(model, { ready: "False", sinceMs: nowMs, exists: true });
      break;
    case "recovers":
      Object.assign(model, { ready: "True", sinceMs: nowMs, exists: true });
      break;
    case "crEnds":
      if (model.cr?.terminating === true) model.cr = undefined;
      break;
    case "deletedByRemediator":
      if (model.cr !== undefined && !model.cr.terminating) {
        model.cr = { ...model.cr, nodeDeletionExpected: true };
        model.exists = false;
      }
      break;
    case "relabelled":
      model.selected = !model.selected;
      break;
    default:
      break;
  }
}

function snapshotFor(policy: NodePolicy, models: readonly Model[], status: NodeHealthCheckStatus, nowMs: number) {
  const nodes = models.flatMap(({ ready, sinceMs, exists, selected, cr }, index) => {
    const name = String(index);
    const remediations = cr === undefined ? [] : [cr];
    const facts = factsOf(policy, nodeOf(name, ready, sinceMs), nowMs, {
      selected,
      remediations,
      previous: entryIn(status, name),
    });
    if (!exists) return [{ ...facts, node: undefined, selected: false, health: { state: "healthy" as const } }];
    if (!selected && cr === undefined && facts.previous === undefined) return [];
    return [facts];
  });
  const selectedNodes = models.filter(({ exists, selected }) => exists && selected).length;
  return snapshotOf(policy, nodes, { status, selectedNodes });
}
