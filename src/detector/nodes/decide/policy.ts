import { ATTEMPT_BUDGET, SKIP_DURATION_IF_OFF, START_ANEW } from "../../../api/names/annotations.ts";
import type { EscalatingRemediation, NodeHealthCheckSpec } from "../../../api/ironfence/node-health-check.ts";
import { nodeHealthCheckSpecSchema } from "../../../api/ironfence/node-health-check.ts";
import type { ObjectReference } from "../../../api/schema/meta.ts";
import { parseDurationMs } from "../../../runtime/duration.ts";
import type { AttemptBudget } from "../../shared/model/attempts.ts";
import { DEFAULT_ATTEMPT_BUDGET, parseAttemptBudget } from "../../shared/model/attempts.ts";
import type { Threshold } from "./threshold.ts";
import { DEFAULT_THRESHOLD } from "./threshold.ts";
import { parseAmount } from "../../../api/schema/amount.ts";
import type { RemediationStep, TemplateReference } from "../../shared/model/template-reference.ts";
import { TEMPLATE_SUFFIX } from "../../shared/model/template-reference.ts";
import type { UnhealthyCondition } from "../../../api/schema/unhealthy-condition.ts";
import type { LabelMatcher } from "../../../api/schema/label-selector.ts";
import { compileSelector, SelectorError } from "../../../api/schema/label-selector.ts";

/** The spec of a health check, validated and compiled. */
export interface NodePolicy {
  selects: LabelMatcher;
  unhealthyConditions: readonly UnhealthyCondition[];
  threshold: Threshold;
  /** Absent if there is no storm guard. */
  stormCooldownMs?: number;
  /** A negative delay lasts until the operator confirms that the node is healthy. */
  healthyDelayMs: number;
  pauseRequests: readonly string[];
  /** The steps, in the order in which they are tried. */
  steps: readonly RemediationStep[];
  attemptBudget: AttemptBudget;
  /** Whether the next round starts after every step has failed. */
  restartsSteps: boolean;
  /** Whether the rest of a duration is skipped if the node is not Ready and its host is proven off. */
  skipsDurationIfOff: boolean;
  /** Whether a node that is Ready is remediated if its host is proven off. */
  beginsEarly: boolean;
}

export type NodePolicyResult = { policy: NodePolicy } | { problem: string };

/** The annotations of a health check that `compileNodePolicy` reads. */
export const POLICY_ANNOTATIONS: readonly string[] = [ATTEMPT_BUDGET, START_ANEW, SKIP_DURATION_IF_OFF];

const STEP_TIMEOUT_MIN_MS = 60_000;

/**
 * Validates and compiles a spec as the API server stores it. The rules are those of the CRD of ironfence. They are
 * checked here as well, because the CRD of another operator, which does not have these rules, may be installed instead.
 */
export function compileNodePolicy(spec: unknown, annotations: Readonly<Record<string, string>> = {}): NodePolicyResult {
  const parsed = nodeHealthCheckSpecSchema.safeParse(spec);
  if (!parsed.success) {
    const [issue] = parsed.error.issues;
    return { problem: `spec.${issue?.path.join(".") ?? ""}: ${issue?.message ?? "is not valid"}` };
  }
  try {
    return { policy: compile(parsed.data, annotations) };
  } catch (error) {
    if (error instanceof SpecError) return { problem: error.message };
    if (error instanceof SelectorError) return { problem: `spec.selector: ${error.message}` };
    throw error;
  }
}

class SpecError extends Error {}

function compile(spec: NodeHealthCheckSpec, annotations: Readonly<Record<string, string>>): NodePolicy {
  const stormCooldownMs =
    spec.stormCooldownDuration === undefined
      ? undefined
      : duration(spec.stormCooldownDuration, "spec.stormCooldownDuration");
  return {
    selects: compileSelector(spec.selector),
    unhealthyConditions: spec.unhealthyConditions.map(({ type, status, duration: text }) => ({
      type,
      status,
      durationMs: duration(text, `spec.unhealthyConditions: duration of ${type}=${status}`),
    })),
    threshold: compileThreshold(spec),
    ...(stormCooldownMs !== undefined && { stormCooldownMs }),
    healthyDelayMs: signedDuration(spec.healthyDelay ?? "0", "spec.healthyDelay"),
    pauseRequests: spec.pauseRequests ?? [],
    steps: compileSteps(spec),
    attemptBudget: attemptBudget(annotations[ATTEMPT_BUDGET]),
    restartsSteps: flag(annotations, START_ANEW, true),
    skipsDurationIfOff: flag(annotations, SKIP_DURATION_IF_OFF, false),
    beginsEarly: flag(annotations, SKIP_DURATION_IF_OFF, true),
  };
}

function attemptBudget(text: string | undefined): AttemptBudget {
  const budget = text === undefined ? DEFAULT_ATTEMPT_BUDGET : parseAttemptBudget(text);
  if (budget !== undefined) return budget;
  throw new SpecError(`annotation ${ATTEMPT_BUDGET}: ${text} must have the form 5/24h: 1 to 50 attempts in 1m to 168h`);
}

function flag(annotations: Readonly<Record<string, string>>, name: string, absent: boolean): boolean {
  const text = annotations[name];
  if (text === undefined) return absent;
  if (text !== "true" && text !== "false") throw new SpecError(`annotation ${name}: ${text} is neither true nor false`);
  return text === "true";
}

function compileThreshold(spec: NodeHealthCheckSpec): Threshold {
  const { minHealthy, maxUnhealthy } = spec;
  if (minHealthy !== undefined && maxUnhealthy !== undefined) {
    throw new SpecError("spec.minHealthy and spec.maxUnhealthy are mutually exclusive");
  }
  const [kind, value] =
    maxUnhealthy === undefined ? ["minHealthy" as const, minHealthy] : ["maxUnhealthy" as const, maxUnhealthy];
  if (value === undefined) return DEFAULT_THRESHOLD;
  const amount = parseAmount(value);
  if (amount === undefined)
    throw new SpecError(`spec.${kind}: ${value} must be a count or a percentage from 0% to 100%`);
  return { kind, amount };
}

function compileSteps(spec: NodeHealthCheckSpec): RemediationStep[] {
  const { remediationTemplate, escalatingRemediations } = spec;
  if ((remediationTemplate === undefined) === (escalatingRemediations === undefined)) {
    throw new SpecError("exactly one of spec.remediationTemplate and spec.escalatingRemediations must be set");
  }
  const steps =
    escalatingRemediations === undefined
      ? [{ template: reference(remediationTemplate ?? {}, "spec.remediationTemplate") }]
      : compileEscalation(escalatingRemediations);
  if (steps.length === 0) throw new SpecError("spec.escalatingRemediations must not be empty");
  if (
    spec.maxUnhealthy !== undefined &&
    steps.some(({ template }) => template.kind === "MachineDeletionRemediationTemplate")
  ) {
    throw new SpecError("spec.maxUnhealthy cannot be used with a MachineDeletionRemediationTemplate");
  }
  return steps;
}

function compileEscalation(list: readonly EscalatingRemediation[]): RemediationStep[] {
  if (new Set(list.map(({ order }) => order)).size < list.length) {
    throw new SpecError("spec.escalatingRemediations: every order must be unique");
  }
  return [...list]
    .sort((a, b) => a.order - b.order)
    .map(({ remediationTemplate, order, timeout }) => {
      const where = `spec.escalatingRemediations of order ${order}`;
      const timeoutMs = duration(timeout, `${where}: timeout`);
      if (timeoutMs < STEP_TIMEOUT_MIN_MS) throw new SpecError(`${where}: timeout must be at least 1m`);
      return { template: reference(remediationTemplate, where), timeoutMs };
    });
}

function reference(given: ObjectReference, where: string): TemplateReference {
  const { apiVersion = "", kind = "", namespace = "", name = "" } = given;
  if (apiVersion === "" || name === "") throw new SpecError(`${where}: apiVersion, kind and name must be given`);
  if (!kind.endsWith(TEMPLATE_SUFFIX) || kind === TEMPLATE_SUFFIX) {
    throw new SpecError(`${where}: kind ${kind} does not end in ${TEMPLATE_SUFFIX}`);
  }
  return { apiVersion, kind, name, ...(namespace !== "" && { namespace }) };
}

function duration(text: string, where: string): number {
  const durationMs = signedDuration(text, where);
  if (durationMs < 0) throw new SpecError(`${where} must not be negative`);
  return durationMs;
}

function signedDuration(text: string, where: string): number {
  const durationMs = parseDurationMs(text);
  if (durationMs === undefined) throw new SpecError(`${where}: ${text} is not a duration such as 300s or 1h30m`);
  return durationMs;
}
