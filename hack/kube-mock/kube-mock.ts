import { createServer } from "node:http";
import type { IncomingMessage, RequestListener, Server, ServerResponse } from "node:http";
import { createServer as createTlsServer } from "node:https";
import { once } from "node:events";
import { stringify } from "yaml";
import type { Clock } from "../../src/runtime/clock.ts";
import type { Random } from "../../src/runtime/random.ts";
import { createCertificateAuthority } from "../lib/pki.ts";
import { ApiError } from "./api-error.ts";
import { createApiServer } from "./api-server.ts";
import type { ApiRequest, ApiServer } from "./api-server.ts";
import { ConnectionLost } from "./connection.ts";
import { CONTROL_PATH, control } from "./control.ts";

const HOST = "127.0.0.1";
const BODY_BYTES_MAX = 3 * 1024 * 1024;

export interface KubeMockOptions {
  clock: Clock;
  random: Random;
  /** Port on 127.0.0.1; a free one by default. */
  port?: number;
  /** Serves HTTPS with a certificate of a throw-away CA. */
  tls?: boolean;
  /** The only bearer token that is accepted. If absent, every client is accepted. */
  token?: string;
  /** The API server that answers; a new one by default. */
  server?: ApiServer;
}

/** An API server that listens on a port. */
export interface KubeMock {
  /** For example, `http://127.0.0.1:40123`. */
  url: string;
  /** Text of a kubeconfig for this server. */
  kubeconfig: string;
  server: ApiServer;
  /** Breaks watches and connections, and stops listening. */
  close(): Promise<void>;
}

/** Starts an in-memory API server on 127.0.0.1. `CONTROL_PATH` injects its faults. */
export async function startKubeMock(options: KubeMockOptions): Promise<KubeMock> {
  const { clock, random, port = 0, tls = false, token } = options;
  const server = options.server ?? createApiServer({ clock, random });
  const listener: RequestListener = (request, response) => {
    serve(server, token, request, response).catch((error: unknown) => response.destroy(asError(error)));
  };
  const { front, caPem } = tls
    ? await createTlsFront(clock, listener)
    : { front: createServer(listener), caPem: undefined };
  front.listen(port, HOST);
  await once(front, "listening");
  const url = `${tls ? "https" : "http"}://${HOST}:${portOf(front)}`;
  return {
    url,
    kubeconfig: kubeconfigText({ url, caPem, token }),
    server,
    async close() {
      server.close();
      const closed = once(front, "close");
      front.close();
      front.closeAllConnections();
      await closed;
    },
  };
}

async function createTlsFront(clock: Clock, listener: RequestListener): Promise<{ front: Server; caPem: string }> {
  const authority = await createCertificateAuthority(clock, "kube-mock");
  const { certPem, keyPem } = await authority.issue({
    commonName: HOST,
    ipAddresses: [HOST],
    dnsNames: ["localhost"],
    usage: "server",
  });
  return { front: createTlsServer({ cert: certPem, key: keyPem }, listener), caPem: authority.certPem };
}

function portOf(front: Server): number {
  const address = front.address();
  if (address === null || typeof address === "string") throw new Error("the front does not listen");
  return address.port;
}

async function serve(
  server: ApiServer,
  token: string | undefined,
  message: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const gone = new AbortController();
  response.on("close", () => gone.abort(new ConnectionLost("the client went away")));
  if (token !== undefined && message.headers.authorization !== `Bearer ${token}`) {
    refuse(response, new ApiError(401, "Unauthorized", "Unauthorized"));
    return;
  }
  const body = await readBody(message);
  if (body === undefined) {
    refuse(response, new ApiError(413, "RequestEntityTooLarge", `limit is ${BODY_BYTES_MAX}`));
    return;
  }
  const path = message.url ?? "/";
  const request: ApiRequest = { method: message.method ?? "GET", path, headers: headersOf(message), body };
  if (path.startsWith(CONTROL_PATH)) {
    const { status, text } = control(server, request);
    response.writeHead(status, { "content-type": "application/json" }).end(text);
    return;
  }
  const answer = await server.handle(request, gone.signal);
  response.writeHead(answer.status, answer.headers);
  if (answer.kind === "whole") {
    response.end(answer.body);
    return;
  }
  response.flushHeaders();
  for await (const chunk of answer.chunks) {
    if (!response.write(chunk) && !response.destroyed) await drained(response);
  }
  response.end();
}

/** Waits until the response accepts more data or is closed. */
async function drained(response: ServerResponse): Promise<void> {
  const waiting = new AbortController();
  const { signal } = waiting;
  try {
    await Promise.race([once(response, "drain", { signal }), once(response, "close", { signal })]);
  } finally {
    waiting.abort();
  }
}

function headersOf(message: IncomingMessage): Record<string, string> {
  return Object.fromEntries(
    Object.entries(message.headers).map(([name, value]) => [
      name,
      Array.isArray(value) ? value.join(", ") : (value ?? ""),
    ]),
  );
}

/** @returns undefined if the body is too long. */
async function readBody(message: IncomingMessage): Promise<string | undefined> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of message as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > BODY_BYTES_MAX) return undefined;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString();
}

function refuse(response: ServerResponse, error: ApiError): void {
  response.writeHead(error.code, { "content-type": "application/json" }).end(JSON.stringify(error.toStatus()));
}

function asError(error: unknown): Error {
  return error instanceof Error ? error : new Error("failed", { cause: error });
}

function kubeconfigText(options: { url: string; caPem: string | undefined; token: string | undefined }): string {
  const { url, caPem, token } = options;
  const name = "kube-mock";
  return stringify({
    apiVersion: "v1",
    kind: "Config",
    clusters: [
      {
        name,
        cluster: {
          server: url,
          ...(caPem !== undefined && { "certificate-authority-data": Buffer.from(caPem).toString("base64") }),
        },
      },
    ],
    // Without a token, kubectl prompts for a user name, even if the server accepts every client.
    users: [{ name, user: { token: token ?? "anybody" } }],
    contexts: [{ name, context: { cluster: name, user: name } }],
    "current-context": name,
  });
}
