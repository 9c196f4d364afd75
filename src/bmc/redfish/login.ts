import { failure, messageIds, sessionsFull } from "./answer.ts";
import type { Answer } from "./answer.ts";
import type { Connection } from "./connection.ts";
import { objectAt, stringAt } from "./json.ts";
import type { JsonObject } from "./json.ts";
import { pathOnOrigin } from "./reference.ts";
import { BmcError } from "../errors.ts";
import type { Login } from "../login-breaker.ts";

/** How requests show who we are. */
export type Access = { kind: "Session"; headers: Readonly<Record<string, string>>; path: string } | BasicAccess;

export interface BasicAccess {
  kind: "Basic";
  headers: Readonly<Record<string, string>>;
  /** Basic authentication is tried only because no session was free. */
  sessionsFull: boolean;
}

/** Where nearly all services log in: asking the service root first would cost every fence a request. */
const SESSIONS = "/redfish/v1/SessionService/Sessions";

/**
 * Logs in: a session where the service offers one, else basic authentication (which sends nothing by itself).
 *
 * @param readRoot gives the service root, which names the collection of sessions where it is not the usual one.
 * @throws BmcError AuthFailed where user or password are refused.
 */
export async function logIn(
  connection: Connection,
  readRoot: (signal: AbortSignal) => Promise<JsonObject>,
  login: Login,
  signal: AbortSignal,
): Promise<Access> {
  const first = await postLogin(connection, SESSIONS, login, signal);
  if (isCreated(first)) return session(connection, first);
  if (sessionsFull(first)) return basic(login, true);
  // Whatever it was that answered, the root tells whether it speaks for the sessions of this service.
  const linked = sessionsReference(await readRoot(signal));
  if (linked === undefined) return basic(login, false);
  const path = pathOnOrigin(connection.origin, linked, "the link to the sessions");
  const answer = answersFor(path, first) ? first : await postLogin(connection, path, login, signal);
  if (isCreated(answer)) return session(connection, answer);
  if (isMissing(answer)) return basic(login, false);
  if (sessionsFull(answer)) return basic(login, true);
  throw loginFailure(`POST ${connection.origin}${path}`, answer);
}

function postLogin(connection: Connection, path: string, login: Login, signal: AbortSignal): Promise<Answer> {
  const body = { UserName: login.username, Password: login.password.reveal() };
  return connection.send({ method: "POST", path, body }, signal);
}

function isCreated({ status }: Answer): boolean {
  return status === 200 || status === 201;
}

function isMissing({ status }: Answer): boolean {
  return status === 404 || status === 405 || status === 501;
}

/** Whether the answer to the first try is that of the sessions at `path`: a wrong password must not be sent twice. */
function answersFor(path: string, first: Answer): boolean {
  const isUsual = path.replace(/\/+$/, "") === SESSIONS;
  // iLO redirects to the same path with a slash, and its link has one.
  return isUsual && !(path !== SESSIONS && (isMissing(first) || (first.status >= 300 && first.status < 400)));
}

/** DSP0266, "Session management": the service root links to the sessions; older services leave the link to SessionService. */
function sessionsReference(root: JsonObject): string | undefined {
  const linked = stringAt(objectAt(objectAt(root, "Links"), "Sessions"), "@odata.id");
  const service = stringAt(objectAt(root, "SessionService"), "@odata.id");
  return linked ?? (service === undefined ? undefined : `${service.replace(/\/+$/, "")}/Sessions`);
}

function session(connection: Connection, answer: Answer): Access {
  const token = answer.header("x-auth-token");
  if (token === undefined) throw new BmcError("BadResponse", "the login was answered without X-Auth-Token");
  return { kind: "Session", headers: { "x-auth-token": token }, path: sessionPath(connection.origin, answer) };
}

/** Behind a forwarded port a BMC may name itself as it is known on its own network: then the body's path serves. */
function sessionPath(origin: string, answer: Answer): string {
  const inBody = stringAt(answer.body, "@odata.id");
  const what = "the location of the new session";
  try {
    return pathOnOrigin(origin, answer.header("location"), what);
  } catch (error) {
    if (inBody === undefined) throw error;
    return pathOnOrigin(origin, inBody, what);
  }
}

function basic({ username, password }: Login, sessionsFull: boolean): Access {
  const authorization = `Basic ${Buffer.from(`${username}:${password.reveal()}`).toString("base64")}`;
  return { kind: "Basic", headers: { authorization }, sessionsFull };
}

/** The words of the answer stay out of the message: a service may repeat what it was sent. */
function loginFailure(what: string, answer: Answer): BmcError {
  const ids = messageIds(answer.body)
    .slice(0, 3)
    .filter((id) => /^[\w.]{1,100}$/.test(id));
  const refused = [401, 403].includes(answer.status) || ids.some((id) => /UnauthorizedLoginAttempt/.test(id));
  const message = `${what}: HTTP ${answer.status}${ids.length === 0 ? "" : ` (${ids.join(", ")})`}`;
  if (refused) return new BmcError("AuthFailed", `${message}: user or password refused`);
  return new BmcError(failure(what, answer).code, `${message}: login failed`);
}
