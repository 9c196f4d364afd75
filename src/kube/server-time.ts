import type { KubeRuntime } from "./runtime.ts";

/**
 * The earliest time that the clocks of the API servers show. A period that ends by such a clock must not end too soon
 * for an agent whose own clock is ahead, or is set while it runs. The agent's own clock counts until an answer has a
 * date.
 */
export function serverTimeMs({ clock, contact }: Pick<KubeRuntime, "clock" | "contact">): number {
  return contact().earliestServerTimeMs ?? clock.nowMs();
}
