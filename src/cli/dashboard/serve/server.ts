import type { IncomingMessage, ServerResponse } from "node:http";
import type { Clock } from "../../../runtime/clock.ts";
import type { CertificateFiles } from "../../../telemetry/certificate-files.ts";
import type { Answer } from "../../../telemetry/http-server.ts";
import { listen, pathOf, sendAnswer } from "../../../telemetry/http-server.ts";
import { renderNotice } from "../render/document.ts";
import { html } from "../render/html.ts";
import { SCRIPT } from "../render/script.ts";
import { STYLE } from "../render/style.ts";
import { streamPage } from "./event-stream.ts";
import type { PageSource } from "./live-pages.ts";
import { LivePages, messageOf } from "./live-pages.ts";

/**
 * Checks each request before anything is shown. It may answer the request itself, for example with a login form.
 *
 * @returns the answer; undefined if the page may be shown.
 */
export type RequestGuard = (request: IncomingMessage) => Promise<Answer | undefined>;

/** How many streams may be open. Each may buffer a few pages of 100 KiB for a viewer that reads slowly. */
const STREAMS_MAX = 24;

/** Allow only our own script, style and connections, no frame, and no Referer. */
const SECURITY_HEADERS = {
  "content-security-policy":
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin",
  "referrer-policy": "no-referrer",
  "x-content-type-options": "nosniff",
  "x-frame-options": "DENY",
} as const;

export interface DashboardDeps {
  clock: Clock;
  source: PageSource;
  guard: RequestGuard;
  /** Undefined for plain HTTP. */
  certificate: CertificateFiles | undefined;
}

/** Serves the pages until it is closed. They change nothing. @throws Error naming the address if it cannot be bound. */
export async function serveDashboard(
  address: { host: string; port: number },
  { clock, source, guard, certificate }: DashboardDeps,
): Promise<{ port: number; close(): Promise<void> }> {
  const stop = new AbortController();
  const pages = new LivePages(source, clock, stop.signal);
  let streams = 0;
  const stream = async (response: ServerResponse, query: URLSearchParams, lastEventId: string | undefined) => {
    if (streams >= STREAMS_MAX) {
      return sendAnswer(response, { ...notice(503, "Too many viewers"), headers: { ...SECURITY_HEADERS } });
    }
    streams += 1;
    try {
      const headers = { ...SECURITY_HEADERS, "content-type": "text/event-stream", "cache-control": "no-store" };
      response.writeHead(200, headers);
      const shownVersion = lastEventId ?? query.get("shown") ?? "";
      await streamPage(response, { pages, clock }, query.get("page") ?? "/", shownVersion, stop.signal);
    } finally {
      streams -= 1;
    }
  };
  const handle = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const path = pathOf(request.url ?? "");
    const asset = Object.hasOwn(ASSETS, path) ? ASSETS[path] : undefined;
    const answer = (await guard(request)) ?? asset ?? refuseWrites(request);
    if (answer === undefined && path === "/events") {
      const lastEventId = request.headers["last-event-id"];
      return stream(response, queryOf(request.url ?? ""), typeof lastEventId === "string" ? lastEventId : undefined);
    }
    const { headers, ...found } = answer ?? (await show(pages, request.url ?? ""));
    sendAnswer(response, { ...found, headers: { ...SECURITY_HEADERS, ...headers } });
  };
  const server = await listen(address, certificate, (request, response) => {
    handle(request, response).catch(() => response.destroy());
  });
  return {
    port: server.port,
    close: () => {
      stop.abort(new Error("the server stops"));
      return server.close();
    },
  };
}

function refuseWrites({ method }: IncomingMessage): Answer | undefined {
  if (method === "GET" || method === "HEAD") return undefined;
  return { ...notice(405, "This page changes nothing"), headers: { allow: "GET, HEAD" } };
}

const ASSETS: Readonly<Record<string, Answer>> = {
  "/page.css": { status: 200, contentType: "text/css; charset=utf-8", body: STYLE },
  "/page.js": { status: 200, contentType: "text/javascript; charset=utf-8", body: SCRIPT },
};

async function show(pages: LivePages, target: string): Promise<Answer> {
  try {
    const isRows = pathOf(target) === "/rows";
    const body = isRows ? await pages.rows(queryOf(target)) : await pages.document(target);
    return body === undefined ? notice(404, "There is no such page") : { status: 200, contentType: HTML, body };
  } catch (error) {
    return notice(502, "The cluster cannot be read", messageOf(error));
  }
}

const HTML = "text/html; charset=utf-8";

/** A page with one message. */
export function notice(status: number, title: string, text = ""): Answer {
  const body = renderNotice(
    title,
    html`<p>${text}</p>
      <p><a href="/">Overview</a></p>`,
  );
  return { status, contentType: HTML, body };
}

export function queryOf(url: string): URLSearchParams {
  return new URLSearchParams(url.slice(pathOf(url).length));
}
