import { at, subjectsOf, labelOf } from "./rendered.ts";
import type { Case, Rendered } from "./rendered.ts";

// Cases for chart values of metrics, alerts and the dashboard.

const USER = { kind: "User", apiGroup: "rbac.authorization.k8s.io", name: "ann" };
const TLS = { existingSecret: "tls" };

const secure = (more: object = {}): object => ({ metrics: { secure: { enabled: true, ...TLS, ...more } } });

/** The address of the runbook of the first alert. */
const firstRunbook = (rendered: Rendered): unknown =>
  rendered.field("PrometheusRule", "ironfence", "spec.groups.0.rules.0.annotations.runbook_url");

/** The values that both monitors have. */
function monitorCases(value: "podMonitor" | "serviceMonitor", kind: string, endpoints: string): Record<string, Case> {
  const set = (more: object): object => ({ metrics: { [value]: { enabled: true, ...more } } });
  const endpoint = (rendered: Rendered): unknown => rendered.field(kind, "ironfence", `spec.${endpoints}.0`);
  const relabelings = [{ action: "labeldrop", regex: "pod" }];
  return {
    [`metrics.${value}.enabled`]: {
      set: set({}),
      read: (rendered) => [rendered.names(kind), endpoint(rendered)],
      before: [[], undefined],
      after: [["ironfence"], { port: "metrics", interval: "30s" }],
    },
    [`metrics.${value}.labels`]: {
      set: set({ labels: { release: "prometheus" } }),
      read: (rendered) => labelOf(rendered.find(kind, "ironfence"), "release"),
      before: undefined,
      after: "prometheus",
    },
    [`metrics.${value}.interval`]: {
      set: set({ interval: "1m" }),
      read: (rendered) => at(endpoint(rendered), "interval"),
      before: undefined,
      after: "1m",
    },
    [`metrics.${value}.scrapeTimeout`]: {
      set: set({ scrapeTimeout: "10s" }),
      read: (rendered) => at(endpoint(rendered), "scrapeTimeout"),
      before: undefined,
      after: "10s",
    },
    [`metrics.${value}.relabelings`]: {
      set: set({ relabelings }),
      read: (rendered) => at(endpoint(rendered), "relabelings"),
      before: undefined,
      after: relabelings,
    },
    [`metrics.${value}.endpoint`]: {
      set: set({ endpoint: { tlsConfig: { insecureSkipVerify: true } } }),
      read: (rendered) => at(endpoint(rendered), "tlsConfig"),
      before: undefined,
      after: { insecureSkipVerify: true },
    },
  };
}

const METRICS: Readonly<Record<string, Case>> = {
  "metrics.enabled": {
    set: { metrics: { enabled: false } },
    read: (rendered) => [
      rendered.option("metrics-bind-address"),
      (rendered.container("ports") as { name: string }[]).map(({ name }) => name),
      rendered.rules("ingress", "metrics").length,
    ],
    before: [undefined, ["metrics", "probes"], 1],
    after: ["0", ["probes"], 0],
  },
  "metrics.secure.enabled": {
    set: secure(),
    read: (rendered) => [
      rendered.option("metrics-secure"),
      rendered.names("ClusterRole").includes("ironfence-secure-metrics"),
    ],
    before: [undefined, false],
    after: ["true", true],
  },
  "metrics.secure.existingSecret": {
    set: secure(),
    read: (rendered) => [rendered.pod("volumes"), rendered.container("volumeMounts")],
    before: [undefined, undefined],
    after: [
      [{ name: "metrics-tls", secret: { secretName: "tls" } }],
      [{ name: "metrics-tls", mountPath: "/etc/ironfence/metrics-tls", readOnly: true }],
    ],
  },
  "metrics.secure.readers": {
    set: secure({ readers: [USER] }),
    read: (rendered) => subjectsOf(rendered.find("ClusterRoleBinding", "ironfence-metrics-readers")),
    before: undefined,
    after: [USER],
  },
  ...monitorCases("podMonitor", "PodMonitor", "podMetricsEndpoints"),
  ...monitorCases("serviceMonitor", "ServiceMonitor", "endpoints"),
  "metrics.prometheusRule.enabled": {
    set: { metrics: { prometheusRule: { enabled: true } } },
    read: (rendered) => rendered.names("PrometheusRule"),
    before: [],
    after: ["ironfence"],
  },
  "metrics.prometheusRule.labels": {
    set: { metrics: { prometheusRule: { enabled: true, labels: { release: "prometheus" } } } },
    read: (rendered) => labelOf(rendered.find("PrometheusRule", "ironfence"), "release"),
    before: undefined,
    after: "prometheus",
  },
  "metrics.prometheusRule.runbookBaseURL": {
    set: { metrics: { prometheusRule: { enabled: true, runbookBaseURL: "https://git.example/ironfence/" } } },
    read: (rendered) => firstRunbook(rendered),
    before: undefined,
    after: "https://git.example/ironfence/docs/how-to/runbooks/absent.md",
  },
  "metrics.dashboard.enabled": {
    set: { metrics: { dashboard: { enabled: true } } },
    read: (rendered) => rendered.names("ConfigMap").filter((name) => name !== "ironfence-uninstall"),
    before: [],
    after: ["ironfence-dashboard"],
  },
  "metrics.dashboard.namespace": {
    set: { metrics: { dashboard: { enabled: true, namespace: "grafana" } } },
    read: (rendered) => rendered.field("ConfigMap", "ironfence-dashboard", "metadata.namespace"),
    before: undefined,
    after: "grafana",
  },
  "metrics.dashboard.labels": {
    set: { metrics: { dashboard: { enabled: true, labels: { grafana_dashboard: null, found: "1" } } } },
    read: (rendered) =>
      ["grafana_dashboard", "found"].map((label) => labelOf(rendered.find("ConfigMap", "ironfence-dashboard"), label)),
    before: [undefined, undefined],
    after: [undefined, "1"],
  },
  "metrics.dashboard.annotations": {
    set: { metrics: { dashboard: { enabled: true, annotations: { folder: "Nodes" } } } },
    read: (rendered) => rendered.field("ConfigMap", "ironfence-dashboard", "metadata.annotations"),
    before: undefined,
    after: { folder: "Nodes" },
  },
};

export const METRICS_CASES: Readonly<Record<string, Case>> = { ...METRICS };
