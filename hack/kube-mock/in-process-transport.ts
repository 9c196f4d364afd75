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

/** A client's wire to a server in the same process: requests are function calls, and time is the clock's. */
export function createTransport(server: Handler, options: { client: string; clock: Clock }): KubeTransport {
  const { client, clock } = options;
  const closed = new AbortController();

  /** Sends one request; the answer's stream ends when `streamSignal` aborts. */
  const call = async (
    request: TransportRequest,
    signal: AbortSignal,
    streamSignal: AbortSignal,
  ): Promise<ApiResponse> => {
    const what = `${request.method} ${request.path}`;
    const headers = { "user-agent": client, "content-type": request.contentType ?? "application/json" };
    const { method, path, body = "" } = request;
    try {
      return await withDeadline(clock, what, request.timeoutMs, signal, (deadline) => {
        return server.handle({ method, path, headers, body }, AbortSignal.any([deadline, streamSignal]));
      });
    } catch (error) {
      throw toKubeError(error, what);
    }
  };

  return {
    async send(request, signal): Promise<TransportResponse> {
      const anySignal = AbortSignal.any([signal, closed.signal]);
      const response = await call(request, anySignal, anySignal);
      const { status, headers } = response;
      return { status, headers, body: response.kind === "whole" ? response.body : await readAll(response.chunks) };
    },
    async stream(request, signal): Promise<TransportStream> {
      const anySignal = AbortSignal.any([signal, closed.signal]);
      const response = await call(request, anySignal, anySignal);
      const { status, headers } = response;
      const chunks = response.kind === "whole" ? once(response.body) : response.chunks;
      return { status, headers, body: guarded(chunks, `${request.method} ${request.path}`, anySignal) };
    },
    async close() {
      closed.abort(new Error("the transport was closed"));
    },
  };
}

async function* once(body: string): AsyncGenerator<string> {
  yield body;
}

async function readAll(chunks: AsyncIterable<string>): Promise<string> {
  let text = "";
  for await (const chunk of chunks) text += chunk;
  return text;
}

/** Ends with a KubeError where the connection breaks or the caller gives up. */
async function* guarded(chunks: AsyncIterable<string>, what: string, signal: AbortSignal): AsyncGenerator<string> {
  try {
    yield* chunks;
  } catch (error) {
    throw toKubeError(error, what);
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
