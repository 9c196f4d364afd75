/**
 * The state of the storm guard of one health check. While the threshold is not met, no remediation starts (`storm`).
 * When it is met again, no remediation starts until the cooldown is over (`cooldown`). If the threshold is not met
 * during the cooldown, the state is `storm` again.
 */
export type Storm = { state: "calm" } | { state: "storm" } | { state: "cooldown"; sinceMs: number };

/**
 * @param cooldownMs undefined if the health check has no storm guard.
 * @param isThresholdMet whether enough nodes are healthy now. It is judged by every evaluation, so that a storm also
 *   ends when every node recovers.
 */
export function judgeStorm(
  previous: Storm,
  cooldownMs: number | undefined,
  isThresholdMet: boolean,
  nowMs: number,
): Storm {
  if (cooldownMs === undefined) return { state: "calm" };
  if (!isThresholdMet) return { state: "storm" };
  if (previous.state === "calm") return previous;
  const sinceMs = previous.state === "cooldown" ? previous.sinceMs : nowMs;
  return sinceMs + cooldownMs <= nowMs ? { state: "calm" } : { state: "cooldown", sinceMs };
}
