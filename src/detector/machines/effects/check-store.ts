import { isDeepStrictEqual } from "node:util";
import type { Cluster } from "../../../api/cluster-api.ts";
import { CLUSTER_NAME_LABEL } from "../../../api/cluster-api.ts";
import { fieldAt } from "../../../api/foreign.ts";
import type { ConditionWrite } from "../../../api/machine-conditions.ts";
import { changeConditions, says } from "../../../api/machine-conditions.ts";
import type { MachineHealthCheck, MachineHealthCheckStatus } from "../../../api/machine-health-check.ts";
import type { JsonPatchOperation, KubeClient, ObjectKey } from "../../../kube/client.ts";
import { pointer } from "../../../kube/json-pointer.ts";
import type { KubeObject, ResourceType } from "../../../kube/resource.ts";
import { setField } from "../../../kube/set-field.ts";
import type { Watched } from "../../../kube/watched.ts";
import { keyOf } from "../../../kube/watched.ts";
import type { Clock } from "../../../runtime/clock.ts";
import type { AttemptBook } from "../../shared/model/attempts.ts";
import { recordAttempts } from "../../shared/shell/record-attempts.ts";
import { WriteThrough } from "../../shared/views/write-through.ts";
import type { MachineHealthCheckKind } from "../decide/kind.ts";

export interface MachineCheckStoreDeps {
  client: KubeClient;
  clock: Clock;
  kind: MachineHealthCheckKind;
  type: ResourceType;
  checks: Watched<MachineHealthCheck>;
}

/** The MachineHealthChecks, with our own writes in them from the answer on. */
export class MachineCheckStore {
  readonly #deps: MachineCheckStoreDeps;
  readonly #written: WriteThrough<MachineHealthCheck>;

  constructor(deps: MachineCheckStoreDeps) {
    this.#deps = deps;
    this.#written = new WriteThrough(deps.checks);
  }

  get(key: ObjectKey): MachineHealthCheck | undefined {
    const shown = this.#deps.checks.get(key);
    return shown && this.#written.newest(shown);
  }

  *values(): IterableIterator<MachineHealthCheck> {
    for (const shown of this.#deps.checks.values()) yield this.#written.newest(shown);
  }

  /**
   * Has a health check show what was decided. It is read before it is written: the view keeps no more of it than is needed.
   *
   * @throws KubeError, Conflict where it is another one by now.
   */
  async storeStatus(
    check: MachineHealthCheck,
    status: MachineHealthCheckStatus,
    conditions: readonly ConditionWrite[],
    nowMs: number,
    signal: AbortSignal,
  ): Promise<void> {
    const forms = { ...check.status, apiVersion: check.apiVersion };
    const { statusFields } = this.#deps.kind;
    const isSame = statusFields.every((name) => isDeepStrictEqual(check.status[name], status[name]));
    if (isSame && conditions.every((condition) => says(forms, condition))) return;
    const raw = await this.#read(check, signal);
    const operations: JsonPatchOperation[] = fieldAt(raw, "status") === undefined ? [setStatus({})] : [];
    for (const name of statusFields) {
      const value = status[name];
      if (value !== undefined && !isDeepStrictEqual(fieldAt(raw, "status", name), value)) {
        operations.push({ op: "add", path: pointer("status", name), value });
      }
    }
    for (const change of changeConditions(raw, conditions, [], nowMs)) {
      operations.push({ op: "add", path: pointer(...change.path), value: change.conditions });
    }
    await this.#patch(check, raw, operations, { subresource: "status" }, signal);
  }

  /** Has the health check bear its cluster's name and belong to it, as upstream's do: both are moved and deleted together. */
  async adopt(check: MachineHealthCheck, cluster: Cluster, signal: AbortSignal): Promise<void> {
    const { labels, ownerReferences = [] } = check.metadata;
    const { name, uid } = cluster.metadata;
    if (labels?.[CLUSTER_NAME_LABEL] === name && ownerReferences.some((owner) => owner.uid === uid)) return;
    const raw = await this.#read(check, signal);
    const owners = (raw.metadata.ownerReferences ?? []).filter((owner) => owner.uid !== uid);
    const owner = { apiVersion: cluster.apiVersion, kind: cluster.kind, name, uid };
    const operations = [
      ...setField(raw, ["metadata", "labels", CLUSTER_NAME_LABEL], name),
      ...setField(raw, ["metadata", "ownerReferences"], [...owners, owner]),
    ];
    await this.#patch(check, raw, operations, {}, signal);
  }

  /** Has the health check remember attempts. @returns the health check as it is then. */
  async recordAttempts(
    check: MachineHealthCheck,
    attempts: AttemptBook,
    nowMs: number,
    signal: AbortSignal,
  ): Promise<MachineHealthCheck> {
    const { client, type } = this.#deps;
    const stored = await recordAttempts(client, type, check, attempts, nowMs, signal);
    return stored === undefined ? check : this.#wrote(stored, [check.metadata.resourceVersion]);
  }

  close(): void {
    this.#written.close();
  }

  #read(check: MachineHealthCheck, signal: AbortSignal): Promise<KubeObject> {
    return this.#deps.client.get(this.#deps.type, keyOf(check), signal);
  }

  async #patch(
    check: MachineHealthCheck,
    raw: KubeObject,
    operations: readonly JsonPatchOperation[],
    options: { subresource?: string },
    signal: AbortSignal,
  ): Promise<void> {
    const { client, type } = this.#deps;
    const { uid } = check.metadata;
    const { resourceVersion } = raw.metadata;
    if (operations.length === 0) return void this.#wrote(raw, [check.metadata.resourceVersion]);
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

  /** @param replaced versions that came before: the view may show the one, and the other was patched. */
  #wrote(stored: KubeObject, replaced: readonly string[]): MachineHealthCheck {
    const object = this.#deps.kind.readCheck(stored);
    for (const version of replaced) this.#written.wrote(object, version, this.#deps.clock.monotonicMs());
    return object;
  }
}

function setStatus(value: object): JsonPatchOperation {
  return { op: "add", path: "/status", value };
}
