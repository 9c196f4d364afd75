import {
  failure,
  lacksPrivilege,
  messageIds,
  mustChangePassword,
  PASSWORD_CHANGE_ADVICE,
  sessionsDisabled,
  sessionsFull,
} from "./answer.ts";
import type { Answer } from "./answer.ts";
import type { Connection } from "./connection.ts";
import { objectAt, stringAt } from "./json.ts";
import type { JsonObject } from "./json.ts";
import type { OpenSession } from "./left-sessions.ts";
import { pathOnOrigin } from "./reference.ts";
import { BmcError } from "../errors.ts";
import type { Login } from "../login-breaker.ts";
import type { Recent } from "../recent.ts";

/** How requests show who we are. */
export type Access = SessionAccess | BasicAccess;

export interface SessionAccess extends OpenSession {
  kind: "Session";
}

export interface BasicAccess {
  kind: "Basic";
  headers: Readonly<Record<string, string>>;
  /** Basic authentication is tried only because no session was free. */
  sessionsFull: boolean;
  /** A session that was given without a token to use it by: it is to be ended. */
  unusable?: OpenSession;
}

/** Where nearly all services log in: asking the service root first would cost every fence a request. */
const SESSIONS = "/redfish/v1/SessionService/Sessions";

/** What a log-in needs of its service. */
export interface LoginDeps {
  connection: Connection;
  login: Login;
  /** Gives the service root, which names the collection of sessions where it is not the usual one. */
  readRoot: (signal: AbortSignal) => Promise<JsonObject>;
  /** Services whose root was found to name another collection: a password is not tried in vain at the usual one again. */
  elsewhere: Recent;
  /** Whether there is time for one more try: one that is cut off may leave a session that nobody knows. */
  hasTime: () => boolean;
}

/**
 * Logs in: a session where the service offers one, else basic authentication (which sends nothing by itself).
 *
 * @throws BmcError AuthFailed where user or password are refused.
 */
export async function logIn(deps: LoginDeps, signal: AbortSignal): Promise<Access> {
  const { connection, login, elsewhere } = deps;
  const { origin } = connection;
  const start = (elsewhere.isRecent(origin) ? await sessionsPath(deps, signal) : undefined) ?? SESSIONS;
  const first = await postLogin(connection, start, login, signal);
  if (isCreated(first)) return session(origin, start, login, first);
  if (sessionsFull(first)) return basic(login, true);
  if (sessionsDisabled(first)) return basic(login, false);
  if (lacksPrivilege(first)) throw loginFailure(`POST ${origin}${start}`, first);
  // Whatever it was that answered, the root shows whether that answer concerns the sessions of this service.
  const path = await sessionsPath(deps, signal);
  if (path === undefined) return basic(login, false);
  const isAnswered = path === start || answersFor(path, first);
  if (!isAnswered) elsewhere.note(origin);
  if (!isAnswered && !deps.hasTime()) {
    throw new BmcError("Timeout", `POST ${origin}${path}: too slow to log in there as well: set a longer timeout`);
  }
  const answer = isAnswered ? first : await postLogin(connection, path, login, signal);
  if (isCreated(answer)) return session(origin, path, login, answer);
  if (isMissing(answer) || sessionsDisabled(answer)) return basic(login, false);
  if (sessionsFull(answer)) return basic(login, true);
  throw loginFailure(`POST ${origin}${path}`, answer);
}

async function sessionsPath(deps: LoginDeps, signal: AbortSignal): Promise<string | undefined> {
  const linked = sessionsReference(await deps.readRoot(signal));
  return linked === undefined ? undefined : pathOnOrigin(deps.connection.origin, linked, "the link to the sessions");
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

function session(origin: string, collection: string, login: Login, answer: Answer): Access {
  const token = answer.header("x-auth-token")?.trim() ?? "";
  const path = sessionPath(origin, collection, answer);
  if (token !== "") return { kind: "Session", headers: { "x-auth-token": token }, path };
  const access = basic(login, false);
  return path === undefined ? access : { ...access, unusable: { path, headers: access.headers } };
}

/**
 * Where the new session is. Behind a forwarded port a BMC may name itself as it is known on its own network: then the path alone
 * serves, on the origin that we know. Some give a bare id, or only the id in the body.
 */
export function sessionPath(origin: string, collection: string, answer: Answer): string | undefined {
  const members = collection.replace(/\/+$/, "");
  const location = answer.header("location");
  const elsewhere = location === undefined ? undefined : (URL.parse(location)?.pathname ?? `${members}/${location}`);
  const id = stringAt(answer.body, "Id");
  const named = [location, stringAt(answer.body, "@odata.id"), elsewhere, id === undefined ? id : `${members}/${id}`];
  for (const reference of named) {
    const path = usablePath(origin, reference);
    // Only a session is ever deleted.
    if (path !== undefined && /\/Sessions?\/[^/]+\/?$/i.test(path)) return path;
  }
  return undefined;
}

function usablePath(origin: string, reference: string | undefined): string | undefined {
  try {
    return pathOnOrigin(origin, reference, "the location of the new session");
  } catch (error) {
    if (error instanceof BmcError) return undefined;
    throw error;
  }
}

function basic({ username, password }: Login, sessionsFull: boolean): BasicAccess {
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
  if (mustChangePassword(answer)) return new BmcError("PrivilegeTooLow", `${message}: ${PASSWORD_CHANGE_ADVICE}`);
  if (lacksPrivilege(answer))
    return new BmcError("PrivilegeTooLow", `${message}: the account may not log in by Redfish`);
  if (refused) return new BmcError("AuthFailed", `${message}: user or password refused`);
  return new BmcError(failure(what, answer).code, `${message}: login failed`);
}
