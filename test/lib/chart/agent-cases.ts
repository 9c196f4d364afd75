import type { Case } from "./rendered.ts";

// Cases for chart values of the options and pods of the agent.

/** A value that becomes an option of the agent. */
const optionCase = (name: string, option: string, value: unknown, after: string, before?: string): [string, Case] => [
  `agent.${name}`,
  { set: { agent: { [name]: value } }, read: (rendered) => rendered.option(option), before, after },
];

const AGENT: Readonly<Record<string, Case>> = {
  ...Object.fromEntries([
    optionCase("components", "components", ["detector"], "detector", "detector,remediator"),
    optionCase("maxHosts", "max-hosts", 0, "0"),
    optionCase("maxHostsPerCluster", "max-hosts-per-cluster", 1_000_000, "1000000"),
    optionCase("maxHostsPerZone", "max-hosts-per-zone", 5, "5"),
    optionCase("zoneLabel", "zone-label", "example.com/rack", "example.com/rack"),
    optionCase("externalEtcd", "external-etcd", ["own", "caps/one"], "own,caps/one"),
    optionCase("ownCluster", "own-cluster", "caps/one", "caps/one"),
    optionCase("otlpEndpoint", "otlp-endpoint", "http://otel.example:4318", "http://otel.example:4318"),
    optionCase("logLevel", "log-level", "debug", "debug", "info"),
    optionCase("extraArgs", "leader-elect", ["--leader-elect=false"], "false"),
  ]),
  "agent.extraEnv": {
    set: { agent: { extraEnv: [{ name: "NODE_EXTRA_CA_CERTS", value: "/etc/ssl/own/ca.crt" }] } },
    read: (rendered) => {
      const variables = rendered.container("env") as { name: string; value?: string }[];
      return variables.find(({ name }) => name === "NODE_EXTRA_CA_CERTS")?.value;
    },
    before: undefined,
    after: "/etc/ssl/own/ca.crt",
  },
};

/** A value that is copied into the pods. */
const podCase = (name: string, value: unknown, before: unknown): [string, Case] => [
  `pod.${name}`,
  { set: { pod: { [name]: value } }, read: (rendered) => rendered.pod(name), before, after: value },
];
const TOLERATION = { key: "node-role.kubernetes.io/control-plane", operator: "Exists", effect: "NoSchedule" };
const VOLUME = { name: "ca", configMap: { name: "ca" } };
const MOUNT = { name: "ca", mountPath: "/etc/ssl/own" };

const POD: Readonly<Record<string, Case>> = {
  ...Object.fromEntries([
    podCase("priorityClassName", "own", "system-cluster-critical"),
    podCase("nodeSelector", { "example.com/fencing": "true" }, undefined),
    podCase("tolerations", [{ operator: "Exists" }], [TOLERATION]),
  ]),
  "pod.annotations": {
    set: { pod: { annotations: { "example.com/a": "b" } } },
    read: (rendered) => rendered.deployment("template.metadata.annotations"),
    before: undefined,
    after: { "example.com/a": "b" },
  },
  "pod.labels": {
    // The label by which selectors find the agents cannot be changed.
    set: { pod: { labels: { "example.com/a": "b", "app.kubernetes.io/name": "other" } } },
    read: (rendered) => rendered.deployment("template.metadata.labels"),
    before: { "app.kubernetes.io/name": "ironfence" },
    after: { "app.kubernetes.io/name": "ironfence", "example.com/a": "b" },
  },
  "pod.resources": {
    set: { pod: { resources: { limits: { memory: "1Gi" } } } },
    read: (rendered) => rendered.container("resources"),
    before: { requests: { cpu: "50m", memory: "128Mi" }, limits: { memory: "384Mi" } },
    after: { requests: { cpu: "50m", memory: "128Mi" }, limits: { memory: "1Gi" } },
  },
  "pod.affinity": {
    set: { pod: { affinity: { podAntiAffinity: null } } },
    read: (rendered) => Object.keys(rendered.pod("affinity") as object).toSorted(),
    before: ["nodeAffinity", "podAntiAffinity"],
    after: ["nodeAffinity"],
  },
  "pod.topologySpreadConstraints": {
    set: {
      pod: {
        topologySpreadConstraints: [
          { topologyKey: "example.com/rack", maxSkew: 1, whenUnsatisfiable: "DoNotSchedule" },
        ],
      },
    },
    read: (rendered) => rendered.pod("topologySpreadConstraints.0.topologyKey"),
    before: "topology.kubernetes.io/zone",
    after: "example.com/rack",
  },
  "pod.securityContext": {
    set: { pod: { securityContext: { runAsUser: null, runAsGroup: null } } },
    read: (rendered) => rendered.pod("securityContext"),
    before: {
      runAsNonRoot: true,
      runAsUser: 65_532,
      runAsGroup: 65_532,
      seccompProfile: { type: "RuntimeDefault" },
    },
    after: { runAsNonRoot: true, seccompProfile: { type: "RuntimeDefault" } },
  },
  "pod.extraVolumes": {
    set: { pod: { extraVolumes: [VOLUME] } },
    read: (rendered) => rendered.pod("volumes"),
    before: undefined,
    after: [VOLUME],
  },
  "pod.extraVolumeMounts": {
    set: { pod: { extraVolumes: [VOLUME], extraVolumeMounts: [MOUNT] } },
    read: (rendered) => rendered.container("volumeMounts"),
    before: undefined,
    after: [MOUNT],
  },
};

export const AGENT_CASES: Readonly<Record<string, Case>> = { ...AGENT, ...POD };
