import { linksAt, objectAt, stringAt } from "../http/json.ts";
import type { JsonObject } from "../http/json.ts";
import { pathOnOrigin } from "../http/reference.ts";
import type { Resource, Service } from "../session/service.ts";
import { isOfOneHost, parseAllowed, parseSystem } from "../system/system.ts";
import { isRecord } from "../../../runtime/record.ts";
import { parseInfoTypes } from "./allowed-types.ts";

/** An action that interrupts the mains power of a host for a moment. */
export interface AcCycleAction {
  path: string;
  body: Readonly<Record<string, string>>;
}

interface Known {
  action: string;
  type: string;
  /** Other parameters. */
  parameters?: Readonly<Record<string, string>>;
}

/**
 * The reset type of the standard that interrupts mains power. `PowerCycle` does not: it leaves the BMC and the standby
 * power on (DSP0268, ResetType).
 */
const STANDARD = "FullPowerCycle";

// Actions of vendors come first: on some hosts the action of the standard does not reach every board.
const OF_SYSTEM: readonly Known[] = [
  { action: "#HpeComputerSystemExt.SystemReset", type: "AuxCycle" },
  { action: "#LenovoComputerSystem.SystemReset", type: "ACPowerCycle" },
  { action: "#ComputerSystem.Reset", type: STANDARD },
];
const OF_CHASSIS: readonly Known[] = [
  // The final state is Off, so that the agent powers the host on after it has verified the identity again.
  { action: "#DellOemChassis.ExtendedReset", type: "PowerCycle", parameters: { FinalPowerState: "Off" } },
  { action: "#NvidiaChassis.AuxPowerReset", type: "AuxPowerCycle" },
  { action: "#Chassis.Reset", type: STANDARD },
];

const CHASSIS = "/redfish/v1/Chassis";
/** The chassis of GB200 and GB300 that offers the action, to which their System does not link. */
const NVIDIA_CHASSIS = "/BMC_0";

/**
 * Finds the action of the System, or of a Chassis that powers only this System. Undefined if there is none: a Chassis
 * with other hosts is never cycled.
 */
export async function findAcCycle(
  service: Service,
  resource: Resource,
  signal: AbortSignal,
): Promise<AcCycleAction | undefined> {
  const { origin } = service;
  const system = parseSystem(origin, resource);
  const own = await offered(service, resource.body, OF_SYSTEM.slice(0, -1), signal);
  if (own !== undefined) return own;
  const ofChassis = async (link: string): Promise<AcCycleAction | undefined> => {
    const chassis = await service.find(pathOnOrigin(origin, link, "the link to a chassis"), signal);
    if (chassis === undefined || !isOfOneHost(origin, chassis.body, system.paths)) return undefined;
    return offered(service, chassis.body, OF_CHASSIS, signal);
  };
  for (const link of system.chassis) {
    const found = await ofChassis(link);
    if (found !== undefined) return found;
  }
  const standard = await offered(service, resource.body, OF_SYSTEM.slice(-1), signal);
  if (standard !== undefined) return standard;
  const all = await service.find(CHASSIS, signal);
  const unlinked = linksAt(all?.body ?? {}, "Members").find((link) => link.endsWith(NVIDIA_CHASSIS));
  return unlinked === undefined ? undefined : ofChassis(unlinked);
}

/** The first of the known actions that a resource offers, if it also allows the reset type of that action. */
async function offered(
  service: Service,
  body: JsonObject,
  known: readonly Known[],
  signal: AbortSignal,
): Promise<AcCycleAction | undefined> {
  const actions = actionsOf(body);
  for (const { action: name, type, parameters } of known) {
    const action = actions.find((each) => isRecord(each[name]))?.[name];
    if (!isRecord(action)) continue;
    const target = stringAt(action, "target");
    const allowed =
      parseAllowed(action, "ResetType@Redfish.AllowableValues") ?? (await typesOf(service, action, signal));
    if (target === undefined || allowed?.includes(type) !== true) continue;
    const path = pathOnOrigin(service.origin, target, `the target of ${name}`);
    return { path, body: { ResetType: type, ...parameters } };
  }
  return undefined;
}

/** The objects that may contain actions: those of the standard and of OEMs, and that of HPE. */
function actionsOf(body: JsonObject): JsonObject[] {
  const actions = objectAt(body, "Actions");
  const vendors = Object.values(objectAt(body, "Oem")).filter((vendor) => isRecord(vendor));
  return [actions, objectAt(actions, "Oem"), ...vendors.map((vendor) => objectAt(vendor, "Actions"))];
}

async function typesOf(
  service: Service,
  action: JsonObject,
  signal: AbortSignal,
): Promise<readonly string[] | undefined> {
  const reference = stringAt(action, "@Redfish.ActionInfo");
  if (reference === undefined) return undefined;
  const info = await service.find(pathOnOrigin(service.origin, reference, "the link to an action's info"), signal);
  return info && parseInfoTypes(info.body);
}
