import type { Clock } from "../runtime/clock.ts";
import type { Random } from "../runtime/random.ts";
import type { Logger } from "../telemetry/logger.ts";
import type { ClockOffset } from "./server-time.ts";
import type { KubeClient } from "./client.ts";
import type { ClusterContact } from "./contact.ts";
import type { EventRecorder } from "./events.ts";
import type { KubeObject, ResourceType } from "./resource.ts";
import type { Watched } from "./watched.ts";

/** What a controller needs of one cluster; made once by the entry point. */
export interface KubeRuntime {
  client: KubeClient;
  clock: Clock;
  random: Random;
  logger: Logger;
  events: EventRecorder;
  /** How far the API server's clock is ahead of our own, by its last answers; undefined if they do not show it. */
  clockOffset?(): ClockOffset | undefined;
  /** What its answers say of the API server. */
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
   * Keeps of an object, as the server sent it, only what is needed; undefined drops it from the view. Must not throw.
   */
  trim: (raw: KubeObject) => T | undefined;
}
