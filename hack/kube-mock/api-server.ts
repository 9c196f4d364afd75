import { parseAllDocuments } from "yaml";
import type { KubeObject, ResourceType } from "../../src/kube/resource.ts";
import type { KubeTransport } from "../../src/kube/transport.ts";
import type { Clock } from "../../src/runtime/clock.ts";
import { abortReason, sleep } from "../../src/runtime/clock.ts";
import { toHttpDate } from "../../src/runtime/time.ts";
import type { Random } from "../../src/runtime/random.ts";
import { ApiError } from "./api-error.ts";
import { Catalog } from "./catalog.ts";
import { ConnectionLost } from "./connection.ts";
import { CUSTOM_RESOURCE_DEFINITIONS, customResources } from "./custom-resources.ts";
import { ActiveFaults } from "./faults.ts";
import type { FaultAction, Faults, FaultSubject } from "./faults.ts";
import { createTransport } from "./in-process-transport.ts";
import { isObject, objectOf, textOf } from "./json.ts";
import type { ApiObject } from "./json.ts";
import { BUILT_IN } from "./kinds/built-in.ts";
import { NAMESPACES } from "./kinds/plain.ts";
import { parseSelection } from "./list.ts";
import { openCollection } from "./local-collection.ts";
import type { LocalChange, LocalCollection } from "./local-collection.ts";
import { Registry } from "./registry.ts";
import { answer, findResource } from "./requests.ts";
import type { Answer, RequestParts } from "./requests.ts";
import { parseRoute } from "./routes.ts";
import { Store } from "./store.ts";
import type { Backup, Stored, StoreEvent } from "./store.ts";
import { isTrue, parseWatchOptions, Watch } from "./watch.ts";

/** One HTTP request. */
export interface ApiRequest {
  method: string;
  /** Path and query, encoded. */
  path: string;
  /** Lower-case names. `user-agent` is the client's name for faults and counts. */
  headers: Readonly<Record<string, string>>;
  body: string;
}

/**
 * One answer: a complete one, or the open stream of a watch. Reading a stream throws ConnectionLost when a real
 * connection would break.
 */
export type ApiResponse =
  | { kind: "whole"; status: number; headers: Record<string, string>; body: string }
  | { kind: "stream"; status: number; headers: Record<string, string>; chunks: AsyncIterable<string> };

/** One request that was answered. */
export interface RequestRecord {
  client: string;
  method: string;
  /** Path and query. */
  path: string;
  watch: boolean;
  /** Size of its body. */
  bytes: number;
  /** HTTP status; undefined if the connection was lost. */
  status: number | undefined;
  /** Monotonic time of its arrival. */
  startedMs: number;
}

/**
 * An in-memory Kubernetes API server. It does no I/O, and only its watches use timers. Time and randomness are
 * injected, so that a run on a virtual clock replays exactly. A request takes effect as a whole or not at all, because
 * nothing is awaited between its first read and its last write.
 *
 * Its answers are those of the real server: test/conformance runs the same cases on both. Not implemented: RBAC,
 * admission policies and CEL rules, protobuf, tables for kubectl, strategic merge patches, server-side apply, and
 * managed fields (except for the times of Leases).
 */
export interface ApiServer {
  /**
   * @param signal aborts when the client gives up, which also ends a watch.
   * @throws ConnectionLost if a fault breaks the connection; the reason of `signal` if a fault makes the request hang.
   */
  handle(request: ApiRequest, signal: AbortSignal): Promise<ApiResponse>;
  /** A transport for a client in the same process. */
  transport(options: { client: string }): KubeTransport;
  /** Access to a collection without HTTP, for simulated controllers and for the setup of tests. */
  collection<T extends KubeObject>(type: ResourceType): LocalCollection<T>;
  /** The types of all collections, in their stored versions. */
  kinds(): readonly ResourceType[];
  /** Calls `listener` for every change of any collection, in its stored version, within the write that makes it. */
  onChange(listener: (change: LocalChange<KubeObject>) => void): () => void;
  readonly faults: Faults;
  /** Creates the objects in YAML text with one or more documents. CRDs are Established at once. */
  load(yaml: string): void;
  /** Drops the history so far. Older watches and continue tokens get 410. */
  compact(): void;
  /** A copy of all stored objects. */
  backUp(): Backup;
  /**
   * Restores a backup, as when etcd is restored from a snapshot and the API server is restarted. All watches break, and
   * revisions that were used since the backup are used again.
   */
  restore(backup: Backup): void;
  /** The wall clock of the server, which it uses for timestamps of objects and dates of answers. */
  nowMs(): number;
  /** Moves that clock forward or, if negative, back. */
  jumpClock(byMs: number): void;
  /** Calls `listener` after every request that came through `handle`; a watch counts when it is opened. */
  onRequest(listener: (record: RequestRecord) => void): () => void;
  /** Breaks all watches. */
  close(): void;
}

export interface ApiServerOptions {
  clock: Clock;
  random: Random;
  /** The minimum number of past events of a collection from which a watch can start; 10,000 by default. */
  historyEventsMax?: number;
  /** The period of bookmarks on watches that requested them; 60 s by default. */
  bookmarkPeriodMs?: number;
}

const DEFAULT_HISTORY_EVENTS_MAX = 10_000;
const DEFAULT_BOOKMARK_PERIOD_MS = 60_000;
const FIRST_NAMESPACES = ["default", "kube-node-lease", "kube-public", "kube-system"];

/** Creates an API server that contains only the initial namespaces. */
export function createApiServer(options: ApiServerOptions): ApiServer {
  return new InMemoryApiServer(options);
}

class InMemoryApiServer implements ApiServer {
  readonly faults = new ActiveFaults();
  readonly #clock: Clock;
  readonly #random: Random;
  readonly #bookmarkPeriodMs: number;
  readonly #store: Store;
  readonly #catalog = new Catalog();
  readonly #registry: Registry;
  readonly #listeners = new Set<(record: RequestRecord) => void>();
  #lastDate = { atSeconds: NaN, text: "" };
  #aheadMs = 0;

  constructor({ clock: worldClock, random, historyEventsMax, bookmarkPeriodMs }: ApiServerOptions) {
    const clock: Clock = {
      nowMs: () => worldClock.nowMs() + this.#aheadMs,
      monotonicMs: () => worldClock.monotonicMs(),
      schedule: (delayMs, run) => worldClock.schedule(delayMs, run),
    };
    this.#clock = clock;
    this.#random = random;
    this.#bookmarkPeriodMs = bookmarkPeriodMs ?? DEFAULT_BOOKMARK_PERIOD_MS;
    this.#store = new Store(historyEventsMax ?? DEFAULT_HISTORY_EVENTS_MAX);
    this.#registry = new Registry({ store: this.#store, catalog: this.#catalog, clock, random });
    for (const resource of [...BUILT_IN, CUSTOM_RESOURCE_DEFINITIONS]) {
      this.#catalog.add(resource);
      this.#store.collection(resource.storage);
    }
    this.#store.collection(CUSTOM_RESOURCE_DEFINITIONS.storage).subscribe((event) => this.#serveCustomResources(event));
    const namespaces = this.collection(NAMESPACES);
    for (const name of FIRST_NAMESPACES) namespaces.create({ metadata: { name } });
  }

  async handle(request: ApiRequest, signal: AbortSignal): Promise<ApiResponse> {
    const [path = "", query = ""] = request.path.split("?", 2);
    const parts: RequestParts = {
      method: request.method,
      path,
      query: new URLSearchParams(query),
      contentType: (request.headers["content-type"] ?? "").split(";")[0]?.trim() ?? "",
      body: request.body,
    };
    const watch = request.method === "GET" && isTrue(parts.query.get("watch"));
    const subject: FaultSubject = { method: request.method, path, client: request.headers["user-agent"] ?? "", watch };
    const startedMs = this.#clock.monotonicMs();
    let status: number | undefined;
    try {
      const response = await this.#meet(this.faults.take(subject), parts, subject, signal);
      status = response.status;
      return { ...response, headers: { ...response.headers, date: this.#date() } };
    } finally {
      const record = { ...subject, path: request.path, bytes: Buffer.byteLength(request.body), status, startedMs };
      for (const listener of this.#listeners) listener(record);
    }
  }

  /**
   * The `Date` header of an answer. It is formatted once per second, since most requests of a simulation come at the
   * same time.
   */
  #date(): string {
    const atSeconds = Math.floor(this.#clock.nowMs() / 1_000);
    if (this.#lastDate.atSeconds !== atSeconds) {
      this.#lastDate = { atSeconds, text: toHttpDate(atSeconds * 1_000) };
    }
    return this.#lastDate.text;
  }

  nowMs(): number {
    return this.#clock.nowMs();
  }

  jumpClock(byMs: number): void {
    this.#aheadMs += byMs;
  }

  transport({ client }: { client: string }): KubeTransport {
    return createTransport(this, { client, clock: this.#clock });
  }

  collection<T extends KubeObject>(type: ResourceType): LocalCollection<T> {
    return openCollection(this.#deps(), type);
  }

  kinds(): readonly ResourceType[] {
    const stored = this.#catalog.all().filter(({ fromStorage }) => fromStorage === undefined);
    return [...new Map(stored.map((resource) => [resource.storage, resource])).values()];
  }

  onChange(listener: (change: LocalChange<KubeObject>) => void): () => void {
    return this.#store.subscribe(({ type, current, previous }) => {
      listener({
        type,
        object: toKubeObject(current),
        ...(previous !== undefined && { previous: toKubeObject(previous) }),
      });
    });
  }

  load(yaml: string): void {
    for (const document of parseAllDocuments(yaml)) {
      const object: unknown = document.toJS();
      if (!isObject(object)) continue;
      const { apiVersion, kind } = object;
      const resource = this.#catalog.all().find((served) => served.apiVersion === apiVersion && served.kind === kind);
      if (resource === undefined) throw new Error(`${textOf(apiVersion)} ${textOf(kind)} is not served`);
      const namespace = textOf(objectOf(object["metadata"])["namespace"]);
      const options = { subresource: "", dryRun: false, strict: true } as const;
      this.#registry.create(resource, resource.namespaced ? namespace : "", object, options);
    }
  }

  compact(): void {
    this.#store.compact();
  }

  backUp(): Backup {
    return this.#store.backUp();
  }

  restore(backup: Backup): void {
    this.faults.cutWatches({});
    this.#store.restore(backup);
  }

  onRequest(listener: (record: RequestRecord) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  close(): void {
    this.faults.cutWatches({});
  }

  async #meet(
    fault: FaultAction | undefined,
    parts: RequestParts,
    subject: FaultSubject,
    signal: AbortSignal,
  ): Promise<ApiResponse> {
    switch (fault?.kind) {
      case "status":
        return failure(injected(fault));
      case "hang":
        return hang(signal);
      case "drop":
        throw new ConnectionLost("the connection was dropped before the request was read");
      case "delay":
        await sleep(this.#clock, fault.delayMs, signal);
        return this.#respond(parts, subject, signal);
      case "loseAnswer":
        this.#respond(parts, subject, AbortSignal.abort());
        throw new ConnectionLost("the connection was dropped before the answer was sent");
      case "late":
        this.#clock.schedule(fault.delayMs, () => this.#respond(parts, subject, AbortSignal.abort()));
        throw new ConnectionLost("the connection was lost, and the request is still on its way");
      default:
        return this.#respond(parts, subject, signal);
    }
  }

  #respond(parts: RequestParts, subject: FaultSubject, signal: AbortSignal): ApiResponse {
    try {
      return subject.watch ? this.#watch(parts, subject, signal) : whole(answer(this.#deps(), parts));
    } catch (error) {
      if (error instanceof ApiError) return failure(error);
      throw error;
    }
  }

  #watch(parts: RequestParts, subject: FaultSubject, signal: AbortSignal): ApiResponse {
    const route = parseRoute(parts.path);
    const resource = route.kind === "resource" ? findResource(this.#catalog, route) : undefined;
    if (route.kind !== "resource" || resource === undefined || route.name !== "") {
      return whole(answer(this.#deps(), parts));
    }
    const selection = parseSelection(resource, route.namespace, parts.query);
    const options = parseWatchOptions(parts.query, this.#random);
    const deps = { store: this.#store, clock: this.#clock, bookmarkPeriodMs: this.#bookmarkPeriodMs };
    const watch = new Watch(deps, resource, selection, options);
    const onAbort = (): void => watch.end();
    signal.addEventListener("abort", onAbort, { once: true });
    const untrack = this.faults.track(subject, watch);
    watch.onEnd(() => {
      untrack();
      signal.removeEventListener("abort", onAbort);
    });
    if (signal.aborted) watch.end();
    return { kind: "stream", status: 200, headers: { "content-type": "application/json" }, chunks: watch };
  }

  #deps(): { store: Store; catalog: Catalog; registry: Registry; clock: Clock } {
    return { store: this.#store, catalog: this.#catalog, registry: this.#registry, clock: this.#clock };
  }

  /** Serves custom resources as soon as their definition is stored, and removes them with it. */
  #serveCustomResources({ type, current, previous }: StoreEvent): void {
    const known = previous === undefined ? [] : customResources(previous.object);
    for (const { group, plural } of known) this.#catalog.remove(group, plural);
    if (type === "DELETED") {
      this.#removeAll(current.object);
      return;
    }
    for (const resource of customResources(current.object)) {
      this.#catalog.add(resource);
      // The history of the collection begins when it is served: a watch from before is too old, as on the real server.
      this.#store.collection(resource.storage);
    }
  }

  #removeAll(definition: ApiObject): void {
    const storages = new Set(customResources(definition).map(({ storage }) => storage));
    for (const storage of storages) {
      const collection = this.#store.collection(storage);
      for (const stored of collection.values()) this.#store.remove(collection, stored);
    }
  }
}

/** Stored objects always have uid and resourceVersion. */
function toKubeObject({ object }: Stored): KubeObject {
  return object as unknown as KubeObject;
}

function whole({ status, contentType, body, warnings }: Answer): ApiResponse {
  const warning = warnings.map((field) => `299 - "unknown field \\"${field}\\""`).join(", ");
  const headers = { "content-type": contentType, ...(warning !== "" && { warning }) };
  return { kind: "whole", status, headers, body };
}

function failure(error: ApiError): ApiResponse {
  const retryAfterSeconds = error.details?.retryAfterSeconds;
  return {
    kind: "whole",
    status: error.code,
    headers: {
      "content-type": "application/json",
      ...(retryAfterSeconds !== undefined && { "retry-after": String(retryAfterSeconds) }),
    },
    body: JSON.stringify(error.toStatus()),
  };
}

const REASONS: Readonly<Record<number, string>> = {
  401: "Unauthorized",
  403: "Forbidden",
  404: "NotFound",
  409: "Conflict",
  410: "Expired",
  422: "Invalid",
  429: "TooManyRequests",
  500: "InternalError",
  503: "ServiceUnavailable",
  504: "Timeout",
};

function injected({ status, retryAfterSeconds, message }: Extract<FaultAction, { kind: "status" }>): ApiError {
  const details = retryAfterSeconds === undefined ? undefined : { retryAfterSeconds };
  return new ApiError(status, REASONS[status] ?? "", message ?? `injected failure ${status}`, details);
}

function hang(signal: AbortSignal): Promise<never> {
  return new Promise((_resolve, reject) => {
    if (signal.aborted) reject(abortReason(signal));
    signal.addEventListener("abort", () => reject(abortReason(signal)), { once: true });
  });
}
