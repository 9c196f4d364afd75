import { has, linksAt, listAt, objectAt, stringAt } from "./json.ts";
import { pathOnOrigin } from "./reference.ts";
import type { Service } from "./service.ts";
import { BmcError } from "../errors.ts";

const SYSTEMS = "/redfish/v1/Systems";
const NAMES_SHOWN_MAX = 8;

/**
 * Finds the System that an address means: by its path, by its id, or the only one there is. It never guesses: the wrong one
 * would be powered off.
 *
 * @param system a path, a bare id, or undefined (see `RedfishAddress.system`).
 * @throws BmcError SystemAmbiguous, SystemNotFound, or what the reads throw.
 */
export async function chooseSystem(service: Service, system: string | undefined, signal: AbortSignal): Promise<string> {
  if (system?.startsWith("/") === true) return system;
  if (system !== undefined) return `${(await linkedSystems(service, signal)).replace(/\/+$/, "")}/${system}`;
  // DSP0266 has had this path for long; older services link to theirs.
  const usual = await service.find(SYSTEMS, signal);
  const { body } = usual ?? (await service.get(await linkedSystems(service, signal), signal));
  const members = linksAt(body, "Members");
  const [only] = members;
  // A member without a link, an uncounted one or a next page is another System too.
  const counted = body["Members@odata.count"];
  const listed = listAt(body, "Members")?.length ?? 0;
  if (listed > 1 || (typeof counted === "number" && counted > 1) || has(body, "Members@odata.nextLink")) {
    const names = members.slice(0, NAMES_SHOWN_MAX).join(", ").slice(0, 400);
    throw new BmcError(
      "SystemAmbiguous",
      `${service.origin} has several Systems (${names}): add one's path to the address`,
    );
  }
  if (only === undefined) throw new BmcError("SystemNotFound", `${service.origin} has no System`);
  return pathOnOrigin(service.origin, only, "the link to the System");
}

async function linkedSystems(service: Service, signal: AbortSignal): Promise<string> {
  const linked = stringAt(objectAt(await service.root(signal), "Systems"), "@odata.id");
  return pathOnOrigin(service.origin, linked ?? SYSTEMS, "the link to the Systems");
}
