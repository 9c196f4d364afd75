import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { agentRoles, manifestsOf } from "../../lib/agent-roles.ts";

const all = manifestsOf("deploy/**/role-*.yaml");
const agents = agentRoles();
const rules = agents.flatMap(({ metadata, rules: held }) =>
  (held ?? []).flatMap((rule) => rule.resources.map((resource) => ({ role: metadata, resource, ...rule }))),
);

describe("the permissions of the agent", () => {
  it("the permissions of the agent hold no verb that it never uses: it patches, and reads no subresource", () => {
    assert.ok(rules.length > 20);
    for (const { role, resource, verbs } of rules) {
      assert.ok(!verbs.includes("update"), `${role.name}: update ${resource}`);
      assert.ok(!verbs.includes("*") && resource !== "*", `${role.name}: a wildcard`);
      if (resource.includes("/")) assert.deepEqual(verbs, ["patch"], `${role.name}: ${resource}`);
    }
  });

  it("the permissions of the agent reach Secrets by no binding for the whole cluster", () => {
    const bound = all.filter(({ kind }) => kind === "ClusterRoleBinding").map(({ roleRef }) => roleRef?.name);
    const reading = rules.filter(({ resource }) => resource === "secrets");
    assert.equal(reading.length, 3);
    const wide = reading.filter(({ role }) => role.namespace === undefined);
    for (const { role } of wide) assert.ok(!bound.includes(role.name), role.name);
  });

  it("the permissions of the agent reach by name what has one name", () => {
    const own = rules.filter(({ role }) => role.namespace === "ironfence-system");
    for (const { resource, resourceNames = [], verbs } of own) {
      if (resource === "configmaps") assert.deepEqual(resourceNames, ["ironfence-pause"]);
      if (resource === "leases") assert.deepEqual(verbs.includes("create") ? [] : ["ironfence"], resourceNames);
    }
  });

  it("the permissions of the agent reach of the Leases in kube-system only those that keep installations apart", () => {
    const there = rules.filter(({ role }) => role.namespace === "kube-system");
    assert.deepEqual(
      there.map(({ resource, resourceNames, verbs }) => [resource, resourceNames, verbs]),
      [
        ["leases", ["ironfence-detector", "ironfence-remediator"], ["get", "patch"]],
        // RBAC cannot limit `create` to names; an admission policy limits it to the same names.
        ["leases", undefined, ["create"]],
      ],
    );
  });

  it("the permissions of the agent name in the base no kind of a platform that may not be there", () => {
    const base = manifestsOf("deploy/kustomize/role-agent.yaml").flatMap(({ rules: held }) => held ?? []);
    const groups = new Set(base.flatMap(({ apiGroups }) => apiGroups));
    const foreign = [...groups].filter((group) => /openshift|x-k8s\.io$|metal3/.test(group));
    assert.deepEqual(foreign, []);
  });
});

describe("an aggregated ClusterRole", () => {
  it("an aggregated ClusterRole declares no rules, because the cluster owns that field", () => {
    const aggregated = manifestsOf("deploy/**/role-*.yaml").filter(
      (manifest) => manifest.kind === "ClusterRole" && "aggregationRule" in manifest,
    );
    assert.deepEqual(
      aggregated.map(({ metadata }) => metadata.name),
      ["ironfence-remediators"],
    );
    for (const { metadata, rules: declared } of aggregated) assert.equal(declared, undefined, metadata.name);
  });
});

describe("the Deployment", () => {
  const [deployment] = manifestsOf("deploy/kustomize/deployment.yaml") as unknown as { spec: { template: Pod } }[];
  const [policy] = manifestsOf("deploy/kustomize/network-policy.yaml") as unknown as { spec: NetworkPolicy }[];

  it("the Deployment prefers nodes of the control plane, whose kubelets may hold the agent's token", () => {
    const { preferredDuringSchedulingIgnoredDuringExecution: preferred } =
      deployment?.spec.template.spec.affinity.nodeAffinity ?? assert.fail();
    assert.deepEqual(
      preferred.map(({ preference }) => preference.matchExpressions),
      [[{ key: "node-role.kubernetes.io/control-plane", operator: "Exists" }]],
    );
  });

  it("the Deployment is reached by monitoring alone, and reaches no address of its node's link", () => {
    const { spec } = policy ?? assert.fail();
    assert.deepEqual(spec.policyTypes, ["Ingress", "Egress"]);
    assert.deepEqual(spec.podSelector.matchLabels, deployment?.spec.template.metadata.labels);
    assert.deepEqual(
      spec.ingress?.map(({ from, ports }) => ({ from, ports })),
      [
        {
          from: [{ namespaceSelector: { matchLabels: { metrics: "enabled" } } }],
          ports: [{ port: "metrics", protocol: "TCP" }],
        },
      ],
    );
    const blocks = spec.egress.flatMap(({ to }) => (to === undefined ? [] : [to.map(({ ipBlock }) => ipBlock)]));
    const anywhere = [
      { cidr: "0.0.0.0/0", except: ["169.254.0.0/16"] },
      { cidr: "::/0", except: ["fe80::/10", "fd00:ec2::254/128", "fd00:c1::a9fe:a9fe/128"] },
    ];
    // API servers, and BMCs.
    assert.deepEqual(blocks, [anywhere, anywhere]);
    for (const { to, ports } of spec.egress) assert.ok(to !== undefined || ports.every(({ port }) => port === 53));
  });
});

describe("the Job of ironfence check", () => {
  const [job] = manifestsOf("deploy/check/job.yaml") as unknown as { spec: { template: Pod } }[];
  const [policy] = manifestsOf("deploy/check/network-policy.yaml") as unknown as { spec: NetworkPolicy }[];

  it("the pod for checks is reached by no client, and reaches name servers and API servers only", () => {
    const { spec } = policy ?? assert.fail();
    assert.deepEqual(spec.policyTypes, ["Ingress", "Egress"]);
    assert.deepEqual(spec.podSelector.matchLabels, job?.spec.template.metadata.labels);
    assert.equal(spec.ingress, undefined);
    const ports = spec.egress.map(({ to, ports }) => [to !== undefined, ports.map(({ port }) => port)]);
    assert.deepEqual(ports, [
      [false, [53, 53]],
      [true, [443, 6443]],
    ]);
    const blocks = spec.egress.flatMap(({ to = [] }) => to.flatMap(({ ipBlock }) => ipBlock.except));
    assert.ok(blocks.includes("169.254.0.0/16"));
  });
});

interface Pod {
  metadata: { labels: object };
  spec: {
    affinity: {
      nodeAffinity: {
        preferredDuringSchedulingIgnoredDuringExecution: { preference: { matchExpressions: object[] } }[];
      };
    };
  };
}
interface NetworkPolicy {
  policyTypes: string[];
  podSelector: { matchLabels: object };
  ingress?: { from: object[]; ports: object[] }[];
  egress: { to?: { ipBlock: { cidr: string; except: string[] } }[]; ports: { port: number }[] }[];
}
