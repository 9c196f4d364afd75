import assert from "node:assert/strict";
import { describe, it } from "node:test";
import * as fc from "fast-check";
import { judgeNodes } from "../../../../src/cli/status/could-fence/could-fence.ts";
import { overviewPage } from "../../../../src/cli/dashboard/view/overview-page.ts";
import { fenceExplainer } from "../../../../src/cli/explain/fence.ts";
import type { Overview } from "../../../../src/cli/status/objects/read.ts";
import { AT, OVERVIEW } from "../overview-fixture.ts";
import { healthCheck, node, remediation, target } from "./fixture.ts";

const NAMES = ["w1", "w2", "w10"];
/** Three workers that can all be fenced. */
const HEALTHY: Overview = {
  ...OVERVIEW,
  nodes: NAMES.map((name) => node(name)),
  targets: NAMES.map((name) => target(name)),
  healthChecks: [healthCheck()],
};
const pageOf = (changed: Partial<Overview> = {}) => overviewPage({ ...HEALTHY, ...changed }).page;

/** The reason for which a node cannot be fenced; `yes` if it can. */
function reasonFor(changed: Partial<Overview>, name = "w1"): string {
  const overview = { ...HEALTHY, ...changed };
  const found = judgeNodes(overview).nodes.find((row) => row.node === name);
  return `${found?.answer} ${found?.reason}`.trim();
}

describe("the section Could we fence", () => {
  it("the section Could we fence is a yes for each node that nothing keeps from being fenced", () => {
    const { could } = pageOf();
    assert.deepEqual([could.yes, could.no, could.unknown, could.byHand], [3, 0, 0, 0]);
    assert.deepEqual(could.groups, []);
  });

  it("the section Could we fence names the reason of each node that could not be fenced, the most frequent reason first", () => {
    const refused = { reason: "AuthenticationFailed", message: "password refused" };
    const targets = [target("w1", refused), target("w2"), target("w10", refused)];
    const { could } = pageOf({ targets, nodes: [...NAMES, "w3"].map((name) => node(name)) });
    assert.equal(could.yes, 1);
    assert.deepEqual(
      could.groups.map(({ reason, message, nodes }) => [reason, message, nodes.join()]),
      [
        ["AuthenticationFailed", "password refused", "w1,w10"],
        ["NoTarget", "no FencingTarget in namespace ironfence-system names the node: create one", "w3"],
      ],
    );
  });

  it("the section Could we fence is a no for all nodes without an agent that leads and is ready, and while ironfence is paused", () => {
    const { agent } = OVERVIEW;
    assert.ok(agent.state === "leading");
    assert.equal(reasonFor({ agent: { state: "none", message: "no agent leads" } }), "no NoAgent");
    assert.equal(reasonFor({ agent: { ...agent, state: "silent" } }), "no NoAgent");
    assert.equal(reasonFor({ agent: { ...agent, standsBy: "another one leads" } }), "no StandsBy");
    assert.equal(reasonFor({ agent: { ...agent, notReady: "may not watch nodes" } }), "no NotReady");
    assert.equal(reasonFor({ agent: { ...agent, components: ["detector"] } }), "no NoRemediator");
    assert.equal(reasonFor({ stopSwitch: { paused: true, reason: "paused by ann" } }), "no Paused");
    assert.equal(reasonFor({ targets: undefined }), "no KindsMissing");
  });

  it("the section Could we fence is never a yes if something that it depends on cannot be read or was never probed", () => {
    const problem = { problem: "forbidden" };
    assert.equal(reasonFor({ agent: { state: "forbidden", message: "forbidden" } }), "unknown AgentUnread");
    assert.equal(reasonFor({ stopSwitch: problem }), "unknown PauseUnread");
    assert.equal(reasonFor({ targets: problem }), "unknown TargetsUnread");
    assert.equal(reasonFor({ healthChecks: problem }), "unknown HealthChecksUnread");
    assert.equal(reasonFor({ targets: [target("w1", { status: { conditions: [] } })] }), "unknown NotProbed");
    assert.equal(pageOf({ nodes: problem }).could.unread, "forbidden");
  });

  it("the section Could we fence is a no in maintenance, for the only control plane node, and if every health check of the node is held", () => {
    assert.equal(reasonFor({ targets: [target("w1", { maintenance: true })] }), "no Maintenance");
    const roles = { "node-role.kubernetes.io/control-plane": "" };
    assert.equal(reasonFor({ nodes: [node("w1", "True", roles), node("w2")] }), "no ControlPlaneQuorum");
    const disabled = {
      type: "Disabled",
      status: "True",
      reason: "ConflictingMHC",
      message: "said",
      lastTransitionTime: AT,
    };
    assert.equal(reasonFor({ healthChecks: [healthCheck({ conditions: [disabled as never] })] }), "no ConflictingMHC");
  });

  it("the section Could we fence counts a node that no health check covers as one that is fenced only by hand", () => {
    const { could } = pageOf({ healthChecks: [] });
    assert.deepEqual([could.yes, could.byHand], [3, 3]);
  });

  it("the section Could we fence says yes only if `ironfence explain node` finds nothing that holds agent, target, maintenance or pause", () => {
    const asked = new Set(["agent", "target", "maintenance", "pause"]);
    fc.assert(
      fc.property(
        fc.constantFrom("Usable", "Degraded", "BMCTimeout", "Maintenance", "Ambiguous"),
        fc.boolean(),
        fc.boolean(),
        fc.boolean(),
        fc.boolean(),
        (reason, maintenance, paused, leads, hasTarget) => {
          const overview: Overview = {
            ...HEALTHY,
            ...(leads ? {} : { agent: { state: "none", message: "no agent leads" } }),
            stopSwitch: { paused },
            targets: hasTarget ? [target("w1", { reason, maintenance })] : [],
          };
          const held = fenceExplainer(overview)("w1", []).steps.some(
            ({ step, state }) => asked.has(step) && state !== "ok",
          );
          // If the agent has not probed since the end of a maintenance, the page answers no.
          const isYes = reasonFor(overview) === "yes";
          assert.ok(!isYes || !held);
          if (reason !== "Maintenance") assert.equal(isYes, !held);
        },
      ),
    );
  });
});

describe("the head of the page", () => {
  it("the head of the page counts hosts under way against the limits, each zone by itself", () => {
    const { agent } = OVERVIEW;
    assert.ok(agent.state === "leading");
    const remediations = [
      remediation("w1", "PoweringOff", "PoweringOff", { node: { name: "w1", zone: "rack-4" } }),
      remediation("w2", "Rejoining", "Rejoining", { node: { name: "w2", zone: "rack-4" } }),
      remediation("w10", "Resolving", "WaitingForTurn"),
    ];
    const { underWay } = pageOf({ remediations, agent: { ...agent, limits: { hosts: 100, perZone: 1 } } });
    assert.deepEqual(underWay, { hosts: 1, hostsMax: 100, zones: [{ zone: "rack-4", hosts: 1, hostsMax: 1 }] });
  });

  it("the head of the page shows who paused and since when, and a pause that cannot be read", () => {
    assert.equal(pageOf().paused, undefined);
    const paused = pageOf({ stopSwitch: { paused: true, reason: "paused by ann", since: AT } }).paused;
    assert.deepEqual(paused, { text: "paused by ann", sinceMs: Date.parse(AT), isKnown: true });
    assert.equal(pageOf({ stopSwitch: { problem: "forbidden" } }).paused?.isKnown, false);
  });
});

describe("the fences on the page", () => {
  it("the fences on the page show what is done, what is under way and what comes, and no plug that may be pulled", () => {
    const attempt = { action: "ForceOff", sent: true, kind: "Reboot" } as never;
    const { now, held } = pageOf({ remediations: [remediation("w1", "PoweringOff", "BMCTimeout", { attempt })] });
    assert.deepEqual(held, []);
    const [fence] = now;
    assert.equal(fence?.node, "w1");
    assert.deepEqual(
      fence?.steps.map(({ name, state }) => `${name}:${state}`),
      ["identify:done", "order Off:done", "prove Off:now", "release:next", "On:next", "rejoin:next", "Ready:next"],
    );
    assert.equal(fence?.reason, "BMCTimeout");
    assert.equal(fence?.plug.safe, false);
  });

  it("the fences on the page show for how long the node has been down and the present step has lasted", () => {
    const [fence] = pageOf({
      nowMs: Date.parse(AT) + 41_900,
      nodes: [node("w1", "Unknown")],
      remediations: [
        remediation("w1", "PoweringOff", "PoweringOff", {
          timeline: [{ step: "PoweringOff", time: "2026-01-01T00:00:30.500000Z" }],
        }),
      ],
    }).now;
    assert.deepEqual([fence?.ready, fence?.readyForSeconds, fence?.stepForSeconds], ["Unknown", 41, 11]);
  });

  it("the fences on the page show how many pods and volumes have left, while they are released and for this power cycle alone", () => {
    const nameOf = (phase: string, attemptID: string): string | undefined => {
      const drain = { attemptID, pods: 4, attachments: 1, left: 2 };
      const status = { attempt: { id: "a1", kind: "Reboot" } as never, drain };
      const [fence] = pageOf({ remediations: [remediation("w1", phase, phase, status)] }).now;
      return fence?.steps[3]?.name;
    };
    assert.equal(nameOf("Releasing", "a1"), "drained 3/5");
    assert.equal(nameOf("Releasing", "a0"), "release");
    assert.equal(nameOf("PoweringOn", "a1"), "release");
  });

  it("the fences on the page show an undo with what was reached before it", () => {
    const attempt = { action: "ForceOff", sent: true, kind: "Reboot", offConfirmedAt: AT } as never;
    const [fence] = pageOf({ remediations: [remediation("w1", "Undoing", "Undoing", { attempt })] }).now;
    assert.deepEqual(
      fence?.steps.map(({ name, state }) => `${name}:${state}`),
      ["identify:done", "order Off:done", "prove Off:done", "undo:now"],
    );
  });

  it("the fences on the page are held while they wait for admission, or if a health check starts nothing for an unhealthy node", () => {
    const checks = [healthCheck({ phase: "Enabled", reason: "too few are healthy", unhealthyNodes: [{ name: "w2" }] })];
    const remediations = [remediation("w10", "Resolving", "ControlPlaneQuorum")];
    const { now, held } = pageOf({ remediations, healthChecks: checks });
    assert.deepEqual(now, []);
    assert.deepEqual(
      held.map((each) => `${each.node} ${each.reason}`),
      ["w2 Unhealthy", "w10 ControlPlaneQuorum"],
    );
    assert.match(held[0]?.message ?? "", /has started nothing for it: too few are healthy/);
  });

  it("a fence stays on the page for 30 days, and a failed one has a link to the page that explains it", () => {
    const outcome = (
      time: string,
      uid: string,
      result: "Succeeded" | "Failed",
      reason: string,
      startTime?: string,
    ) => ({
      time,
      startTime,
      result,
      reason,
      message: "said",
      attempts: 1,
      remediation: { namespace: "n", name: "r", uid },
    });
    const outcomes = [
      outcome("2025-12-31T00:00:00Z", "a", "Failed", "PowerOnTimeout"),
      outcome("2025-12-30T00:00:00Z", "r-w1", "Succeeded", "Restored"),
      outcome("2025-12-29T00:02:13Z", "gone", "Succeeded", "Restored", "2025-12-29T00:00:00Z"),
      outcome("2025-11-30T00:00:00Z", "b", "Succeeded", "Restored"),
    ];
    const verdict = (reason: string, lastTransitionTime: string) => ({
      conditions: [{ type: "Succeeded", status: "True" as const, reason, message: "said", lastTransitionTime }],
    });
    const { ended } = pageOf({
      nowMs: Date.parse("2026-01-01T00:10:00Z"),
      targets: [target("w1", { status: { outcomes } })],
      remediations: [
        remediation("w1", "Succeeded", "", verdict("Restored", "2026-01-01T00:02:13Z")),
        remediation("w2", "Succeeded", "", verdict("Restored", "2026-01-01T00:03:00Z")),
      ],
    });
    assert.deepEqual(
      ended.map(({ node, result, tookMs, page, runbook }) => [node, result, tookMs, page, runbook]),
      [
        ["w2", "Succeeded", 180_000, undefined, undefined],
        [
          "w1",
          "Failed",
          undefined,
          "docs/reference/reasons.md#powerontimeout",
          "docs/how-to/runbooks/remediation-failed.md",
        ],
        ["w1", "Succeeded", 133_000, undefined, undefined],
        ["w1", "Succeeded", 133_000, undefined, undefined],
      ],
    );
  });
});
