import { hostname } from "node:os";
import type { LogLevel } from "../telemetry/logger.ts";
import type { ClusterOptions } from "./cluster-options.ts";
import { resolveClusterOptions } from "./cluster-options.ts";
import type { FlagTexts } from "./option.ts";
import { flagName, OptionError, requireOption, resolveOption } from "./option.ts";
import type { BindAddress, Component, Family } from "./parsers.ts";
import { RUN_OPTIONS } from "./run-options.ts";
import type { OwnClusterName } from "./run-options.ts";

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
 * The families of health checks. An agent that runs only the detector needs one of them. The remediator needs none.
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
