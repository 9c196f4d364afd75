import type { FenceReadiness } from "../status/could-fence/could-fence.ts";
import { preconditionJudge, readinessOf } from "../status/could-fence/could-fence.ts";
import { NOT_COVERED } from "../status/could-fence/health-checks.ts";
import type { Precondition, Step } from "../status/could-fence/precondition.ts";
import { remediationFinder } from "../status/could-fence/remediations.ts";
import { itemsOf } from "../status/objects/object-problems.ts";
import type { Overview } from "../status/objects/read.ts";
import type { NodeExplanation } from "./words.ts";

/** One precondition of a fence of a node. */
export interface FenceStep {
  step: Step;
  /**
   * `blocks`: because of this step the node cannot be fenced now. `unknown`: you have no permission to read the step,
   * or nothing shows it. `idle`: nothing is wrong with the node, so nothing asks for a fence.
   */
  state: "ok" | "blocks" | "unknown" | "idle";
  found: string;
}

/** Why a node is or is not being fenced now, and whether it could be. */
export interface FenceExplanation {
  /** Undefined for a node that was deleted. */
  readiness: FenceReadiness | undefined;
  steps: FenceStep[];
}

/** Outcomes of a health check for which a remediation starts or is under way. */
const STARTS: ReadonlySet<string> = new Set(["create", "remediating"]);
/** Outcomes whose reason does not name what blocks a fence. */
const NOT_BLOCKED: ReadonlySet<string> = new Set([...STARTS, "healthy", "soonUnhealthy"]);

/** Explains one node. `checks` is what the detector decides about it. */
export type FenceExplainer = (nodeName: string, checks: readonly NodeExplanation[]) => FenceExplanation;

/**
 * The preconditions of a fence of a node, in the order in which both halves of the agent check them. The step of the
 * health check shows what the detector decides now; it is `idle` for a healthy node. What all nodes share is computed
 * once. Pure.
 */
export function fenceExplainer(overview: Overview): FenceExplainer {
  const nodes = new Map(itemsOf(overview.nodes).map((node) => [node.metadata.name, node]));
  const judge = preconditionJudge(overview);
  const remediationOf = remediationFinder(overview);
  return (nodeName, checks) => {
    const node = nodes.get(nodeName);
    const preconditions = judge(nodeName, node);
    const hasRemediation = remediationOf(nodeName) !== undefined;
    const steps = preconditions.map((precondition): FenceStep => {
      const { step, state, found } = precondition;
      return step === "health check" ? checkStep(precondition, checks, hasRemediation) : { step, state, found };
    });
    return { readiness: node === undefined ? undefined : { node: nodeName, ...readinessOf(preconditions) }, steps };
  };
}

function checkStep(
  { step, state, found }: Precondition,
  checks: readonly NodeExplanation[],
  hasRemediation: boolean,
): FenceStep {
  const concerned = checks.filter(({ selected, reasons }) => selected || reasons.length > 0);
  const decided = concerned.map(({ healthCheck, outcome, reason }) => `${healthCheck}: ${outcome}: ${reason}`);
  if (hasRemediation) {
    return { step, state: "ok", found: decided.join("; ") || "none; the remediation was made by hand" };
  }
  if (state !== "ok") {
    // The decision about an unhealthy node contains what blocks its fence.
    const isDecided = state === "blocks" && concerned.some(({ outcome }) => !NOT_BLOCKED.has(outcome));
    return { step, state, found: (isDecided ? decided : [found, ...decided]).join("; ") };
  }
  // No NodeHealthCheck is concerned. A MachineHealthCheck may be: `ironfence explain mhc` explains it.
  if (concerned.length === 0) return { step, state: found === NOT_COVERED ? "blocks" : "ok", found };
  if (concerned.some(({ outcome }) => STARTS.has(outcome))) return { step, state: "ok", found: decided.join("; ") };
  const isIdle = concerned.every(({ outcome }) => outcome === "healthy");
  return { step, state: isIdle ? "idle" : "blocks", found: decided.join("; ") };
}
