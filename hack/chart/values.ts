import { FAMILIES } from "../../src/config/parsers.ts";
import { flag, group, integer, list, optionalInteger, strings, text, verbatim } from "./schema.ts";
import type { ValueSchema } from "./schema.ts";

// Every value of the chart: values.yaml, values.schema.json and README.md of deploy/chart are generated from this file.

const ANY_OBJECT = { type: "object" };
const NAME = { type: "string", pattern: "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", maxLength: 63 };
const OCTET = "(25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])";
/** An IPv4 or IPv6 network in CIDR notation. */
const NETWORK = {
  type: "string",
  pattern: `^((${OCTET}[.]){3}${OCTET}/([12]?[0-9]|3[0-2])|[0-9a-fA-F.:]*:[0-9a-fA-F.:]*/([1-9]?[0-9]|1[01][0-9]|12[0-8]))$`,
};
const PORT = { type: "integer", minimum: 1, maximum: 65_535 };
const NAMESPACED_NAME = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?/[a-z0-9]([-.a-z0-9]*[a-z0-9])?$";
const AGENT = { matchLabels: { "app.kubernetes.io/name": "ironfence" } };
const DURATION = { pattern: "^([0-9]+(ms|s|m|h))*$" };

const image = group("The image of the agent.", {
  repository: text("Registry and name of the image, without a scheme.", "ironfence", {
    pattern: "^[a-zA-Z0-9][-a-zA-Z0-9._:]*(/[-a-zA-Z0-9._:]+)*$",
  }),
  tag: text("Tag of the image. If it is empty, the `appVersion` of the chart.", ""),
  digest: text("Digest of the image. If it is set, the tag is not used.", "", {
    pattern: "^(sha256:[0-9a-f]{64})?$",
  }),
  pullPolicy: text("When the kubelet pulls the image.", "IfNotPresent", { enum: ["Always", "IfNotPresent", "Never"] }),
  pullSecrets: list("Existing Secrets of the registry, as `[{name: NAME}]`.", [], {
    type: "object",
    required: ["name"],
    additionalProperties: false,
    properties: { name: { type: "string", minLength: 1 } },
  }),
});

const crds = group("Custom resource definitions.", {
  install: flag("Install the kinds of ironfence.", true),
  keep: flag(
    "Keep the kinds of ironfence, with all of their objects, if the release is uninstalled or `install` becomes false.",
    true,
  ),
  nodeHealthCheck: flag(
    "Install the kind `NodeHealthCheck`, and keep it in any case. Set it to false if another operator has installed it.",
    true,
  ),
});

const leaseNamespace = group("The namespace of the Leases that keep node maintenance and remediation apart.", {
  name: text("Name of the namespace. Other tools must use the same one.", "medik8s-leases", NAME),
  create: flag("Create it, and keep it if the release is uninstalled. Set it to false if it exists.", true),
});

const agent = group("Options of the agent. If one is empty, the agent uses its default (docs/reference/options.md).", {
  components: list(
    "Halves of the agent that run.",
    ["detector", "remediator"],
    { enum: ["detector", "remediator"] },
    {
      minItems: 1,
      uniqueItems: true,
    },
  ),
  maxHosts: optionalInteger("Limit on hosts that are powered off at the same time; 0 for no limit."),
  maxHostsPerCluster: optionalInteger("The same limit for one workload cluster of Cluster API.", { minimum: 1 }),
  maxHostsPerZone: optionalInteger("The same limit for one failure zone; 0 for no limit."),
  zoneLabel: text("Label of nodes that names their failure zone.", ""),
  externalEtcd: list(
    "Clusters whose etcd runs on machines outside of them: `own`, or `NAMESPACE/NAME` of a Cluster.",
    [],
    { type: "string", pattern: `^own$|${NAMESPACED_NAME}` },
    { uniqueItems: true },
  ),
  ownCluster: text(
    "`NAMESPACE/NAME` of the Cluster that the agent runs in, if the management cluster manages itself.",
    "",
    {
      pattern: `^$|${NAMESPACED_NAME}`,
    },
  ),
  otlpEndpoint: text(
    "OpenTelemetry collector for traces, as a URL without a password. Add its port to `networkPolicy.extraEgress`.",
    "",
    {
      pattern: "^(https?://[^@]+)?$",
    },
  ),
  logLevel: text("How much the agent logs.", "info", { enum: ["trace", "debug", "info", "warn", "error"] }),
  extraArgs: list("Further options, as `--NAME=VALUE`.", [], { type: "string" }),
  extraEnv: list("Further environment variables. The agent uses no proxy.", [], ANY_OBJECT),
});

const pod = group("The pods of the agent.", {
  annotations: strings("Annotations of the pods."),
  labels: strings("Labels of the pods, in addition to those of the chart."),
  priorityClassName: text("Priority class.", "system-cluster-critical"),
  resources: verbatim("Requests and limits. A CPU limit would throttle the agent until it loses its Lease.", {
    requests: { cpu: "50m", memory: "128Mi" },
    limits: { memory: "384Mi" },
  }),
  nodeSelector: strings("Labels of the nodes on which the agent may run."),
  tolerations: list(
    "Taints of nodes on which the agent may run.",
    [{ key: "node-role.kubernetes.io/control-plane", operator: "Exists", effect: "NoSchedule" }],
    ANY_OBJECT,
  ),
  affinity: verbatim(
    "Affinity. By default, no two agents share a node, and nodes of the control plane are preferred.",
    {
      nodeAffinity: {
        preferredDuringSchedulingIgnoredDuringExecution: [
          {
            weight: 100,
            preference: { matchExpressions: [{ key: "node-role.kubernetes.io/control-plane", operator: "Exists" }] },
          },
        ],
      },
      podAntiAffinity: {
        requiredDuringSchedulingIgnoredDuringExecution: [
          { topologyKey: "kubernetes.io/hostname", labelSelector: AGENT },
        ],
      },
    },
  ),
  topologySpreadConstraints: list(
    "How the agents are spread. By default, over zones.",
    [
      {
        topologyKey: "topology.kubernetes.io/zone",
        maxSkew: 1,
        whenUnsatisfiable: "ScheduleAnyway",
        labelSelector: AGENT,
      },
    ],
    ANY_OBJECT,
  ),
  securityContext: verbatim("Security context of the pods. On OpenShift, set `runAsUser` and `runAsGroup` to null.", {
    runAsNonRoot: true,
    runAsUser: 65_532,
    runAsGroup: 65_532,
    seccompProfile: { type: "RuntimeDefault" },
  }),
  extraVolumes: list("Further volumes.", [], ANY_OBJECT),
  extraVolumeMounts: list("Where the container mounts them.", [], ANY_OBJECT),
});

const networkPolicy = group("What may reach the agent, and what the agent may reach (docs/reference/network.md).", {
  enabled: flag("Create NetworkPolicies.", true),
  metricsFrom: list(
    "Who may read the metrics: peers of a NetworkPolicy. If the list is empty, no one.",
    [{ namespaceSelector: { matchLabels: { metrics: "enabled" } } }],
    ANY_OBJECT,
  ),
  apiServers: group("API servers of this cluster and of workload clusters.", {
    networks: list("Their networks. If the list is empty, every address that is not link-local.", [], NETWORK),
    ports: list("Their TCP ports.", [443, 6443], PORT, { minItems: 1 }),
  }),
  bmc: group("BMCs and other power devices.", {
    networks: list("Their networks. If the list is empty, every address that is not link-local.", [], NETWORK),
    ports: list(
      "Their ports: Redfish, IPMI and SNMP.",
      [
        { port: 443, protocol: "TCP" },
        { port: 623, protocol: "UDP" },
        { port: 161, protocol: "UDP" },
      ],
      {
        type: "object",
        required: ["port", "protocol"],
        additionalProperties: false,
        properties: { port: PORT, protocol: { enum: ["TCP", "UDP"] } },
      },
      { minItems: 1 },
    ),
  }),
  extraIngress: list("Further ingress rules of the agent.", [], ANY_OBJECT),
  extraEgress: list("Further egress rules of the agent, for example to a collector of traces.", [], ANY_OBJECT),
});

const metrics = group("Prometheus metrics.", {
  enabled: flag("Serve metrics on port 8080.", true),
  secure: group("Metrics over TLS, with a login.", {
    enabled: flag("Serve the metrics over TLS, to users that the API server allows to read them.", false),
    existingSecret: text("Existing Secret with `tls.crt` and `tls.key`.", ""),
    readers: list(
      "Subjects of RBAC that may read the metrics, such as the ServiceAccount of Prometheus.",
      [],
      ANY_OBJECT,
    ),
  }),
  podMonitor: group("PodMonitor of the Prometheus Operator. It scrapes every agent.", {
    enabled: flag("Create a PodMonitor.", false),
    labels: strings("Labels by which your Prometheus selects it."),
    interval: text("Interval between scrapes.", "30s", DURATION),
    scrapeTimeout: text("Time limit of a scrape. If it is empty, that of Prometheus.", "", DURATION),
    relabelings: list("Relabelings of the target.", [], ANY_OBJECT),
    endpoint: verbatim("Further fields of the endpoint, such as `authorization` and `tlsConfig` of secure metrics."),
  }),
  serviceMonitor: group(
    "ServiceMonitor of the Prometheus Operator, with a headless Service. Use one of the two monitors.",
    {
      enabled: flag("Create a ServiceMonitor and its Service.", false),
      labels: strings("Labels by which your Prometheus selects it."),
      interval: text("Interval between scrapes.", "30s", DURATION),
      scrapeTimeout: text("Time limit of a scrape. If it is empty, that of Prometheus.", "", DURATION),
      relabelings: list("Relabelings of the target.", [], ANY_OBJECT),
      endpoint: verbatim("Further fields of the endpoint, such as `authorization` and `tlsConfig` of secure metrics."),
    },
  ),
  prometheusRule: group("The alerts, as a PrometheusRule.", {
    enabled: flag("Create a PrometheusRule.", false),
    labels: strings("Labels by which your Prometheus selects it."),
    runbookBaseURL: text(
      "Address that `runbook_url` begins with: that of your copy of the repository's files, with a slash at its end.",
      "",
      { pattern: "^$|^https?://.+/$" },
    ),
  }),
  dashboard: group("The Grafana dashboard, as a ConfigMap.", {
    enabled: flag("Create a ConfigMap with the dashboard.", false),
    namespace: text("Its namespace. If it is empty, that of the release.", "", { pattern: `^$|${NAME.pattern}` }),
    labels: strings("Labels by which the sidecar of Grafana finds it.", { grafana_dashboard: "1" }),
    annotations: strings("Annotations, such as the folder of Grafana."),
  }),
});

const statusPage = group("The page that the agent serves, over TLS and with a login (docs/how-to/dashboard.md).", {
  enabled: flag("Serve the page on port 8443, behind a Service.", false),
  existingSecret: text("Existing Secret with `tls.crt` and `tls.key`. Required if the page is enabled.", ""),
  readers: list("Subjects of RBAC that may read the page, such as a Group.", [], ANY_OBJECT),
  from: list("Who may reach the page: peers of a NetworkPolicy. If the list is empty, every address.", [], ANY_OBJECT),
  service: group("The Service of the page.", {
    type: text("Type of the Service.", "ClusterIP", { enum: ["ClusterIP", "NodePort", "LoadBalancer"] }),
    port: integer("Port of the Service.", 443, { ...PORT }),
    annotations: strings("Annotations of the Service."),
  }),
});

const kdump = group("Messages of crash kernels by fence_kdump (docs/how-to/crash-dumps.md).", {
  enabled: flag("Receive them, behind a Service of type NodePort.", false),
  nodePort: integer("UDP port of the nodes that run an agent.", 30_741, { ...PORT }),
  networks: list("Networks of the nodes. If the list is empty, every address that is not link-local.", [], NETWORK),
});

const check = group("`ironfence check` in the cluster, which `helm test` runs.", {
  enabled: flag("Create the ServiceAccount, the permissions and the test.", true),
  wait: text("For how long the check waits until every node could be fenced.", "5m", { pattern: "^([0-9]+(s|m|h))+$" }),
  hooks: list(
    "Hooks of Helm that run it. With `post-install`, an installation without FencingTargets fails.",
    ["test"],
    { enum: ["test", "post-install", "post-upgrade"] },
    { minItems: 1, uniqueItems: true },
  ),
  resources: verbatim("Requests and limits of its pod.", {
    requests: { cpu: "50m", memory: "128Mi" },
    limits: { memory: "256Mi" },
  }),
});

/** Every value of the chart. */
export const VALUES: ValueSchema = {
  $schema: "http://json-schema.org/draft-07/schema#",
  ...group("Values of the chart of ironfence.", {
    image,
    replicas: integer("Number of agents. One works; the others take over if its node fails.", 2),
    families: list(
      "Kinds that the agent serves. Each family brings its RBAC permissions (docs/how-to/serve-families.md).",
      ["node-health-check"],
      { enum: [...FAMILIES] },
      { uniqueItems: true },
    ),
    observe: flag(
      "Only observe: the agent decides and reports, with permissions that only read (docs/how-to/observe.md). An upgrade that sets it is refused while a remediation exists, which nothing would end.",
      false,
    ),
    reprovision: flag("Grant the permissions of strategies that install a host again or delete a Machine.", false),
    okd: flag("Grant the permissions that the agent needs on OKD. The families of OKD imply it.", false),
    bareMetalHostNamespaces: list(
      "Namespaces in which the agent may read the Secrets of BareMetalHosts (family `bare-metal-host`).",
      [],
      NAME,
      { uniqueItems: true },
    ),
    workloadClusterNamespaces: list(
      "Namespaces in which the agent may read the kubeconfigs of workload clusters (families of Cluster API).",
      [],
      NAME,
      { uniqueItems: true },
    ),
    crds,
    leaseNamespace,
    agent,
    pod,
    serviceAccount: group("The ServiceAccount of the agent.", {
      annotations: strings("Annotations of the ServiceAccount."),
    }),
    rbac: group("Permissions.", {
      create: flag("Create roles and bindings. Set it to false if an administrator applies them separately.", true),
      operators: list(
        "Subjects of RBAC that may power hosts off by hand (ClusterRole and Role `ironfence-operator`).",
        [],
        ANY_OBJECT,
      ),
    }),
    admissionPolicies: group("ValidatingAdmissionPolicies.", {
      enabled: flag(
        "Create the policies that narrow what the token of the agent may do, and those of the families.",
        true,
      ),
    }),
    podDisruptionBudget: group("PodDisruptionBudget of the agents. It exists only with two replicas or more.", {
      enabled: flag("Create it.", true),
      minAvailable: integer("How many agents stay up while nodes are drained.", 1, { minimum: 1 }),
    }),
    networkPolicy,
    metrics,
    statusPage,
    kdump,
    check,
    commonLabels: strings("Labels of every object."),
    extraObjects: list(
      "Further objects, each as an object or as a template in a string. An object whose kind this chart installs, such as a FencingTarget, needs an installed release: add it with `helm upgrade`.",
      [],
      { type: ["object", "string"] },
    ),
  }),
};

/**
 * The schema by which Helm validates values. It also accepts `global` values and `enabled`, which a parent chart may
 * set.
 */
export function valuesSchema(): object {
  const { properties = {} } = VALUES;
  const global = { description: "Values of a parent chart; not used here.", type: "object" };
  const enabled = { description: "Condition in a parent chart; not used here.", type: "boolean" };
  return { ...VALUES, properties: { ...properties, global, enabled } };
}
