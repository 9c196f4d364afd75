import { KubeError } from "../../../kube/errors.ts";
import type { KubeTransport, TransportRequest } from "../../../kube/transport.ts";

/** Reviews of permissions. They are sent by POST, but store nothing. */
const REVIEW = /^\/apis\/authorization\.k8s\.io\/v1\/(?:self)?subjectaccessreviews$/u;
const SECRETS = /\/secrets(?:\/|$)/u;

/** A transport that only reads, and never reads a Secret. It refuses every other request of a part. */
export function readOnly(transport: KubeTransport): KubeTransport {
  const guard = ({ method, path }: TransportRequest): void => {
    const plain = path.split("?", 1)[0] ?? "";
    const isReview = method === "POST" && REVIEW.test(plain);
    if ((method === "GET" || isReview) && !SECRETS.test(decodeURIComponent(plain))) return;
    throw new KubeError("Forbidden", `${method} ${plain}: a support bundle writes nothing and reads no Secret`);
  };
  return {
    send: async (request, signal) => {
      guard(request);
      return transport.send(request, signal);
    },
    stream: async (request, signal) => {
      guard(request);
      return transport.stream(request, signal);
    },
    close: () => transport.close(),
  };
}
