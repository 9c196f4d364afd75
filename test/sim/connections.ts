import type { KubeTransport, Lane, TransportRequest } from "../../src/kube/transport.ts";
import { CONNECTIONS_MAX } from "../../src/kube/connection/transport/lane-pools.ts";
import type { Clock } from "../../src/runtime/clock.ts";
import { sleep } from "../../src/runtime/clock.ts";
import { KubeError } from "../../src/kube/errors.ts";
import { DeadlineError, withDeadline } from "../../src/runtime/deadline.ts";
import { Semaphore } from "../../src/runtime/semaphore.ts";

/** The connections of a simulated agent to one API server. */
export interface Connections {
  /** The largest number of connections of each lane; by default as many as to the agent's own cluster. */
  max?: Readonly<Record<Lane, number>>;
  /** How long a call occupies its connection in addition to the time that the server takes; 0 by default. */
  callMs?: () => number;
  /** Called when a call gets its connection. */
  onSent?: (request: TransportRequest, waitedMs: number) => void;
}

/**
 * Limits how many calls of each lane are sent at a time. Further calls wait in the order of arrival, and the deadline
 * of a call includes its wait, as with the pools of undici. Watches are not limited.
 */
export function limitConnections(inner: KubeTransport, clock: Clock, connections: Connections = {}): KubeTransport {
  const { max = CONNECTIONS_MAX, callMs = () => 0, onSent } = connections;
  const limits = new Map<Lane, Semaphore>();
  const limitOf = (lane: Lane): Semaphore => {
    const limit = limits.get(lane) ?? new Semaphore(max[lane]);
    limits.set(lane, limit);
    return limit;
  };
  return {
    async send(request, signal) {
      const askedMs = clock.monotonicMs();
      const { method, path, timeoutMs, lane } = request;
      const what = `${method} ${path}`;
      try {
        return await withDeadline(clock, what, timeoutMs, signal, (bounded) =>
          limitOf(lane).run(bounded, async () => {
            onSent?.(request, clock.monotonicMs() - askedMs);
            if (callMs() > 0) await sleep(clock, callMs(), bounded);
            return await inner.send({ ...request, timeoutMs: timeoutMs - (clock.monotonicMs() - askedMs) }, bounded);
          }),
        );
      } catch (error) {
        if (error instanceof DeadlineError) throw new KubeError("Timeout", error.message, { cause: error });
        if (signal.aborted && !(error instanceof KubeError)) throw new KubeError("Aborted", what, { cause: error });
        throw error;
      }
    },
    stream: (request, signal) => inner.stream(request, signal),
    close: () => inner.close(),
  };
}
