import type { Clock } from "../../runtime/clock.ts";
import type { Random } from "../../runtime/random.ts";
import type { Logger } from "../../telemetry/logger.ts";
import { createKubeClient } from "../api-client/api-client.ts";
import { boundAnswers } from "../answers/bounded-transport.ts";
import { measureClock } from "./measure-clock.ts";
import type { KubeClient } from "../client.ts";
import { followContact } from "./follow-contact.ts";
import { createEventRecorder } from "../reconcile/event-recorder.ts";
import type { ReadBudget } from "../answers/read-budget.ts";
import { WorkAllowance } from "../answers/read-budget.ts";
import { startReflector } from "../watch/reflector.ts";
import type { KubeRuntime } from "../runtime.ts";
import type { KubeTransport } from "../transport.ts";

export interface KubeRuntimeDeps {
  transport: KubeTransport;
  clock: Clock;
  random: Random;
  logger: Logger;
  /** `reportingController` of events, for example `ironfence.io/agent`. */
  controllerName: string;
  /** `reportingInstance` of events: this process, for example the pod's name. */
  instance: string;
  /** The bounds for an untrusted API server; none by default. */
  budget?: ReadBudget;
  /**
   * The allowance for reading from the server. Pass it if `transport` charges it as well; by default, the runtime has
   * its own.
   */
  work?: WorkAllowance;
}

/** A runtime that sends Kubernetes Events in the background while `run` runs. */
export interface RunnableKubeRuntime extends KubeRuntime {
  /** A client with its own connections, only for the Leases of leader election. */
  leaseClient: KubeClient;
  /** The same for access reviews. Every agent sends them, whether it leads or not. */
  reviewClient: KubeClient;
  /** The same for the pages of the dashboard. */
  pageClient: KubeClient;
  run(signal: AbortSignal): Promise<void>;
}

/** Creates all parts of a runtime over one transport. */
export function createKubeRuntime(deps: KubeRuntimeDeps): RunnableKubeRuntime {
  const { clock, random, logger, controllerName, instance, budget } = deps;
  const work = deps.work ?? new WorkAllowance(clock, budget);
  const bounded = budget === undefined ? deps.transport : boundAnswers(deps.transport, budget, work);
  const followed = followContact(bounded, clock);
  const { transport, clockOffset } = measureClock(followed.transport, clock);
  const client = createKubeClient({ transport, clock, random, budget, work });
  const events = createEventRecorder({ client, clock, random, logger }, { controller: controllerName, instance });
  return {
    client,
    leaseClient: createKubeClient({ transport, clock, random, lane: "lease" }),
    reviewClient: createKubeClient({ transport, clock, random, lane: "review" }),
    pageClient: createKubeClient({ transport, clock, random, lane: "page" }),
    clock,
    random,
    logger,
    events,
    clockOffset,
    contact: followed.contact,
    watch: (options, signal) => startReflector({ transport, clock, random, logger, budget, work }, options, signal),
    run: (signal) => events.run(signal),
  };
}
