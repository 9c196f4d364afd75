import { parseTimeMs } from "../../runtime/time.ts";
import type { ConfigMap } from "../kubernetes/core.ts";

// The stop switch: a ConfigMap in the agent's namespace. While it pauses, no new power-off is sent.

export const STOP_SWITCH_NAME = "ironfence-pause";
/** Key of its data: any value except `"false"` pauses. */
export const STOP_SWITCH_PAUSED = "paused";
/** Key of its data: the reason, for information. */
export const STOP_SWITCH_REASON = "reason";
/** Key of its data: who paused, for information. */
export const STOP_SWITCH_BY = "by";
/** Key of its data: when the pause began, for information, RFC 3339. */
export const STOP_SWITCH_SINCE = "since";
/**
 * Key of its data: when the pause ends by itself, RFC 3339. Without it, or if it is not valid, the pause lasts until a
 * user ends it.
 */
export const STOP_SWITCH_UNTIL = "until";

/** A pause that holds power-offs now. */
export interface Pause {
  /** In one line: which ConfigMap, why, who, since when, until when. */
  reason: string;
  /** When it ends by itself; undefined if it does not. */
  untilMs: number | undefined;
}

type Data = Record<string, string> | undefined;

/**
 * Whether an existing stop switch with this data holds power-offs. A user who creates the ConfigMap in a hurry may
 * misspell or forget the value and still wants to pause, so only `"false"` or an end in the past resumes.
 */
export function stops(data: Data, nowMs: number): boolean {
  const untilMs = untilOf(data);
  if (untilMs !== undefined && nowMs >= untilMs) return false;
  return data?.[STOP_SWITCH_PAUSED]?.trim().toLowerCase() !== "false";
}

/** Why the stop switch holds power-offs now; undefined if it does not hold them or does not exist. */
export function stoppedBy(configMap: ConfigMap | undefined, nowMs: number): Pause | undefined {
  if (configMap === undefined || !stops(configMap.data, nowMs)) return undefined;
  const { data } = configMap;
  const { namespace, name } = configMap.metadata;
  const [by, since] = [data?.[STOP_SWITCH_BY], data?.[STOP_SWITCH_SINCE]];
  const untilMs = untilOf(data);
  const facts = [
    ...(by === undefined ? [] : [` by ${by}`]),
    ...(since === undefined ? [] : [` since ${since}`]),
    ...(untilMs === undefined ? [] : [` until ${data?.[STOP_SWITCH_UNTIL] ?? ""}`]),
  ];
  const paused = `paused${facts.join("")} (ConfigMap ${namespace}/${name})`;
  return { reason: `${paused}${whyText(data)}`, untilMs };
}

function whyText(data: Data): string {
  const reason = data?.[STOP_SWITCH_REASON]?.trim();
  if (reason !== undefined && reason !== "") return `: ${reason}`;
  if (data?.[STOP_SWITCH_PAUSED] === "true") return "";
  return `, although its data.paused is not "true": set it to "false" or delete it to resume`;
}

/** A text that is not a valid RFC 3339 time must not end a pause. */
function untilOf(data: Data): number | undefined {
  const text = data?.[STOP_SWITCH_UNTIL];
  return text !== undefined && /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/.test(text)
    ? parseTimeMs(text)
    : undefined;
}
