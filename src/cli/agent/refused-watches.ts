import { SECRETS } from "../../api/kubernetes/core-types.ts";
import { INFRASTRUCTURE_GROUP } from "../../api/metal3/metal3.ts";
import { METAL3_REMEDIATION_KIND } from "../../api/metal3/metal3-remediation.ts";
import { describeCollection } from "../../kube/api-client/api-paths.ts";
import type { KubeErrorCode } from "../../kube/errors.ts";
import type { KubeRuntime, WatchOptions } from "../../kube/runtime.ts";
import type { KubeObject, ResourceType } from "../../kube/resource.ts";
import type { Watched } from "../../kube/watched.ts";

/**
 * The API groups that the families of the agent work with. A watch in another group is for a remediator that a health
 * check names, and is reported in that health check: a user who may write a health check must not be able to make the
 * agent unready.
 */
const GROUPS: ReadonlySet<string> = new Set([
  "",
  "ironfence.io",
  "remediation.medik8s.io",
  "cluster.x-k8s.io",
  "machine.openshift.io",
  "metal3.io",
]);

/** The kinds of the group that all infrastructure providers share. Only these belong to a family. */
const INFRASTRUCTURE_KINDS: ReadonlySet<string> = new Set(["Metal3Machine", METAL3_REMEDIATION_KIND]);

/**
 * The errors that show that the API server fails to answer a list. A missing permission and a kind that is not served
 * are not among them.
 */
const FAILS: ReadonlySet<KubeErrorCode | undefined> = new Set<KubeErrorCode>([
  "Network",
  "Timeout",
  "BadResponse",
  "TooManyRequests",
  "Unavailable",
]);

/** Keeps track of the agent's watches that the API server refuses or fails to answer. */
export class RefusedWatches {
  readonly #open = new Map<Watched<KubeObject>, string>();

  /** Returns the same runtime, and tracks each watch that it starts until the signal of the watch aborts. */
  observe(runtime: KubeRuntime): KubeRuntime {
    return {
      ...runtime,
      watch: <T extends KubeObject>(options: WatchOptions<T>, signal: AbortSignal): Watched<T> => {
        const view = runtime.watch(options, signal);
        if (isNeeded(options.type) && !signal.aborted) {
          this.#open.set(view, describeCollection(options.type, options.namespace));
          signal.addEventListener("abort", () => this.#open.delete(view), { once: true });
        }
        return view;
      },
    };
  }

  /** A line of text for each collection that has never been read in full because the list fails. */
  get unread(): string[] {
    const unread = [...this.#open].filter(([view]) => !view.synced && FAILS.has(view.problemCode));
    return [...new Set(unread.map(([view, what]) => `cannot list ${what}: ${view.problem ?? ""}`))].sort();
  }

  /** A line of text for each collection that the agent is currently not allowed to list or watch. */
  get lines(): string[] {
    const refused = [...this.#open].filter(([view]) => view.problemCode === "Forbidden");
    return [...new Set(refused.map(([view, what]) => `may not watch ${what}: ${view.problem ?? ""}`))].sort();
  }
}

function isNeeded({ group, kind }: ResourceType): boolean {
  if (group === INFRASTRUCTURE_GROUP) return INFRASTRUCTURE_KINDS.has(kind);
  // Without permission to watch Secrets the agent still works, and finds rotated passwords later.
  return GROUPS.has(group) && kind !== SECRETS.kind;
}
