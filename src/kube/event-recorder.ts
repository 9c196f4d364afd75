import type { Clock } from "../runtime/clock.ts";
import type { Random } from "../runtime/random.ts";
import type { Logger } from "../telemetry/logger.ts";
import type { KubeClient } from "./client.ts";
import type { EventRecorder } from "./events.ts";

export interface EventRecorderDeps {
  client: KubeClient;
  clock: Clock;
  random: Random;
  logger: Logger;
}

export function createEventRecorder(
  deps: EventRecorderDeps,
  options: { controller: string; instance: string },
): EventRecorder & { run(signal: AbortSignal): Promise<void> } {
  throw new Error(`not built yet ${deps.clock.nowMs()} ${options.controller}`);
}
