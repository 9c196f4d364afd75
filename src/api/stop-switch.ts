// The stop switch: a ConfigMap in the agent's namespace. While it stops, no new power order is sent.

export const STOP_SWITCH_NAME = "ironfence-pause";
/** Key of its data: anything but `"false"` stops. */
export const STOP_SWITCH_PAUSED = "paused";
/** Key of its data: why, for people. */
export const STOP_SWITCH_REASON = "reason";

/**
 * Whether a stop switch that exists, with this data, stops power orders. Whoever creates one in a hurry and misspells or
 * forgets the value means to stop, so `"false"` alone lets go.
 */
export function stops(data: Record<string, string> | undefined): boolean {
  return data?.[STOP_SWITCH_PAUSED]?.trim().toLowerCase() !== "false";
}
