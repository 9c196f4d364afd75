import { createServer } from "node:http";
import type { IncomingMessage, Server, ServerResponse } from "node:http";
import { createServer as createTlsServer } from "node:https";
import type { CertificateFiles } from "./certificate-files.ts";
import { ConnectionLimit } from "./connection-limit.ts";

/** The answer to one request. */
export interface Answer {
  status: number;
  contentType: string;
  body: string;
  headers?: Readonly<Record<string, string>>;
}

/** Answers one path. */
export type Page = () => Promise<Answer>;

/**
 * Decides by the header Authorization who may read a page.
 *
 * @returns the answer to a refused request; undefined if the request is allowed.
 */
export type Authorizer = (authorization: string | undefined, path: string) => Promise<Answer | undefined>;

/** How pages are protected. */
export interface Protection {
  certificate: CertificateFiles;
  authorizer: Authorizer;
}

/** The time in which a whole request must arrive. A scrape or a probe is one short GET. */
const REQUEST_TIMEOUT_MS = 5_000;
/** How often Node checks for requests that are late. */
const CONNECTION_CHECK_MS = 1_000;
/** When a connection without traffic is closed, for example one of a client that does not read its answer. */
const SILENCE_MAX_MS = 10_000;
const CONNECTIONS_MAX = 64;

/**
 * Serves a few fixed pages: metrics and probes.
 *
 * @param protection without it, pages are served over plain HTTP and to everyone.
 * @returns the port that was bound (for port 0, a free one) and a function that ends the server.
 * @throws Error naming the address if it cannot be bound.
 */
export async function servePages(
  address: { host: string; port: number },
  pages: Readonly<Record<string, Page>>,
  protection?: Protection,
): Promise<{ port: number; close(): Promise<void> }> {
  return listen(address, protection?.certificate, (request, response) => {
    answer(request, pages, protection?.authorizer)
      .then((found) => sendAnswer(response, found))
      .catch(() => response.destroy());
  });
}

export function sendAnswer(response: ServerResponse, { status, contentType, body, headers }: Answer): void {
  response.writeHead(status, { "content-type": contentType, "cache-control": "no-store", ...headers }).end(body);
}

/**
 * Starts a server that bounds the number of connections, the time that a request takes to arrive, and the time without
 * traffic.
 *
 * @param certificate without it, the server speaks plain HTTP.
 * @throws Error naming the address if it cannot be bound.
 */
export async function listen(
  address: { host: string; port: number },
  certificate: CertificateFiles | undefined,
  onRequest: (request: IncomingMessage, response: ServerResponse) => void,
): Promise<{ port: number; close(): Promise<void> }> {
  const server = listener(certificate, onRequest);
  server.setTimeout(SILENCE_MAX_MS);
  const connections = new ConnectionLimit(CONNECTIONS_MAX);
  server.on("connection", (socket) => connections.take(socket));
  await new Promise<void>((resolve, reject) => {
    server.once("error", (error) => {
      reject(new Error(`cannot listen on ${address.host}:${address.port}: ${error.message}`, { cause: error }));
    });
    server.listen(address.port, address.host, resolve);
  });
  const bound = server.address();
  return {
    port: typeof bound === "object" && bound !== null ? bound.port : address.port,
    close: () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

function listener(
  certificate: CertificateFiles | undefined,
  onRequest: (request: IncomingMessage, response: ServerResponse) => void,
): Server {
  const limits = {
    requestTimeout: REQUEST_TIMEOUT_MS,
    headersTimeout: REQUEST_TIMEOUT_MS,
    connectionsCheckingInterval: CONNECTION_CHECK_MS,
  };
  if (certificate === undefined) return createServer(limits, onRequest);
  const tls = { minVersion: "TLSv1.2", handshakeTimeout: REQUEST_TIMEOUT_MS, ...certificate.current() } as const;
  const server = createTlsServer({ ...limits, ...tls }, onRequest);
  server.on("connection", () => {
    const renewed = certificate.renewed();
    if (renewed !== undefined) server.setSecureContext({ minVersion: tls.minVersion, ...renewed });
  });
  return server;
}

/**
 * The authorizer decides before the page is looked up, so that an unauthorized client does not learn which pages exist.
 */
async function answer(
  { method = "", url = "", headers }: Pick<IncomingMessage, "method" | "url" | "headers">,
  pages: Readonly<Record<string, Page>>,
  authorizer: Authorizer | undefined,
): Promise<Answer> {
  const path = pathOf(url);
  const refusal = await authorizer?.(headers.authorization, path);
  if (refusal !== undefined) return refusal;
  const found = findPage({ method, path }, pages);
  return typeof found === "function" ? await found() : found;
}

/** The path of a request's target, without its query. */
export function pathOf(url: string): string {
  return url.split("?")[0] ?? "";
}

/** The requested page, or the answer that says why there is none. */
export function findPage(
  { method, path }: { method: string; path: string },
  pages: Readonly<Record<string, Page>>,
): Page | Answer {
  const page = Object.hasOwn(pages, path) ? pages[path] : undefined;
  if (page === undefined) return text(404, `not found; there are: ${Object.keys(pages).join(" ")}\n`);
  if (method !== "GET" && method !== "HEAD") return { ...text(405, ""), headers: { allow: "GET, HEAD" } };
  return page;
}

function text(status: number, body: string): Answer {
  return { status, contentType: "text/plain", body };
}
