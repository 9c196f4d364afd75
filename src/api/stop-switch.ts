import type { ConfigMap } from "./core.ts";

// The stop switch: a ConfigMap in the agent's namespace. While it stops, no new power-off is sent.

export const STOP_SWITCH_NAME = "ironfence-pause";
/** Key of its data: anything but `"false"` stops. */
export const STOP_SWITCH_PAUSED = "paused";
/** Key of its data: why, for people. */
export const STOP_SWITCH_REASON = "reason";

/**
 * Whether a stop switch that exists, with this data, stops power-offs. Whoever creates one in a hurry and misspells or
 * forgets the value means to stop, so `"false"` alone lets go.
 */
export function stops(data: Record<string, string> | undefined): boolean {
  return data?.[STOP_SWITCH_PAUSED]?.trim().toLowerCase() !== "false";
}

/** Why no power-off may be sent, by the stop switch as it is; undefined where one may, and where there is none. */
export function stoppedBy(configMap: ConfigMap | undefined): { reason: string } | undefined {
  if (configMap === undefined || !stops(configMap.data)) return undefined;
  const { data } = configMap;
  const { namespace, name } = configMap.metadata;
  const pausedBy = `paused by ConfigMap ${namespace}/${name}`;
  const reason = data?.[STOP_SWITCH_REASON]?.trim();
  if (reason !== undefined && reason !== "") return { reason: `${pausedBy}: ${reason}` };
  if (data?.[STOP_SWITCH_PAUSED] === "true") return { reason: pausedBy };
  return { reason: `${pausedBy}, although its data.paused is not "true": set it to "false" or delete it to resume` };
}
