import type { Clock } from "../runtime/clock.ts";
import type { Random } from "../runtime/random.ts";
import type { Logger } from "../telemetry/logger.ts";
import type { ClockOffset } from "./server-time.ts";
import type { KubeClient } from "./client.ts";
import type { ClusterContact } from "./contact.ts";
import type { EventRecorder } from "./events.ts";
import type { KubeObject, ResourceType } from "./resource.ts";
import type { Watched } from "./watched.ts";

/** What a controller needs to work with one cluster. */
export interface KubeRuntime {
  client: KubeClient;
  clock: Clock;
  random: Random;
  logger: Logger;
  events: EventRecorder;
  /** How far the API server's clock is ahead of the agent's, by its last answers; undefined if they do not show it. */
  clockOffset?(): ClockOffset | undefined;
  /** What the answers of the API server show about it. */
  contact(): ClusterContact;
  /** Starts a list-then-watch; it ends when `signal` aborts. */
  watch<T extends KubeObject>(options: WatchOptions<T>, signal: AbortSignal): Watched<T>;
}

export interface WatchOptions<T extends KubeObject> {
  type: ResourceType;
  namespace?: string;
  labelSelector?: string;
  fieldSelector?: string;
  /**
   * Reduces an object, as the server sent it, to what is needed. Returns undefined to leave it out of the view. Must
   * not throw.
   */
  trim: (raw: KubeObject) => T | undefined;
}
