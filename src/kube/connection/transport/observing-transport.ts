import { KubeError } from "../../errors.ts";
import type { KubeTransport, TransportRequest } from "../../transport.ts";

/** The only Lease that an agent with `--observe` writes. */
export interface OwnLease {
  namespace: string;
  name: string;
}

const EVENTS = /^\/apis\/events\.k8s\.io\/v1\/namespaces\/[^/?]+\/events(\/[^/?]+)?$/;
/** Reviews: POST requests that store nothing. */
const REVIEWS = [
  "/apis/authentication.k8s.io/v1/tokenreviews",
  "/apis/authorization.k8s.io/v1/subjectaccessreviews",
  "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
];

/**
 * Wraps the transport of an agent that only observes. It sends GET requests, reviews, and writes of Kubernetes Events
 * and of the agent's own Lease. It refuses every other request before it is sent.
 */
export function sendNoWrites(transport: KubeTransport, lease: OwnLease): KubeTransport {
  const refuse = ({ method, path }: TransportRequest): void => {
    throw new KubeError("Aborted", `${method} ${path} was not sent: this agent only observes (--observe)`);
  };
  return {
    async send(request, signal) {
      if (!maySend(request, lease)) refuse(request);
      return transport.send(request, signal);
    },
    async stream(request, signal) {
      if (request.method !== "GET") refuse(request);
      return transport.stream(request, signal);
    },
    close: () => transport.close(),
  };
}

function maySend({ method, path, body }: TransportRequest, lease: OwnLease): boolean {
  if (method === "GET") return true;
  if (method === "POST" && REVIEWS.includes(path)) return true;
  if ((method === "POST" || method === "PATCH") && EVENTS.test(path)) return true;
  const leases = `/apis/coordination.k8s.io/v1/namespaces/${lease.namespace}/leases`;
  if (method === "PATCH") return path === `${leases}/${lease.name}`;
  return method === "POST" && path === leases && nameIn(body) === lease.name;
}

/** The name of the object in a request. */
function nameIn(body: string | undefined): unknown {
  try {
    const object = JSON.parse(body ?? "") as { metadata?: { name?: unknown } } | null;
    return object?.metadata?.name;
  } catch {
    return undefined;
  }
}
