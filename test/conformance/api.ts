import { setTimeout as sleep } from "node:timers/promises";
import { isObject, listOf, objectOf, textOf } from "../../hack/kube-mock/json.ts";
import type { JsonObject } from "../../hack/kube-mock/json.ts";
import { LineSplitter } from "../../src/kube/answers/line-splitter.ts";
import type { KubeTransport, TransportRequest } from "../../src/kube/transport.ts";

const CALL_TIMEOUT_MS = 20_000;
const ESTABLISHED_TIMEOUT_MS = 20_000;
const LINE_CHARACTERS_MAX = 4 * 1024 * 1024;

/** One behavior of the API: requests, and the answers that every server must give. */
export interface ConformanceCase {
  name: string;
  /** Sends requests, and returns the relevant parts of the answers. */
  run: (api: Api) => Promise<unknown>;
  /** What the real API server (v1.36.3) answers. */
  answer: unknown;
}

/** One answer of the server. */
export interface Answer {
  status: number;
  /** The body as JSON, or as text if it is not JSON. */
  body: unknown;
  warning: string | undefined;
}

export interface WatchEvent {
  type: string;
  object: JsonObject;
}

/** A server under test, with a separate namespace for each case. */
export class Api {
  readonly namespace: string;
  readonly #transport: KubeTransport;
  readonly #compact: () => Promise<void>;
  readonly #over = new AbortController();

  /** @param compact makes the server drop its history. */
  constructor(options: { transport: KubeTransport; namespace: string; compact: () => Promise<void> }) {
    this.namespace = options.namespace;
    this.#transport = options.transport;
    this.#compact = options.compact;
  }

  async send(method: TransportRequest["method"], path: string, body?: unknown, contentType?: string): Promise<Answer> {
    const answer = await this.#transport.send(
      {
        method,
        path,
        lane: "api",
        timeoutMs: CALL_TIMEOUT_MS,
        ...(body !== undefined && { body: typeof body === "string" ? body : JSON.stringify(body) }),
        ...(contentType !== undefined && { contentType }),
      },
      this.#over.signal,
    );
    return { status: answer.status, body: parse(answer.body), warning: answer.headers["warning"] };
  }

  get(path: string): Promise<Answer> {
    return this.send("GET", path);
  }

  merge(path: string, patch: unknown): Promise<Answer> {
    return this.send("PATCH", path, patch, "application/merge-patch+json");
  }

  jsonPatch(path: string, operations: unknown): Promise<Answer> {
    return this.send("PATCH", path, operations, "application/json-patch+json");
  }

  /** Path of a core resource in the case's namespace. */
  core(plural: string, name?: string): string {
    return `/api/v1/namespaces/${this.namespace}/${plural}${name === undefined ? "" : `/${name}`}`;
  }

  /** Path of a resource of a group in the case's namespace. */
  in(groupVersion: string, plural: string, name?: string): string {
    return `/apis/${groupVersion}/namespaces/${this.namespace}/${plural}${name === undefined ? "" : `/${name}`}`;
  }

  /** Creates a ConfigMap in the case's namespace and returns it. */
  async configMap(name: string, content: JsonObject = {}): Promise<JsonObject> {
    const { metadata, ...rest } = content;
    const body = { ...rest, metadata: { name, ...objectOf(metadata) } };
    return objectOf((await this.send("POST", this.core("configmaps"), body)).body);
  }

  /** Installs a CRD and waits until its resources are served. */
  async install(definition: JsonObject): Promise<void> {
    const { group, names, scope, versions } = objectOf(definition["spec"]);
    const version = textOf(objectOf(listOf(versions)[0])["name"]);
    const plural = textOf(objectOf(names)["plural"]);
    const posted = await this.send("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition);
    if (posted.status !== 201 && posted.status !== 409) throw new Error(JSON.stringify(posted.body));
    const path =
      scope === "Cluster"
        ? `/apis/${textOf(group)}/${version}/${plural}`
        : this.in(`${textOf(group)}/${version}`, plural);
    const deadlineMs = performance.now() + ESTABLISHED_TIMEOUT_MS;
    for (;;) {
      const { status } = await this.get(path);
      if (status === 200) return;
      if (performance.now() > deadlineMs) throw new Error(`${path} is not served: ${status}`);
      await sleep(50);
    }
  }

  /** Opens a watch, which ends with the case. */
  async watch(path: string): Promise<Watcher> {
    const request = { method: "GET", path, lane: "watch", timeoutMs: CALL_TIMEOUT_MS } as const;
    const { status, body } = await this.#transport.stream(request, this.#over.signal);
    return new Watcher(status, body);
  }

  compact(): Promise<void> {
    return this.#compact();
  }

  /** Ends watches and requests that are still open. */
  close(): void {
    this.#over.abort(new Error("the case is over"));
  }
}

/** Reads the events of one watch, one after another. */
export class Watcher {
  readonly status: number;
  readonly #chunks: AsyncIterator<string>;
  readonly #lines = new LineSplitter(LINE_CHARACTERS_MAX);
  readonly #events: WatchEvent[] = [];

  constructor(status: number, body: AsyncIterable<string>) {
    this.status = status;
    this.#chunks = body[Symbol.asyncIterator]();
  }

  /** The next event; undefined at the end of the stream. Fails if none comes in time. */
  async next(): Promise<WatchEvent | undefined> {
    for (;;) {
      const event = this.#events.shift();
      if (event !== undefined) return event;
      const chunk = await inTime(this.#chunks.next());
      if (chunk.done === true) return undefined;
      for (const line of this.#lines.push(chunk.value)) this.#events.push(toEvent(parse(line)));
    }
  }

  /** The next `count` events, each as type and object's name. */
  async names(count: number): Promise<string[]> {
    const names: string[] = [];
    for (let index = 0; index < count; index += 1) {
      const event = await this.next();
      names.push(`${event?.type ?? "end"} ${textOf(at(event?.object, "metadata.name"))}`);
    }
    return names;
  }
}

async function inTime<T>(work: Promise<T>): Promise<T> {
  const late = new AbortController();
  const timeout = sleep(CALL_TIMEOUT_MS, undefined, { signal: late.signal }).then(() => {
    throw new Error(`no event within ${CALL_TIMEOUT_MS} ms`);
  });
  timeout.catch(() => undefined);
  try {
    return await Promise.race([work, timeout]);
  } finally {
    late.abort();
  }
}

function toEvent(value: unknown): WatchEvent {
  const { type, object } = objectOf(value);
  return { type: textOf(type), object: objectOf(object) };
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/** The value at a dotted path. */
export function at(value: unknown, path: string): unknown {
  return path
    .split(".")
    .reduce((from: unknown, name) => (Array.isArray(from) ? from[Number(name)] : objectOf(from)[name]), value);
}

/**
 * The relevant parts of an answer: its status and, for a refusal, the reason, the object, and the invalid fields with
 * their causes.
 */
export function outcome({ status, body }: Answer): JsonObject {
  if (!isObject(body) || body["status"] !== "Failure") return { status };
  const { reason, details } = body;
  const { kind, group, causes } = objectOf(details);
  const wrong = listOf(causes)
    .map((cause) => `${textOf(objectOf(cause)["field"])} ${textOf(objectOf(cause)["reason"])}`.trim())
    // If the real server stops validating early, it adds causes without a field.
    .filter((text) => !text.startsWith("<nil>"));
  return {
    status,
    ...(reason !== undefined && { reason }),
    ...(kind !== undefined && { kind }),
    ...(group !== undefined && { group }),
    ...(wrong.length > 0 && { wrong: [...new Set(wrong)].sort() }),
  };
}

/** The values at dotted paths of an answer's body, with its status. */
export function fields(answer: Answer, ...paths: string[]): JsonObject {
  const values = paths.map((path) => [path, at(answer.body, path)]);
  return { status: answer.status, ...Object.fromEntries(values) };
}

/** Names of the objects in a list, in its order. */
export function names({ body }: Answer): string[] {
  return listOf(objectOf(body)["items"]).map((item) => textOf(at(item, "metadata.name")));
}

export function versionOf(object: unknown): string {
  return textOf(at(object, "metadata.resourceVersion"));
}

export function uidOf(object: unknown): string {
  return textOf(at(object, "metadata.uid"));
}
