import {
  accountEndpoint,
  accountServiceEndpoint,
  accountsEndpoint,
  roleEndpoint,
  rolesEndpoint,
} from "./account-service.ts";
import { ROLES } from "./accounts.ts";
import type { RoleId } from "./accounts.ts";
import type { Endpoint, ServiceState } from "./endpoint.ts";
import { findLogEndpoint } from "./log-service.ts";
import { ROOT, collection } from "./resource.ts";
import { metadataEndpoint, odataEndpoint, rootEndpoint, versionsEndpoint } from "./service-root.ts";
import { sessionEndpoint, sessionServiceEndpoint, sessionsEndpoint } from "./session-service.ts";
import {
  chassisEndpoint,
  chassisPath,
  managerEndpoint,
  managerResetEndpoint,
  managerPath,
  resetEndpoint,
  resetInfoEndpoint,
  settingsEndpoint,
  systemEndpoint,
  systemPath,
} from "./systems.ts";
import { TASKS_PATH, monitorEndpoint, taskEndpoint, taskServiceEndpoint } from "./task-service.ts";

/** The endpoint of a URI path; undefined if there is none. */
export function findEndpoint(state: ServiceState, pathname: string): Endpoint | undefined {
  const path = pathname.replace(/\/$/, "");
  if (path === "/redfish") return versionsEndpoint();
  if (path !== ROOT && !path.startsWith(`${ROOT}/`)) return undefined;
  const [first = "", second = "", ...rest] = path
    .slice(ROOT.length + 1)
    .split("/")
    .map(decode);
  switch (first) {
    case "":
      return second === "" ? rootEndpoint(state) : undefined;
    case "odata":
      return second === "" ? odataEndpoint() : undefined;
    case "$metadata":
      return second === "" ? metadataEndpoint() : undefined;
    case "Systems":
    case "Chassis":
    case "Managers":
      return findHardware(state, first, second, rest.join("/"));
    case "SessionService":
      return findSession(state, [second, ...rest]);
    case "AccountService":
      return findAccount(state, second, rest);
    case "TaskService":
      return findTask(state, second, rest);
    default:
      return undefined;
  }
}

function findHardware(
  state: ServiceState,
  kind: "Systems" | "Chassis" | "Managers",
  id: string,
  rest: string,
): Endpoint | undefined {
  if (id === "" && rest === "") return { get: () => HARDWARE[kind]([...state.bmcs.keys()]) };
  const bmc = state.bmcs.get(id);
  if (bmc === undefined) return undefined;
  if (kind === "Systems" && /^LogServices(?:\/|$)/.test(rest)) {
    return findLogEndpoint(systemPath(id), rest.slice("LogServices/".length), bmc);
  }
  switch (`${kind}/${rest}`) {
    case "Systems/":
      return systemEndpoint(state, id, bmc);
    case "Systems/Actions/ComputerSystem.Reset":
      return resetEndpoint(state, bmc);
    case "Systems/ResetActionInfo":
      return state.resetTypesIn === "ActionInfo" ? resetInfoEndpoint(id) : undefined;
    case "Systems/Settings":
      return state.bootIn === "Settings" ? settingsEndpoint(id, bmc) : undefined;
    case "Chassis/":
      return chassisEndpoint(id, bmc);
    case "Managers/":
      return managerEndpoint(id, bmc);
    case "Managers/Actions/Manager.Reset":
      return managerResetEndpoint(bmc);
    default:
      return undefined;
  }
}

const HARDWARE = {
  Systems: (ids: string[]) => collection("ComputerSystemCollection", `${ROOT}/Systems`, "Systems", ids.map(systemPath)),
  Chassis: (ids: string[]) => collection("ChassisCollection", `${ROOT}/Chassis`, "Chassis", ids.map(chassisPath)),
  Managers: (ids: string[]) => collection("ManagerCollection", `${ROOT}/Managers`, "Managers", ids.map(managerPath)),
};

function findSession(state: ServiceState, segments: readonly string[]): Endpoint | undefined {
  const [second = "", id = "", ...rest] = segments;
  if (second === "") return sessionServiceEndpoint(state);
  if (second !== "Sessions" || rest.length > 0) return undefined;
  if (id === "") return sessionsEndpoint(state);
  // DSP0266 also allows a login at the Members of the collection.
  if (id === "Members") return post(sessionsEndpoint(state));
  const session = state.sessions.get(id);
  return session && sessionEndpoint(state, session);
}

function findAccount(state: ServiceState, second: string, [id = "", ...rest]: readonly string[]): Endpoint | undefined {
  if (second === "") return accountServiceEndpoint();
  if (rest.length > 0) return undefined;
  if (second === "Accounts") {
    if (id === "") return accountsEndpoint(state);
    const account = state.accounts.get(id);
    return account && accountEndpoint(state, account);
  }
  if (second !== "Roles") return undefined;
  if (id === "") return rolesEndpoint();
  return isRole(id) ? roleEndpoint(id) : undefined;
}

function findTask(state: ServiceState, second: string, [id = "", ...rest]: readonly string[]): Endpoint | undefined {
  if (second === "") return taskServiceEndpoint();
  if (rest.length > 0) return undefined;
  if (second === "Tasks" && id === "") {
    const paths = state.tasks.ids().map((id) => `${TASKS_PATH}/${id}`);
    return { get: () => collection("TaskCollection", TASKS_PATH, "Tasks", paths) };
  }
  const task = state.tasks.get(id);
  if (task === undefined) return undefined;
  if (second === "Tasks") return taskEndpoint(task);
  return second === "TaskMonitors" ? monitorEndpoint(task) : undefined;
}

function post(endpoint: Endpoint): Endpoint {
  return endpoint.POST === undefined ? {} : { POST: endpoint.POST };
}

function isRole(id: string): id is RoleId {
  return Object.hasOwn(ROLES, id);
}

function decode(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment;
  }
}
