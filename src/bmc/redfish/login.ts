import { failure, messageIds, sessionsFull } from "./answer.ts";
import type { Answer } from "./answer.ts";
import type { Connection } from "./connection.ts";
import { objectAt, stringAt } from "./json.ts";
import type { JsonObject } from "./json.ts";
import { pathOnOrigin } from "./reference.ts";
import { BmcError } from "../errors.ts";
import type { Secret } from "../../runtime/secret.ts";

export interface Credentials {
  username: string;
  password: Secret;
}

/** How requests show who we are. */
export type Access =
  | { kind: "Session"; headers: Readonly<Record<string, string>>; path: string }
  /** `sessionsFull`: basic authentication is tried only because no session was free. */
  | { kind: "Basic"; headers: Readonly<Record<string, string>>; sessionsFull: boolean };

/**
 * Logs in: a session where the service offers one, else basic authentication (which sends nothing by itself).
 *
 * @param root the service root, which names the collection of sessions.
 * @throws BmcError AuthFailed where user or password are refused.
 */
export async function logIn(
  connection: Connection,
  root: JsonObject,
  credentials: Credentials,
  signal: AbortSignal,
): Promise<Access> {
  const sessions = sessionsReference(root);
  if (sessions === undefined) return basic(credentials, false);
  const path = pathOnOrigin(connection.origin, sessions, "the link to the sessions");
  const body = { UserName: credentials.username, Password: credentials.password.reveal() };
  const answer = await connection.send({ method: "POST", path, body }, signal);
  if (answer.status === 200 || answer.status === 201) return session(connection, answer);
  if (answer.status === 404 || answer.status === 405 || answer.status === 501) return basic(credentials, false);
  if (sessionsFull(answer)) return basic(credentials, true);
  throw loginFailure(`POST ${connection.origin}${path}`, answer);
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
  const location = answer.header("location") ?? stringAt(answer.body, "@odata.id");
  const path = pathOnOrigin(connection.origin, location, "the location of the new session");
  return { kind: "Session", headers: { "x-auth-token": token }, path };
}

function basic({ username, password }: Credentials, sessionsFull: boolean): Access {
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
