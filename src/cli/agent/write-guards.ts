import type { RunOptions } from "../../config/resolve-run-options.ts";
import { guardWrites } from "../../kube/connection/transport/guarded-transport.ts";
import { sendNoWrites } from "../../kube/connection/transport/observing-transport.ts";
import type { KubeTransport } from "../../kube/transport.ts";

/** Every change that the agent makes goes through these guards. */
export interface WriteGuards {
  /** The connection to the API server of the agent's own cluster. */
  transport: KubeTransport;
  /** Called before each power order, and before each write to a workload cluster. */
  isOrderAllowed: () => boolean;
}

/**
 * Guards every change at one place: the agent sends no write and no order without its lease, and none at all if it only
 * observes.
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
