import { z } from "zod";
import { toTime } from "../../src/runtime/time.ts";
import { failure, success } from "./answer.ts";
import type { Answer, Body } from "./answer.ts";
import { parseBody } from "./body.ts";
import type { Endpoint, ServiceState } from "./endpoint.ts";
import { ENABLED, ROOT, collection, link, resource } from "./resource.ts";
import type { Session } from "./sessions.ts";

// Logging in and out (DSP0266, "Redfish session login authentication").

const SERVICE_PATH = `${ROOT}/SessionService`;
const SESSIONS_PATH = `${SERVICE_PATH}/Sessions`;
/** The Retry-After header when the session table is full. */
const FULL_RETRY_AFTER_SECONDS = "5";

const loginSchema = z.strictObject({ UserName: z.string(), Password: z.string() });
const servicePatchSchema = z.strictObject({ SessionTimeout: z.int().min(30).max(86_400).optional() });

export function sessionServiceEndpoint(state: ServiceState): Endpoint {
  const get = (): Body =>
    resource("SessionService", SERVICE_PATH, "SessionService", "Session Service", {
      ServiceEnabled: true,
      SessionTimeout: state.sessions.timeoutMs / 1_000,
      Status: ENABLED,
      Sessions: link(SESSIONS_PATH),
    });
  return {
    get,
    PATCH: {
      privilege: "ConfigureManager",
      run: (body) => {
        const parsed = parseBody(servicePatchSchema, body);
        if ("answer" in parsed) return parsed.answer;
        const { SessionTimeout } = parsed.data;
        if (SessionTimeout !== undefined) state.sessions.timeoutMs = SessionTimeout * 1_000;
        return success(200, get());
      },
    },
  };
}

export function sessionsEndpoint(state: ServiceState): Endpoint {
  return {
    get: () =>
      collection(
        "SessionCollection",
        SESSIONS_PATH,
        "Sessions",
        state.sessions.values().map(({ id }) => `${SESSIONS_PATH}/${id}`),
      ),
    POST: { privilege: undefined, run: (body) => login(state, body) },
  };
}

export function sessionEndpoint(state: ServiceState, session: Session): Endpoint {
  return {
    get: () => sessionBody(session),
    DELETE: {
      privilege: "ConfigureSelf",
      run: () => {
        state.sessions.delete(session.id);
        return success(204);
      },
    },
  };
}

function login(state: ServiceState, body: Body): Answer {
  const parsed = parseBody(loginSchema, body);
  if ("answer" in parsed) return parsed.answer;
  const account = state.accounts.authenticate(parsed.data.UserName, parsed.data.Password);
  if (account === undefined) return failure(401, "AccessDenied", "The credentials are not right.");
  const session = state.sessions.open(account);
  if (session === undefined) return tableFull();
  return success(201, sessionBody(session), {
    "x-auth-token": session.token,
    location: `${SESSIONS_PATH}/${session.id}`,
  });
}

/** The answer to a login while all sessions are in use. */
export function tableFull(): Answer {
  return failure(503, "SessionLimitExceeded", "The session establishment failed: too many sessions are open.", {
    headers: { "retry-after": FULL_RETRY_AFTER_SECONDS },
  });
}

function sessionBody(session: Session): Body {
  return resource("Session", `${SESSIONS_PATH}/${session.id}`, session.id, "User Session", {
    UserName: session.account.username,
    Password: null,
    SessionType: "Redfish",
    CreatedTime: toTime(session.createdAtMs),
  });
}
