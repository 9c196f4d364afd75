import { isDeepStrictEqual } from "node:util";
import type { NodeHealthCheckStatus } from "../../../api/node-health-check.ts";
import { NODE_HEALTH_CHECKS } from "../../../api/node-health-check.ts";
import type { JsonPatchOperation } from "../../../kube/client.ts";
import { pointer } from "../../../kube/json-pointer.ts";
import type { KubeObject } from "../../../kube/resource.ts";
import type { KubeRuntime } from "../../../kube/runtime.ts";
import type { Watched } from "../../../kube/watched.ts";
import type { AttemptBook } from "../../shared/model/attempts.ts";
import type { HealthCheckObject } from "../snapshot/health-check.ts";
import { trimHealthCheck } from "../snapshot/health-check.ts";
import { recordAttempts } from "../../shared/shell/record-attempts.ts";
import { WriteThrough } from "../../shared/views/write-through.ts";

/** The health checks in the newest version known, and all that the detector writes to them. */
export class HealthCheckStore {
  readonly #runtime: Pick<KubeRuntime, "client" | "clock">;
  readonly #view: Watched<HealthCheckObject>;
  readonly #written: WriteThrough<HealthCheckObject>;

  constructor(runtime: Pick<KubeRuntime, "client" | "clock">, view: Watched<HealthCheckObject>) {
    this.#runtime = runtime;
    this.#view = view;
    this.#written = new WriteThrough(view);
  }

  get(name: string): HealthCheckObject | undefined {
    const shown = this.#view.get({ name });
    return shown && this.newest(shown);
  }

  *values(): IterableIterator<HealthCheckObject> {
    for (const shown of this.#view.values()) yield this.newest(shown);
  }

  /** The health check in the newest version known. */
  newest(check: HealthCheckObject): HealthCheckObject {
    return this.#written.newest(check);
  }

  /**
   * Stores what has changed of the status.
   *
   * @throws KubeError, Conflict where the health check is another one by now.
   */
  async storeStatus(check: HealthCheckObject, status: NodeHealthCheckStatus, signal: AbortSignal): Promise<void> {
    const operations = statusPatch(check.status, status);
    if (operations.length === 0) return;
    const { name, uid, resourceVersion } = check.metadata;
    const isNew = Object.keys(check.status).length === 0;
    const stored = await this.#runtime.client.patch<KubeObject>(
      NODE_HEALTH_CHECKS,
      { name },
      { uid, resourceVersion },
      isNew ? [{ op: "add", path: "/status", value: status }] : operations,
      { subresource: "status" },
      signal,
    );
    this.#wrote(trimHealthCheck(stored), resourceVersion);
  }

  /** Has the health check remember attempts. @returns the health check as it is then. */
  async recordAttempts(
    check: HealthCheckObject,
    attempts: AttemptBook,
    signal: AbortSignal,
  ): Promise<HealthCheckObject> {
    const { client, clock } = this.#runtime;
    const stored = await recordAttempts(client, NODE_HEALTH_CHECKS, check, attempts, clock.nowMs(), signal);
    if (stored === undefined) return check;
    const written = trimHealthCheck(stored);
    this.#wrote(written, check.metadata.resourceVersion);
    return written;
  }

  close(): void {
    this.#written.close();
  }

  #wrote(object: HealthCheckObject, replacedVersion: string): void {
    this.#written.wrote(object, replacedVersion, this.#runtime.clock.monotonicMs());
  }
}

/** What turns one status into the other, field by field: fields that this version does not know stay. */
function statusPatch(before: NodeHealthCheckStatus, after: NodeHealthCheckStatus): JsonPatchOperation[] {
  if (before === after) return [];
  const fields = new Set([...Object.keys(before), ...Object.keys(after)]);
  const was = new Map<string, unknown>(Object.entries(before));
  const is = new Map<string, unknown>(Object.entries(after));
  return [...fields].flatMap((name): JsonPatchOperation[] => {
    const path = pointer("status", name);
    if (!is.has(name)) return [{ op: "remove", path }];
    return isDeepStrictEqual(was.get(name), is.get(name)) ? [] : [{ op: "add", path, value: is.get(name) }];
  });
}
