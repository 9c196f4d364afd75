import { createHash, timingSafeEqual } from "node:crypto";
import type { IncomingMessage } from "node:http";
import type { Random } from "../../../runtime/random.ts";
import { Secret } from "../../../runtime/secret.ts";
import type { Answer } from "../../../telemetry/http-server.ts";
import { pathOf } from "../../../telemetry/http-server.ts";
import { renderNotice } from "../render/document.ts";
import { html } from "../render/html.ts";
import type { RequestGuard } from "./server.ts";
import { notice, queryOf } from "./server.ts";

const SECRET_BYTES = 32;
const OPEN_PATH = "/open";

/**
 * Admits only the browser of the user who started the command. Other users of the same machine can connect to the port,
 * and every website that the user visits can make the browser send requests to it.
 */
export class LocalGuard {
  /** The secret in the address that is printed. */
  readonly #key: Secret;
  /** The secret in the cookie that a browser gets when it opens that address. */
  readonly #session: Secret;
  /** Set when the server listens. */
  port = 0;

  constructor(random: Random) {
    this.#key = newSecret(random);
    this.#session = newSecret(random);
  }

  /** The address to open. It contains the secret, so print it only for the user. */
  get url(): string {
    return `http://127.0.0.1:${this.port}${OPEN_PATH}?key=${this.#key.reveal()}`;
  }

  readonly guard: RequestGuard = (request) => Promise.resolve(this.#judge(request));

  #judge(request: IncomingMessage): Answer | undefined {
    const { host, origin, cookie = "" } = request.headers;
    // Host shows if an attacker's DNS server resolves a name to 127.0.0.1. Origin shows if another website sends the
    // request.
    const hosts = [`127.0.0.1:${this.port}`, `localhost:${this.port}`];
    if (host === undefined || !hosts.includes(host)) return notice(403, "Wrong Host");
    if (origin !== undefined && origin !== `http://${host}`) return notice(403, "Wrong Origin");
    const url = request.url ?? "";
    if (pathOf(url) === OPEN_PATH && isSame(queryOf(url).get("key"), this.#key)) return this.#letIn();
    const sent = cookie.split("; ").find((each) => each.startsWith(`${this.#cookieName}=`));
    if (isSame(sent?.slice(this.#cookieName.length + 1), this.#session)) return undefined;
    return notice(401, "Key missing", "Open the address that ironfence dashboard printed: it contains the key.");
  }

  /** All ports of a host share their cookies, so each command needs a name of its own. */
  get #cookieName(): string {
    return `ironfence-${this.port}`;
  }

  /**
   * Sets the cookie, and leads to the overview so that the secret does not stay in the address. It is a page and not a
   * redirect: if the user followed a link, a browser does not send a strict cookie after a redirect.
   */
  #letIn(): Answer {
    const body = renderNotice(
      "Opening",
      html`<meta http-equiv="refresh" content="0; url=/" />
        <p><a href="/">Overview</a></p>`,
    );
    const cookie = `${this.#cookieName}=${this.#session.reveal()}; Path=/; HttpOnly; SameSite=Strict`;
    return { status: 200, contentType: "text/html; charset=utf-8", body, headers: { "set-cookie": cookie } };
  }
}

function newSecret(random: Random): Secret {
  return new Secret(Buffer.from(random.bytes(SECRET_BYTES)).toString("base64url"));
}

/** Takes the same time for every guess. */
function isSame(guess: string | null | undefined, secret: Secret): boolean {
  const digest = (text: string): Buffer => createHash("sha256").update(text).digest();
  return timingSafeEqual(digest(guess ?? ""), digest(secret.reveal()));
}
