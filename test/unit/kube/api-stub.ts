import { createServer } from "node:http";
import type { IncomingMessage, Server, ServerResponse } from "node:http";
import { createServer as createTlsServer } from "node:https";
import type { ServerOptions } from "node:https";
import type { AddressInfo } from "node:net";
import type { ClusterAccess, Credentials } from "../../../src/kube/connection/credentials/cluster-access.ts";

export interface SeenRequest {
  method: string;
  url: URL;
  headers: IncomingMessage["headers"];
  body: string;
}

export type Handler = (request: SeenRequest, response: ServerResponse, raw: IncomingMessage) => void;

export interface ApiStub {
  url: string;
  requests: SeenRequest[];
  /** Sets the handler for later requests. */
  handle(handler: Handler): void;
  close(): Promise<void>;
}

/** Starts a real HTTP(S) server on loopback. The test provides its answers. */
export async function startApiStub(handler: Handler, tls?: ServerOptions): Promise<ApiStub> {
  let answer = handler;
  const requests: SeenRequest[] = [];
  const listener = (raw: IncomingMessage, response: ServerResponse): void => {
    const chunks: Buffer[] = [];
    raw.on("data", (chunk: Buffer) => chunks.push(chunk));
    raw.on("end", () => {
      const url = new URL(raw.url ?? "/", "http://stub");
      const body = Buffer.concat(chunks).toString();
      const request = { method: raw.method ?? "", url, headers: raw.headers, body };
      requests.push(request);
      answer(request, response, raw);
    });
  };
  const server: Server = tls === undefined ? createServer(listener) : createTlsServer(tls, listener);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `${tls === undefined ? "http" : "https"}://127.0.0.1:${port}`,
    requests,
    handle: (handler) => {
      answer = handler;
    },
    close: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

export function json(
  response: ServerResponse,
  status: number,
  body: unknown,
  headers: Record<string, string> = {},
): void {
  response.writeHead(status, { "content-type": "application/json", ...headers });
  response.end(JSON.stringify(body));
}

export function failure(code: number, reason: string, message: string, details: object = {}): object {
  return { kind: "Status", apiVersion: "v1", status: "Failure", code, reason, message, details };
}

/** Access to a stub with credentials that the test can change. */
export function accessTo(url: string, credentials: () => Credentials = () => NO_CREDENTIALS): ClusterAccess {
  return { server: url, namespace: undefined, source: "a test", loadCredentials: async () => credentials() };
}

const NO_CREDENTIALS: Credentials = { headers: {}, tls: { insecureSkipVerify: false } };
