/** What a fence of a node needs, in the order in which both halves of the agent check it. */
export type Step = "agent" | "health check" | "remediation" | "target" | "maintenance" | "pause" | "admission";

/** One precondition of a fence of one node. */
export interface Precondition {
  step: Step;
  /**
   * `blocks`: because of this step the node cannot be fenced now. `unknown`: you have no permission to read the step,
   * or nothing shows it.
   */
  state: "ok" | "blocks" | "unknown";
  /** A reason of ironfence, such as `AuthenticationFailed`; empty if there is nothing to report. */
  reason: string;
  /** What is wrong, without the name of the object: nodes with the same reason share the message. */
  message: string;
  /** The same for one node, with the name of the object. */
  found: string;
  /**
   * Whether an administrator has asked for this state, or it ends by itself. A check that runs after an upgrade does
   * not fail because of it.
   */
  isIntended: boolean;
}

type Details = Partial<Pick<Precondition, "found" | "isIntended">>;

export function ok(step: Step, found: string): Precondition {
  return { step, state: "ok", reason: "", message: "", found, isIntended: false };
}

export function blocks(step: Step, reason: string, message: string, details: Details = {}): Precondition {
  return { step, state: "blocks", reason, message, found: message, isIntended: false, ...details };
}

export function unknown(step: Step, reason: string, message: string, details: Details = {}): Precondition {
  return { step, state: "unknown", reason, message, found: message, isIntended: false, ...details };
}
