import { arrayAt, linksAt, objectAt, stringAt, stringsAt } from "../http/json.ts";
import type { JsonObject } from "../http/json.ts";
import { pathOnOrigin } from "../http/reference.ts";
import type { Service } from "../session/service.ts";

/** How many accounts are read to find the agent's own: iDRAC has 16, most of them empty. */
const ACCOUNTS_READ_MAX = 16;
/** The privilege for an order to a ComputerSystem (base privilege registry of DMTF, DSP8011). */
const NEEDED = "ConfigureComponents";

/**
 * Finds the privilege that the account lacks to power its host, if the account may read that (DSP0266, "Privilege
 * model"). If privileges of the vendor may matter, nothing is concluded.
 *
 * @returns undefined if nothing shows that a privilege is missing.
 */
export async function findMissingPrivilege(service: Service, signal: AbortSignal): Promise<string | undefined> {
  const accounts = await follow(service, await service.root(signal), "AccountService", signal);
  const account = accounts && (await findAccount(service, accounts, signal));
  if (account === undefined) return undefined;
  const who = `user ${service.username}`;
  const ofHpe = virtualPower(account);
  if (ofHpe !== undefined) return ofHpe ? undefined : `${who} has no VirtualPowerAndResetPriv`;
  const role = await follow(service, objectAt(account, "Links"), "Role", signal);
  if (role === undefined || (arrayAt(role, "OemPrivileges") ?? []).length > 0) return undefined;
  if (Object.keys(objectAt(role, "Oem")).length > 0) return undefined;
  const granted = stringsAt(role, "AssignedPrivileges");
  // The account has just logged in, so a list without Login is not its list.
  if (granted?.includes("Login") !== true || granted.includes(NEEDED)) return undefined;
  const name = stringAt(account, "RoleId") ?? stringAt(role, "Id") ?? "";
  return `${who} has the role ${name.slice(0, 60)}, which lacks ${NEEDED}`;
}

async function findAccount(
  service: Service,
  accounts: JsonObject,
  signal: AbortSignal,
): Promise<JsonObject | undefined> {
  const collection = await follow(service, accounts, "Accounts", signal);
  for (const link of linksAt(collection ?? {}, "Members").slice(0, ACCOUNTS_READ_MAX)) {
    const account = await service.getOptional(pathOnOrigin(service.origin, link, "the link to an account"), signal);
    const isOurs = account !== undefined && stringAt(account, "UserName") === service.username;
    // The account has just logged in, so it is not a disabled one: another account with the same name may follow in the
    // list.
    if (isOurs && account["Enabled"] !== false) return account;
  }
  return undefined;
}

async function follow(
  service: Service,
  parent: JsonObject,
  name: string,
  signal: AbortSignal,
): Promise<JsonObject | undefined> {
  const link = stringAt(objectAt(parent, name), "@odata.id");
  return link === undefined
    ? undefined
    : service.getOptional(pathOnOrigin(service.origin, link, `the link to ${name}`), signal);
}

/** Whether the account has HPE's own privilege, the only one that an iLO checks; undefined on other BMCs. */
function virtualPower(account: JsonObject): boolean | undefined {
  const oem = objectAt(account, "Oem");
  const privileges = ["Hpe", "Hp"].map((maker) => objectAt(objectAt(oem, maker), "Privileges"));
  const found = privileges.map((of) => of["VirtualPowerAndResetPriv"]).find((value) => typeof value === "boolean");
  return typeof found === "boolean" ? found : undefined;
}
