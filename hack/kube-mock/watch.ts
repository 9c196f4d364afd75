import type { Clock, Timer } from "../../src/runtime/clock.ts";
import type { Random } from "../../src/runtime/random.ts";
import { ApiError, expired } from "./api-error.ts";
import { ConnectionLost } from "./connection.ts";
import type { Selection } from "./list.ts";
import { invalidOption, parseRevision } from "./list.ts";
import type { ServedResource } from "./resource.ts";
import { Stored } from "./store.ts";
import type { Collection, Store, StoreEvent } from "./store.ts";

/** A watch with this many unread events is ended, as on the real server. */
const QUEUED_EVENTS_MAX = 100_000;
/** The real server ends a watch without `timeoutSeconds` after 30 to 60 minutes. */
const DEFAULT_TIMEOUT_MS = 1_800_000;

export interface WatchOptions {
  /** Begin after this revision; undefined begins with all existing objects. */
  afterRevision: number | undefined;
  bookmarks: boolean;
  /** Send a bookmark after the initial objects. */
  initialEventsEnd: boolean;
  timeoutMs: number;
}

/**
 * Parses the options of a watch.
 *
 * @throws ApiError 500 for an invalid version (as on the real server), 422 for options that exclude each other.
 */
export function parseWatchOptions(query: URLSearchParams, random: Random): WatchOptions {
  const version = query.get("resourceVersion") ?? "";
  const revision = version === "" ? 0 : parseRevision(version);
  if (revision === undefined) {
    const why = `strconv.ParseUint: parsing ${JSON.stringify(version)}: invalid syntax`;
    throw new ApiError(500, "", `resourceVersion: Invalid value: ${JSON.stringify(version)}: ${why}`);
  }
  const initialEvents = isTrue(query.get("sendInitialEvents"));
  const match = query.get("resourceVersionMatch") ?? "";
  if (initialEvents && match !== "NotOlderThan") {
    const why = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan";
    throw invalidOption("resourceVersionMatch", why);
  }
  const timeoutSeconds = parseRevision(query.get("timeoutSeconds") ?? "") ?? 0;
  const bookmarks = isTrue(query.get("allowWatchBookmarks"));
  return {
    afterRevision: initialEvents || revision === 0 ? undefined : revision,
    bookmarks,
    initialEventsEnd: initialEvents && bookmarks,
    timeoutMs: timeoutSeconds > 0 ? timeoutSeconds * 1_000 : DEFAULT_TIMEOUT_MS * (1 + random.next()),
  };
}

export function isTrue(text: string | null): boolean {
  return text === "true" || text === "1";
}

interface WatchDeps {
  store: Store;
  clock: Clock;
  bookmarkPeriodMs: number;
}

/** One open watch, as a stream of event texts. Iterate it once. */
export class Watch implements AsyncIterable<string> {
  readonly #deps: WatchDeps;
  readonly #resource: ServedResource;
  readonly #selection: Selection;
  readonly #onEnd = new Set<() => void>();
  /** Texts that can be read now. */
  #ready: string[] = [];
  /** Texts that a lag delays, in order. */
  #held: { text: string; dueMs: number }[] = [];
  /** Events up to this revision are not sent, even if it is in the future. */
  readonly #afterRevision: number;
  #lagMs = 0;
  #lagTimer: Timer | undefined;
  #bookmarkTimer: Timer | undefined;
  #state: "open" | "ended" | "cut" = "open";
  #wake: (() => void) | undefined;

  constructor(deps: WatchDeps, resource: ServedResource, selection: Selection, options: WatchOptions) {
    this.#deps = deps;
    this.#resource = resource;
    this.#selection = selection;
    this.#afterRevision = options.afterRevision ?? 0;
    const collection = deps.store.collection(resource.storage);
    if (!this.#replay(collection, options)) return;
    const unsubscribe = collection.subscribe((event) => this.#show(event));
    const timeout = deps.clock.schedule(options.timeoutMs, () => this.end());
    if (options.bookmarks) this.#scheduleBookmark();
    this.#onEnd.add(unsubscribe);
    this.#onEnd.add(() => timeout.cancel());
    this.#onEnd.add(() => this.#bookmarkTimer?.cancel());
    this.#onEnd.add(() => this.#lagTimer?.cancel());
  }

  /** Calls `listener` when either side has ended the watch. */
  onEnd(listener: () => void): void {
    if (this.#state === "open") this.#onEnd.add(listener);
    else listener();
  }

  /**
   * Delays events by `lagMs` from now on; 0 also sends the delayed ones. With Infinity, the client receives nothing,
   * not even bookmarks.
   */
  lag(lagMs: number): void {
    this.#lagMs = lagMs;
    if (lagMs > 0) return;
    const held = this.#held;
    this.#held = [];
    for (const { text } of held) this.#push(text);
  }

  /** Ends the stream after the texts that are ready now. */
  end(): void {
    this.#close("ended");
  }

  /** Breaks the connection. Unread texts are lost. */
  cut(): void {
    this.#ready = [];
    this.#close("cut");
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<string> {
    try {
      for (;;) {
        if (this.#ready.length > 0) {
          const text = this.#ready.join("");
          this.#ready = [];
          yield text;
        } else if (this.#state === "cut") throw new ConnectionLost("the watch was cut");
        else if (this.#state === "ended") return;
        else await new Promise<void>((resolve) => (this.#wake = resolve));
      }
    } finally {
      this.end();
    }
  }

  /** @returns whether the watch continues after that. */
  #replay(collection: Collection, { afterRevision, initialEventsEnd }: WatchOptions): boolean {
    if (afterRevision === undefined) {
      const { revision } = this.#deps.store;
      for (const stored of collection.snapshot(revision) ?? []) {
        if (this.#fits(stored)) this.#say("ADDED", stored);
      }
      if (initialEventsEnd) this.#bookmark({ annotations: { "k8s.io/initial-events-end": "true" } });
      return true;
    }
    const missed = collection.eventsAfter(afterRevision);
    if (missed === undefined) {
      const error = expired(`too old resource version: ${afterRevision} (${collection.compactedRevision})`);
      this.#push(`{"type":"ERROR","object":${JSON.stringify(error.toStatus())}}\n`);
      this.end();
      return false;
    }
    for (const event of missed) this.#show(event);
    return true;
  }

  /** If a change makes an object match the selection, the watch sends ADDED; if it no longer matches, DELETED. */
  #show({ type, current, previous, revision }: StoreEvent): void {
    if (revision <= this.#afterRevision) return;
    const fitsNow = type !== "DELETED" && this.#fits(current);
    const fitBefore = previous !== undefined && this.#fits(previous);
    if (fitsNow) this.#say(fitBefore ? "MODIFIED" : "ADDED", current);
    else if (fitBefore) this.#say("DELETED", type === "DELETED" ? current : restamped(previous, revision));
  }

  #fits(stored: Stored): boolean {
    return this.#selection === undefined || this.#selection(stored.object);
  }

  #say(type: "ADDED" | "MODIFIED" | "DELETED", stored: Stored): void {
    const text = `{"type":"${type}","object":${stored.text(this.#resource)}}\n`;
    if (this.#lagMs === 0 && this.#held.length === 0) this.#push(text);
    else this.#hold(text);
  }

  #hold(text: string): void {
    this.#held.push({ text, dueMs: this.#deps.clock.monotonicMs() + this.#lagMs });
    if (this.#held.length === 1) this.#scheduleRelease();
  }

  /** Waits only for the first text. A later one that is due earlier, because the lag was shortened, stays behind it. */
  #scheduleRelease(): void {
    const { clock } = this.#deps;
    const first = this.#held[0];
    this.#lagTimer?.cancel();
    if (first === undefined || first.dueMs === Infinity) return;
    this.#lagTimer = clock.schedule(Math.max(0, first.dueMs - clock.monotonicMs()), () => {
      const next = this.#held.shift();
      if (next !== undefined) this.#push(next.text);
      this.#scheduleRelease();
    });
  }

  #scheduleBookmark(): void {
    this.#bookmarkTimer = this.#deps.clock.schedule(this.#deps.bookmarkPeriodMs, () => {
      // A bookmark must not overtake a delayed event, and must not come before the requested revision.
      const isDue = this.#held.length === 0 && this.#lagMs !== Infinity;
      if (isDue && this.#deps.store.revision >= this.#afterRevision) this.#bookmark({});
      this.#scheduleBookmark();
    });
  }

  #bookmark(metadata: object): void {
    const { kind, apiVersion } = this.#resource;
    const resourceVersion = String(this.#deps.store.revision);
    const object = { kind, apiVersion, metadata: { ...metadata, resourceVersion } };
    this.#push(`${JSON.stringify({ type: "BOOKMARK", object })}\n`);
  }

  #push(text: string): void {
    if (this.#state !== "open") return;
    if (this.#ready.length >= QUEUED_EVENTS_MAX) {
      this.cut();
      return;
    }
    this.#ready.push(text);
    this.#wake?.();
  }

  #close(state: "ended" | "cut"): void {
    if (this.#state !== "open") return;
    this.#state = state;
    this.#held = [];
    for (const listener of this.#onEnd) listener();
    this.#onEnd.clear();
    this.#wake?.();
  }
}

function restamped(stored: Stored, revision: number): Stored {
  const { metadata } = stored.object;
  return new Stored(stored.key, { ...stored.object, metadata: { ...metadata, resourceVersion: String(revision) } });
}
