import type { Clock } from "../runtime/clock.ts";
import type { Random } from "../runtime/random.ts";
import type { Logger } from "../telemetry/logger.ts";
import { createKubeClient } from "./api-client.ts";
import { measureClock } from "./clock-offset.ts";
import type { KubeClient } from "./client.ts";
import { followContact } from "./contact.ts";
import { createEventRecorder } from "./event-recorder.ts";
import type { ReadBudget } from "./read-budget.ts";
import { startReflector } from "./reflector.ts";
import type { KubeRuntime } from "./runtime.ts";
import type { KubeTransport } from "./transport.ts";

export interface KubeRuntimeDeps {
  transport: KubeTransport;
  clock: Clock;
  random: Random;
  logger: Logger;
  /** `reportingController` of events, e.g. `ironfence.io/agent`. */
  controllerName: string;
  /** `reportingInstance` of events: this process, e.g. the pod's name. */
  instance: string;
  /** For an API server that anybody may run; without bounds by default. */
  budget?: ReadBudget;
}

/** A runtime whose background work (sending events) goes on while `run` does. */
export interface RunnableKubeRuntime extends KubeRuntime {
  /** A client on connections of its own, for the leader's Lease and nothing else. */
  leaseClient: KubeClient;
  /** The same for reviews of access, which every agent asks for, whether it leads or not. */
  reviewClient: KubeClient;
  run(signal: AbortSignal): Promise<void>;
}

/** Puts the parts of `src/kube` together over one transport. */
export function createKubeRuntime(deps: KubeRuntimeDeps): RunnableKubeRuntime {
  const { clock, random, logger, controllerName, instance, budget } = deps;
  const followed = followContact(deps.transport, clock);
  const { transport, clockOffset } = measureClock(followed.transport, clock);
  const client = createKubeClient({ transport, clock, random, budget });
  const events = createEventRecorder({ client, clock, random, logger }, { controller: controllerName, instance });
  return {
    client,
    leaseClient: createKubeClient({ transport, clock, random, lane: "lease" }),
    reviewClient: createKubeClient({ transport, clock, random, lane: "review" }),
    clock,
    random,
    logger,
    events,
    clockOffset,
    contact: followed.contact,
    watch: (options, signal) => startReflector({ transport, clock, random, logger, budget }, options, signal),
    run: (signal) => events.run(signal),
  };
}
