/**
 * The storm guard of one health check. When the threshold is not met, nothing new starts (`storm`). When it is met
 * again, nothing new starts until the cooldown is over (`cooldown`). If the threshold is not met in this time, it is a
 * storm again.
 */
export type Storm = { state: "calm" } | { state: "storm" } | { state: "cooldown"; sinceMs: number };

/**
 * @param cooldownMs undefined: the guard is off.
 * @param thresholdHolds whether enough nodes are healthy now; judged on every evaluation, so that a storm ends also
 * when every node recovers.
 */
export function judgeStorm(
  previous: Storm,
  cooldownMs: number | undefined,
  thresholdHolds: boolean,
  nowMs: number,
): Storm {
  if (cooldownMs === undefined) return { state: "calm" };
  if (!thresholdHolds) return { state: "storm" };
  if (previous.state === "calm") return previous;
  const sinceMs = previous.state === "cooldown" ? previous.sinceMs : nowMs;
  return sinceMs + cooldownMs <= nowMs ? { state: "calm" } : { state: "cooldown", sinceMs };
}
