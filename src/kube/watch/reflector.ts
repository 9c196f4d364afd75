import type { Clock } from "../../runtime/clock.ts";
import { abortReason, sleep } from "../../runtime/clock.ts";
import { DeadlineError, withDeadline } from "../../runtime/deadline.ts";
import type { Random } from "../../runtime/random.ts";
import { backoffMs } from "../../runtime/random.ts";
import type { Logger } from "../../telemetry/logger.ts";
import { failureOf, parseList } from "../answers/api-answers.ts";
import { collectionPath, describeCollection, listQuery, watchQuery } from "../api-client/api-paths.ts";
import type { KubeErrorCode } from "../errors.ts";
import { isKubeError, KubeError } from "../errors.ts";
import { checkStructure } from "../answers/json-structure.ts";
import { LineSplitter } from "../answers/line-splitter.ts";
import { listPages } from "../api-client/paged-list.ts";
import type { ReadBudget } from "../answers/read-budget.ts";
import { EventAllowance, HeldSize, overBudget, WorkAllowance } from "../answers/read-budget.ts";
import type { KubeObject } from "../resource.ts";
import type { WatchOptions } from "../runtime.ts";
import type { KubeTransport, TransportResponse, TransportStream } from "../transport.ts";
import { isEarlierVersion, reachesVersion } from "./resource-version.ts";
import { parseWatchEvent } from "../answers/watch-event.ts";
import type { Watched } from "../watched.ts";
import { WatchedStore } from "./watched-store.ts";
import { SilenceGuard } from "./silence-guard.ts";

/** The deadline of one page of a list. */
const PAGE_TIMEOUT_MS = 30_000;
/** The deadline of the response headers of a watch. */
const WATCH_HEADERS_TIMEOUT_MS = 10_000;

/**
 * How long the server is asked to keep a watch open. It is random for each watch, so that they do not all end together.
 */
const WATCH_SECONDS_MIN = 300;
const WATCH_SECONDS_MAX = 600;

/** etcd stores no object above 1.5 MiB (3 MiB if the limit was raised), and its JSON may be twice as long. */
const LINE_LENGTH_MAX = 8 * 1024 * 1024;
const ERROR_BODY_LENGTH_MAX = 64 * 1024;

/** The longest backoff is also the longest time until a CRD that was installed later is noticed. */
const BACKOFF_MIN_MS = 200;
const BACKOFF_MAX_MS = 10_000;
/**
 * A watch that ends sooner counts as failed. Otherwise watches on a broken server would be reopened without a pause.
 */
const STABLE_WATCH_MS = 5_000;
/**
 * After this many consecutive watches that receive nothing, the collection is listed again. If etcd was restored, the
 * API server answers a watch from a revision that it has not reached yet with 200, and then sends nothing, not even a
 * bookmark (measured with 1.36.3). A server whose watch cache is stuck does the same; listing again after each silent
 * watch keeps the view up to date then.
 */
const SILENT_WATCHES_MAX = 2;
/**
 * After this many consecutive answers that refuse the resource version of the view (for example after etcd was
 * restored), the collection is listed again.
 */
const REFUSED_WATCHES_MAX = 3;
/** If the last list began less than this ago, a part that needs a fresh view gets no other: a watch may be as late. */
const FRESH_LIST_MS = 2_000;

export interface ReflectorDeps {
  transport: KubeTransport;
  clock: Clock;
  random: Random;
  logger: Logger;
  /** No bounds by default. */
  budget?: ReadBudget | undefined;
  /** Shared by all code that reads from the server. By default, the watch has its own. */
  work?: WorkAllowance;
}

/**
 * Keeps a local view of a collection until `signal` aborts: it lists the collection page by page, then watches from
 * that revision. If that fails (no CRD yet, no permission, no server), it retries forever, and `problem` says why.
 */
export function startReflector<T extends KubeObject>(
  deps: ReflectorDeps,
  options: WatchOptions<T>,
  signal: AbortSignal,
): Watched<T> {
  const logger = deps.logger.child({ watch: describeCollection(options.type, options.namespace) });
  const store = new WatchedStore<T>(options.trim, logger, deps.budget);
  const reflector = new Reflector({ ...deps, logger }, options, store);
  store.refresh = (waiting) => reflector.refresh(waiting);
  void reflector.run(signal);
  return store;
}

class Reflector<T extends KubeObject> {
  readonly #deps: ReflectorDeps;
  readonly #options: WatchOptions<T>;
  readonly #store: WatchedStore<T>;
  readonly #collection: string;
  /** The version up to which the view is complete; undefined if a list is due. */
  #version: string | undefined;
  /**
   * Consecutive failures. A successful list does not reset the count. Otherwise, if only the watch fails, the list
   * would be repeated without a backoff.
   */
  #failures = 0;
  readonly #allowance: EventAllowance | undefined;
  readonly #work: WorkAllowance;
  #refusedWatches = 0;
  #silentWatches = 0;
  #hasBroken = false;
  /** The last known version of the collection, also while a list is due. */
  #lastVersion: string | undefined;
  #reported: KubeErrorCode | undefined;
  /** When the last successful list began; monotonic. */
  #listedMs = Number.NEGATIVE_INFINITY;
  /** Of the last watch. A list that replaces the view ends this watch. */
  #silence: SilenceGuard | undefined;

  constructor(deps: ReflectorDeps, options: WatchOptions<T>, store: WatchedStore<T>) {
    this.#deps = deps;
    this.#options = options;
    this.#store = store;
    this.#collection = describeCollection(options.type, options.namespace);
    this.#work = deps.work ?? new WorkAllowance(deps.clock, deps.budget);
    this.#allowance = deps.budget === undefined ? undefined : new EventAllowance(deps.clock, () => store.size);
  }

  /** Never rejects; ends soon after `signal` aborts. */
  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      try {
        if (this.#hasBroken && this.#version !== undefined) await this.#compare(this.#version, signal);
        if (this.#version === undefined) await this.#list(signal);
        if (this.#version !== undefined) await this.#watch(this.#version, signal);
      } catch (error) {
        if (signal.aborted) return;
        this.#onFailure(error);
        await this.#pause(error, signal);
      }
    }
  }

  /**
   * Lists the collection, because the open watch may be silent, and tries again until that succeeds. The watch goes on
   * meanwhile: other parts depend on it, and the list may fail.
   */
  async refresh(signal: AbortSignal): Promise<void> {
    const { clock, logger } = this.#deps;
    for (let failures = 0; clock.monotonicMs() - this.#listedMs > FRESH_LIST_MS; failures += 1) {
      try {
        return await this.#list(signal);
      } catch (error) {
        if (signal.aborted) throw error;
        if (failures === 0) logger.warn({ err: error }, "cannot list for a part that begins, trying again");
        await this.#wait(failures, error, signal);
      }
    }
  }

  /**
   * Checks after a broken connection that the server has reached the version of the view. It may be another server, or
   * one whose etcd was restored. If its version is earlier, the collection is listed again. This takes one request for
   * a single object.
   */
  async #compare(version: string, signal: AbortSignal): Promise<void> {
    const { type, trim: _trim, ...selection } = this.#options;
    const what = `list ${this.#collection}`;
    const path = `${collectionPath(type, selection.namespace)}?${listQuery({ ...selection, limit: 1, continueToken: undefined })}`;
    const request = { method: "GET", path, lane: "api", timeoutMs: WATCH_HEADERS_TIMEOUT_MS } as const;
    try {
      const answer = await this.#deps.transport.send(request, signal);
      if (answer.status !== 200) throw failureOf(what, answer);
      this.#hasBroken = false;
      if (isEarlierVersion(parseList(what, type, answer).resourceVersion, version)) this.#version = undefined;
    } catch (error) {
      if (signal.aborted || !isKubeError(error)) throw error;
      // A watch may still work although this request fails. If the watch receives nothing, a list follows.
    }
  }

  /** Lists the collection. Ends the open watch unless it was faster than the list. */
  async #list(signal: AbortSignal): Promise<void> {
    const what = `list ${this.#collection}`;
    const { type, trim: _trim, ...selection } = this.#options;
    const objects: T[] = [];
    const read = async (path: string, within: AbortSignal): Promise<TransportResponse> => {
      const request = { method: "GET", path, lane: "api", timeoutMs: PAGE_TIMEOUT_MS } as const;
      const answer = await this.#deps.transport.send(request, within);
      if (answer.status !== 200) throw failureOf(what, answer);
      return answer;
    };
    const { budget, clock } = this.#deps;
    const beganMs = clock.monotonicMs();
    const lastVersion = this.#lastVersion;
    const holding = new HeldSize(budget);
    const collect = (items: readonly KubeObject[]): void => {
      for (const raw of items) {
        const object = this.#store.trimmed(raw);
        holding.add(object);
        if (object !== undefined) objects.push(object);
      }
      holding.check(what);
    };
    const listAll = (within: AbortSignal): Promise<string> =>
      listPages(what, type, { ...selection, budget }, this.#work, (path) => read(path, within), collect);
    const version = await (budget === undefined
      ? listAll(signal)
      : withDeadline(clock, what, budget.listMs, signal, listAll).catch((error: unknown) => {
          throw error instanceof DeadlineError
            ? overBudget(what, `its pages took more than ${budget.listMs} ms`)
            : error;
        }));
    this.#store.lastContactMs = clock.monotonicMs();
    this.#listedMs = beganMs;
    if (lastVersion !== undefined && isEarlierVersion(version, lastVersion)) {
      this.#deps.logger.warn({ version, lastVersion }, "the API server has gone back to an earlier state");
      this.#store.rewinds += 1;
    } else if (this.#hasShown(version, lastVersion)) {
      return;
    }
    this.#silence?.end();
    this.#version = version;
    this.#lastVersion = version;
    this.#store.replace(objects);
    this.#store.version = version;
  }

  /**
   * Whether the view already shows what a list of `version` contains. Without an open watch, the view counts only if it
   * has changed since the list began: by another list, or by a watch that has ended.
   *
   * @param versionBefore the version of the view when the list began.
   */
  #hasShown(version: string, versionBefore: string | undefined): boolean {
    const last = this.#lastVersion;
    const isWatching = this.#version !== undefined;
    return last !== undefined && (isWatching || last !== versionBefore) && reachesVersion(last, version);
  }

  /** Watches on one connection until the server ends it. @throws KubeError if it ends in any other way. */
  async #watch(version: string, signal: AbortSignal): Promise<void> {
    const { clock, transport } = this.#deps;
    const what = `watch ${this.#collection}`;
    const openedMs = clock.monotonicMs();
    const path = `${collectionPath(this.#options.type, this.#options.namespace)}?${this.#watchQuery(version)}`;
    const silence = new SilenceGuard(clock, () => Math.max(openedMs, this.#store.lastContactMs), signal);
    this.#silence = silence;
    try {
      const request = { method: "GET", path, lane: "watch", timeoutMs: WATCH_HEADERS_TIMEOUT_MS } as const;
      const stream = await transport.stream(request, silence.signal);
      if (stream.status !== 200) throw failureOf(what, await this.#errorAnswer(what, stream, silence.signal));
      this.#onWatching();
      const splitter = new LineSplitter(this.#deps.budget?.lineLength ?? LINE_LENGTH_MAX);
      for await (const chunk of stream.body) {
        if (silence.signal.aborted) throw abortReason(silence.signal);
        this.#allowance?.take(what, 0, chunk.length);
        this.#work.run(what, () => {
          for (const line of splitter.push(chunk)) {
            this.#allowance?.take(what, 1, 0);
            this.#onLine(what, line);
          }
          this.#store.checkBudget(what);
        });
      }
    } catch (error) {
      if (!silence.signal.aborted) throw error;
      const reason = abortReason(silence.signal);
      if (signal.aborted) throw reason;
      // A list has replaced what this watch would still show.
      if (silence.hasEnded) return;
      this.#onSilence();
      throw reason;
    } finally {
      silence.end();
    }
    if (clock.monotonicMs() - openedMs < STABLE_WATCH_MS) {
      throw new KubeError("Network", `${what}: the server ended the watch at once`);
    }
    this.#failures = 0;
  }

  #watchQuery(version: string): string {
    const { labelSelector, fieldSelector } = this.#options;
    const spread = WATCH_SECONDS_MAX - WATCH_SECONDS_MIN;
    const timeoutSeconds = WATCH_SECONDS_MIN + Math.floor(spread * this.#deps.random.next());
    return watchQuery({
      resourceVersion: version,
      timeoutSeconds,
      ...(labelSelector !== undefined && { labelSelector }),
      ...(fieldSelector !== undefined && { fieldSelector }),
    });
  }

  #onLine(what: string, line: string): void {
    const { budget } = this.#deps;
    if (budget !== undefined) checkStructure(what, line, budget.eventValues);
    const event = parseWatchEvent(what, this.#options.type, line);
    const isEarlier = this.#version !== undefined && isEarlierVersion(event.resourceVersion, this.#version);
    if (isEarlier && event.type === "bookmark") {
      throw new KubeError(
        "Gone",
        `${what}: its bookmark has version ${event.resourceVersion}, which is before ${this.#version}`,
      );
    }
    this.#store.lastContactMs = this.#deps.clock.monotonicMs();
    this.#failures = 0;
    if (this.#silentWatches > 0) {
      this.#silentWatches = 0;
      this.#onWell();
    }
    if (event.type === "added" || event.type === "modified") this.#store.upsert(event.object);
    if (event.type === "deleted") this.#store.remove(event.object);
    if (isEarlier) return;
    this.#version = event.resourceVersion;
    this.#lastVersion = event.resourceVersion;
    this.#store.version = event.resourceVersion;
  }

  #onSilence(): void {
    this.#silentWatches += 1;
    if (this.#silentWatches >= SILENT_WATCHES_MAX) this.#version = undefined;
  }

  async #errorAnswer(what: string, stream: TransportStream, signal: AbortSignal): Promise<TransportResponse> {
    const body = await withDeadline(this.#deps.clock, what, WATCH_HEADERS_TIMEOUT_MS, signal, async () => {
      const pieces: string[] = [];
      let length = 0;
      for await (const chunk of stream.body) {
        this.#allowance?.take(what, 0, chunk.length);
        pieces.push(chunk);
        length += chunk.length;
        if (length > ERROR_BODY_LENGTH_MAX) break;
      }
      return pieces.join("");
    });
    return { status: stream.status, headers: stream.headers, body };
  }

  #onWatching(): void {
    this.#refusedWatches = 0;
    // After that many silent watches, the new one may be silent, too, so only an event shows that it works.
    if (this.#silentWatches < SILENT_WATCHES_MAX) this.#onWell();
  }

  #onWell(): void {
    this.#store.problem = undefined;
    this.#store.problemCode = undefined;
    if (this.#reported === undefined) return;
    this.#reported = undefined;
    this.#deps.logger.info("watching again");
  }

  #onFailure(error: unknown): void {
    const code = isKubeError(error) ? error.code : error instanceof DeadlineError ? "Timeout" : "BadResponse";
    const hadVersion = this.#version !== undefined;
    if (code === "Network") this.#hasBroken = true;
    if (hadVersion && code !== "Network" && code !== "Timeout") this.#refusedWatches += 1;
    if (code === "Gone" || code === "OverBudget" || this.#refusedWatches >= REFUSED_WATCHES_MAX) {
      this.#version = undefined;
      this.#refusedWatches = 0;
    }
    this.#store.problem = error instanceof Error ? error.message : String(error);
    this.#store.problemCode = code;
    // A revision that is gone is normal, so it is not logged.
    if (code === "Gone" || code === this.#reported) return;
    // The collection may be quiet on a server without bookmarks. The next watch shows whether anything is wrong.
    if (code === "Timeout" && hadVersion && this.#silentWatches === 1) {
      this.#deps.logger.debug({ err: error }, "a watch was silent, watching again");
      return;
    }
    this.#reported = code;
    this.#deps.logger.warn({ err: error, synced: this.#store.synced }, "cannot list or watch, trying again");
  }

  async #pause(error: unknown, signal: AbortSignal): Promise<void> {
    const failures = this.#failures;
    this.#failures += 1;
    try {
      await this.#wait(failures, error, signal);
    } catch {
      // The signal aborted, so `run` ends.
    }
  }

  /** Waits before another try, as long as the API server asks for, or longer. */
  #wait(failures: number, error: unknown, signal: AbortSignal): Promise<void> {
    const { clock, random } = this.#deps;
    const retryAfterMs = isKubeError(error) ? (error.retryAfterMs ?? 0) : 0;
    const ownMs = backoffMs(random, BACKOFF_MIN_MS, BACKOFF_MAX_MS, failures);
    return sleep(clock, Math.max(ownMs, retryAfterMs), signal);
  }
}
