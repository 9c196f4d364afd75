import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import { parseAllDocuments } from "yaml";

const ROOT = fileURLToPath(new URL("../../..", import.meta.url));

interface Rule {
  apiGroups: string[];
  resources: string[];
  resourceNames?: string[];
  verbs: string[];
}
interface Manifest {
  kind: string;
  metadata: { name: string; namespace?: string };
  rules?: Rule[];
  roleRef?: { kind: string; name: string };
}

const manifestsOf = (pattern: string): Manifest[] =>
  globSync(pattern, { cwd: ROOT }).flatMap((path) =>
    parseAllDocuments(readFileSync(join(ROOT, path), "utf8")).map((document) => document.toJS() as Manifest),
  );
const all = manifestsOf("deploy/**/role-*.yaml");
/** Roles of the agent's own ServiceAccount; the others are for people, and lent to other controllers. */
const agents = all.filter(
  ({ kind, metadata: { name } }) =>
    kind.endsWith("Role") &&
    ![
      "ironfence-operator",
      "ironfence-view",
      "ironfence-bare-metal-remediation",
      "ironfence-check",
      "ironfence-metrics-reader",
    ].includes(name),
);
const rules = agents.flatMap(({ metadata, rules: held }) =>
  (held ?? []).flatMap((rule) => rule.resources.map((resource) => ({ role: metadata, resource, ...rule }))),
);

describe("the rights of the agent", () => {
  it("hold no verb that it never uses: it patches, and reads no subresource", () => {
    assert.ok(rules.length > 20);
    for (const { role, resource, verbs } of rules) {
      assert.ok(!verbs.includes("update"), `${role.name}: update ${resource}`);
      assert.ok(!verbs.includes("*") && resource !== "*", `${role.name}: a wildcard`);
      if (resource.includes("/")) assert.deepEqual(verbs, ["patch"], `${role.name}: ${resource}`);
    }
  });

  it("reach Secrets by no binding for the whole cluster", () => {
    const bound = all.filter(({ kind }) => kind === "ClusterRoleBinding").map(({ roleRef }) => roleRef?.name);
    const reading = rules.filter(({ resource }) => resource === "secrets");
    assert.equal(reading.length, 3);
    const wide = reading.filter(({ role }) => role.namespace === undefined);
    for (const { role } of wide) assert.ok(!bound.includes(role.name), role.name);
  });

  it("reach by name what has one name", () => {
    const own = rules.filter(({ role }) => role.namespace === "ironfence-system");
    for (const { resource, resourceNames = [], verbs } of own) {
      if (resource === "configmaps") assert.deepEqual(resourceNames, ["ironfence-pause"]);
      if (resource === "leases") assert.deepEqual(verbs.includes("create") ? [] : ["ironfence"], resourceNames);
    }
  });

  it("reach of the Leases in kube-system only those that keep installations apart", () => {
    const there = rules.filter(({ role }) => role.namespace === "kube-system");
    assert.deepEqual(
      there.map(({ resource, resourceNames, verbs }) => [resource, resourceNames, verbs]),
      [
        ["leases", ["ironfence-detector", "ironfence-remediator"], ["get", "patch"]],
        // An admission policy binds it to the same names.
        ["leases", undefined, ["create"]],
      ],
    );
  });

  it("name in the base no kind of a platform that may not be there", () => {
    const base = manifestsOf("deploy/kustomize/role-agent.yaml").flatMap(({ rules: held }) => held ?? []);
    const groups = new Set(base.flatMap(({ apiGroups }) => apiGroups));
    const foreign = [...groups].filter((group) => /openshift|x-k8s\.io$|metal3/.test(group));
    assert.deepEqual(foreign, []);
  });
});

describe("the Deployment", () => {
  const [deployment] = manifestsOf("deploy/kustomize/deployment.yaml") as unknown as { spec: { template: Pod } }[];
  const [policy] = manifestsOf("deploy/kustomize/network-policy.yaml") as unknown as { spec: NetworkPolicy }[];

  it("prefers nodes of the control plane, whose kubelets may hold the agent's token", () => {
    const { preferredDuringSchedulingIgnoredDuringExecution: preferred } =
      deployment?.spec.template.spec.affinity.nodeAffinity ?? assert.fail();
    assert.deepEqual(
      preferred.map(({ preference }) => preference.matchExpressions),
      [[{ key: "node-role.kubernetes.io/control-plane", operator: "Exists" }]],
    );
  });

  it("is reached by nobody but monitoring, and reaches no address of its node's link", () => {
    const { spec } = policy ?? assert.fail();
    assert.deepEqual(spec.policyTypes, ["Ingress", "Egress"]);
    assert.deepEqual(spec.podSelector.matchLabels, deployment?.spec.template.metadata.labels);
    assert.deepEqual(
      spec.ingress.map(({ from, ports }) => ({ from, ports })),
      [
        {
          from: [{ namespaceSelector: { matchLabels: { metrics: "enabled" } } }],
          ports: [{ port: "metrics", protocol: "TCP" }],
        },
      ],
    );
    const blocks = spec.egress.flatMap(({ to = [] }) => to.map(({ ipBlock }) => ipBlock));
    assert.deepEqual(blocks, [
      { cidr: "0.0.0.0/0", except: ["169.254.0.0/16"] },
      { cidr: "::/0", except: ["fe80::/10", "fd00:ec2::254/128", "fd00:c1::a9fe:a9fe/128"] },
    ]);
    for (const { to, ports } of spec.egress) assert.ok(to !== undefined || ports.every(({ port }) => port === 53));
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
  ingress: { from: object[]; ports: object[] }[];
  egress: { to?: { ipBlock: { cidr: string; except: string[] } }[]; ports: { port: number }[] }[];
}
