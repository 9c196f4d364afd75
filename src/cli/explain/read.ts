import type { NodeHealthCheckOptions } from "../../detector/nodes/run.ts";
import type { EvaluatedNodeChecks } from "../../detector/nodes/evaluate-once.ts";
import { evaluateNodeHealthChecks } from "../../detector/nodes/evaluate-once.ts";
import type { KubeClient } from "../../kube/client.ts";
import type { KubeError } from "../../kube/errors.ts";
import { isKubeError } from "../../kube/errors.ts";
import type { KubeObject } from "../../kube/resource.ts";
import type { KubeRuntime, WatchOptions } from "../../kube/runtime.ts";
import type { Watched } from "../../kube/watched.ts";
import { withDeadline } from "../../runtime/deadline.ts";
import { staticView } from "../cluster/static-view.ts";

const READ_TIMEOUT_MS = 60_000;

/**
 * Reads the cluster once and has the detector's own code decide on it. Nothing is watched and nothing can be written.
 *
 * @throws KubeError also if the user lacks a permission, because the explanation would then differ from the decision of
 * the agent.
 */
export function readDecisions(
  runtime: KubeRuntime,
  options: NodeHealthCheckOptions,
  signal: AbortSignal,
): Promise<EvaluatedNodeChecks> {
  return readOnce(runtime, (once, within) => evaluateNodeHealthChecks({ runtime: once, ...options }, within), signal);
}

/**
 * Runs `work` with a runtime that lists once instead of watching, and that cannot write. Throws as `readDecisions`
 * does.
 */
export async function readOnce<T>(
  runtime: KubeRuntime,
  work: (once: KubeRuntime, signal: AbortSignal) => Promise<T>,
  signal: AbortSignal,
): Promise<T> {
  const refused: KubeError[] = [];
  const client = readOnly(runtime.client, refused);
  const once: KubeRuntime = {
    ...runtime,
    client,
    watch: (options, until) => listOnce(runtime, client, options, until),
  };
  const result = await withDeadline(runtime.clock, "reading the cluster", READ_TIMEOUT_MS, signal, (within) =>
    work(once, within),
  );
  if (refused[0] !== undefined) throw refused[0];
  return result;
}

/**
 * @param refused collects the errors for objects that the user may not read. The agent may read them, which the code of
 * the detector cannot know.
 */
function readOnly(client: KubeClient, refused: KubeError[]): KubeClient {
  const refuse = (): Promise<never> => Promise.reject(new Error("explaining a decision writes nothing"));
  return {
    get: async (type, key, signal) => {
      try {
        return await client.get(type, key, signal);
      } catch (error) {
        if (isKubeError(error, "Forbidden")) refused.push(error);
        throw error;
      }
    },
    list: (type, options, signal) => client.list(type, options, signal),
    discover: (apiVersion, kind, signal) => client.discover(apiVersion, kind, signal),
    create: refuse,
    patch: refuse,
    mergePatch: refuse,
    delete: refuse,
  };
}

/** A view of one list, instead of a watch. */
function listOnce<T extends KubeObject>(
  { clock }: KubeRuntime,
  client: KubeClient,
  options: WatchOptions<T>,
  signal: AbortSignal,
): Watched<T> {
  const lastContactMs = clock.monotonicMs();
  const { type, trim, ...selection } = options;
  let view = staticView<T>([]);
  const list = async (): Promise<void> => {
    const { items } = await client.list(type, selection, signal);
    view = staticView(items.flatMap((item) => trim(item) ?? []));
  };
  const listing = list();
  // A caller that waits gets the error. A view that no caller waits for must not end the process.
  listing.catch(() => undefined);
  return {
    get: (key) => view.get(key),
    values: () => view.values(),
    get size() {
      return view.size;
    },
    synced: true,
    lastContactMs,
    problem: undefined,
    subscribe: (listener) => view.subscribe(listener),
    whenSynced: () => listing,
  };
}
