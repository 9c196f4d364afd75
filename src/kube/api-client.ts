import type { Clock } from "../runtime/clock.ts";
import type { Random } from "../runtime/random.ts";
import type { KubeClient } from "./client.ts";
import { KubeError } from "./errors.ts";
import type { KubeTransport, Lane } from "./transport.ts";

export interface KubeClientDeps {
  transport: KubeTransport;
  clock: Clock;
  random: Random;
  /** `api` where absent. */
  lane?: Lane;
}

export function createKubeClient(deps: KubeClientDeps): KubeClient {
  throw new KubeError("Network", `not built yet ${deps.lane}`);
}
