import { z } from "zod";
import { Secret } from "../../src/runtime/secret.ts";
import { ROLES } from "./accounts.ts";
import type { Account, RoleId } from "./accounts.ts";
import { failure, success } from "./answer.ts";
import type { Answer, Body } from "./answer.ts";
import { parseBody } from "./body.ts";
import type { Endpoint, ServiceState } from "./endpoint.ts";
import { ENABLED, ROOT, collection, link, resource } from "./resource.ts";

// The part of AccountService that is needed for accounts with limited privileges.

const SERVICE_PATH = `${ROOT}/AccountService`;
const ACCOUNTS_PATH = `${SERVICE_PATH}/Accounts`;
const ROLES_PATH = `${SERVICE_PATH}/Roles`;
const PASSWORD_LENGTH_MIN = 8;

const roleSchema = z.enum(["Administrator", "Operator", "ReadOnly"]);
const passwordSchema = z.string().min(PASSWORD_LENGTH_MIN);
const createSchema = z.strictObject({
  UserName: z.string().min(1),
  Password: passwordSchema,
  RoleId: roleSchema,
  Enabled: z.boolean().optional(),
});
const patchSchema = createSchema.partial();

export function accountServiceEndpoint(): Endpoint {
  return {
    get: () =>
      resource("AccountService", SERVICE_PATH, "AccountService", "Account Service", {
        ServiceEnabled: true,
        MinPasswordLength: PASSWORD_LENGTH_MIN,
        Status: ENABLED,
        Accounts: link(ACCOUNTS_PATH),
        Roles: link(ROLES_PATH),
      }),
  };
}

export function accountsEndpoint(state: ServiceState): Endpoint {
  return {
    get: () =>
      collection(
        "ManagerAccountCollection",
        ACCOUNTS_PATH,
        "Accounts",
        [...state.accounts.values()].map(({ id }) => `${ACCOUNTS_PATH}/${id}`),
      ),
    POST: { privilege: "ConfigureUsers", run: (body) => createAccount(state, body) },
  };
}

export function accountEndpoint(state: ServiceState, account: Account): Endpoint {
  return {
    get: () => accountBody(account),
    PATCH: { privilege: "ConfigureUsers", run: (body) => patchAccount(account, body) },
    DELETE: {
      privilege: "ConfigureUsers",
      run: () => {
        state.accounts.delete(account.id);
        return success(204);
      },
    },
  };
}

export function rolesEndpoint(): Endpoint {
  const paths = Object.keys(ROLES).map((id) => `${ROLES_PATH}/${id}`);
  return { get: () => collection("RoleCollection", ROLES_PATH, "Roles", paths) };
}

export function roleEndpoint(roleId: RoleId): Endpoint {
  return {
    get: () =>
      resource("Role", `${ROLES_PATH}/${roleId}`, roleId, `${roleId} Role`, {
        RoleId: roleId,
        IsPredefined: true,
        AssignedPrivileges: ROLES[roleId],
      }),
  };
}

function createAccount(state: ServiceState, body: Body): Answer {
  const parsed = parseBody(createSchema, body);
  if ("answer" in parsed) return parsed.answer;
  const { UserName, Password, RoleId, Enabled = true } = parsed.data;
  if (state.accounts.find(UserName) !== undefined) {
    return failure(400, "ResourceAlreadyExists", `An account with the name '${UserName}' exists already.`);
  }
  const account = state.accounts.add({
    username: UserName,
    password: new Secret(Password),
    roleId: RoleId,
    enabled: Enabled,
  });
  if (account === undefined) {
    return failure(400, "CreateLimitReachedForResource", "The limit of accounts has been reached.");
  }
  return success(201, accountBody(account), { location: `${ACCOUNTS_PATH}/${account.id}` });
}

function patchAccount(account: Account, body: Body): Answer {
  const parsed = parseBody(patchSchema, body);
  if ("answer" in parsed) return parsed.answer;
  const { UserName, Password, RoleId, Enabled } = parsed.data;
  account.username = UserName ?? account.username;
  account.password = Password === undefined ? account.password : new Secret(Password);
  account.roleId = RoleId ?? account.roleId;
  account.enabled = Enabled ?? account.enabled;
  return success(200, accountBody(account));
}

function accountBody(account: Account): Body {
  return resource("ManagerAccount", `${ACCOUNTS_PATH}/${account.id}`, account.id, "User Account", {
    UserName: account.username,
    Password: null,
    RoleId: account.roleId,
    Enabled: account.enabled,
    Locked: false,
    AccountTypes: ["Redfish"],
    Links: { Role: link(`${ROLES_PATH}/${account.roleId}`) },
  });
}
