import { KubeError } from "../../src/kube/errors.ts";
import type { KubeTransport, TransportRequest, TransportResponse, TransportStream } from "../../src/kube/transport.ts";
import type { Clock } from "../../src/runtime/clock.ts";
import { abortReason } from "../../src/runtime/clock.ts";
import { DeadlineError, withDeadline } from "../../src/runtime/deadline.ts";
import type { ApiRequest, ApiResponse } from "./api-server.ts";
import { ConnectionLost } from "./connection.ts";

interface Handler {
  handle(request: ApiRequest, signal: AbortSignal): Promise<ApiResponse>;
}

/** A transport to a server in the same process: requests are function calls, and all times come from the clock. */
export function createTransport(server: Handler, options: { client: string; clock: Clock }): KubeTransport {
  const { client, clock } = options;
  const open = new Set<AbortController>();
  let isClosed = false;

  /**
   * A signal that aborts with the caller's signal and when this transport is closed. AbortSignal.any is ten times
   * slower.
   */
  const follow = (signal: AbortSignal): { signal: AbortSignal; end: () => void } => {
    const controller = new AbortController();
    const onAbort = (): void => controller.abort(abortReason(signal));
    if (isClosed) controller.abort(closed());
    else if (signal.aborted) onAbort();
    signal.addEventListener("abort", onAbort, { once: true });
    open.add(controller);
    const end = (): void => {
      open.delete(controller);
      signal.removeEventListener("abort", onAbort);
    };
    return { signal: controller.signal, end };
  };

  /** Sends one request. If the answer is a stream, it ends when `signal` aborts. */
  const call = async (request: TransportRequest, signal: AbortSignal, isStream: boolean): Promise<ApiResponse> => {
    const what = `${request.method} ${request.path}`;
    const headers = { "user-agent": client, "content-type": request.contentType ?? "application/json" };
    const { method, path, body = "" } = request;
    try {
      return await withDeadline(clock, what, request.timeoutMs, signal, (deadline) =>
        server.handle({ method, path, headers, body }, isStream ? signal : deadline),
      );
    } catch (error) {
      throw toKubeError(error, what);
    }
  };

  return {
    async send(request, callerSignal): Promise<TransportResponse> {
      const { signal, end } = follow(callerSignal);
      try {
        const response = await call(request, signal, false);
        const { status, headers } = response;
        return { status, headers, body: response.kind === "whole" ? response.body : await readAll(response.chunks) };
      } finally {
        end();
      }
    },
    async stream(request, callerSignal): Promise<TransportStream> {
      const { signal, end } = follow(callerSignal);
      try {
        const response = await call(request, signal, true);
        const { status, headers } = response;
        const chunks = response.kind === "whole" ? once(response.body) : response.chunks;
        return { status, headers, body: guarded(chunks, `${request.method} ${request.path}`, signal, end) };
      } catch (error) {
        end();
        throw error;
      }
    },
    async close() {
      isClosed = true;
      for (const controller of open) controller.abort(closed());
    },
  };
}

function closed(): Error {
  return new Error("the transport was closed");
}

async function* once(body: string): AsyncGenerator<string> {
  yield body;
}

async function readAll(chunks: AsyncIterable<string>): Promise<string> {
  let text = "";
  for await (const chunk of chunks) text += chunk;
  return text;
}

/** Passes a stream on. Throws a KubeError if the connection breaks or the caller gives up. */
async function* guarded(
  chunks: AsyncIterable<string>,
  what: string,
  signal: AbortSignal,
  end: () => void,
): AsyncGenerator<string> {
  try {
    yield* chunks;
  } catch (error) {
    throw toKubeError(error, what);
  } finally {
    end();
  }
  if (signal.aborted) throw toKubeError(abortReason(signal), what);
}

function toKubeError(error: unknown, what: string): KubeError {
  if (error instanceof KubeError) return error;
  if (error instanceof DeadlineError) return new KubeError("Timeout", error.message, { cause: error });
  if (error instanceof ConnectionLost) return new KubeError("Network", `${what}: ${error.message}`, { cause: error });
  return new KubeError("Aborted", `${what}: ${error instanceof Error ? error.message : String(error)}`, {
    cause: error,
  });
}
