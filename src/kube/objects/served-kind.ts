import { sleep } from "../../runtime/clock.ts";
import type { ResourceType } from "../resource.ts";
import type { KubeRuntime } from "../runtime.ts";

/** A kind that the agent can use in any of several versions. */
export interface KindVersions {
  group: string;
  kind: string;
  /** In order of preference. */
  versions: readonly string[];
}

/**
 * How the API server serves a kind, in the first version that it serves; undefined if it serves none of them.
 *
 * @throws KubeError if discovery fails.
 */
export async function findServed(
  runtime: Pick<KubeRuntime, "client">,
  { group, kind, versions }: KindVersions,
  signal: AbortSignal,
): Promise<ResourceType | undefined> {
  for (const version of versions) {
    const type = await runtime.client.discover(`${group}/${version}`, kind, signal);
    if (type !== undefined) return type;
  }
  return undefined;
}

/** How often discovery is repeated for a kind that is not served yet. */
const SERVED_RETRY_MS = 15_000;

/**
 * As `findServed`, but waits until the API server serves the kind, for example after its CRD was installed. Logs once
 * that it waits.
 *
 * @throws the reason of `signal` on abort. If discovery fails, it is repeated.
 */
export async function awaitServed(
  runtime: Pick<KubeRuntime, "client" | "clock" | "logger">,
  wanted: KindVersions,
  signal: AbortSignal,
): Promise<ResourceType> {
  const { clock, logger } = runtime;
  const { group, kind } = wanted;
  for (let reported = false; ;) {
    try {
      const type = await findServed(runtime, wanted, signal);
      if (type !== undefined) return type;
      if (!reported) logger.warn({ group, kind }, "the API server does not serve a kind yet, waiting for its CRD");
      reported = true;
    } catch (error) {
      signal.throwIfAborted();
      logger.warn({ err: error, group, kind }, "cannot find out whether the API server serves a kind");
    }
    await sleep(clock, SERVED_RETRY_MS, signal);
  }
}
