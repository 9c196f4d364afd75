import type { Clock } from "../../runtime/clock.ts";
import type { Random } from "../../runtime/random.ts";
import { backoffMs } from "../../runtime/random.ts";
import { toMicroTime } from "../../runtime/time.ts";
import type { Logger } from "../../telemetry/logger.ts";
import type { KubeClient } from "../client.ts";
import { Controller } from "./controller.ts";
import type { EventNote, EventRecorder } from "../events.ts";
import { isKubeError } from "../errors.ts";
import type { KubeObject, ResourceType } from "../resource.ts";

const EVENT: ResourceType = {
  group: "events.k8s.io",
  version: "v1",
  kind: "Event",
  plural: "events",
  namespaced: true,
};

/** The number of different Events that are remembered, whether sent or not. */
const SERIES_MAX = 1_000;
/** A repeat after a longer pause is a new Event (as in client-go). */
const SERIES_PAUSE_MAX_MS = 6 * 60_000;
/** The shortest time between two writes of a series, however often its Event repeats. */
const SERIES_INTERVAL_MS = 10_000;
const EVENTS_PER_SECOND_MAX = 50;
const TRIES_MAX = 5;
const RETRY_MIN_MS = 1_000;
const RETRY_MAX_MS = 30_000;

/** Limits of the API (validation of events.k8s.io/v1). The limit of the note is in bytes. */
const NOTE_BYTES_MAX = 1_024;
const WORD_LENGTH_MAX = 128;
const OBJECT_NAME_LENGTH_MAX = 230;

export interface EventRecorderDeps {
  client: KubeClient;
  clock: Clock;
  random: Random;
  logger: Logger;
}

export interface EventRecorderOptions {
  /** `reportingController`, for example `ironfence.io/remediator`. */
  controller: string;
  /** `reportingInstance`: this process. */
  instance: string;
}

/** An EventRecorder that sends its Events while `run` runs. */
export interface RunnableEventRecorder extends EventRecorder {
  /** The number of Events that were never sent, because newer ones replaced them or the API server refused them. */
  readonly droppedCount: number;
  run(signal: AbortSignal): Promise<void>;
}

/** A recorder that sends through `client`. Events that are recorded before `run` wait until it runs. */
export function createEventRecorder(deps: EventRecorderDeps, options: EventRecorderOptions): RunnableEventRecorder {
  return new Recorder(deps, options);
}

/** One Event and its repeats. */
interface EventSeries {
  readonly event: NewEvent;
  count: number;
  /** The time of the last occurrence, on the wall clock because it is written to the Event. */
  lastEpochMs: number;
  lastMs: number;
  /** The number of occurrences that were sent to the server. */
  sentCount: number;
  sentMs: number;
  /** The UID of the stored Event; undefined if there is none. */
  uid: string | undefined;
  tries: number;
}

interface EventReference {
  apiVersion: string;
  kind: string;
  name: string;
  namespace?: string;
  uid: string;
  resourceVersion?: string;
}

interface NewEvent {
  metadata: { name: string; namespace: string };
  eventTime: string;
  type: string;
  reason: string;
  action: string;
  note: string;
  regarding: EventReference;
  related?: EventReference;
  reportingController: string;
  reportingInstance: string;
}

interface StoredEvent extends KubeObject, Omit<NewEvent, "metadata"> {
  series?: { count: number; lastObservedTime: string };
}

class Recorder implements RunnableEventRecorder {
  readonly #deps: EventRecorderDeps;
  readonly #options: EventRecorderOptions;
  readonly #controller: Controller;
  /** By `seriesKey`, in the order in which the Events first occurred. */
  readonly #series = new Map<string, EventSeries>();
  #droppedCount = 0;

  constructor(deps: EventRecorderDeps, options: EventRecorderOptions) {
    this.#deps = deps;
    this.#options = options;
    this.#controller = new Controller(deps, {
      name: "events",
      concurrency: 1,
      startsPerSecondMax: EVENTS_PER_SECOND_MAX,
      reconcile: (key, signal) => this.#send(key, signal),
    });
  }

  get droppedCount(): number {
    return this.#droppedCount;
  }

  run(signal: AbortSignal): Promise<void> {
    return this.#controller.run(signal);
  }

  record(note: EventNote): void {
    const nowMs = this.#deps.clock.monotonicMs();
    const key = seriesKey(note);
    const known = this.#series.get(key);
    if (known !== undefined && nowMs - known.lastMs <= SERIES_PAUSE_MAX_MS) {
      known.count += 1;
      known.lastMs = nowMs;
      known.lastEpochMs = this.#deps.clock.nowMs();
      this.#controller.enqueue(key, known.sentMs + SERIES_INTERVAL_MS - nowMs);
      return;
    }
    this.#series.delete(key);
    this.#makeRoom();
    this.#series.set(key, {
      event: this.#newEvent(note),
      count: 1,
      lastEpochMs: this.#deps.clock.nowMs(),
      lastMs: nowMs,
      sentCount: 0,
      sentMs: Number.NEGATIVE_INFINITY,
      uid: undefined,
      tries: 0,
    });
    this.#controller.enqueue(key);
  }

  async #send(key: string, signal: AbortSignal): Promise<{ requeueAfterMs?: number } | void> {
    const series = this.#series.get(key);
    if (series === undefined || series.sentCount === series.count) return undefined;
    const { count } = series;
    try {
      await this.#write(series, signal);
    } catch (error) {
      if (signal.aborted) return undefined;
      series.tries += 1;
      if (isKubeError(error) && error.retryable && series.tries < TRIES_MAX) {
        const ownMs = backoffMs(this.#deps.random, RETRY_MIN_MS, RETRY_MAX_MS, series.tries);
        return { requeueAfterMs: Math.max(ownMs, error.retryAfterMs ?? 0) };
      }
      this.#dropped(error);
    }
    series.tries = 0;
    series.sentCount = count;
    series.sentMs = this.#deps.clock.monotonicMs();
    return undefined;
  }

  async #write(series: EventSeries, signal: AbortSignal): Promise<void> {
    const { client } = this.#deps;
    const { event, uid } = series;
    const repeats = { count: series.count, lastObservedTime: toMicroTime(series.lastEpochMs) };
    if (uid !== undefined) {
      try {
        const operations = [{ op: "add", path: "/series", value: repeats }] as const;
        await client.patch<StoredEvent>(EVENT, event.metadata, { uid }, operations, {}, signal);
        return;
      } catch (error) {
        // The API server deletes Events after an hour. The series then starts again.
        if (!isKubeError(error, "NotFound")) throw error;
        series.uid = undefined;
      }
    }
    const object = {
      apiVersion: "events.k8s.io/v1",
      kind: "Event",
      ...event,
      ...(series.count > 1 && { series: repeats }),
    };
    try {
      const stored = await client.create<StoredEvent>(EVENT, object, {}, signal);
      series.uid = stored.metadata.uid;
    } catch (error) {
      // An earlier try took effect, and its answer was lost.
      if (!isKubeError(error, "AlreadyExists")) throw error;
    }
  }

  #makeRoom(): void {
    for (const [key, oldest] of this.#series) {
      if (this.#series.size < SERIES_MAX) return;
      this.#series.delete(key);
      // Otherwise each dropped Event would use up a start of the rate limit and delay the Events after it.
      this.#controller.forget(key);
      if (oldest.sentCount < oldest.count) this.#dropped(undefined);
    }
  }

  #dropped(error: unknown): void {
    this.#droppedCount += 1;
    // Logged only at powers of two, so that a flood of Events does not become a flood of log lines.
    if ((this.#droppedCount & (this.#droppedCount - 1)) !== 0) return;
    this.#deps.logger.warn({ droppedCount: this.#droppedCount, err: error }, "Kubernetes Events were dropped");
  }

  #newEvent(note: EventNote): NewEvent {
    const { clock, random } = this.#deps;
    const { name, namespace } = note.regarding.metadata;
    const suffix = Buffer.from(random.bytes(8)).toString("hex");
    return {
      metadata: {
        name: `${name.slice(0, OBJECT_NAME_LENGTH_MAX).replace(/[-.]+$/, "")}.${suffix}`,
        // The API server accepts Events about cluster-scoped objects only in `default`.
        namespace: namespace ?? "default",
      },
      eventTime: toMicroTime(clock.nowMs()),
      type: note.type,
      reason: note.reason.slice(0, WORD_LENGTH_MAX),
      action: note.action.slice(0, WORD_LENGTH_MAX),
      note: cutToBytes(note.note, NOTE_BYTES_MAX),
      regarding: referenceTo(note.regarding),
      ...(note.related !== undefined && { related: referenceTo(note.related) }),
      reportingController: this.#options.controller,
      reportingInstance: this.#options.instance.slice(0, WORD_LENGTH_MAX),
    };
  }
}

function seriesKey(note: EventNote): string {
  const { regarding, related, type, reason, action } = note;
  return JSON.stringify([regarding.metadata.uid, related?.metadata.uid, type, reason, action, note.note]);
}

function referenceTo(object: KubeObject): EventReference {
  const { name, namespace, uid, resourceVersion } = object.metadata;
  const { apiVersion, kind } = object;
  return { apiVersion, kind, name, uid, resourceVersion, ...(namespace !== undefined && { namespace }) };
}

/** Cuts `text` to `bytesMax` bytes with an ellipsis at its end, without splitting a character. */
function cutToBytes(text: string, bytesMax: number): string {
  const bytes = Buffer.from(text, "utf8");
  if (bytes.length <= bytesMax) return text;
  const ellipsis = "…";
  let end = bytesMax - Buffer.byteLength(ellipsis);
  // A byte 10xxxxxx is not the first byte of a character.
  while (end > 0 && ((bytes[end] ?? 0) & 0xc0) === 0x80) end -= 1;
  return bytes.toString("utf8", 0, end) + ellipsis;
}
