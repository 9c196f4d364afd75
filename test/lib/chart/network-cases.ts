import type { Manifest } from "../../../hack/lib/apply.ts";
import { at, items, networksOf, subjectsOf } from "./rendered.ts";
import type { Case, Rendered } from "./rendered.ts";

// Cases for chart values of the network of the agent, its page, and the check.

const USER = { kind: "User", apiGroup: "rbac.authorization.k8s.io", name: "ann" };
const TLS = { existingSecret: "tls" };
const PEER = { podSelector: {} };
const ANYWHERE = ["0.0.0.0/0", "::/0"];

const NETWORK: Readonly<Record<string, Case>> = {
  "networkPolicy.enabled": {
    set: { networkPolicy: { enabled: false } },
    read: (rendered) => rendered.names("NetworkPolicy").toSorted(),
    before: ["ironfence", "ironfence-check"],
    after: [],
  },
  "networkPolicy.metricsFrom": {
    set: { networkPolicy: { metricsFrom: [PEER] } },
    read: (rendered) => rendered.rules("ingress", "metrics").map((rule) => at(rule, "from")),
    before: [[{ namespaceSelector: { matchLabels: { metrics: "enabled" } } }]],
    after: [[PEER]],
  },
  "networkPolicy.apiServers.networks": {
    set: { networkPolicy: { apiServers: { networks: ["10.0.0.0/24", "fd00::/64"] } } },
    read: (rendered) => networksOf(rendered.rules("egress", 6443)),
    before: [ANYWHERE],
    after: [["10.0.0.0/24", "fd00::/64"]],
  },
  "networkPolicy.apiServers.ports": {
    set: { networkPolicy: { apiServers: { ports: [16_443] } } },
    read: (rendered) => [rendered.rules("egress", 6443).length, rendered.rules("egress", 16_443).length],
    before: [1, 0],
    after: [0, 1],
  },
  "networkPolicy.bmc.networks": {
    set: { networkPolicy: { bmc: { networks: ["10.20.0.0/16"] } } },
    read: (rendered) => networksOf(rendered.rules("egress", 623)),
    before: [ANYWHERE],
    after: [["10.20.0.0/16"]],
  },
  "networkPolicy.bmc.ports": {
    set: { networkPolicy: { bmc: { ports: [{ port: 8443, protocol: "TCP" }] } } },
    read: (rendered) => at(items(rendered.find("NetworkPolicy", "ironfence"), "spec.egress").at(-1), "ports"),
    before: [
      { port: 443, protocol: "TCP" },
      { port: 623, protocol: "UDP" },
      { port: 161, protocol: "UDP" },
    ],
    after: [{ port: 8443, protocol: "TCP" }],
  },
  "networkPolicy.extraIngress": {
    set: { networkPolicy: { extraIngress: [{ from: [PEER], ports: [{ port: 9999 }] }] } },
    read: (rendered) => rendered.rules("ingress", 9999).length,
    before: 0,
    after: 1,
  },
  "networkPolicy.extraEgress": {
    set: { networkPolicy: { extraEgress: [{ to: [PEER], ports: [{ port: 4318 }] }] } },
    read: (rendered) => rendered.rules("egress", 4318).length,
    before: 0,
    after: 1,
  },
};

const kdump = (more: object = {}): object => ({ kdump: { enabled: true, ...more } });

/** The networks from which messages of crash kernels may come. */
const kdumpFrom = (rendered: Rendered): unknown =>
  rendered.rules("ingress", "kdump").map((rule) => items(rule, "from").map((peer) => at(peer, "ipBlock.cidr")));

const KDUMP: Readonly<Record<string, Case>> = {
  "kdump.enabled": {
    set: kdump(),
    read: (rendered) => [rendered.option("kdump-bind-address"), rendered.names("Service"), kdumpFrom(rendered)],
    before: [undefined, [], []],
    after: [":7410", ["ironfence-kdump"], [ANYWHERE]],
  },
  "kdump.nodePort": {
    set: kdump({ nodePort: 30_000 }),
    read: (rendered) => rendered.names("Service").map((name) => at(rendered.find("Service", name), "spec.ports")),
    before: [],
    after: [[{ name: "kdump", port: 7410, targetPort: "kdump", nodePort: 30_000, protocol: "UDP" }]],
  },
  "kdump.networks": {
    set: kdump({ networks: ["10.0.0.0/24"] }),
    read: kdumpFrom,
    before: [],
    after: [["10.0.0.0/24"]],
  },
};

const statusPage = (more: object = {}): object => ({ statusPage: { enabled: true, ...TLS, ...more } });

const STATUS_PAGE: Readonly<Record<string, Case>> = {
  "statusPage.enabled": {
    set: statusPage(),
    read: (rendered) => [
      rendered.option("status-bind-address"),
      rendered.names("Service"),
      rendered.names("ClusterRole").includes("ironfence-status-reader"),
      rendered.rules("ingress", "status").length,
    ],
    before: [undefined, [], false, 0],
    after: [":8443", ["ironfence-status"], true, 1],
  },
  "statusPage.existingSecret": {
    set: statusPage(),
    read: (rendered) => [rendered.pod("volumes"), rendered.container("volumeMounts")],
    before: [undefined, undefined],
    after: [
      [{ name: "status-tls", secret: { secretName: "tls" } }],
      [{ name: "status-tls", mountPath: "/etc/ironfence/status-tls", readOnly: true }],
    ],
  },
  "statusPage.readers": {
    set: statusPage({ readers: [USER] }),
    read: (rendered) => subjectsOf(rendered.find("ClusterRoleBinding", "ironfence-status-readers")),
    before: undefined,
    after: [USER],
  },
  "statusPage.from": {
    set: statusPage({ from: [PEER] }),
    read: (rendered) => rendered.rules("ingress", "status").map((rule) => at(rule, "from")),
    before: [],
    after: [[PEER]],
  },
  "statusPage.service.type": {
    set: statusPage({ service: { type: "LoadBalancer" } }),
    read: (rendered) => rendered.field("Service", "ironfence-status", "spec.type"),
    before: undefined,
    after: "LoadBalancer",
  },
  "statusPage.service.port": {
    set: statusPage({ service: { port: 8443 } }),
    read: (rendered) => rendered.field("Service", "ironfence-status", "spec.ports.0.port"),
    before: undefined,
    after: 8443,
  },
  "statusPage.service.annotations": {
    set: statusPage({ service: { annotations: { "example.com/a": "b" } } }),
    read: (rendered) => rendered.field("Service", "ironfence-status", "metadata.annotations"),
    before: undefined,
    after: { "example.com/a": "b" },
  },
};

const checkPod = (rendered: Rendered): Manifest | undefined => rendered.find("Pod", "ironfence-check");

const CHECK: Readonly<Record<string, Case>> = {
  "check.enabled": {
    set: { check: { enabled: false } },
    read: (rendered) =>
      rendered.objects
        .filter(({ metadata }) => metadata.name === "ironfence-check")
        .map(({ kind }) => kind)
        .toSorted(),
    before: ["ClusterRole", "ClusterRoleBinding", "NetworkPolicy", "Pod", "Role", "RoleBinding", "ServiceAccount"],
    after: [],
  },
  "check.wait": {
    set: { check: { wait: "90s" } },
    read: (rendered) => at(checkPod(rendered), "spec.containers.0.args"),
    before: ["check", "--wait=5m"],
    after: ["check", "--wait=90s"],
  },
  "check.hooks": {
    set: { check: { hooks: ["test", "post-upgrade"] } },
    read: (rendered) => (at(checkPod(rendered), "metadata.annotations") as Record<string, string>)["helm.sh/hook"],
    before: "test",
    after: "test,post-upgrade",
  },
  "check.resources": {
    set: { check: { resources: { limits: { memory: "1Gi" } } } },
    read: (rendered) => at(checkPod(rendered), "spec.containers.0.resources.limits"),
    before: { memory: "256Mi" },
    after: { memory: "1Gi" },
  },
};

export const NETWORK_CASES: Readonly<Record<string, Case>> = { ...NETWORK, ...STATUS_PAGE, ...KDUMP, ...CHECK };
