import { SECRETS } from "../api/core-types.ts";
import { describeCollection } from "../kube/api-paths.ts";
import type { KubeRuntime, WatchOptions } from "../kube/runtime.ts";
import type { KubeObject } from "../kube/resource.ts";
import type { Watched } from "../kube/watched.ts";

/** Groups whose kinds a family of the agent works with. Remediators of other vendors are told of in the health checks that name them. */
const GROUPS: ReadonlySet<string> = new Set([
  "",
  "ironfence.io",
  "remediation.medik8s.io",
  "cluster.x-k8s.io",
  "infrastructure.cluster.x-k8s.io",
  "machine.openshift.io",
  "metal3.io",
]);

/** Knows of each watch of the agent's own whether the API server refuses it. */
export class RefusedWatches {
  readonly #open = new Map<Watched<KubeObject>, string>();

  /** The same runtime, whose watches are known from now on, each until its signal aborts. */
  observe(runtime: KubeRuntime): KubeRuntime {
    return {
      ...runtime,
      watch: <T extends KubeObject>(options: WatchOptions<T>, signal: AbortSignal): Watched<T> => {
        const view = runtime.watch(options, signal);
        // Without the right to watch Secrets the agent does its work all the same, and finds rotated passwords later.
        const isNeeded = GROUPS.has(options.type.group) && options.type.kind !== SECRETS.kind;
        if (isNeeded && !signal.aborted) {
          this.#open.set(view, describeCollection(options.type, options.namespace));
          signal.addEventListener("abort", () => this.#open.delete(view), { once: true });
        }
        return view;
      },
    };
  }

  /** A line for people for each collection that may not be listed or watched at present. */
  get lines(): string[] {
    const refused = [...this.#open].filter(([view]) => view.problemCode === "Forbidden");
    return [...new Set(refused.map(([view, what]) => `may not watch ${what}: ${view.problem ?? ""}`))].sort();
  }
}
