import { hostname } from "node:os";
import type { LogLevel } from "../telemetry/logger.ts";
import type { Option, FlagTexts } from "./option.ts";
import { flagName, OptionError, requireOption, resolveOption } from "./option.ts";
import type { BindAddress, Component, Family } from "./parsers.ts";
import {
  parseBindAddress,
  parseBoolean,
  parseComponents,
  parseExternalEtcd,
  parseFamilies,
  parseHttpUrl,
  parseLabelKey,
  parseLimit,
  parseLogLevel,
  parseKubernetesName,
  parseNamespacedName,
  parseText,
  proposeBooleans,
  proposeComponents,
  proposeFamilies,
  proposeLogLevels,
} from "./parsers.ts";
import type { ClusterOptions } from "./cluster-options.ts";
import { resolveClusterOptions } from "./cluster-options.ts";

export const RUN_OPTIONS = {
  components: {
    name: "components",
    env: "IRONFENCE_COMPONENTS",
    defaultText: "detector,remediator",
    placeholder: "list",
    brief: "Which halves run: detector (health checks), remediator (power fencing), or both",
    parse: parseComponents,
    propose: proposeComponents,
  } satisfies Option<ReadonlySet<Component>>,
  families: {
    name: "families",
    env: "IRONFENCE_FAMILIES",
    defaultText: "node-health-check",
    placeholder: "list",
    brief:
      "Kinds of other projects to act on: node-health-check, machine-health-check (Cluster API), okd-machine-health-check, metal3-remediation, okd-machine, bare-metal-host; no other controller may act on the same kinds",
    parse: parseFamilies,
    propose: proposeFamilies,
  } satisfies Option<ReadonlySet<Family>>,
  observe: {
    name: "observe",
    env: "IRONFENCE_OBSERVE",
    defaultText: "false",
    placeholder: "bool",
    brief:
      "Decide and report, and write only Kubernetes Events and a Lease whose name ends in -observe: no power order, no taint, no remediation",
    parse: parseBoolean,
    propose: proposeBooleans,
  } satisfies Option<boolean>,
  leaderElect: {
    name: "leaderElect",
    env: "IRONFENCE_LEADER_ELECT",
    defaultText: "true",
    placeholder: "bool",
    brief: "Act only while holding the lease; use false only if exactly one agent can ever run",
    parse: parseBoolean,
    propose: proposeBooleans,
  } satisfies Option<boolean>,
  leaseName: {
    name: "leaseName",
    env: "IRONFENCE_LEASE_NAME",
    defaultText: "ironfence",
    placeholder: "name",
    brief: "Name of the leader-election Lease in the agent's namespace",
    parse: parseKubernetesName,
  } satisfies Option<string>,
  nodeLeaseNamespace: {
    name: "nodeLeaseNamespace",
    env: "IRONFENCE_NODE_LEASE_NAMESPACE",
    defaultText: "medik8s-leases",
    placeholder: "name",
    brief: "Namespace of the Leases that keep node maintenance and remediation from working on the same node",
    parse: parseKubernetesName,
  } satisfies Option<string>,
  maxHosts: {
    name: "maxHosts",
    env: "IRONFENCE_MAX_HOSTS",
    defaultText: "100",
    placeholder: "number",
    brief: "Hosts that are remediated at the same time, from power-off until they read On; 0 for no limit",
    parse: parseLimit,
  } satisfies Option<number>,
  maxHostsPerCluster: {
    name: "maxHostsPerCluster",
    env: "IRONFENCE_MAX_HOSTS_PER_CLUSTER",
    defaultText: "25",
    placeholder: "number",
    brief: "As --max-hosts, for each workload cluster of Cluster API, so that no cluster uses all slots",
    parse: parseLimit,
  } satisfies Option<number>,
  maxHostsPerZone: {
    name: "maxHostsPerZone",
    env: "IRONFENCE_MAX_HOSTS_PER_ZONE",
    defaultText: "0",
    placeholder: "number",
    brief: "As --max-hosts, for each failure zone (--zone-label)",
    parse: parseLimit,
  } satisfies Option<number>,
  zoneLabel: {
    name: "zoneLabel",
    env: "IRONFENCE_ZONE_LABEL",
    defaultText: "topology.kubernetes.io/zone",
    placeholder: "label",
    brief: "Label of nodes that names their failure zone, for example a label for the rack",
    parse: parseLabelKey,
  } satisfies Option<string>,
  externalEtcd: {
    name: "externalEtcd",
    env: "IRONFENCE_EXTERNAL_ETCD",
    defaultText: undefined,
    placeholder: "list",
    brief:
      "Clusters whose etcd runs on machines outside of them: own for the agent's, namespace/name for one of Cluster API; a control plane node of such a cluster is powered off only while another one is Ready",
    parse: parseExternalEtcd,
  } satisfies Option<ReadonlySet<string>>,
  nodeName: {
    name: "nodeName",
    env: "NODE_NAME",
    defaultText: undefined,
    placeholder: "name",
    brief: "Node that this agent runs on; the agent hands its lease over before that node is powered off",
    parse: parseText,
  } satisfies Option<string>,
  ownCluster: {
    name: "ownCluster",
    env: "IRONFENCE_OWN_CLUSTER",
    defaultText: undefined,
    placeholder: "namespace/name",
    brief: "Cluster of Cluster API that the agent runs in, if the management cluster manages itself",
    parse: parseNamespacedName,
  } satisfies Option<OwnClusterName>,
  recordDecisions: {
    name: "recordDecisions",
    env: "IRONFENCE_RECORD_DECISIONS",
    defaultText: undefined,
    placeholder: "file",
    brief: "Log of every decision, for ironfence replay: a file, or - for standard output; by default none",
    parse: parseText,
  } satisfies Option<string>,
  otlpEndpoint: {
    name: "otlpEndpoint",
    env: "OTEL_EXPORTER_OTLP_ENDPOINT",
    defaultText: undefined,
    placeholder: "url",
    brief: "OpenTelemetry collector that receives a trace of each fence by OTLP over HTTP; by default none",
    parse: parseHttpUrl,
  } satisfies Option<string>,
  allowLocalWorkloadClusters: {
    name: "allowLocalWorkloadClusters",
    env: "IRONFENCE_ALLOW_LOCAL_WORKLOAD_CLUSTERS",
    defaultText: "false",
    placeholder: "bool",
    brief:
      "Also connect to API servers of workload clusters at loopback and link-local addresses; for tests on one machine",
    parse: parseBoolean,
    propose: proposeBooleans,
  } satisfies Option<boolean>,
  metricsBindAddress: {
    name: "metricsBindAddress",
    env: "IRONFENCE_METRICS_BIND_ADDRESS",
    defaultText: ":8080",
    placeholder: "address",
    brief: "Address that serves /metrics (Prometheus text); 0 switches it off",
    parse: parseBindAddress,
  } satisfies Option<BindAddress | "off">,
  metricsSecure: {
    name: "metricsSecure",
    env: "IRONFENCE_METRICS_SECURE",
    defaultText: "false",
    placeholder: "bool",
    brief: "Serve /metrics over TLS, only to users with permission from the API server (apply deploy/secure-metrics)",
    parse: parseBoolean,
    propose: proposeBooleans,
  } satisfies Option<boolean>,
  metricsCertPath: {
    name: "metricsCertPath",
    env: "IRONFENCE_METRICS_CERT_PATH",
    defaultText: "/etc/ironfence/metrics-tls",
    placeholder: "folder",
    brief: "Folder with tls.crt and tls.key for --metrics-secure; they are read again when they are renewed",
    parse: parseText,
  } satisfies Option<string>,
  statusBindAddress: {
    name: "statusBindAddress",
    env: "IRONFENCE_STATUS_BIND_ADDRESS",
    defaultText: "0",
    placeholder: "address",
    brief:
      "Address that serves the dashboard over TLS, only to users with permission from the API server (apply deploy/secure-metrics); 0 switches it off",
    parse: parseBindAddress,
  } satisfies Option<BindAddress | "off">,
  statusCertPath: {
    name: "statusCertPath",
    env: "IRONFENCE_STATUS_CERT_PATH",
    defaultText: "/etc/ironfence/status-tls",
    placeholder: "folder",
    brief: "Folder with tls.crt and tls.key for --status-bind-address; they are read again when they are renewed",
    parse: parseText,
  } satisfies Option<string>,
  healthProbeBindAddress: {
    name: "healthProbeBindAddress",
    env: "IRONFENCE_HEALTH_PROBE_BIND_ADDRESS",
    defaultText: ":8081",
    placeholder: "address",
    brief: "Address that serves /healthz and /readyz; 0 switches them off",
    parse: parseBindAddress,
  } satisfies Option<BindAddress | "off">,
  kdumpBindAddress: {
    name: "kdumpBindAddress",
    env: "IRONFENCE_KDUMP_BIND_ADDRESS",
    defaultText: "0",
    placeholder: "address",
    brief:
      "UDP address that receives the fence_kdump messages of crash kernels (docs/explanation/crash-dump.md), usually :7410; 0 switches it off",
    parse: parseBindAddress,
  } satisfies Option<BindAddress | "off">,
  logLevel: {
    name: "logLevel",
    env: "IRONFENCE_LOG_LEVEL",
    defaultText: "info",
    placeholder: "level",
    brief: "trace, debug, info, warn or error; lines are JSON on standard error",
    parse: parseLogLevel,
    propose: proposeLogLevels,
  } satisfies Option<LogLevel>,
} as const;

/** A Cluster of Cluster API, by name. */
interface OwnClusterName {
  namespace: string;
  name: string;
}

/** The options of `ironfence run`. */
export interface RunOptions extends ClusterOptions {
  components: ReadonlySet<Component>;
  families: ReadonlySet<Family>;
  /** Whether the agent only observes. */
  observe: boolean;
  leaderElect: boolean;
  leaseName: string;
  nodeLeaseNamespace: string;
  maxHosts: number;
  maxHostsPerCluster: number;
  maxHostsPerZone: number;
  zoneLabel: string;
  /** Clusters by `namespace/name`, the agent's own by the empty text. */
  externalEtcd: ReadonlySet<string>;
  nodeName: string | undefined;
  ownCluster: OwnClusterName | undefined;
  /** The file in which decisions are recorded, `-` for standard output; undefined if they are not recorded. */
  recordDecisions: string | undefined;
  /** The URL to which traces are sent; undefined if they are not sent. */
  otlpEndpoint: string | undefined;
  allowLocalWorkloadClusters: boolean;
  metricsBindAddress: BindAddress | "off";
  /** The folder with the certificate; undefined if metrics are served over plain HTTP, to every client. */
  metricsCertPath: string | undefined;
  /** The address that serves the dashboard. */
  statusBindAddress: BindAddress | "off";
  statusCertPath: string;
  healthProbeBindAddress: BindAddress | "off";
  /** The address that receives messages of crash kernels. */
  kdumpBindAddress: BindAddress | "off";
  logLevel: LogLevel;
  /**
   * Distinguishes this process from the other replicas in the lease and in Events: the name of the pod, or of the
   * machine.
   */
  instance: string;
}

/**
 * The families of health checks. An agent with the detector alone needs one of them; the remediator needs no family.
 */
const DETECTOR_FAMILIES: readonly Family[] = ["node-health-check", "machine-health-check", "okd-machine-health-check"];

const OBSERVING = "-observe";

/**
 * The name of the Lease of an agent that only observes. It differs from that of an agent that acts, so that neither
 * replaces the other as the leader.
 */
export function observingLeaseName(leaseName: string): string {
  return `${leaseName}${OBSERVING}`;
}

/**
 * Whether the agent only observes. After a mistake here it would act, so every doubtful setting is refused.
 *
 * @throws OptionError for an empty variable, for an observer without a detector, and for an agent that acts under the
 * Lease of one that observes.
 */
function resolveObserve(
  components: ReadonlySet<Component>,
  leaseName: string,
  flags: FlagTexts,
  env: FlagTexts,
): boolean {
  const { observe: option } = RUN_OPTIONS;
  if (flags[option.name] === undefined && env[option.env] === "")
    throw new OptionError(`${option.env}: it is set, but empty; set it to true or false, or unset it`);
  const observe = requireOption(option, flags, env);
  if (observe && !components.has("detector"))
    throw new OptionError(
      `${flagName("observe")}: only the detector observes; add detector to ${flagName("components")}`,
    );
  if (!observe && leaseName.endsWith(OBSERVING))
    throw new OptionError(
      `${flagName("lease-name")}: names that end in ${OBSERVING} belong to agents that only observe (got "${leaseName}")`,
    );
  return observe;
}

/** @throws OptionError that names the flag or variable whose value is not valid. */
export function resolveRunOptions(flags: FlagTexts, env: FlagTexts): RunOptions {
  const components = requireOption(RUN_OPTIONS.components, flags, env);
  const families = requireOption(RUN_OPTIONS.families, flags, env);
  if (!components.has("remediator") && !DETECTOR_FAMILIES.some((family) => families.has(family))) {
    throw new OptionError(
      `${flagName("families")}: the detector serves none of these families: add one of ${DETECTOR_FAMILIES.join(", ")}`,
    );
  }
  const leaseName = requireOption(RUN_OPTIONS.leaseName, flags, env);
  const observe = resolveObserve(components, leaseName, flags, env);
  return {
    ...resolveClusterOptions(flags, env),
    components,
    families,
    observe,
    leaderElect: requireOption(RUN_OPTIONS.leaderElect, flags, env),
    leaseName: observe ? observingLeaseName(leaseName) : leaseName,
    nodeLeaseNamespace: requireOption(RUN_OPTIONS.nodeLeaseNamespace, flags, env),
    maxHosts: requireOption(RUN_OPTIONS.maxHosts, flags, env),
    maxHostsPerCluster: requireOption(RUN_OPTIONS.maxHostsPerCluster, flags, env),
    maxHostsPerZone: requireOption(RUN_OPTIONS.maxHostsPerZone, flags, env),
    zoneLabel: requireOption(RUN_OPTIONS.zoneLabel, flags, env),
    externalEtcd: resolveOption(RUN_OPTIONS.externalEtcd, flags, env) ?? new Set(),
    nodeName: resolveOption(RUN_OPTIONS.nodeName, flags, env),
    ownCluster: resolveOption(RUN_OPTIONS.ownCluster, flags, env),
    recordDecisions: resolveOption(RUN_OPTIONS.recordDecisions, flags, env),
    otlpEndpoint: resolveOption(RUN_OPTIONS.otlpEndpoint, flags, env),
    allowLocalWorkloadClusters: requireOption(RUN_OPTIONS.allowLocalWorkloadClusters, flags, env),
    metricsBindAddress: requireOption(RUN_OPTIONS.metricsBindAddress, flags, env),
    metricsCertPath: requireOption(RUN_OPTIONS.metricsSecure, flags, env)
      ? requireOption(RUN_OPTIONS.metricsCertPath, flags, env)
      : undefined,
    statusBindAddress: requireOption(RUN_OPTIONS.statusBindAddress, flags, env),
    statusCertPath: requireOption(RUN_OPTIONS.statusCertPath, flags, env),
    healthProbeBindAddress: requireOption(RUN_OPTIONS.healthProbeBindAddress, flags, env),
    kdumpBindAddress: requireOption(RUN_OPTIONS.kdumpBindAddress, flags, env),
    logLevel: requireOption(RUN_OPTIONS.logLevel, flags, env),
    instance: env["POD_NAME"] ?? hostname(),
  };
}
