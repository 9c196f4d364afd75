import type { Clock } from "../runtime/clock.ts";
import type { ClusterAccess } from "./credentials.ts";
import { KubeError } from "./errors.ts";
import type { KubeTransport } from "./transport.ts";

export function createHttpTransport(cluster: ClusterAccess, deps: { clock: Clock }): KubeTransport {
  throw new KubeError("Network", `not built yet: ${cluster.server} ${deps.clock.nowMs()}`);
}
