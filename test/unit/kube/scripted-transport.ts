import { abortReason } from "../../../src/runtime/clock.ts";
import { KubeError } from "../../../src/kube/errors.ts";
import type { KubeObject } from "../../../src/kube/resource.ts";
import type {
  KubeTransport,
  TransportRequest,
  TransportResponse,
  TransportStream,
} from "../../../src/kube/transport.ts";

/** One watch whose events the test provides. */
export interface OpenWatch {
  query: URLSearchParams;
  send(text: string): void;
  event(type: string, object: unknown): void;
  /** Ends the watch as the server; with an error, breaks the connection. */
  end(error?: Error): void;
  aborted: boolean;
}

/** A transport whose answers the test provides in the same process, for time-dependent behavior. */
export class ScriptedTransport implements KubeTransport {
  readonly lists: URLSearchParams[] = [];
  /** The number of lists of a single object, by which a client gets the present resource version. */
  looks = 0;
  readonly watches: OpenWatch[] = [];
  /** Answers lists. */
  onList: (query: URLSearchParams) => TransportResponse = () => answer(500, {});
  /** Answers a watch at once instead of opening it. */
  onWatch: (query: URLSearchParams) => TransportResponse | undefined = () => undefined;

  /** The latest watch. */
  get watch(): OpenWatch {
    const last = this.watches.at(-1);
    if (last === undefined) throw new Error("no watch was opened");
    return last;
  }

  async send(request: TransportRequest): Promise<TransportResponse> {
    const query = new URL(request.path, "http://x").searchParams;
    if (query.get("limit") === "1") this.looks += 1;
    else this.lists.push(query);
    return this.onList(query);
  }

  async stream(request: TransportRequest, signal: AbortSignal): Promise<TransportStream> {
    const query = new URL(request.path, "http://x").searchParams;
    const refusal = this.onWatch(query);
    const pipe = new Pipe();
    const watch: OpenWatch = {
      query,
      send: (text) => pipe.push(text),
      event: (type, object) => pipe.push(`${JSON.stringify({ type, object })}\n`),
      end: (error) => pipe.end(error),
      aborted: false,
    };
    if (refusal !== undefined) {
      pipe.push(refusal.body);
      pipe.end();
      return { status: refusal.status, headers: refusal.headers, body: pipe };
    }
    signal.addEventListener("abort", () => {
      watch.aborted = true;
      pipe.end(new KubeError("Aborted", abortReason(signal).message));
    });
    this.watches.push(watch);
    return { status: 200, headers: {}, body: pipe };
  }

  async close(): Promise<void> {}
}

class Pipe implements AsyncIterable<string> {
  readonly #chunks: string[] = [];
  #end: { error: Error | undefined } | undefined;
  #wake: (() => void) | undefined;

  push(chunk: string): void {
    this.#chunks.push(chunk);
    this.#wake?.();
  }

  end(error?: Error): void {
    this.#end ??= { error };
    this.#wake?.();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<string, void, undefined> {
    for (;;) {
      const chunk = this.#chunks.shift();
      if (chunk !== undefined) yield chunk;
      else if (this.#end !== undefined) {
        if (this.#end.error !== undefined) throw this.#end.error;
        return;
      } else {
        await new Promise<void>((resolve) => {
          this.#wake = resolve;
        });
      }
    }
  }
}

export function answer(status: number, body: unknown, headers: Record<string, string> = {}): TransportResponse {
  return { status, headers, body: JSON.stringify(body) };
}

export function listAnswer(resourceVersion: number, items: KubeObject[], continueToken?: string): TransportResponse {
  const metadata = { resourceVersion: String(resourceVersion), ...(continueToken && { continue: continueToken }) };
  return answer(200, { kind: "List", metadata, items });
}
