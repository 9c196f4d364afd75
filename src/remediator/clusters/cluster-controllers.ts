import type { ControllerDeps, ControllerOptions } from "../../kube/reconcile/controller.ts";
import { Controller } from "../../kube/reconcile/controller.ts";
import { clusterKey, parseNodeKey } from "../../nodes/subject.ts";

/**
 * Runs one controller for each cluster, so that a workload cluster whose API server hangs does not delay the nodes of
 * other clusters. A cluster gets its controller when its first node is enqueued.
 */
export class ClusterControllers {
  readonly #deps: ControllerDeps;
  readonly #options: ControllerOptions;
  readonly #controllers = new Map<string, Controller>();
  readonly #running: Promise<void>[] = [];
  #signal: AbortSignal | undefined;

  constructor(deps: ControllerDeps, options: ControllerOptions) {
    this.#deps = deps;
    this.#options = options;
  }

  /** @param key of a node (`nodeKey`). */
  enqueue(key: string): void {
    const cluster = clusterKey(parseNodeKey(key).cluster);
    const known = this.#controllers.get(cluster);
    const controller = known ?? new Controller(this.#deps, this.#options);
    this.#controllers.set(cluster, controller);
    controller.enqueue(key);
    if (known === undefined && this.#signal !== undefined) this.#running.push(controller.run(this.#signal));
  }

  /** Works until `signal` aborts; resolves when every run that had begun has ended. May be called once. */
  async run(signal: AbortSignal): Promise<void> {
    this.#signal = signal;
    for (const controller of this.#controllers.values()) this.#running.push(controller.run(signal));
    await new Promise<void>((resolve) => {
      if (signal.aborted) resolve();
      else signal.addEventListener("abort", () => resolve(), { once: true });
    });
    await Promise.all(this.#running);
  }
}
