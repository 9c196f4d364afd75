import type { JsonPatchOperation, KubeClient, ObjectKey } from "../../../kube/client.ts";
import type { KubeObject, ResourceType } from "../../../kube/resource.ts";
import type { Watched } from "../../../kube/watched.ts";
import { keyOf } from "../../../kube/watched.ts";
import type { Clock } from "../../../runtime/clock.ts";
import type { AttemptHistory } from "../model/attempts.ts";
import { WriteThrough } from "../views/write-through.ts";
import { storeAttempts } from "./store-attempts.ts";

export interface HealthCheckStoreDeps<C extends KubeObject> {
  client: KubeClient;
  clock: Clock;
  type: ResourceType;
  view: Watched<C>;
  /** Reduces a health check to the fields that the detector needs. */
  read: (raw: KubeObject) => C;
}

/**
 * Reads and writes the health checks of one family. Reads return the newest known version, which includes the agent's
 * own writes.
 */
export class HealthCheckStore<C extends KubeObject> {
  readonly #deps: HealthCheckStoreDeps<C>;
  readonly #written: WriteThrough<C>;

  constructor(deps: HealthCheckStoreDeps<C>) {
    this.#deps = deps;
    this.#written = new WriteThrough(deps.view);
  }

  get(key: ObjectKey): C | undefined {
    const shown = this.#deps.view.get(key);
    return shown && this.newest(shown);
  }

  *values(): IterableIterator<C> {
    for (const shown of this.#deps.view.values()) yield this.newest(shown);
  }

  /** The health check in the newest version known. */
  newest(check: C): C {
    return this.#written.newest(check);
  }

  /** Records attempts in the health check. @returns the health check with them. */
  async recordAttempts(check: C, attempts: AttemptHistory, nowMs: number, signal: AbortSignal): Promise<C> {
    const { client, type } = this.#deps;
    const stored = await storeAttempts(client, type, check, attempts, nowMs, signal);
    return stored === undefined ? check : this.#wrote(stored, [check.metadata.resourceVersion]);
  }

  /** Reads the whole health check live, because the view keeps only the fields that decisions need. */
  readLive(check: C, signal: AbortSignal): Promise<KubeObject> {
    return this.#deps.client.get(this.#deps.type, keyOf(check), signal);
  }

  /**
   * Patches the health check.
   *
   * @param base the version that the operations were made for.
   * @throws KubeError, Conflict if the health check was replaced or changed.
   */
  async patch(
    check: C,
    base: KubeObject,
    operations: readonly JsonPatchOperation[],
    options: { subresource?: string },
    signal: AbortSignal,
  ): Promise<void> {
    const { client, type } = this.#deps;
    const { uid } = check.metadata;
    const { resourceVersion } = base.metadata;
    if (operations.length === 0) return void this.#wrote(base, [check.metadata.resourceVersion]);
    const stored = await client.patch<KubeObject>(
      type,
      keyOf(check),
      { uid, resourceVersion },
      operations,
      options,
      signal,
    );
    this.#wrote(stored, [check.metadata.resourceVersion, resourceVersion]);
  }

  close(): void {
    this.#written.close();
  }

  /** @param replaced the earlier versions: the one that the view may still show, and the one that was patched. */
  #wrote(stored: KubeObject, replaced: readonly string[]): C {
    const object = this.#deps.read(stored);
    for (const version of replaced) this.#written.wrote(object, version, this.#deps.clock.monotonicMs());
    return object;
  }
}
