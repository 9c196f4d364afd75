import { causeText } from "../../../api/ironfence/bare-metal-remediation.ts";
import type { BareMetalRemediation } from "../../../api/ironfence/bare-metal-remediation.ts";
import { nodeKey } from "../../../nodes/subject.ts";
import { reasonPage, REASONS } from "../../../remediator/machine/model/decision/reasons.ts";
import type { Reason } from "../../../remediator/machine/model/decision/reasons.ts";
import { isFinal } from "../../../remediator/machine/model/decision/state.ts";
import { parseTimeMs } from "../../../runtime/time.ts";
import { itemsOf } from "../../status/objects/object-problems.ts";
import { conditionOf } from "../../../api/schema/read-fields.ts";
import type { Overview } from "../../status/objects/read.ts";
import { byName } from "../../status/could-fence/could-fence.ts";
import { whereOf } from "./fences.ts";

/** How a fence of the last days ended. */
export interface Ended {
  node: string;
  isLocal: boolean;
  at: string;
  result: "Succeeded" | "Failed" | "TimedOut" | "CalledOff";
  reason: string;
  message: string;
  /** Why the host died; undefined if that was not read. */
  cause: string | undefined;
  /**
   * The time from the creation of the remediation to its verdict; undefined if an older agent has stored the outcome.
   */
  tookMs: number | undefined;
  /** The page that explains the reason of a failure. */
  page: string | undefined;
  /** The page that says what to do after a failure. */
  runbook: string | undefined;
}

const DAY_MS = 86_400_000;
export const PAST_DAYS = 30;

const KNOWN: ReadonlySet<string> = new Set(REASONS);

/**
 * The fences that ended within the last days, the latest first: the outcomes in targets, and remediations that still
 * exist. Pure.
 */
export function endedOf(overview: Overview): Ended[] {
  const sinceMs = overview.nowMs - PAST_DAYS * DAY_MS;
  const final = new Map(
    itemsOf(overview.remediations)
      .filter(({ status }) => isFinal(status?.phase))
      .map((remediation) => [remediation.metadata.uid, remediation]),
  );
  const remembered = itemsOf(overview.targets).flatMap(({ spec, status }) =>
    (status?.outcomes ?? []).map(
      ({ time, startTime, result, reason, message, cause, remediation }): Ended & { uid: string } => {
        const node = nodeKey({ cluster: spec.clusterRef, name: spec.nodeName });
        const tookMs = tookOf(final.get(remediation.uid)) ?? between(startTime, time);
        const isLocal = spec.clusterRef === undefined;
        return {
          uid: remediation.uid,
          node,
          isLocal,
          at: time,
          result,
          reason,
          message,
          cause,
          tookMs,
          page: pageFor(result, reason),
          runbook: runbookFor(result),
        };
      },
    ),
  );
  const seen = new Set(remembered.map(({ uid }) => uid));
  const others = [...final.values()].flatMap((remediation): Ended[] => {
    const verdict = conditionOf(remediation.status?.conditions, "Succeeded");
    if (seen.has(remediation.metadata.uid) || verdict === undefined) return [];
    const result = verdict.status === "True" ? "Succeeded" : "Failed";
    const { reason, message, lastTransitionTime: at } = verdict;
    const { node, isLocal } = whereOf(remediation);
    return [
      {
        node,
        isLocal,
        at,
        result,
        reason,
        message,
        cause: remediation.status?.evidence && causeText(remediation.status.evidence),
        tookMs: tookOf(remediation),
        page: pageFor(result, reason),
        runbook: runbookFor(result),
      },
    ];
  });
  return [...remembered.map(({ uid: _uid, ...ended }) => ended), ...others]
    .filter(({ at }) => (parseTimeMs(at) ?? 0) >= sinceMs)
    .toSorted((a, b) => b.at.localeCompare(a.at) || byName(a.node, b.node));
}

function tookOf(remediation: BareMetalRemediation | undefined): number | undefined {
  const verdict = conditionOf(remediation?.status?.conditions, "Succeeded");
  return between(remediation?.metadata.creationTimestamp, verdict?.lastTransitionTime);
}

function between(start: string | undefined, end: string | undefined): number | undefined {
  const [startMs, endMs] = [parseTimeMs(start), parseTimeMs(end)];
  return endMs === undefined || startMs === undefined || endMs < startMs ? undefined : endMs - startMs;
}

function pageFor(result: Ended["result"], reason: string): string | undefined {
  return result !== "Succeeded" && KNOWN.has(reason) ? reasonPage(reason as Reason) : undefined;
}

function runbookFor(result: Ended["result"]): string | undefined {
  return result === "Failed" || result === "TimedOut" ? "docs/how-to/runbooks/remediation-failed.md" : undefined;
}
