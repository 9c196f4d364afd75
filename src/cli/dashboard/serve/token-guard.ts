import type { IncomingMessage } from "node:http";
import type { Answer, Authorizer } from "../../../telemetry/http-server.ts";
import { pathOf } from "../../../telemetry/http-server.ts";
import { renderNotice } from "../render/document.ts";
import { html } from "../render/html.ts";
import type { RequestGuard } from "./server.ts";
import { notice } from "./server.ts";

/** The path that a user must be allowed to `get` to see any page. */
export const STATUS_PATH = "/ironfence/status";

const LOGIN_PATH = "/login";
/** Because of the prefix `__Host-`, browsers accept the cookie only over TLS and send it only to this host. */
const COOKIE = "__Host-ironfence-token";
const BODY_BYTES_MAX = 16_384;
/** 12 h, the length of a shift. The token may expire sooner. */
const COOKIE_SECONDS = 12 * 3_600;

/**
 * Admits a user if the API server allows them to get `STATUS_PATH`. Programs send their token in the header
 * Authorization. Browsers send it in a cookie, which they get after the user has pasted the token.
 */
export function createTokenGuard(authorizer: Authorizer): RequestGuard {
  return async (request) => {
    const path = pathOf(request.url ?? "");
    if (path === LOGIN_PATH && request.method === "POST") return logIn(request, authorizer);
    // The style contains nothing of the cluster, and the login form looks better with it.
    if (path === "/page.css") return undefined;
    const refusal = await authorizer(authorizationOf(request), STATUS_PATH);
    return refusal === undefined ? undefined : loginForm(refusal.status, WHY[refusal.status] ?? "");
  };
}

const WHY: Readonly<Record<number, string>> = {
  401: "Paste a token of a user who may read this page.",
  403: `The user of this token may not get ${STATUS_PATH}: bind the ClusterRole ironfence-status-reader to it.`,
  503: "The API server did not answer the permission check. Try again, or use ironfence dashboard.",
};

function authorizationOf({ headers }: IncomingMessage): string | undefined {
  if (headers.authorization !== undefined) return headers.authorization;
  const sent = (headers.cookie ?? "").split("; ").find((each) => each.startsWith(`${COOKIE}=`));
  return sent === undefined ? undefined : `Bearer ${sent.slice(COOKIE.length + 1)}`;
}

async function logIn(request: IncomingMessage, authorizer: Authorizer): Promise<Answer> {
  // Browsers send the origin of a form. Another site must not choose the token with which the user reads.
  if (request.headers.origin !== `https://${request.headers.host ?? ""}`) return notice(403, "Wrong Origin");
  const body = await readBody(request);
  if (body === undefined) return notice(413, "That is not a token");
  const token = new URLSearchParams(body).get("token")?.trim() ?? "";
  const refusal = await authorizer(`Bearer ${token}`, STATUS_PATH);
  if (refusal !== undefined) return loginForm(refusal.status, WHY[refusal.status] ?? "");
  // The authorizer has accepted the token, so it contains no character that ends a cookie.
  const cookie = `${COOKIE}=${token}; Path=/; Max-Age=${COOKIE_SECONDS}; Secure; HttpOnly; SameSite=Strict`;
  return { ...notice(303, "Logged in"), headers: { "set-cookie": cookie, location: "/" } };
}

function loginForm(status: number, why: string): Answer {
  const form = html`<p>${why}</p>
    <form method="post" action="/login" autocomplete="off">
      <p><label for="token">Token</label> <input id="token" name="token" type="password" required /></p>
      <p><button>Show the page</button></p>
    </form>
    <p>Get one with <code>kubectl create token SERVICEACCOUNT -n NAMESPACE</code>.</p>`;
  const headers = status === 401 ? { "www-authenticate": "Bearer" } : {};
  return { status, contentType: "text/html; charset=utf-8", body: renderNotice("Log in", form), headers };
}

/** Reads the body; undefined if it is too long for a token. The server limits the time for the whole request. */
async function readBody(request: IncomingMessage): Promise<string | undefined> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > BODY_BYTES_MAX) return undefined;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString("utf8");
}
