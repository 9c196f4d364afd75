import { linksAt, listAt, objectAt, stringAt } from "./json.ts";
import { pathOnOrigin } from "./reference.ts";
import type { Service } from "./service.ts";
import { parseSystem } from "./system.ts";
import type { HostIdentity } from "../driver.ts";
import { BmcError } from "../errors.ts";

const SYSTEMS = "/redfish/v1/Systems";
const NAMES_SHOWN_MAX = 8;
/** Systems that are asked who they are: more than a BMC of several nodes or accelerators has. */
const SYSTEMS_READ_MAX = 16;

/** Whether this is the host that is meant. */
export type IsHost = (identity: HostIdentity) => boolean;

/**
 * Finds the System that an address means: by its path, by its id, the only one there is, or the only one that `isHost`
 * accepts. It never guesses: the wrong one would be powered off.
 *
 * @param system a path, a bare id, or undefined (see `RedfishAddress.system`).
 * @throws BmcError SystemAmbiguous, SystemNotFound, or what the reads throw.
 */
export async function chooseSystem(
  service: Service,
  system: string | undefined,
  isHost: IsHost | undefined,
  signal: AbortSignal,
): Promise<string> {
  if (system?.startsWith("/") === true) return system;
  if (system !== undefined) return `${(await linkedSystems(service, signal)).replace(/\/+$/, "")}/${system}`;
  // DSP0266 has had this path for long; older services link to theirs.
  const usual = await service.find(SYSTEMS, signal);
  const found = usual ?? (await service.find(await linkedSystems(service, signal), signal));
  if (found === undefined) throw new BmcError("SystemNotFound", `${service.origin} has no Systems`);
  const { body } = found;
  const members = linksAt(body, "Members");
  const [only] = members;
  const listed = listAt(body, "Members")?.length ?? 0;
  // A member without a link, one that is counted and not listed, or a next page is another System too.
  const counted = body["Members@odata.count"];
  const isMissing = typeof counted === "number" && counted > Math.max(listed, 1);
  const hasNextPage = (stringAt(body, "Members@odata.nextLink") ?? "") !== "";
  const isPartial = hasNextPage || isMissing || listed > members.length || listed > SYSTEMS_READ_MAX;
  if (listed > 1 || isPartial) {
    const known = isPartial || isHost === undefined ? undefined : await findHost(service, members, isHost, signal);
    if (known !== undefined) return known;
    const names = members.slice(0, NAMES_SHOWN_MAX).join(", ").slice(0, 400);
    throw new BmcError(
      "SystemAmbiguous",
      `${service.origin} has several Systems (${names}): add one's path to the address`,
    );
  }
  if (only === undefined) throw new BmcError("SystemNotFound", `${service.origin} has no System`);
  return pathOnOrigin(service.origin, only, "the link to the System");
}

/**
 * The one System that is the host; undefined where none or several say so. While a listed one cannot be read, as while the BMC
 * starts, a UUID alone decides: the missing one may have the same serial number.
 */
async function findHost(
  service: Service,
  members: readonly string[],
  isHost: IsHost,
  signal: AbortSignal,
): Promise<string | undefined> {
  const found: { path: string; identity: HostIdentity }[] = [];
  let isAnyMissing = false;
  for (const member of members) {
    const resource = await service.find(pathOnOrigin(service.origin, member, "the link to a System"), signal);
    if (resource === undefined) {
      isAnyMissing = true;
      continue;
    }
    const { identity } = parseSystem(service.origin, resource);
    if (isHost(identity)) found.push({ path: resource.path, identity });
  }
  const [only] = found;
  if (only === undefined || found.length > 1) return undefined;
  return isAnyMissing && !isHost(withUuidAlone(only.identity)) ? undefined : only.path;
}

function withUuidAlone({ device, systemUUID }: HostIdentity): HostIdentity {
  return { device, ...(systemUUID !== undefined && { systemUUID }) };
}

async function linkedSystems(service: Service, signal: AbortSignal): Promise<string> {
  const linked = stringAt(objectAt(await service.root(signal), "Systems"), "@odata.id");
  return pathOnOrigin(service.origin, linked ?? SYSTEMS, "the link to the Systems");
}
