import { listAt, linksAt, objectAt, stringAt, stringsAt } from "./json.ts";
import type { JsonObject } from "./json.ts";
import { pathOnOrigin } from "./reference.ts";
import type { Service } from "./service.ts";

/** Accounts that are looked through for our own: iDRAC has 16, most of them empty. */
const ACCOUNTS_READ_MAX = 16;
/** What an order to a ComputerSystem needs (DMTF's base privilege registry, DSP8011). */
const NEEDED = "ConfigureComponents";

/**
 * Says what right to power its host our account lacks, as far as the service lets it read that (DSP0266, "Privilege model").
 * Makers have privileges of their own: where they may say otherwise, nothing is concluded.
 *
 * @returns undefined where nothing shows that one is missing.
 */
export async function findMissingRight(service: Service, signal: AbortSignal): Promise<string | undefined> {
  const accounts = await follow(service, await service.root(signal), "AccountService", signal);
  const account = accounts && (await findAccount(service, accounts, signal));
  if (account === undefined) return undefined;
  const who = `user ${service.username}`;
  const ofHpe = virtualPower(account);
  if (ofHpe !== undefined) return ofHpe ? undefined : `${who} has no VirtualPowerAndResetPriv`;
  const role = await follow(service, objectAt(account, "Links"), "Role", signal);
  if (role === undefined || (listAt(role, "OemPrivileges") ?? []).length > 0) return undefined;
  if (Object.keys(objectAt(role, "Oem")).length > 0) return undefined;
  const granted = stringsAt(role, "AssignedPrivileges");
  // A list without the right to log in is not that of this account, which has just done so.
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
    const account = await service.glance(pathOnOrigin(service.origin, link, "the link to an account"), signal);
    const isOurs = account !== undefined && stringAt(account, "UserName") === service.username;
    // A disabled one is not the one that has just logged in: another one of that name may be listed after it.
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
    : service.glance(pathOnOrigin(service.origin, link, `the link to ${name}`), signal);
}

/** HPE's own right, which decides alone on an iLO. */
function virtualPower(account: JsonObject): boolean | undefined {
  const oem = objectAt(account, "Oem");
  const privileges = ["Hpe", "Hp"].map((maker) => objectAt(objectAt(oem, maker), "Privileges"));
  const found = privileges.map((of) => of["VirtualPowerAndResetPriv"]).find((value) => typeof value === "boolean");
  return typeof found === "boolean" ? found : undefined;
}
