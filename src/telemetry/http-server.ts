import { createServer } from "node:http";
import type { IncomingMessage, ServerResponse } from "node:http";
import { ConnectionPlaces } from "./connection-places.ts";

/** Answers one path. */
export type Page = () => Promise<{ status: number; contentType: string; body: string }>;

/** Until the whole request is there: a scrape or a probe is one short GET, and anything slower is not one. */
const REQUEST_TIMEOUT_MS = 5_000;
/** How often it is looked for requests that are late. */
const LOOK_MS = 1_000;
/** A connection on which nothing moves, such as that of a client that does not read its answer. */
const SILENCE_MAX_MS = 10_000;
const CONNECTIONS_MAX = 64;

/**
 * Serves a few fixed pages over plain HTTP: metrics and probes.
 *
 * @returns the port that was bound (for port 0, the one that was free) and what ends the server.
 * @throws Error naming the address where it cannot be bound.
 */
export async function servePages(
  address: { host: string; port: number },
  pages: Readonly<Record<string, Page>>,
): Promise<{ port: number; close(): Promise<void> }> {
  const limits = {
    requestTimeout: REQUEST_TIMEOUT_MS,
    headersTimeout: REQUEST_TIMEOUT_MS,
    connectionsCheckingInterval: LOOK_MS,
  };
  const server = createServer(limits, (request, response) => {
    answer(request, response, pages).catch(() => response.destroy());
  });
  server.setTimeout(SILENCE_MAX_MS);
  const places = new ConnectionPlaces(CONNECTIONS_MAX);
  server.on("connection", (socket) => places.take(socket));
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

async function answer(
  request: IncomingMessage,
  response: ServerResponse,
  pages: Readonly<Record<string, Page>>,
): Promise<void> {
  const path = (request.url ?? "/").split("?")[0] ?? "/";
  const page = Object.hasOwn(pages, path) ? pages[path] : undefined;
  if (page === undefined) {
    response
      .writeHead(404, { "content-type": "text/plain" })
      .end(`not found; there are: ${Object.keys(pages).join(" ")}\n`);
    return;
  }
  if (request.method !== "GET" && request.method !== "HEAD") {
    response.writeHead(405, { allow: "GET, HEAD" }).end();
    return;
  }
  const { status, contentType, body } = await page();
  response.writeHead(status, { "content-type": contentType, "cache-control": "no-store" }).end(body);
}
