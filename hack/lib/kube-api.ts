import { readFile } from "node:fs/promises";
import { Agent, request } from "undici";
import { parse } from "yaml";
import { z } from "zod";

const CALL_TIMEOUT_MS = 15_000;

/** Any object of the API, as JSON. */
export interface JsonObject {
  [key: string]: unknown;
}

/** An answer of the API server with a status other than 2xx. */
export class ApiStatusError extends Error {
  override readonly name = "ApiStatusError";
  readonly status: number;
  readonly body: string;
  constructor(method: string, path: string, status: number, body: string) {
    super(`${method} ${path}: ${status} ${body.slice(0, 500)}`);
    this.status = status;
    this.body = body;
  }
}

/** One event of a watch. */
export interface WatchEvent<T> {
  type: "ADDED" | "MODIFIED" | "DELETED" | "BOOKMARK" | "ERROR";
  object: T;
  /** The time at which the event was received, in milliseconds since the epoch. */
  atMs: number;
}

const kubeconfigSchema = z.object({
  clusters: z
    .array(z.object({ cluster: z.object({ server: z.string(), "certificate-authority-data": z.string() }) }))
    .length(1),
  users: z
    .array(
      z.object({
        user: z.object({
          "client-certificate-data": z.string().optional(),
          "client-key-data": z.string().optional(),
          token: z.string().optional(),
        }),
      }),
    )
    .length(1),
});

const decode = (text: string | undefined): string | undefined =>
  text === undefined ? undefined : Buffer.from(text, "base64").toString("utf8");

/**
 * A minimal Kubernetes client for tests. It deliberately shares no code with the agent's client, so that a fault of the
 * tested code cannot change what a test reads.
 */
export class KubeApi {
  readonly #server: string;
  readonly #agent: Agent;
  readonly #headers: Record<string, string>;

  private constructor(server: string, agent: Agent, headers: Record<string, string>) {
    this.#server = server;
    this.#agent = agent;
    this.#headers = headers;
  }

  /** Reads a kubeconfig with one cluster and one user, all data inline, as the harness writes it. */
  static async fromKubeconfig(path: string): Promise<KubeApi> {
    const config = kubeconfigSchema.parse(parse(await readFile(path, "utf8")));
    const [{ cluster }] = config.clusters as [(typeof config.clusters)[number]];
    const [{ user }] = config.users as [(typeof config.users)[number]];
    const cert = decode(user["client-certificate-data"]);
    const key = decode(user["client-key-data"]);
    const agent = new Agent({
      // No timeout, because a watch has no end. Calls have their own deadline.
      bodyTimeout: 0,
      headersTimeout: CALL_TIMEOUT_MS,
      connect: {
        ca: decode(cluster["certificate-authority-data"]) ?? "",
        ...(cert !== undefined && key !== undefined ? { cert, key } : {}),
        timeout: CALL_TIMEOUT_MS,
      },
    });
    return new KubeApi(
      cluster.server,
      agent,
      user.token === undefined ? {} : { authorization: `Bearer ${user.token}` },
    );
  }

  async send(
    method: string,
    path: string,
    body?: unknown,
    contentType = "application/json",
    accept = "application/json",
  ): Promise<unknown> {
    const response = await request(`${this.#server}${path}`, {
      method,
      dispatcher: this.#agent,
      headers: { ...this.#headers, accept, "content-type": contentType },
      signal: AbortSignal.timeout(CALL_TIMEOUT_MS),
      ...(body === undefined ? {} : { body: typeof body === "string" ? body : JSON.stringify(body) }),
    });
    const text = await response.body.text();
    if (response.statusCode >= 300) throw new ApiStatusError(method, path, response.statusCode, text);
    return response.headers["content-type"]?.includes("json") === true ? (JSON.parse(text) as unknown) : text;
  }

  /** Reads an object or a list. @typeParam T the type of the object at `path`. */
  async get<T = JsonObject>(path: string): Promise<T> {
    return (await this.send("GET", path)) as T;
  }

  /** Like `get`, but returns undefined if there is no such object. */
  async find<T = JsonObject>(path: string): Promise<T | undefined> {
    try {
      return await this.get<T>(path);
    } catch (error) {
      if (error instanceof ApiStatusError && error.status === 404) return undefined;
      throw error;
    }
  }

  async list<T = JsonObject>(path: string): Promise<T[]> {
    return (await this.get<{ items: T[] }>(path)).items;
  }

  create(path: string, object: unknown): Promise<unknown> {
    return this.send("POST", path, object);
  }

  mergePatch(path: string, patch: unknown): Promise<unknown> {
    return this.send("PATCH", path, patch, "application/merge-patch+json");
  }

  async delete(path: string): Promise<void> {
    try {
      await this.send("DELETE", path);
    } catch (error) {
      if (!(error instanceof ApiStatusError) || error.status !== 404) throw error;
    }
  }

  /** Watches a collection from now on, and reconnects after errors. Ends when `signal` aborts. */
  async watch<T>(path: string, onEvent: (event: WatchEvent<T>) => void, signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      try {
        await this.#watchOnce(path, onEvent, signal);
      } catch (error) {
        if (signal.aborted) return;
        if (error instanceof ApiStatusError && error.status === 403) throw error;
        await new Promise((resolve) => setTimeout(resolve, 200));
      }
    }
  }

  async #watchOnce<T>(path: string, onEvent: (event: WatchEvent<T>) => void, signal: AbortSignal): Promise<void> {
    const url = `${this.#server}${path}${path.includes("?") ? "&" : "?"}watch=1&allowWatchBookmarks=false`;
    const response = await request(url, { dispatcher: this.#agent, headers: this.#headers, signal });
    if (response.statusCode >= 300) {
      throw new ApiStatusError("WATCH", path, response.statusCode, await response.body.text());
    }
    let rest = "";
    response.body.setEncoding("utf8");
    for await (const chunk of response.body as AsyncIterable<string>) {
      const lines = (rest + chunk).split("\n");
      rest = lines.pop() ?? "";
      for (const line of lines) {
        const event = JSON.parse(line) as { type: WatchEvent<T>["type"]; object: T };
        onEvent({ ...event, atMs: Date.now() });
      }
    }
  }

  async close(): Promise<void> {
    await this.#agent.destroy();
  }
}
