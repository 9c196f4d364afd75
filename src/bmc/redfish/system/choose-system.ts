import { linksAt, arrayAt, objectAt, stringAt } from "../http/json.ts";
import { pathOnOrigin } from "../http/reference.ts";
import type { Service } from "../session/service.ts";
import { parseSystem } from "./system.ts";
import type { HostIdentity } from "../../identity/host-identity.ts";
import type { IsHost } from "../../interface/device-config.ts";
import { BmcError } from "../../interface/errors.ts";
import { withoutTrailingSlashes } from "../../../runtime/text/trailing-slashes.ts";

const SYSTEMS = "/redfish/v1/Systems";
const NAMES_SHOWN_MAX = 8;
/** How many Systems are read. BMCs with several nodes or accelerators have fewer. */
const SYSTEMS_READ_MAX = 16;

/**
 * Finds the System for an address: by its path or its id, or as the only System, or as the only one that `isHost`
 * accepts. It never guesses, because the wrong System would be powered off.
 *
 * @param system A path, a bare id, or undefined (see `RedfishAddress.system`).
 * @throws BmcError SystemAmbiguous, SystemNotFound, or what the reads throw.
 */
export async function chooseSystem(
  service: Service,
  system: string | undefined,
  isHost: IsHost | undefined,
  signal: AbortSignal,
): Promise<string> {
  if (system?.startsWith("/") === true) return system;
  if (system !== undefined) return `${withoutTrailingSlashes(await linkedSystems(service, signal))}/${system}`;
  // DSP0266 defines this path. Older services may link to another one.
  const usual = await service.find(SYSTEMS, signal);
  const found = usual ?? (await service.find(await linkedSystems(service, signal), signal));
  if (found === undefined) throw new BmcError("SystemNotFound", `${service.origin} has no Systems`);
  const { body } = found;
  const members = linksAt(body, "Members");
  const [only] = members;
  const memberCount = arrayAt(body, "Members")?.length ?? 0;
  // A member without a link, a member that is counted but not listed, and a next page also mean another System.
  const counted = body["Members@odata.count"];
  const isMissing = typeof counted === "number" && counted > Math.max(memberCount, 1);
  const hasNextPage = (stringAt(body, "Members@odata.nextLink") ?? "") !== "";
  const isPartial = hasNextPage || isMissing || memberCount > members.length || memberCount > SYSTEMS_READ_MAX;
  if (memberCount > 1 || isPartial) {
    const known = isPartial || isHost === undefined ? undefined : await findHost(service, members, isHost, signal);
    if (known !== undefined) return known;
    const names = members.slice(0, NAMES_SHOWN_MAX).join(", ").slice(0, 400);
    throw new BmcError(
      "SystemAmbiguous",
      `${service.origin} has several Systems (${names}): add the path of one of them to the address`,
    );
  }
  if (only === undefined) throw new BmcError("SystemNotFound", `${service.origin} has no System`);
  return pathOnOrigin(service.origin, only, "the link to the System");
}

/**
 * The one System that is the host; undefined if none or several match. If a listed System cannot be read, for example
 * while the BMC starts, only a UUID decides: the missing System may have the same serial number.
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
