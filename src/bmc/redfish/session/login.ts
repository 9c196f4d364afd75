import {
  failure,
  lacksPrivilege,
  messageIds,
  mustChangePassword,
  PASSWORD_CHANGE_ADVICE,
  sessionsDisabled,
  sessionsFull,
} from "../http/answer.ts";
import type { RedfishAnswer } from "../http/answer.ts";
import type { Connection } from "../http/connection.ts";
import { objectAt, stringAt } from "../http/json.ts";
import type { JsonObject } from "../http/json.ts";
import type { OpenSession } from "./abandoned-sessions.ts";
import { pathOnOrigin } from "../http/reference.ts";
import { BmcError } from "../../interface/errors.ts";
import type { BmcCredentials } from "../../interface/credentials.ts";
import type { ExpiringSet } from "../../gate/memory/expiring-set.ts";
import { withoutTrailingSlashes } from "../../../runtime/text/trailing-slashes.ts";

/** How requests are authenticated. */
export type Access = SessionAccess | BasicAccess;

export interface SessionAccess extends OpenSession {
  kind: "Session";
}

export interface BasicAccess {
  kind: "Basic";
  headers: Readonly<Record<string, string>>;
  /** Whether basic authentication is used only because no session was free. */
  sessionsFull: boolean;
  /** A session for which the BMC gave no token. It cannot be used, and has to be ended. */
  unusable?: OpenSession;
}

/** The path of the sessions at nearly all services. To read the service root first would cost every fence a request. */
const SESSIONS = "/redfish/v1/SessionService/Sessions";

/** What a login needs from its service. */
export interface LoginDeps {
  connection: Connection;
  login: BmcCredentials;
  /** Returns the service root, which names the collection of sessions. */
  readRoot: (signal: AbortSignal) => Promise<JsonObject>;
  /**
   * Services whose root names another collection than the usual one. The password is not sent to the usual path of
   * these again.
   */
  unusualPaths: ExpiringSet;
  /** Whether there is time for one more attempt: an attempt that is aborted may leave an unknown session behind. */
  hasTime: () => boolean;
}

/**
 * Logs in: with a session if the service supports it, otherwise with basic authentication, for which nothing is sent
 * yet.
 *
 * @throws BmcError AuthFailed if user or password are refused.
 */
export async function logIn(deps: LoginDeps, signal: AbortSignal): Promise<Access> {
  const { connection, login, unusualPaths } = deps;
  const { origin } = connection;
  const start = (unusualPaths.has(origin) ? await sessionsPath(deps, signal) : undefined) ?? SESSIONS;
  const first = await postLogin(connection, start, login, signal);
  if (isCreated(first)) return session(origin, start, login, first);
  if (sessionsFull(first)) return basic(login, true);
  if (sessionsDisabled(first)) return basic(login, false);
  if (lacksPrivilege(first)) throw loginFailure(`POST ${origin}${start}`, first);
  // The root shows whether this answer came from the sessions of the service.
  const path = await sessionsPath(deps, signal);
  if (path === undefined) return basic(login, false);
  const isAnswered = path === start || answersFor(path, first);
  if (!isAnswered) unusualPaths.add(origin);
  if (!isAnswered && !deps.hasTime()) {
    throw new BmcError(
      "Timeout",
      `POST ${origin}${path}: no time is left for a login at this path: set a longer timeout`,
    );
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

function postLogin(
  connection: Connection,
  path: string,
  login: BmcCredentials,
  signal: AbortSignal,
): Promise<RedfishAnswer> {
  const body = { UserName: login.username, Password: login.password.reveal() };
  return connection.send({ method: "POST", path, body }, signal);
}

function isCreated({ status }: RedfishAnswer): boolean {
  return status === 200 || status === 201;
}

function isMissing({ status }: RedfishAnswer): boolean {
  return status === 404 || status === 405 || status === 501;
}

/**
 * Whether the answer to the first attempt came from the sessions at `path`. A wrong password must not be sent twice.
 */
function answersFor(path: string, first: RedfishAnswer): boolean {
  const isUsual = withoutTrailingSlashes(path) === SESSIONS;
  // The link of an iLO ends with a slash, and the path without the slash redirects to it.
  return isUsual && !(path !== SESSIONS && (isMissing(first) || (first.status >= 300 && first.status < 400)));
}

/**
 * The path of the sessions in the service root (DSP0266, "Session management"). Older services have only the link to
 * SessionService there.
 */
function sessionsReference(root: JsonObject): string | undefined {
  const linked = stringAt(objectAt(objectAt(root, "Links"), "Sessions"), "@odata.id");
  const service = stringAt(objectAt(root, "SessionService"), "@odata.id");
  return linked ?? (service === undefined ? undefined : `${withoutTrailingSlashes(service)}/Sessions`);
}

function session(origin: string, collection: string, login: BmcCredentials, answer: RedfishAnswer): Access {
  const token = answer.header("x-auth-token")?.trim() ?? "";
  const path = sessionPath(origin, collection, answer);
  if (token !== "") return { kind: "Session", headers: { "x-auth-token": token }, path };
  const access = basic(login, false);
  return path === undefined ? access : { ...access, unusable: { path, headers: access.headers } };
}

/**
 * The path of the new session. Behind a forwarded port a BMC may report its address on its own network. Only the path
 * of that is used, with the known origin. Some BMCs give only an id, or only the id in the body.
 */
export function sessionPath(origin: string, collection: string, answer: RedfishAnswer): string | undefined {
  const members = withoutTrailingSlashes(collection);
  const location = answer.header("location");
  const elsewhere = location === undefined ? undefined : (URL.parse(location)?.pathname ?? `${members}/${location}`);
  const id = stringAt(answer.body, "Id");
  const named = [location, stringAt(answer.body, "@odata.id"), elsewhere, id === undefined ? id : `${members}/${id}`];
  for (const reference of named) {
    const path = usablePath(origin, reference);
    // The path is used for a DELETE later, so it must be that of a session.
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

function basic({ username, password }: BmcCredentials, sessionsFull: boolean): BasicAccess {
  const authorization = `Basic ${Buffer.from(`${username}:${password.reveal()}`).toString("base64")}`;
  return { kind: "Basic", headers: { authorization }, sessionsFull };
}

/**
 * The error for a failed login. Its message does not contain the text of the answer, because a service may repeat the
 * password in it.
 */
function loginFailure(what: string, answer: RedfishAnswer): BmcError {
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
