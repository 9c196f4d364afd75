// The stop switch: a ConfigMap in the agent's namespace. While it says `paused: "true"` no new power order is sent.

export const STOP_SWITCH_NAME = "ironfence-pause";
/** Key of its data: `"true"` stops. */
export const STOP_SWITCH_PAUSED = "paused";
/** Key of its data: why, for people. */
export const STOP_SWITCH_REASON = "reason";
