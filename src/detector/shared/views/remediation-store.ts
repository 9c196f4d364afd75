import type { RemediationRecord } from "../../../api/ironfence/node-health-check.ts";
import type { ObjectKey } from "../../../kube/client.ts";
import { findObject } from "../../../kube/objects/find-object.ts";
import type { KubeRuntime } from "../../../kube/runtime.ts";
import type { Change, Watched } from "../../../kube/watched.ts";
import { keyOf } from "../../../kube/watched.ts";
import type { KindState } from "./dynamic-kinds.ts";
import { DynamicKinds, kindKey } from "./dynamic-kinds.ts";
import type { Remediation, RemediationObject } from "../model/remediation.ts";
import { readRemediation, remediationDiffers, trimForHealthCheck } from "../model/remediation.ts";
import { WriteThrough } from "./write-through.ts";

/** How long the watch may take to report a write before the object is read live. */
const UNREPORTED_MAX_MS = 30_000;

/**
 * The remediation CRs of every kind in use, with any owner. They include the agent's own writes as soon as the API
 * server has answered.
 */
export class RemediationStore {
  readonly #runtime: KubeRuntime;
  readonly #kinds: DynamicKinds<RemediationObject>;
  readonly #views = new Map<string, { view: Watched<RemediationObject>; through: WriteThrough<RemediationObject> }>();
  /** UIDs of CRs that the agent has deleted, and that the watch may still show without a deletionTimestamp. */
  readonly #deleted = new Set<string>();

  /**
   * @param onChange is called for each change of a field that health checks use; with undefined when the state of a
   *   kind changes.
   */
  constructor(
    runtime: KubeRuntime,
    onChange: (change: Change<RemediationObject> | undefined) => void,
    signal: AbortSignal,
  ) {
    this.#runtime = runtime;
    const forward = (change: Change<RemediationObject> | undefined): void => {
      if (change?.type === "deleted") this.#deleted.delete(change.object.metadata.uid);
      if (change?.type === "updated" && !remediationDiffers(change.previous, change.object)) return;
      onChange(change);
    };
    this.#kinds = new DynamicKinds(runtime, { trim: trimForHealthCheck, onChange: forward }, signal);
  }

  state(apiVersion: string, kind: string): KindState<RemediationObject> {
    const state = this.#kinds.state(apiVersion, kind);
    if (state.state === "watched") this.#through(kindKey(apiVersion, kind), state.view);
    return state;
  }

  /** Whether the kind of a recorded CR can be read. If so, a CR that is not in this store was deleted. */
  canSee(record: Pick<RemediationRecord, "resource">): boolean {
    const { apiVersion = "", kind = "" } = record.resource;
    const { state } = this.state(apiVersion, kind);
    return state === "watched" || state === "absent";
  }

  /** All CRs of all kinds. */
  *values(): IterableIterator<Remediation> {
    for (const { through } of this.#views.values()) {
      for (const object of through.values()) {
        const remediation = readRemediation(object);
        yield this.#deleted.has(remediation.uid) ? { ...remediation, terminating: true } : remediation;
      }
    }
  }

  /** The CRs with this name, of every kind. */
  named(key: ObjectKey): Remediation[] {
    return [...this.#views.values()].flatMap(({ through }) => {
      const object = through.get(key);
      return object === undefined ? [] : [readRemediation(object)];
    });
  }

  /** @param replacedVersion undefined for a creation. */
  wrote(object: RemediationObject, replacedVersion: string | undefined): void {
    const { through } = this.#views.get(kindKey(object.apiVersion, object.kind)) ?? {};
    through?.wrote(object, replacedVersion, this.#runtime.clock.monotonicMs());
  }

  /** Is called when the agent has deleted a CR. It then counts as terminating. */
  deletionOrdered({ apiVersion, kind, metadata }: RemediationObject): void {
    // The watch may have reported its deletion before the response arrived, and would not report it again.
    const { through } = this.#views.get(kindKey(apiVersion, kind)) ?? {};
    if (through?.hasEnded(metadata.uid) === false) this.#deleted.add(metadata.uid);
  }

  /**
   * Reads objects live that were written more than `UNREPORTED_MAX_MS` ago and that the watch has not reported, so that
   * a deleted CR does not count forever.
   */
  async checkUnreported(signal: AbortSignal): Promise<void> {
    const beforeMs = this.#runtime.clock.monotonicMs() - UNREPORTED_MAX_MS;
    for (const [key, { through }] of this.#views) {
      for (const object of through.unreportedSince(beforeMs)) {
        const state = this.#kinds.state(object.apiVersion, object.kind);
        if (state.state !== "watched") continue;
        const live = await findObject(this.#runtime.client, state.type, keyOf(object), signal);
        if (live?.metadata.uid !== object.metadata.uid) through.forget(object.metadata.uid);
        this.#runtime.logger.debug(
          { key, name: object.metadata.name },
          "read a remediation that the watch did not report",
        );
      }
    }
  }

  /** Ends the watches of kinds that are not among `used`. */
  retain(used: ReadonlySet<string>): void {
    this.#kinds.retain(used);
    for (const [key, { through }] of this.#views) {
      if (used.has(key)) continue;
      through.close();
      this.#views.delete(key);
    }
  }

  settled(): Promise<void> {
    return this.#kinds.settled();
  }

  #through(key: string, view: Watched<RemediationObject>): void {
    const known = this.#views.get(key);
    if (known?.view === view) return;
    known?.through.close();
    this.#views.set(key, { view, through: new WriteThrough(view) });
  }
}
