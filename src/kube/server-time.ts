import type { KubeRuntime } from "./runtime.ts";

/**
 * The time by the API server's clock, no later than it is: what ends by that clock must not end too soon for an agent whose own
 * clock is ahead, or is set while it runs. Our own clock where no answer has been dated.
 */
export function serverTimeMs({ clock, contact }: Pick<KubeRuntime, "clock" | "contact">): number {
  return contact().serverTimeMs ?? clock.nowMs();
}
