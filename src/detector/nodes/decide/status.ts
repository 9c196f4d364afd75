import { isDeepStrictEqual } from "node:util";
import type { Condition } from "../../../api/schema/meta.ts";
import type { NodeHealthCheckStatus, UnhealthyNode } from "../../../api/ironfence/node-health-check.ts";
import type { TemplateProblem } from "../../shared/model/template.ts";
import { parseTimeMs, toTime } from "../../../runtime/time.ts";
import type { Storm } from "./storm.ts";

// Unless a comment says otherwise, the strings in this file come from upstream, because dashboards and scripts read
// them.

const DISABLED = "Disabled";
const STORM_ACTIVE = "StormActive";
const STORM_COOLDOWN_ACTIVE = "StormCooldownActive";
/** Upstream does not have this condition. */
const ATTEMPT_BUDGET_SPENT = "AttemptBudgetSpent";
/** How many nodes the message of a condition names. */
const NAMES_MAX = 20;
/** Upstream does not have this condition either. */
const REMEDIATION_FAILED = "RemediationFailed";
/**
 * For how many nodes a condition says why their remediation failed. Kubernetes allows 32,768 characters in a message.
 */
const REASONS_MAX = 5;
const STORM_REASON = "HealthyNodeThresholdChange";

/** Why a health check is disabled, for its condition Disabled. */
export type Disabled =
  | TemplateProblem
  | { reason: "ConflictingMachineHealthCheckDetected" | "SpecInvalid"; message: string };

/** A node whose remediation has failed. */
export interface FailedNode {
  name: string;
  /** Why it failed, when the next try starts, and how to try again now, in full sentences. */
  reason: string;
}

export interface StatusParts {
  previous: NodeHealthCheckStatus;
  /** The generation of the spec that was evaluated. */
  generation: number | undefined;
  /** Why no new remediation starts although the health check is enabled, as text for the operator. */
  gateReason: string | undefined;
  /**
   * Undefined if the spec is invalid, because nodes cannot be counted then. The status then has no counts, instead of
   * zeros.
   */
  counts: { observedNodes: number; healthyNodes: number } | undefined;
  unhealthyNodes: UnhealthyNode[];
  /** Nodes with a remediation in progress, and when it started. */
  inFlight: Readonly<Record<string, string>>;
  /** Nodes whose remediation has failed, and for which nothing else is in progress; undefined keeps the condition. */
  failed: readonly FailedNode[] | undefined;
  disabled: Disabled | undefined;
  storm: Storm;
  /** Nodes whose attempt budget is used up; undefined keeps the condition. */
  budgetSpent: readonly string[] | undefined;
  /** Whether the health check has a storm guard. */
  stormGuard: boolean;
  pauseRequests: readonly string[];
}

/** The status to store. `lastUpdateTime` changes only if another field does. */
export function composeStatus(parts: StatusParts, nowMs: number): NodeHealthCheckStatus {
  const { previous, counts, unhealthyNodes, inFlight } = parts;
  const disabled = disabledCondition(previous.conditions ?? [], parts.disabled, nowMs);
  const budget = budgetCondition(stormConditions(disabled, parts, nowMs), parts.budgetSpent, nowMs);
  const phase = phaseOf(parts);
  const conditions = progressConditions(failedCondition(budget, parts.failed, nowMs), parts.disabled, phase, nowMs);
  const status: NodeHealthCheckStatus = {
    ...counts,
    ...(unhealthyNodes.length > 0 && { unhealthyNodes }),
    // The rules of the CRD and the admission policy refuse edits and deletion while this field is not empty.
    ...(Object.keys(inFlight).length > 0 && { inFlightRemediations: { ...inFlight } }),
    conditions,
    ...phase,
    ...(parts.generation !== undefined && { observedGeneration: parts.generation }),
  };
  const { lastUpdateTime, ...before } = previous;
  if (lastUpdateTime !== undefined && isDeepStrictEqual(before, status)) return previous;
  return { ...status, lastUpdateTime: toTime(nowMs) };
}

/** The state of the storm guard, from the conditions. */
export function readStorm(status: NodeHealthCheckStatus): Storm {
  const cooldown = findCondition(status.conditions, STORM_COOLDOWN_ACTIVE);
  if (cooldown?.status === "True") {
    return { state: "cooldown", sinceMs: parseTimeMs(cooldown.lastTransitionTime) ?? 0 };
  }
  return findCondition(status.conditions, STORM_ACTIVE)?.status === "True" ? { state: "storm" } : { state: "calm" };
}

/** Whether the status says that the health check is disabled; undefined if the condition does not exist yet. */
export function readDisabled(status: NodeHealthCheckStatus): boolean | undefined {
  const condition = findCondition(status.conditions, DISABLED);
  return condition === undefined ? undefined : condition.status === "True";
}

/** The reason and message of condition Disabled. */
export function disabledNote(status: NodeHealthCheckStatus): string {
  const condition = findCondition(status.conditions, DISABLED);
  return `Reason: ${condition?.reason ?? ""}, Message: ${condition?.message ?? ""}`;
}

function findCondition(conditions: readonly Condition[] | undefined, type: string): Condition | undefined {
  return conditions?.find((condition) => condition.type === type);
}

function disabledCondition(
  conditions: readonly Condition[],
  disabled: Disabled | undefined,
  nowMs: number,
): Condition[] {
  return disabled === undefined
    ? setCondition(
        conditions,
        {
          type: DISABLED,
          status: "False",
          reason: "NodeHealthCheckEnabled",
          message: "No issues found, NodeHealthCheck is enabled.",
        },
        nowMs,
      )
    : setCondition(conditions, { type: DISABLED, status: "True", ...disabled }, nowMs);
}

// As in upstream, the storm counts as active while the cooldown runs.
function stormConditions(conditions: Condition[], parts: StatusParts, nowMs: number): Condition[] {
  const { storm, stormGuard } = parts;
  const wasSet = findCondition(conditions, STORM_ACTIVE) !== undefined;
  if (!wasSet && (!stormGuard || storm.state === "calm")) return conditions;
  const active = storm.state !== "calm";
  const cooling = storm.state === "cooldown";
  const withStorm = setCondition(
    conditions,
    {
      type: STORM_ACTIVE,
      status: active ? "True" : "False",
      reason: STORM_REASON,
      message: active
        ? "No new remediation starts until enough nodes are healthy and the cooldown is over."
        : "The storm is over.",
    },
    nowMs,
  );
  return setCondition(
    withStorm,
    {
      type: STORM_COOLDOWN_ACTIVE,
      status: cooling ? "True" : "False",
      reason: STORM_REASON,
      message: cooling ? "Enough nodes are healthy again; waiting for the cooldown." : "No cooldown is active.",
    },
    // The transition time stores when the cooldown started, so that it survives a restart.
    storm.state === "cooldown" ? storm.sinceMs : nowMs,
  );
}

function budgetCondition(conditions: Condition[], spent: readonly string[] | undefined, nowMs: number): Condition[] {
  if (spent === undefined) return conditions;
  if (spent.length === 0 && findCondition(conditions, ATTEMPT_BUDGET_SPENT) === undefined) return conditions;
  return setCondition(
    conditions,
    {
      type: ATTEMPT_BUDGET_SPENT,
      status: spent.length > 0 ? "True" : "False",
      reason: spent.length > 0 ? "GivingUp" : "AttemptsLeft",
      message:
        spent.length > 0
          ? `Giving up until attempts leave the window or the operator intervenes: ${namesOf(spent)}.`
          : "No unhealthy node has used up its attempts.",
    },
    nowMs,
  );
}

/** Conditions for generic tools (kstatus): Ready while the health check is enabled, Stalled while it is disabled. */
function progressConditions(
  conditions: readonly Condition[],
  disabled: Disabled | undefined,
  { phase, reason }: { phase: string; reason: string },
  nowMs: number,
): Condition[] {
  const isReady = disabled === undefined;
  const message = disabled?.message ?? reason;
  const why = disabled?.reason ?? phase;
  const ready = { type: "Ready", status: isReady ? "True" : "False", reason: why, message } as const;
  const stalled = { type: "Stalled", status: isReady ? "False" : "True", reason: why } as const;
  const withReady = setCondition(conditions, ready, nowMs);
  return setCondition(withReady, { ...stalled, message: isReady ? "" : message }, nowMs);
}

function failedCondition(
  conditions: Condition[],
  failed: readonly FailedNode[] | undefined,
  nowMs: number,
): Condition[] {
  if (failed === undefined) return conditions;
  if (failed.length === 0 && findCondition(conditions, REMEDIATION_FAILED) === undefined) return conditions;
  const sorted = failed.toSorted((a, b) => (a.name < b.name ? -1 : 1));
  const more = sorted.length > REASONS_MAX ? [`and ${sorted.length - REASONS_MAX} more`] : [];
  const shown = sorted.slice(0, REASONS_MAX).map(({ name, reason }) => `${name}: ${reason}`);
  return setCondition(
    conditions,
    {
      type: REMEDIATION_FAILED,
      status: failed.length > 0 ? "True" : "False",
      reason: failed.length > 0 ? "LastRemediationFailed" : "NoneFailed",
      message: failed.length > 0 ? [...shown, ...more].join("; ") : "No unhealthy node waits for a retry.",
    },
    nowMs,
  );
}

/** The names in alphabetical order, at most `NAMES_MAX` of them. */
function namesOf(nodes: readonly string[]): string {
  const names = [...nodes].sort((a, b) => (a < b ? -1 : 1));
  const more = names.length > NAMES_MAX ? ` and ${names.length - NAMES_MAX} more` : "";
  return `${names.slice(0, NAMES_MAX).join(", ")}${more}`;
}

function setCondition(
  conditions: readonly Condition[],
  wanted: Omit<Condition, "lastTransitionTime">,
  transitionMs: number,
): Condition[] {
  const before = findCondition(conditions, wanted.type);
  const lastTransitionTime =
    before !== undefined && before.status === wanted.status ? before.lastTransitionTime : toTime(transitionMs);
  const after = { ...wanted, lastTransitionTime };
  if (before === undefined) return [...conditions, after];
  return conditions.map((condition) => (condition.type === wanted.type ? after : condition));
}

// The first phase that applies, in the order of this function.
function phaseOf(parts: StatusParts): { phase: string; reason: string } {
  const { disabled, pauseRequests, inFlight, failed = [], gateReason, counts } = parts;
  if (disabled !== undefined) {
    return { phase: "Disabled", reason: `NHC is disabled: ${disabled.reason}: ${disabled.message}` };
  }
  if (pauseRequests.length > 0) return { phase: "Paused", reason: `NHC is paused: ${pauseRequests.join(",")}` };
  const nothingNew = gateReason === undefined ? "" : `. ${gateReason}`;
  const remediating = Object.keys(inFlight).length;
  if (remediating > 0) return { phase: "Remediating", reason: `NHC is remediating ${remediating} nodes${nothingNew}` };
  const last = `the last remediation failed for ${namesOf(failed.map(({ name }) => name))}`;
  if (failed.length > 0) return { phase: "Enabled", reason: `NHC is enabled; ${last}${nothingNew}` };
  if (counts?.observedNodes === 0) {
    return { phase: "Enabled", reason: "NHC is enabled, but its selector matches no node" };
  }
  return { phase: "Enabled", reason: `NHC is enabled, no ongoing remediation${nothingNew}` };
}
