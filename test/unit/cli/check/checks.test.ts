import { VERSION } from "../../../../src/runtime/version.ts";
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import {
  AGENT_COMPONENTS,
  AGENT_STANDS_BY,
  AGENT_VERSION,
  FENCED_BY,
  REMEDIATION_ATTEMPTS,
} from "../../../../src/api/names/annotations.ts";
import type { BareMetalRemediation } from "../../../../src/api/ironfence/bare-metal-remediation.ts";
import type { FencingTarget } from "../../../../src/api/ironfence/fencing-target.ts";
import { FENCED, OUT_OF_SERVICE } from "../../../../src/api/kubernetes/taints.ts";
import { runChecks } from "../../../../src/cli/check/check.ts";
import type { Facts } from "../../../../src/cli/check/facts.ts";
import { CHECKS } from "../../../../src/cli/check/lines/checks.ts";
import type { LeaderLease } from "../../../../src/kube/lease/lease-record.ts";
import { horizonOf } from "../../../../src/remediator/telemetry/probe-metrics.ts";
import { toTime } from "../../../../src/runtime/time.ts";
import type { OVERVIEW } from "../overview-fixture.ts";
import { complaints, deployment, healthCheck, HEALTHY, node, NOW_MS, target, withOverview } from "./facts-fixture.ts";

const HOUR_MS = 3_600_000;

/** The findings of all checks except the one that answers for all nodes, which has its own tests. */
function causes(facts: Facts): string[] {
  return complaints(facts).filter((line) => !/^\w+ could-fence: /.test(line));
}

/** Asserts that exactly one check has a finding, apart from the one that answers for all nodes. */
function assertOne(facts: Facts, expected: RegExp): void {
  const found = causes(facts);
  assert.equal(found.length, 1, found.join("\n"));
  assert.match(found[0] ?? "", expected);
}

function remediation(change: object): BareMetalRemediation {
  return {
    apiVersion: "ironfence.io/v1alpha1",
    kind: "BareMetalRemediation",
    metadata: { namespace: "ironfence-system", name: "n1", uid: "r1", resourceVersion: "1" },
    spec: {},
    ...change,
  } as unknown as BareMetalRemediation;
}

describe("the checks", () => {
  it("the checks find nothing in a cluster if every node could be fenced", () => {
    assert.deepEqual(complaints(HEALTHY), []);
  });

  it("the checks warn about everything that may not be read, and name the permission, instead of passing", () => {
    const why = "list things: 403 Forbidden: user bob cannot list resource things";
    const unread = { unread: why };
    const closed = { problem: why };
    const found = complaints({
      ...HEALTHY,
      leases: unread,
      customResources: unread,
      admission: unread,
      deployments: unread,
      permissions: unread,
      templates: [{ text: "template", healthChecks: ["workers"], problem: unread }],
      overview: {
        ...HEALTHY.overview,
        agent: { state: "forbidden", message: `cannot be shown: ${why}` },
        stopSwitch: closed,
        nodes: closed,
        healthChecks: [healthCheck()],
        remediations: closed,
        targets: closed,
      },
    });
    assert.match(found.pop() ?? "", /^failed could-fence: cannot be judged: list things: 403 Forbidden/);
    const ids = found.map((line) => /^warning ([\w-]+): /.exec(line)?.[1]);
    assert.deepEqual(ids, [
      "one-installation",
      "custom-resources",
      "admission-policies",
      "replicas",
      "leader",
      "agent-permissions",
      "pause",
      "maintenance",
      "fencing-targets",
      "nodes-covered",
      "target-namespaces",
      "health-checks",
      "templates",
      "attempt-budgets",
      "remediations",
      "leftovers",
    ]);
    for (const line of found) assert.match(line, /cannot be (checked|judged): .*cannot list resource things/);
  });

  it("the checks never pass a target, a health check or a remediation of a kind that is not served", () => {
    const found = complaints(withOverview({ targets: undefined, remediations: undefined, healthChecks: undefined }));
    for (const id of ["fencing-targets", "health-checks", "remediations", "leftovers", "nodes-covered"]) {
      assert.ok(
        found.some((line) => line.startsWith(`warning ${id}: cannot be checked: the cluster does not serve`)),
        id,
      );
    }
    assert.match(found.join("\n"), /failed custom-resources: KindsMissing: /);
  });

  it("the checks fail for an API server that is too old", () => {
    const server = { major: 1, minor: 29, text: "v1.29.1" };
    assertOne({ ...HEALTHY, server }, /^failed api-server: .*Kubernetes v1\.29\.1, and ironfence needs 1\.30 or newer/);
  });

  it("the checks warn about clocks that disagree, and say which one is ahead", () => {
    assertOne(
      { ...HEALTHY, clockOffset: { minMs: 39_800, maxMs: 40_100 } },
      /warning clock: .* is 40 s behind that of/,
    );
    assertOne(
      { ...HEALTHY, clockOffset: { minMs: -40_100, maxMs: -39_600 } },
      /warning clock: .* is 40 s ahead of that/,
    );
    assertOne({ ...HEALTHY, clockOffset: undefined }, /warning clock: cannot be checked/);
  });

  it("the checks fail if a second installation leads, unless it is dead, stands by or runs the other component", () => {
    const lease = (namespace: string, ageMs: number, components: string, standsBy = ""): LeaderLease => ({
      apiVersion: "coordination.k8s.io/v1",
      kind: "Lease",
      metadata: {
        namespace,
        name: "ironfence",
        uid: "l",
        resourceVersion: "1",
        annotations: {
          [AGENT_VERSION]: VERSION,
          [AGENT_COMPONENTS]: components,
          [AGENT_STANDS_BY]: standsBy,
        },
      },
      spec: { holderIdentity: "agent-9", renewTime: toTime(NOW_MS - ageMs), leaseDurationSeconds: 15 },
    });
    const both = "detector,remediator";
    const own = lease("ironfence-system", 1_000, both);
    const of = (...leases: LeaderLease[]): Facts => ({ ...HEALTHY, leases });
    assertOne(
      of(own, lease("other", 2_000, both)),
      /^failed one-installation: agent-9 \(Lease other\/ironfence\) of another/,
    );
    assertOne(of(own, lease("other", 2_000, both, "the other works")), /^warning one-installation: .* stands by$/);
    assert.deepEqual(complaints(of(own, lease("other", HOUR_MS, both))), []);
    const half = lease("ironfence-system", 1_000, "detector");
    assert.deepEqual(complaints(of(half, lease("other", 2_000, "remediator"))), []);
    const agent = {
      ...HEALTHY.overview.agent,
      standsBy: "the installation other/ironfence holds it",
    } as typeof OVERVIEW.agent;
    assertOne(withOverview({ agent }), /^failed one-installation: StandsBy: agent-1: the installation other/);
  });

  it("the checks fail for a CRD that drops fields which the agent writes, and warn if another operator owns it", () => {
    const crd = { kind: "FencingTarget", isInstalled: true, isOwn: true, missingFields: ["status.offProof"] };
    assertOne(
      { ...HEALTHY, customResources: [crd] },
      /^failed custom-resources: .*FencingTarget does not know status\.offProof/,
    );
    assertOne({ ...HEALTHY, customResources: [{ ...crd, isOwn: false }] }, /^warning custom-resources: /);
  });

  it("the checks warn about an admission policy that is missing, that nothing binds, or that names another account", () => {
    const { admission } = HEALTHY;
    assert.ok("policies" in admission);
    const policies = new Set([...admission.policies].slice(1));
    assertOne(
      { ...HEALTHY, admission: { ...admission, policies } },
      /^warning admission-policies: the cluster lacks ironfence-/,
    );
    assertOne({ ...HEALTHY, admission: { ...admission, enforced: new Set() } }, /no binding enforces ironfence-.*/);
    const users = new Map([["ironfence-agent-nodes", "system:serviceaccount:other:ironfence"]]);
    assertOne(
      { ...HEALTHY, admission: { ...admission, users } },
      /^warning admission-policies: the agent runs as system:serviceaccount:ironfence-system:ironfence, and ironfence-agent-nodes names another/,
    );
  });

  it("the checks fail without a ready replica, and warn while no replica could take over", () => {
    const of = (replicas: number, readyReplicas: number, more = {}): Facts => ({
      ...HEALTHY,
      deployments: [deployment(replicas, { readyReplicas, ...more })],
    });
    assertOne(of(2, 0), /^failed replicas: .* has 0 of 2 replicas ready/);
    assertOne(of(0, 0), /^failed replicas: .* asks for no replica/);
    assertOne(
      of(2, 1),
      /^warning replicas: .* has 1 of 2 replicas ready, so another agent may not be there to take over/,
    );
    assertOne(of(1, 1), /^warning replicas: .* has one replica/);
    assertOne(of(2, 2, { updatedReplicas: 1 }), /^warning replicas: .* is still being rolled out/);
    assertOne({ ...HEALTHY, deployments: [] }, /^warning replicas: namespace ironfence-system has no Deployment/);
  });

  it("the checks fail while no agent leads, and while the leader is not ready", () => {
    assertOne(
      withOverview({ agent: { state: "none", message: "no agent leads" } }),
      /^failed leader: NoAgent: no agent leads/,
    );
    const silent = { ...HEALTHY.overview.agent, state: "silent", leaseAgeSeconds: 90 } as typeof OVERVIEW.agent;
    assertOne(
      withOverview({ agent: silent }),
      /^failed leader: NoAgent: agent-1: .*has not renewed its lease for 90 s/,
    );
    const unready = { ...HEALTHY.overview.agent, notReady: "may not watch nodes" } as typeof OVERVIEW.agent;
    assertOne(withOverview({ agent: unready }), /^failed agent-ready: NotReady: agent-1: may not watch nodes$/);
  });

  it("the checks warn while the only agent observes, and fail the answer for the nodes", () => {
    const leading = HEALTHY.overview.agent;
    const agent = { state: "none", message: "no agent leads" } as typeof OVERVIEW.agent;
    const found = complaints(withOverview({ agent, observer: { agent: leading, observed: [] } }));
    assert.equal(found.length, 2, found.join("\n"));
    assert.match(found[0] ?? "", /^warning leader: Observes: agent-1: ironfence only observes/);
    assert.match(found[1] ?? "", /^failed could-fence: no: Observes \(3\)/);
  });

  it("the checks warn if the agent has another version than this command", () => {
    const agent = { ...HEALTHY.overview.agent, version: "9.9.9" } as typeof OVERVIEW.agent;
    assertOne(withOverview({ agent }), /^warning versions: the leader has version 9\.9\.9/);
  });

  it("the checks fail for permissions that the agent lacks, and name the folder that grants them", () => {
    const permission = { verb: "patch", group: "", resource: "nodes" };
    const permissions = [{ permission, allowed: false, folder: "deploy/kustomize" }];
    assertOne(
      { ...HEALTHY, permissions },
      /^failed agent-permissions: system:serviceaccount:ironfence-system:ironfence lacks patch nodes$/,
    );
  });

  it("the checks fail for a family whose kinds are not served, or in no version that is read", () => {
    const kind = { group: "metal3.io", kind: "BareMetalHost", versions: ["v1alpha1"] };
    const found = (state: "absent" | "unread", version: string): Facts => ({
      ...HEALTHY,
      familyKinds: [{ family: "bare-metal-host", kind, state, version }],
    });
    assertOne(found("absent", ""), /^failed families: the cluster does not serve BareMetalHost of metal3\.io/);
    assertOne(
      found("unread", "v2"),
      /^failed families: BareMetalHost is served as metal3\.io\/v2, and ironfence reads v1alpha1/,
    );
  });

  it("the checks warn during a pause, and say for how long it has lasted", () => {
    const stopSwitch = { paused: true, reason: "paused by ann", since: toTime(NOW_MS - 3 * HOUR_MS) };
    assertOne(withOverview({ stopSwitch }), /^warning pause: no power-off is sent for 3h0m0s: paused by ann$/);
  });

  it("the checks warn about each host in maintenance, with its age, and not a second time as a target", () => {
    const resting = target("n1", { status: "False", reason: "Maintenance" }, { maintenance: true });
    const targets = [resting, target("n2"), target("n3")];
    assertOne(
      withOverview({ targets }),
      /^warning maintenance: node n1 is in maintenance for 10m0s, so its host is not/,
    );
  });

  it("the checks put targets that cannot be used together by reason, in one line each", () => {
    const refused = { status: "False", reason: "AuthenticationFailed", message: "refused" } as const;
    const targets = [
      target("n1", refused),
      target("n2", refused),
      target("n3", { status: "False", reason: "Unreachable" }),
    ];
    assertOne(
      withOverview({ targets }),
      /^failed fencing-targets: AuthenticationFailed \(2\): ironfence-system\/n1, ironfence-system\/n2: refused \| Unreachable: ironfence-system\/n3: /,
    );
  });

  it("the checks fail for a target that was never probed: it is not known whether its host can be powered off", () => {
    const { status: _status, ...unprobed } = target("n1");
    const targets: FencingTarget[] = [unprobed, target("n2"), target("n3")];
    assertOne(withOverview({ targets }), /^failed fencing-targets: NotProbed: ironfence-system\/n1: /);
  });

  it("the checks warn about a target whose last probe is old, unless a remediation owns the host", () => {
    const old = { ...target("n1"), status: { ...target("n1").status, lastProbeTime: toTime(NOW_MS - 3 * HOUR_MS) } };
    const rest = [target("n2"), target("n3")];
    assertOne(withOverview({ targets: [old, ...rest] }), /^warning probe-age: 1 of 3 were not probed for 1h20m0s: n1/);
    const owner = {
      uid: "r1",
      kind: "BareMetalRemediation",
      namespace: "ironfence-system",
      name: "n1",
      since: toTime(NOW_MS),
    };
    const owned = { ...old, status: { ...old.status, owner } };
    assert.deepEqual(causes(withOverview({ targets: [owned, ...rest], remediations: [remediation({})] })), []);
  });

  it("the checks report nodes that cannot be fenced, with a health check or without one", () => {
    assertOne(
      withOverview({ targets: [target("n1"), target("n2")] }),
      /^failed nodes-covered: NoTarget: n3: could not be fenced now/,
    );
    const lone = { ...node("cp-1"), metadata: { ...node("cp-1").metadata, labels: {} } };
    const nodes = [node("n1"), node("n2"), node("n3"), lone];
    assertOne(
      withOverview({ nodes }),
      /^warning nodes-covered: 1 nodes have none, and no health check covers them either: cp-1$/,
    );
  });

  it("the checks do not call nodes covered while the caller is not allowed to list BareMetalHosts", () => {
    const bareMetalHosts = { problem: "list BareMetalHost: 403 Forbidden" };
    assertOne(withOverview({ bareMetalHosts }), /^warning nodes-covered: cannot be checked: list BareMetalHost: 403/);
  });

  it("the checks fail for a target in a namespace where no agent reads it", () => {
    const stray = { ...target("n4"), metadata: { ...target("n4").metadata, namespace: "default" } };
    assertOne(withOverview({ strayTargets: [stray] }), /^failed target-namespaces: WrongNamespace: default\/n4/);
  });

  it("the checks warn before a certificate that probes have read ends, once for all targets that share it", () => {
    const certificate = (days: number): Facts => {
      const certificateNotAfter = toTime(NOW_MS + days * 24 * HOUR_MS);
      const sharing = ["n1", "n2"].map((name) => ({
        ...target(name),
        status: { ...target(name).status, certificateNotAfter },
      }));
      return withOverview({ targets: [...sharing, target("n3")] });
    };
    assertOne(
      certificate(20),
      /^warning bmc-certificates: a certificate .* ironfence-system\/n1, ironfence-system\/n2 is valid only until 2026-01-21[^|]*$/,
    );
    assertOne(certificate(-1), /^warning bmc-certificates: .* has been invalid since 2025-12-31/);
    for (const days of [-1, 20, 21, 22, 29]) {
      const isAlert = horizonOf(days * 24 * HOUR_MS) !== "later";
      assert.equal(complaints(certificate(days)).length, isAlert ? 1 : 0, `${days} days: the alert fires: ${isAlert}`);
    }
    assert.ok(!runChecks(CHECKS, HEALTHY).some(({ id }) => id === "bmc-certificates"), "IPMI has no certificates");
  });

  it("the checks fail for targets that --live had no time left for", () => {
    assertOne(
      { ...HEALTHY, unprobed: new Set([target("n2").metadata.uid]) },
      /^failed fencing-targets: NotProbed: ironfence-system\/n2: the time for --live was over/,
    );
  });

  it("the checks fail for a health check that is disabled, paused, or selects no node", () => {
    const condition = {
      type: "Disabled",
      status: "True" as const,
      reason: "Clash",
      message: "another operator",
      lastTransitionTime: "",
    };
    const disabled = healthCheck({ status: { conditions: [condition] } });
    assertOne(withOverview({ healthChecks: [disabled] }), /^failed health-checks: Clash: workers: another operator$/);
    const paused = healthCheck({ status: { phase: "Paused", reason: "by ann" } });
    assertOne(withOverview({ healthChecks: [paused] }), /^warning health-checks: PauseRequested: workers: by ann/);
    const empty = healthCheck({ spec: { ...healthCheck().spec, selector: { matchLabels: { role: "none" } } } });
    const found = complaints(withOverview({ healthChecks: [healthCheck(), empty] }));
    assert.match(found.join("\n"), /^failed health-checks: SelectsNothing: workers: /m);
  });

  it("the checks fail while a storm or its cooldown holds a health check, as status reports it", () => {
    const during = (type: string): Facts => {
      const condition = { type, status: "True" as const, reason: "", message: "", lastTransitionTime: toTime(NOW_MS) };
      const spec = { ...healthCheck().spec, stormCooldownDuration: "10m" };
      return withOverview({ healthChecks: [healthCheck({ spec, status: { conditions: [condition] } })] });
    };
    assertOne(during("StormActive"), /^failed health-checks: StormHolds: workers: .* and for 10m0s after that/);
    assertOne(during("StormCooldownActive"), /StormHolds: workers: .* is remediated until 2026-01-01T00:10:00Z/);
  });

  it("the checks warn if the cluster has no health check", () => {
    assertOne(
      withOverview({ healthChecks: [] }),
      /^warning health-checks: there is no health check, so a node is fenced only by/,
    );
  });

  it("the checks fail for a template that was deleted, from the agent's report and from a read of their own", () => {
    const templates = [{ text: "Template a/reboot", healthChecks: ["workers"], problem: "there is no such template" }];
    assertOne(
      { ...HEALTHY, templates },
      /^failed templates: Template a\/reboot of NodeHealthCheck workers: there is no such/,
    );
    const reason = "RemediationTemplateNotFound";
    const condition = { type: "Disabled", status: "True" as const, reason, message: "gone", lastTransitionTime: "" };
    const disabled = healthCheck({ status: { conditions: [condition] } });
    assertOne(
      withOverview({ healthChecks: [disabled] }),
      /^failed templates: RemediationTemplateNotFound: workers: gone$/,
    );
  });

  it("the checks fail for a node whose attempt budget is used up, and not for attempts that have left the window", () => {
    const spent = (agoMs: number): Facts => {
      const times = Array.from({ length: 10 }, (_, index) => `r${index}@${toTime(NOW_MS - agoMs - index * 60_000)}`);
      const annotations = { [REMEDIATION_ATTEMPTS]: JSON.stringify({ n1: times.join(",") }) };
      return withOverview({ healthChecks: [healthCheck({ metadata: { ...healthCheck().metadata, annotations } })] });
    };
    assertOne(
      spent(HOUR_MS),
      /^failed attempt-budgets: node n1, NodeHealthCheck workers: it was remediated 10 times, so the health check does nothing/,
    );
    assert.deepEqual(complaints(spent(25 * HOUR_MS)), []);
  });

  it("the checks fail for a MachineHealthCheck that may not remediate", () => {
    const conditions = [{ type: "RemediationAllowed", status: "False", reason: "TooManyUnhealthy", message: "3 of 4" }];
    const check = {
      apiVersion: "cluster.x-k8s.io/v1beta1",
      kind: "MachineHealthCheck",
      metadata: { namespace: "c", name: "mhc", uid: "u", resourceVersion: "1" },
      status: { conditions },
    };
    const found = causes(withOverview({ machineHealthChecks: [check] }));
    assert.deepEqual(found, ["failed machine-health-checks: MachineHealthCheck c/mhc: 3 of 4"]);
  });

  it("the checks fail for a remediation that failed", () => {
    const conditions = [
      { type: "Succeeded", status: "False", reason: "RejoinTimeout", message: "late", lastTransitionTime: "" },
    ];
    const remediations = [remediation({ status: { node: { name: "n1" }, conditions } })];
    assertOne(withOverview({ remediations }), /^failed remediations: RejoinTimeout: ironfence-system\/n1: /);
  });

  it("the checks warn about what ended remediations left on nodes, and not while one is under way", () => {
    const taints = [OUT_OF_SERVICE, { ...FENCED, value: "gone" }];
    const nodes = [node("n1", { spec: { taints } }), node("n2"), node("n3")];
    assertOne(
      withOverview({ nodes }),
      /^warning leftovers: node n1 has taints of ironfence, and no remediation is for it$/,
    );
    assert.deepEqual(causes(withOverview({ nodes, remediations: [remediation({})] })), []);
    const foreign = [node("n1", { spec: { taints: [OUT_OF_SERVICE] } }), node("n2"), node("n3")];
    assertOne(
      withOverview({ nodes: foreign }),
      /node n1 is Ready, and has an out-of-service taint that is not ironfence's/,
    );
    const signed = [node("n1", { annotations: { [FENCED_BY]: "r/a" } }), node("n2"), node("n3")];
    assertOne(withOverview({ nodes: signed }), /node n1 has the annotation ironfence\.io\/fenced-by without the taint/);
  });

  it("the checks warn about a cordon only on a node that ironfence has fenced before", () => {
    const nodes = [node("n1", { spec: { unschedulable: true } }), node("n2"), node("n3")];
    assert.deepEqual(complaints(withOverview({ nodes })), []);
    const outcomes = [{ result: "Succeeded" }] as unknown as NonNullable<
      NonNullable<FencingTarget["status"]>["outcomes"]
    >;
    const fenced = { ...target("n1"), status: { ...target("n1").status, outcomes } };
    const targets = [fenced, target("n2"), target("n3")];
    assertOne(
      withOverview({ nodes, targets }),
      /^warning leftovers: node n1 is cordoned, ironfence has fenced it before/,
    );
  });

  it("the checks warn about an owner that is gone, and about a deletion that does not end", () => {
    const owner = { uid: "gone", kind: "BareMetalRemediation", namespace: "a", name: "old", since: toTime(NOW_MS) };
    const owned = { ...target("n1"), status: { ...target("n1").status, owner } };
    assertOne(
      withOverview({ targets: [owned, target("n2"), target("n3")] }),
      /owned by BareMetalRemediation a\/old, which is gone/,
    );
    const deletionTimestamp = toTime(NOW_MS - HOUR_MS);
    const deleted = remediation({
      metadata: { ...remediation({}).metadata, deletionTimestamp, finalizers: ["ironfence.io/undo"] },
    });
    assertOne(
      withOverview({ remediations: [deleted] }),
      /has been deleted for 1h0m0s, and its finalizers \(ironfence\.io\/undo\) are/,
    );
  });
});
