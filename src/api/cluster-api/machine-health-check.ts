import type { KubeObject, ObjectMeta } from "../../kube/resource.ts";
import { parseDurationMs } from "../../runtime/duration.ts";
import { CLUSTER_API_GROUP, readConditions } from "./cluster-api.ts";
import { fieldAt, listAt, textAt } from "../schema/read-fields.ts";
import type { Condition, LabelSelector } from "../schema/meta.ts";
import { labelSelectorSchema } from "../schema/meta.ts";
import { trimMeta } from "../kubernetes/trim.ts";
import type { UnhealthyCondition } from "../schema/unhealthy-condition.ts";

// Cluster API's MachineHealthCheck, in versions v1beta1 and v1beta2. The versions have different field names. They are
// mapped to one set of names here, and nowhere else.

export const MACHINE_HEALTH_CHECK_KIND = "MachineHealthCheck";

/** Upstream's default. */
const DEFAULT_NODE_STARTUP_TIMEOUT_MS = 600_000;

/** Names a remediation template in a MachineHealthCheck's own namespace. */
export interface MachineTemplateReference {
  apiVersion: string;
  kind: string;
  name: string;
}

/** The spec of a MachineHealthCheck, for every version and vendor. */
export interface MachineHealthCheckSpec {
  /** Empty if its Machines belong to the cluster that stores it (OKD). */
  clusterName: string;
  selector: LabelSelector;
  /** 0: a Machine may wait for its node without limit. */
  nodeStartupTimeoutMs: number;
  unhealthyNodeConditions: readonly UnhealthyCondition[];
  unhealthyMachineConditions: readonly UnhealthyCondition[];
  /** A range such as `[3-5]`; it takes precedence over `unhealthyLessThanOrEqualTo`. */
  unhealthyInRange: string | undefined;
  /** A number of Machines, or a percentage; undefined means 100 %. */
  unhealthyLessThanOrEqualTo: number | string | undefined;
  /** Undefined if there is none: then the vendor decides what is done to an unhealthy Machine. */
  template: MachineTemplateReference | undefined;
  /**
   * What ironfence cannot follow in the spec, in words. The detector reports it. If a field that limits remediation is
   * wrong, nothing is remediated.
   */
  problems: readonly string[];
}

/** Its status. Fields that were never written are undefined. */
export interface MachineHealthCheckStatus {
  expectedMachines: number | undefined;
  currentHealthy: number | undefined;
  remediationsAllowed: number | undefined;
  observedGeneration: number | undefined;
  targets: readonly string[] | undefined;
  /** In both forms, as on a Machine. */
  conditions: readonly Condition[];
  v1beta1Conditions: readonly Condition[];
}

/** A health check for Machines, as the detector uses it. */
export interface MachineHealthCheck extends KubeObject {
  metadata: ObjectMeta & { namespace: string };
  spec: MachineHealthCheckSpec;
  status: MachineHealthCheckStatus;
}

/** Reads a MachineHealthCheck of either version of Cluster API. */
export function readMachineHealthCheck(raw: KubeObject): MachineHealthCheck {
  const spec = raw.apiVersion === `${CLUSTER_API_GROUP}/v1beta1` ? readV1Beta1(raw) : readV1Beta2(raw);
  return { ...typeAndMetaOf(raw), spec, status: readMachineHealthCheckStatus(raw) };
}

/** What all kinds of MachineHealthCheck share, except the spec. */
export function typeAndMetaOf(raw: KubeObject): Pick<MachineHealthCheck, "apiVersion" | "kind" | "metadata"> {
  const { apiVersion, kind, metadata } = raw;
  return { apiVersion, kind, metadata: { ...trimMeta(metadata), namespace: metadata.namespace ?? "" } };
}

/** The fields of the status have the same names in every version and in OKD. */
export function readMachineHealthCheckStatus(raw: KubeObject): MachineHealthCheckStatus {
  const targets = fieldAt(raw, "status", "targets");
  return {
    expectedMachines: numberAt(raw, "status", "expectedMachines"),
    currentHealthy: numberAt(raw, "status", "currentHealthy"),
    remediationsAllowed: numberAt(raw, "status", "remediationsAllowed"),
    observedGeneration: numberAt(raw, "status", "observedGeneration"),
    targets: Array.isArray(targets) ? targets.filter((name) => typeof name === "string") : undefined,
    ...readConditions(raw),
  };
}

/** Reads the parts of the spec that are equal in v1beta1 and OKD, where durations are text. */
export function readDurations(
  raw: KubeObject,
  problems: string[],
): Pick<MachineHealthCheckSpec, "nodeStartupTimeoutMs" | "unhealthyNodeConditions"> {
  const startup = fieldAt(raw, "spec", "nodeStartupTimeout");
  return {
    nodeStartupTimeoutMs:
      startup === undefined
        ? DEFAULT_NODE_STARTUP_TIMEOUT_MS
        : (durationOf(startup, "spec.nodeStartupTimeout", problems) ?? 0),
    unhealthyNodeConditions: readConditionRules(listAt(raw, "spec", "unhealthyConditions"), (rule, index) =>
      durationOf(fieldAt(rule, "timeout"), `spec.unhealthyConditions[${index}].timeout`, problems),
    ),
  };
}

/** @param problems receives what is wrong with the selector, in words. */
export function readSelector(raw: KubeObject, problems: string[]): LabelSelector {
  const selector = labelSelectorSchema.safeParse(fieldAt(raw, "spec", "selector") ?? {});
  if (selector.success) return selector.data;
  problems.push("spec.selector is not a label selector");
  return {};
}

/** A number of Machines, or a percentage as text. */
export function amountAt(value: unknown, ...path: readonly string[]): number | string | undefined {
  return numberAt(value, ...path) ?? textAt(value, ...path);
}

function readV1Beta1(raw: KubeObject): MachineHealthCheckSpec {
  const problems: string[] = [];
  return {
    clusterName: textAt(raw, "spec", "clusterName") ?? "",
    selector: readSelector(raw, problems),
    ...readDurations(raw, problems),
    unhealthyMachineConditions: readConditionRules(listAt(raw, "spec", "unhealthyMachineConditions"), (rule, index) =>
      durationOf(fieldAt(rule, "timeout"), `spec.unhealthyMachineConditions[${index}].timeout`, problems),
    ),
    unhealthyInRange: textAt(raw, "spec", "unhealthyRange"),
    unhealthyLessThanOrEqualTo: amountAt(raw, "spec", "maxUnhealthy"),
    template: readTemplateReference(raw, "spec", "remediationTemplate"),
    problems,
  };
}

function readV1Beta2(raw: KubeObject): MachineHealthCheckSpec {
  const problems: string[] = [];
  const startupSeconds = numberAt(raw, "spec", "checks", "nodeStartupTimeoutSeconds");
  const timeoutOf = (rule: unknown) => (numberAt(rule, "timeoutSeconds") ?? 0) * 1_000;
  if (listAt(raw, "spec", "checks", "unhealthyExpressions").length > 0) {
    problems.push(
      "spec.checks.unhealthyExpressions are not evaluated: machines that only they find are not remediated",
    );
  }
  return {
    clusterName: textAt(raw, "spec", "clusterName") ?? "",
    selector: readSelector(raw, problems),
    nodeStartupTimeoutMs: startupSeconds === undefined ? DEFAULT_NODE_STARTUP_TIMEOUT_MS : startupSeconds * 1_000,
    unhealthyNodeConditions: readConditionRules(listAt(raw, "spec", "checks", "unhealthyNodeConditions"), timeoutOf),
    unhealthyMachineConditions: readConditionRules(
      listAt(raw, "spec", "checks", "unhealthyMachineConditions"),
      timeoutOf,
    ),
    unhealthyInRange: textAt(raw, "spec", "remediation", "triggerIf", "unhealthyInRange"),
    unhealthyLessThanOrEqualTo: amountAt(raw, "spec", "remediation", "triggerIf", "unhealthyLessThanOrEqualTo"),
    template: readTemplateReference(raw, "spec", "remediation", "templateRef"),
    problems,
  };
}

/**
 * The template is read from the namespace of the health check, as upstream does, whatever the reference in v1beta1
 * contains.
 */
export function readTemplateReference(
  raw: KubeObject,
  ...path: readonly string[]
): MachineTemplateReference | undefined {
  if (fieldAt(raw, ...path) === undefined) return undefined;
  return {
    apiVersion: textAt(raw, ...path, "apiVersion") ?? "",
    kind: textAt(raw, ...path, "kind") ?? "",
    name: textAt(raw, ...path, "name") ?? "",
  };
}

/** Leaves out rules that cannot be parsed, because such a rule must not make anything unhealthy. */
function readConditionRules(
  rules: readonly unknown[],
  durationMsOf: (rule: unknown, index: number) => number | undefined,
): UnhealthyCondition[] {
  return rules.flatMap((rule, index) => {
    const type = textAt(rule, "type");
    const status = textAt(rule, "status");
    const durationMs = durationMsOf(rule, index);
    return type === undefined || status === undefined || durationMs === undefined ? [] : [{ type, status, durationMs }];
  });
}

function durationOf(value: unknown, where: string, problems: string[]): number | undefined {
  const durationMs = typeof value === "string" ? parseDurationMs(value) : undefined;
  if (durationMs !== undefined && durationMs >= 0) return durationMs;
  problems.push(`${where} is not a duration such as 300s or 10m`);
  return undefined;
}

function numberAt(value: unknown, ...path: readonly string[]): number | undefined {
  const found = fieldAt(value, ...path);
  return typeof found === "number" ? found : undefined;
}
