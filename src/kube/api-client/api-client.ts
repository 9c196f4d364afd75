import pRetry from "p-retry";
import type { Clock } from "../../runtime/clock.ts";
import { sleep } from "../../runtime/clock.ts";
import type { Random } from "../../runtime/random.ts";
import { backoffMs } from "../../runtime/random.ts";
import { withDeadline } from "../../runtime/deadline.ts";
import { collectionPath, describeCollection, describeObject, objectPath } from "./api-paths.ts";
import { asCallError, failureOf, parseObject } from "../answers/api-answers.ts";
import type {
  BulkOptions,
  DeleteOptions,
  Guard,
  JsonPatchOperation,
  KubeClient,
  ListOptions,
  ObjectKey,
  ObjectList,
  WriteOptions,
} from "../client.ts";
import { createDiscovery } from "./discovery.ts";
import { isKubeError } from "../errors.ts";
import { listPages } from "./paged-list.ts";
import type { ReadBudget } from "../answers/read-budget.ts";
import { HeldSize, WorkAllowance } from "../answers/read-budget.ts";
import type { KubeObject, ResourceType } from "../resource.ts";
import { apiVersionOf } from "../resource.ts";
import type { KubeTransport, Lane, TransportRequest, TransportResponse } from "../transport.ts";

/** The deadline of one call. The API server itself allows 60 s, but an answer that late does not help a fence. */
const CALL_TIMEOUT_MS = 10_000;
/** The deadline of a read with its retries. */
const READ_DEADLINE_MS = 30_000;
const READ_RETRIES_MAX = 5;
const READ_BACKOFF_MIN_MS = 100;
const READ_BACKOFF_MAX_MS = 5_000;
/** The deadline of a list with all its pages and their retries. */
const LIST_DEADLINE_MS = 60_000;

export interface KubeClientDeps {
  transport: KubeTransport;
  clock: Clock;
  random: Random;
  /** The lane whose connections the calls use; `api` by default. */
  lane?: Lane;
  /** The bounds of each list; none by default. */
  budget?: ReadBudget | undefined;
  /** Shared by all code that reads from the server. By default, the client has its own. */
  work?: WorkAllowance;
}

/** A client over `transport`. */
export function createKubeClient(deps: KubeClientDeps): KubeClient {
  return new ApiClient(deps);
}

// `as T` in this class relies on the server: it has checked every object against the schema of its kind.
class ApiClient implements KubeClient {
  readonly #deps: KubeClientDeps;
  readonly #work: WorkAllowance;
  readonly discover: KubeClient["discover"];

  constructor(deps: KubeClientDeps) {
    this.#deps = deps;
    this.#work = deps.work ?? new WorkAllowance(deps.clock, deps.budget);
    this.discover = createDiscovery((path, signal) => this.#readWithin(READ_DEADLINE_MS, `GET ${path}`, path, signal));
  }

  async get<T extends KubeObject>(type: ResourceType, key: ObjectKey, signal: AbortSignal): Promise<T> {
    const what = `get ${describeObject(type, key)}`;
    const answer = await this.#readWithin(READ_DEADLINE_MS, what, objectPath(type, key), signal);
    return parseObject(what, answer) as T;
  }

  async list<T extends KubeObject>(
    type: ResourceType,
    options: ListOptions,
    signal: AbortSignal,
  ): Promise<ObjectList<T>> {
    const what = `list ${describeCollection(type, options.namespace)}`;
    return await asCallError(
      what,
      signal,
      withDeadline(this.#deps.clock, what, LIST_DEADLINE_MS, signal, async (signal) => {
        try {
          return await this.#pages<T>(what, type, options, signal);
        } catch (error) {
          // The revision of the continue token was compacted (after 5 minutes), so only a list from the start is
          // consistent. If that fails in the same way, the list is too slow, and a further try would not help.
          if (!isKubeError(error, "Gone")) throw error;
          return await this.#pages<T>(what, type, options, signal);
        }
      }),
    );
  }

  async create<T extends KubeObject>(
    type: ResourceType,
    object: Omit<T, "metadata"> & { metadata: Partial<T["metadata"]> },
    options: WriteOptions,
    signal: AbortSignal,
  ): Promise<T> {
    const { name, namespace, generateName } = object.metadata;
    const key = { name: name ?? `${generateName ?? ""}*`, ...(namespace !== undefined && { namespace }) };
    const what = `create ${describeObject(type, key)}`;
    // The path of a subresource, such as the eviction of a Pod, contains the name of the object.
    const path = options.subresource === undefined ? collectionPath(type, namespace) : objectPath(type, key, options);
    // The body of a subresource has its own kind.
    const own = options.subresource === undefined ? { apiVersion: apiVersionOf(type), kind: type.kind } : {};
    const body = { ...object, ...own };
    return parseObject(what, await this.#write(what, "POST", withQuery(path, options), body, options, signal)) as T;
  }

  async patch<T extends KubeObject>(
    type: ResourceType,
    key: ObjectKey,
    guard: Guard,
    operations: readonly JsonPatchOperation[],
    options: WriteOptions,
    signal: AbortSignal,
  ): Promise<T> {
    const what = `patch ${describeObject(type, key, options)}`;
    const tests: JsonPatchOperation[] = [{ op: "test", path: "/metadata/uid", value: guard.uid }];
    if (guard.resourceVersion !== undefined) {
      tests.push({ op: "test", path: "/metadata/resourceVersion", value: guard.resourceVersion });
    }
    const path = withQuery(objectPath(type, key, options), options);
    const body = [...tests, ...operations];
    const answer = await this.#write(what, "PATCH", path, body, options, signal, "application/json-patch+json");
    return parseObject(what, answer) as T;
  }

  async mergePatch<T extends KubeObject>(
    type: ResourceType,
    key: ObjectKey,
    guard: Required<Guard>,
    content: Record<string, unknown>,
    options: WriteOptions,
    signal: AbortSignal,
  ): Promise<T> {
    const what = `patch ${describeObject(type, key, options)}`;
    const path = withQuery(objectPath(type, key, options), options);
    const given = typeof content["metadata"] === "object" ? content["metadata"] : undefined;
    const { uid, resourceVersion } = guard;
    const body = { ...content, metadata: { ...given, uid, resourceVersion } };
    const answer = await this.#write(what, "PATCH", path, body, options, signal, "application/merge-patch+json");
    return parseObject(what, answer) as T;
  }

  async delete(type: ResourceType, key: ObjectKey, options: DeleteOptions, signal: AbortSignal): Promise<void> {
    const { guard, gracePeriodSeconds, propagationPolicy } = options;
    const { uid, resourceVersion } = guard;
    const body = {
      apiVersion: "v1",
      kind: "DeleteOptions",
      preconditions: { uid, ...(resourceVersion !== undefined && { resourceVersion }) },
      ...(gracePeriodSeconds !== undefined && { gracePeriodSeconds }),
      ...(propagationPolicy !== undefined && { propagationPolicy }),
    };
    const path = withQuery(objectPath(type, key), options);
    await this.#write(`delete ${describeObject(type, key)}`, "DELETE", path, body, options, signal);
  }

  async #pages<T extends KubeObject>(
    what: string,
    type: ResourceType,
    options: ListOptions,
    signal: AbortSignal,
  ): Promise<ObjectList<T>> {
    const items: T[] = [];
    const { budget } = this.#deps;
    const holding = new HeldSize(budget && { objects: budget.listObjects, textLength: budget.listTextLength });
    const read = (path: string): Promise<TransportResponse> => this.#read(what, path, options, signal);
    const resourceVersion = await listPages(what, type, { ...options, budget }, this.#work, read, (page) => {
      const kept = options.trim === undefined ? page : page.map(options.trim);
      for (const object of kept) holding.add(object);
      holding.check(what);
      items.push(...(kept as T[]));
    });
    return { items, resourceVersion };
  }

  /** A read with its retries, within one deadline. */
  #readWithin(deadlineMs: number, what: string, path: string, signal: AbortSignal): Promise<TransportResponse> {
    const { clock } = this.#deps;
    const work = withDeadline(clock, what, deadlineMs, signal, (signal) => this.#read(what, path, {}, signal));
    return asCallError(what, signal, work);
  }

  /**
   * Reads, and retries after failures that may be temporary. p-retry counts the attempts. The waits of p-retry are 0
   * ms, because `onFailedAttempt` waits on the injected clock.
   */
  #read(what: string, path: string, options: BulkOptions, signal: AbortSignal): Promise<TransportResponse> {
    const { clock, random } = this.#deps;
    return pRetry(() => this.#callOnce(what, { method: "GET", path }, options, signal), {
      retries: READ_RETRIES_MAX,
      minTimeout: 0,
      maxTimeout: 0,
      signal,
      shouldRetry: ({ error }) => isKubeError(error) && error.retryable,
      onFailedAttempt: async ({ error, attemptNumber, retriesLeft }) => {
        if (!isKubeError(error) || !error.retryable || retriesLeft === 0) return;
        const ownMs = backoffMs(random, READ_BACKOFF_MIN_MS, READ_BACKOFF_MAX_MS, attemptNumber - 1);
        await sleep(clock, Math.max(ownMs, error.retryAfterMs ?? 0), signal);
      },
    });
  }

  /** Sends a write once. If the answer is lost, only the caller can find out whether the write took effect. */
  #write(
    what: string,
    method: "POST" | "PATCH" | "DELETE",
    path: string,
    body: unknown,
    options: BulkOptions,
    signal: AbortSignal,
    contentType = "application/json",
  ): Promise<TransportResponse> {
    return this.#callOnce(what, { method, path, body: JSON.stringify(body), contentType }, options, signal);
  }

  async #callOnce(
    what: string,
    request: Omit<TransportRequest, "lane" | "timeoutMs">,
    options: BulkOptions,
    signal: AbortSignal,
  ): Promise<TransportResponse> {
    const { transport } = this.#deps;
    const lane = options.bulk === true ? "bulk" : (this.#deps.lane ?? "api");
    const sent = transport.send({ ...request, lane, timeoutMs: CALL_TIMEOUT_MS }, signal);
    const answer = await asCallError(what, signal, sent);
    if (answer.status < 200 || answer.status > 299) throw failureOf(what, answer);
    return answer;
  }
}

function withQuery(path: string, { dryRun, strict }: { dryRun?: boolean; strict?: boolean }): string {
  const query = [...(dryRun === true ? ["dryRun=All"] : []), ...(strict === true ? ["fieldValidation=Strict"] : [])];
  return query.length === 0 ? path : `${path}?${query.join("&")}`;
}
