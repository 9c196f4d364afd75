import { KubeError } from "../../errors.ts";
import type { KubeTransport, Lane } from "../../transport.ts";

/** The calls on the lease itself, and reviews, which are POST requests that change nothing. */
const FREE_LANES: ReadonlySet<Lane> = new Set<Lane>(["lease", "review"]);

/**
 * Wraps a transport that sends no write while `mayWrite` returns false. In that case the process was suspended, and
 * another one may hold the lease. Reads, calls on the lease itself and reviews are still sent.
 */
export function guardWrites(transport: KubeTransport, mayWrite: () => boolean): KubeTransport {
  return {
    async send(request, signal) {
      if (request.method !== "GET" && !FREE_LANES.has(request.lane) && !mayWrite()) {
        throw new KubeError(
          "Aborted",
          `${request.method} ${request.path} was not sent: this agent no longer holds the lease`,
        );
      }
      return transport.send(request, signal);
    },
    stream: (request, signal) => transport.stream(request, signal),
    close: () => transport.close(),
  };
}
