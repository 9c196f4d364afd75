import type { KubeRuntime } from "./runtime.ts";

/**
 * The time by the clocks of the API servers, no later than it is by any of them: what ends by such a clock must not end
 * too soon for an agent whose own clock is ahead, or is set while it runs. Our own clock where no answer has been
 * dated.
 */
export function serverTimeMs({ clock, contact }: Pick<KubeRuntime, "clock" | "contact">): number {
  return contact().earliestServerTimeMs ?? clock.nowMs();
}
