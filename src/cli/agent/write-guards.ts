import type { RunOptions } from "../../config/resolve-run-options.ts";
import { guardWrites } from "../../kube/connection/transport/guarded-transport.ts";
import { sendNoWrites } from "../../kube/connection/transport/observing-transport.ts";
import type { KubeTransport } from "../../kube/transport.ts";

/** All that the agent changes goes through these. */
export interface WriteGuards {
  /** To the API server of the agent's own cluster. */
  transport: KubeTransport;
  /** Asked before each power order, and before each write to a workload cluster. */
  isOrderAllowed: () => boolean;
}

/**
 * Guards what the agent changes, at one place that nothing passes by: no write and no order without the lease, and none
 * at all if the agent only observes.
 *
 * @param mayAct whether the agent leads at this moment.
 */
export function guardAgent(
  transport: KubeTransport,
  { observe, namespace, leaseName }: Pick<RunOptions, "observe" | "namespace" | "leaseName">,
  mayAct: () => boolean,
): WriteGuards {
  const allowed = observe ? sendNoWrites(transport, { namespace, name: leaseName }) : transport;
  return { transport: guardWrites(allowed, mayAct), isOrderAllowed: () => !observe && mayAct() };
}
