import { sleep } from "../../runtime/clock.ts";
import type { ResourceType } from "../resource.ts";
import { apiVersionOf } from "../resource.ts";
import type { KubeRuntime } from "../runtime.ts";

/**
 * Resolves when the API server serves a kind, for example after its CRD was installed.
 *
 * @param onAbsent is called once if the API server does not serve the kind yet.
 * @throws the reason of `signal` on abort. If discovery fails, it is repeated.
 */
export async function whenServed(
  runtime: Pick<KubeRuntime, "client" | "clock" | "logger">,
  type: ResourceType,
  { retryMs, onAbsent }: { retryMs: number; onAbsent: () => void },
  signal: AbortSignal,
): Promise<void> {
  const { client, clock, logger } = runtime;
  const { kind } = type;
  const apiVersion = apiVersionOf(type);
  for (let reported = false; ;) {
    try {
      if ((await client.discover(apiVersion, kind, signal)) !== undefined) return;
      if (!reported) onAbsent();
      reported = true;
    } catch (error) {
      signal.throwIfAborted();
      logger.warn({ err: error, apiVersion, kind }, "cannot find out whether the API server serves a kind");
    }
    await sleep(clock, retryMs, signal);
  }
}
