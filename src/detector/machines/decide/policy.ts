import { ATTEMPT_BUDGET, ONE_MACHINE_AT_A_TIME } from "../../../api/names/annotations.ts";
import type { Machine } from "../../../api/cluster-api/cluster-api.ts";
import type { MachineHealthCheck } from "../../../api/cluster-api/machine-health-check.ts";
import type { AttemptBudget } from "../../shared/model/attempts.ts";
import { DEFAULT_ATTEMPT_BUDGET, parseAttemptBudget } from "../../shared/model/attempts.ts";
import type { RemediationStep } from "../../shared/model/template-reference.ts";
import { TEMPLATE_SUFFIX } from "../../shared/model/template-reference.ts";
import type { LabelMatcher } from "../../../api/schema/label-selector.ts";
import { compileSelector, isEmpty, SelectorError } from "../../../api/schema/label-selector.ts";
import type { MachineHealthCheckKind } from "./kind.ts";
import type { UnhealthyLimit } from "./threshold.ts";
import { compileUnhealthyLimit } from "./threshold.ts";

/** The spec of a MachineHealthCheck, validated and compiled. */
export interface MachinePolicy {
  /** Whether the health check covers a Machine. */
  covers: (machine: Machine) => boolean;
  unhealthyLimit: UnhealthyLimit;
  /** The template of its requests; undefined if it names no template. */
  step: RemediationStep | undefined;
  attemptBudget: AttemptBudget;
  /** Whether a Machine is deleted only if no other Machine that the health check covers is being deleted. */
  oneAtATime: boolean;
}

/** The annotations of a health check that `compileMachinePolicy` reads. */
export const MACHINE_POLICY_ANNOTATIONS: readonly string[] = [ATTEMPT_BUDGET, ONE_MACHINE_AT_A_TIME];

/** @returns a text that says what is wrong with the spec, if it is invalid. */
export function compileMachinePolicy(kind: MachineHealthCheckKind, check: MachineHealthCheck): MachinePolicy | string {
  const { spec, metadata } = check;
  const unhealthyLimit = compileUnhealthyLimit(spec);
  if (typeof unhealthyLimit === "string") return unhealthyLimit;
  const selects = compileTargets(kind, check);
  if (typeof selects === "string") return selects;
  const { template } = spec;
  if (
    template !== undefined &&
    (!template.kind.endsWith(TEMPLATE_SUFFIX) || template.apiVersion === "" || template.name === "")
  ) {
    return `the remediation template must have apiVersion, name and a kind that ends in ${TEMPLATE_SUFFIX}`;
  }
  const budgetText = metadata.annotations?.[ATTEMPT_BUDGET];
  const attemptBudget = budgetText === undefined ? DEFAULT_ATTEMPT_BUDGET : parseAttemptBudget(budgetText);
  if (attemptBudget === undefined)
    return `annotation ${ATTEMPT_BUDGET}: ${budgetText ?? ""} must have the form 5/24h: 1 to 50 attempts in 1m to 168h`;
  const oneAtATime = metadata.annotations?.[ONE_MACHINE_AT_A_TIME] ?? "false";
  if (oneAtATime !== "true" && oneAtATime !== "false") {
    return `annotation ${ONE_MACHINE_AT_A_TIME}: "${oneAtATime}" is neither "true" nor "false"`;
  }
  return {
    covers: (machine) =>
      machine.metadata.namespace === metadata.namespace &&
      selects(machine.metadata.labels) &&
      kind.covers(check, machine),
    unhealthyLimit,
    step: template && { template: { ...template, namespace: metadata.namespace } },
    attemptBudget,
    oneAtATime: oneAtATime === "true",
  };
}

function compileTargets(kind: MachineHealthCheckKind, { spec }: MachineHealthCheck): LabelMatcher | string {
  if (kind.emptySelectsAll && isEmpty(spec.selector)) return () => true;
  try {
    return compileSelector(spec.selector);
  } catch (error) {
    if (error instanceof SelectorError) return `spec.selector: ${error.message}`;
    throw error;
  }
}
