import { KubeError } from "./errors.ts";
import type { KubeTransport } from "./transport.ts";

/**
 * The same transport; it sends no write while `mayWrite` says no: the process was suspended, and its lease may be another's.
 * Reads go on, and so do the calls on the lease itself.
 */
export function guardWrites(transport: KubeTransport, mayWrite: () => boolean): KubeTransport {
  return {
    async send(request, signal) {
      if (request.method !== "GET" && request.lane !== "lease" && !mayWrite()) {
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
