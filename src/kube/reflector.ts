import type { Clock } from "../runtime/clock.ts";
import type { Random } from "../runtime/random.ts";
import type { Logger } from "../telemetry/logger.ts";
import { KubeError } from "./errors.ts";
import type { KubeObject } from "./resource.ts";
import type { WatchOptions } from "./runtime.ts";
import type { KubeTransport } from "./transport.ts";
import type { Watched } from "./watched.ts";

export interface ReflectorDeps {
  transport: KubeTransport;
  clock: Clock;
  random: Random;
  logger: Logger;
}

export function startReflector<T extends KubeObject>(
  deps: ReflectorDeps,
  options: WatchOptions<T>,
  signal: AbortSignal,
): Watched<T> {
  throw new KubeError("Network", `not built yet ${deps.clock.nowMs()} ${options.type.kind} ${signal.aborted}`);
}
