import { sleep } from "../../runtime/clock.ts";
import type { ResourceType } from "../resource.ts";
import type { KubeRuntime } from "../runtime.ts";

/** A kind of which any of several versions will do. */
export interface KindVersions {
  group: string;
  kind: string;
  /** In the order of preference. */
  versions: readonly string[];
}

/**
 * How the API server serves a kind, in the first of the versions that it serves; undefined if it serves none of them.
 *
 * @throws KubeError if it cannot be asked.
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

/** How often a kind that is not served yet is asked for. */
const SERVED_RETRY_MS = 15_000;

/**
 * The same, once it is served, which it may be only after its CRD was installed; the log says once that it is not.
 *
 * @throws the reason of `signal` on abort; an API server that fails is asked again.
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
