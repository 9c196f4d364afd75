import { KubeError } from "../../errors.ts";
import type { KubeTransport, Lane } from "../../transport.ts";

/** The calls on the lease itself, and questions that take the form of a write and change nothing. */
const FREE_LANES: ReadonlySet<Lane> = new Set<Lane>(["lease", "review"]);

/**
 * The same transport; it sends no write while `mayWrite` says no: the process was suspended, and another one may hold
 * the lease. Reads go on, and so do the calls on the lease itself, and reviews.
 */
export function guardWrites(transport: KubeTransport, mayWrite: () => boolean): KubeTransport {
  return {
    async send(request, signal) {
      if (request.method !== "GET" && !FREE_LANES.has(request.lane) && !mayWrite()) {
        throw new KubeError(
          "Aborted",
          `${request.method} ${request.path} was not sent: the lease is not held any more`,
        );
      }
      return transport.send(request, signal);
    },
    stream: (request, signal) => transport.stream(request, signal),
    close: () => transport.close(),
  };
}
