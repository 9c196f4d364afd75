import { causeText } from "../../../api/ironfence/bare-metal-remediation.ts";
import type { TargetOutcome } from "../../../api/ironfence/fencing-target.ts";
import { toTime } from "../../../runtime/time.ts";
import type { Outcome } from "../../machine/model/decision/state.ts";
import type { EffectSession } from "./effect-context.ts";

const RESULTS = { Failed: "Failed", TimedOut: "TimedOut", Deleted: "CalledOff" } as const satisfies Record<
  Outcome["verdict"],
  TargetOutcome["result"]
>;
const MESSAGE_MAX = 256;

/**
 * The result of a remediation that releases its host, for the record of the host; undefined if the remediation is not
 * over.
 */
export function outcomeOf(session: EffectSession): TargetOutcome | undefined {
  const { state, status } = session;
  const { namespace = "", name, uid, creationTimestamp } = session.remediation.metadata;
  const common = {
    time: toTime(session.now().epochMs),
    ...(creationTimestamp !== undefined && { startTime: creationTimestamp }),
    ...(status.evidence !== undefined && { cause: causeText(status.evidence) }),
    attempts: (status.retryCount ?? 0) + 1,
    remediation: { namespace, name, uid },
  };
  switch (state.name) {
    case "Undoing": {
      const { verdict, reason, message } = state.outcome;
      return { ...common, result: RESULTS[verdict], reason, message: message.slice(0, MESSAGE_MAX) };
    }
    case "Restoring": {
      const message =
        state.attempt.action === "None"
          ? "the node came back by itself, before any power order"
          : "the node is Ready again in a new boot";
      return { ...common, result: "Succeeded", reason: "NodeRestored", message };
    }
    default:
      return undefined;
  }
}
