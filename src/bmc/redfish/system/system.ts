import type { HostIdentity } from "../../identity/host-identity.ts";
import type { PowerReading, PowerState } from "../../interface/driver.ts";
import { BmcError } from "../../interface/errors.ts";
import { has, linksAt, objectAt, stringAt, stringsAt } from "../http/json.ts";
import type { JsonObject } from "../http/json.ts";
import { pathOnOrigin } from "../http/reference.ts";
import type { Resource } from "../session/service.ts";
import type { ResetAction } from "../../gate/memory/reset-actions.ts";
import { withoutTrailingSlashes } from "../../../runtime/text/trailing-slashes.ts";

/** The parts of a ComputerSystem that are used (DSP0268). */
export interface System {
  path: string;
  identity: HostIdentity;
  power: PowerReading;
  /** Whether a cache answered instead of the BMC. */
  isStale: boolean;
  /** The reported `LastResetTime`: the end of the last reset of the host. */
  lastReset: string | undefined;
  reset: ResetAction | undefined;
  /** Its paths: the one that was read, and the one that the System itself reports. */
  paths: readonly string[];
  // References are kept as the service gives them. An invalid reference fails only the call that needs it.
  chassis: readonly string[];
  /** The BMCs that manage it. */
  managers: readonly string[];
  /** Its collection of logs. */
  logServices: string | undefined;
}

/**
 * How many links to Chassis are followed. A blade also links to its enclosure and possibly its rack, whose power is not
 * that of the host.
 */
const CHASSIS_LINKS_MAX = 4;
const MANAGER_LINKS_MAX = 2;
/**
 * `#ComputerSystem.v1_20_0.ComputerSystem`, `#ComputerSystem.1.0.1.ComputerSystem`; Cisco's older ones are
 * `#Cisco_ComputerSystem`.
 */
const SYSTEM_TYPE = /^#(?:\w+_)?ComputerSystem(?:\.|$)/;

/**
 * Parses a ComputerSystem.
 *
 * @throws BmcError SystemNotFound for a resource of another type: its PowerState would not be that of a host.
 */
export function parseSystem(origin: string, { path, body, isStale }: Resource): System {
  const type = stringAt(body, "@odata.type");
  if (type !== undefined && !SYSTEM_TYPE.test(type)) {
    throw new BmcError("SystemNotFound", `${origin}${path} is not a ComputerSystem`);
  }
  const links = objectAt(body, "Links");
  return {
    path,
    identity: parseIdentity(path, body),
    power: parsePower(body),
    isStale,
    lastReset: stringAt(body, "LastResetTime"),
    paths: [path, stringAt(body, "@odata.id") ?? path],
    reset: parseReset(body),
    chassis: linksAt(links, "Chassis").slice(0, CHASSIS_LINKS_MAX),
    managers: linksAt(links, "ManagedBy").slice(0, MANAGER_LINKS_MAX),
    logServices: linksAt(body, "LogServices")[0],
  };
}

/** Only the literal `Off` in an answer of the BMC is off (DSP0268, PowerState). */
export function parsePower(body: JsonObject): PowerReading {
  const raw = stringAt(body, "PowerState");
  return { state: POWER_STATES.get(raw ?? "") ?? "Unknown", raw: raw?.slice(0, 40) ?? "(no PowerState)" };
}

const POWER_STATES: ReadonlyMap<string, PowerState> = new Map([
  ["Off", "Off"],
  ["On", "On"],
  ["PoweringOn", "Changing"],
  ["PoweringOff", "Changing"],
]);

function parseIdentity(path: string, body: JsonObject): HostIdentity {
  const systemUUID = textAt(body, "UUID")?.toLowerCase();
  const serial = body["SerialNumber"];
  const serialNumber = typeof serial === "number" ? String(serial) : textAt(body, "SerialNumber");
  const sku = textAt(body, "SKU");
  const manufacturer = textAt(body, "Manufacturer");
  const model = textAt(body, "Model");
  return {
    device: path,
    // In SMBIOS all zeros or all ones mean "not set" (DSP0134, System UUID).
    ...(systemUUID === undefined || /^[0-]+$|^[f-]+$/.test(systemUUID) ? {} : { systemUUID }),
    ...(serialNumber === undefined ? {} : { serialNumber }),
    ...(sku === undefined ? {} : { sku }),
    ...(manufacturer === undefined ? {} : { manufacturer }),
    ...(model === undefined ? {} : { model }),
  };
}

function textAt(body: JsonObject, name: string): string | undefined {
  const text = stringAt(body, name)?.trim().slice(0, 200);
  return text === "" ? undefined : text;
}

function parseReset(body: JsonObject): ResetAction | undefined {
  const actions = objectAt(body, "Actions");
  // Older BMCs of Cisco have their own names for the action and its target.
  const action = objectAt(actions, has(actions, "#ComputerSystem.Reset") ? "#ComputerSystem.Reset" : "#System.Reset");
  const target = stringAt(action, "target") ?? stringAt(action, "Target");
  if (target === undefined) return undefined;
  return {
    target,
    allowedTypes: parseAllowed(action, "ResetType@Redfish.AllowableValues"),
    actionInfo: stringAt(action, "@Redfish.ActionInfo"),
  };
}

/** The action that restarts a Manager (DSP0268, Manager.Reset); undefined if it has none. */
export function parseManagerReset(manager: JsonObject): { target: string; type: string } | undefined {
  const action = objectAt(objectAt(manager, "Actions"), "#Manager.Reset");
  const target = stringAt(action, "target");
  const allowed = parseAllowed(action, "ResetType@Redfish.AllowableValues") ?? ["ForceRestart"];
  const type = ["ForceRestart", "GracefulRestart"].find((known) => allowed.includes(known));
  return target === undefined || type === undefined ? undefined : { target, type };
}

/** The values of the list at `name`; undefined if there is no list, or an empty one. */
export function parseAllowed(parent: JsonObject, name: string): readonly string[] | undefined {
  const allowed = stringsAt(parent, name);
  return allowed?.length === 0 ? undefined : allowed;
}

/** What a Chassis shows about the power of the System that links to it. */
export interface Chassis {
  /**
   * What its power belongs to: only this System, permanently something else, or nothing yet, because it names no System
   * now.
   */
  whose: "System" | "Other" | "None";
  /** Undefined if it shows none now, which is possible for some time after a restart of the BMC. */
  power: PowerReading | undefined;
}

/** Chassis types that hold several hosts. */
const SHARED_CHASSIS = new Set([
  "Enclosure",
  "Rack",
  "RackGroup",
  "Row",
  "Pod",
  "Shelf",
  "Zone",
  "Sidecar",
  "StorageEnclosure",
]);

/** Chassis types for a part of a host: the module of a BMC or a GPU baseboard stays on while the host is off. */
const PART_CHASSIS = new Set(["Card", "Cartridge", "Component", "Expansion", "Module"]);

/** Parses a Chassis that the System at one of `systemPaths` links to. */
export function parseChassis(origin: string, body: JsonObject, systemPaths: readonly string[]): Chassis {
  const systems = linksAt(objectAt(body, "Links"), "ComputerSystems").map((link) =>
    comparable(pathOnOrigin(origin, link, "the link of the chassis to its System")),
  );
  const own = systemPaths.map(comparable);
  const type = stringAt(body, "ChassisType") ?? "";
  const isOfOther = SHARED_CHASSIS.has(type) || PART_CHASSIS.has(type);
  // A Chassis that names no System may be an enclosure, whatever its type is.
  const hasNone = systems.length === 0;
  const isOwn = systems.every((path) => own.includes(path));
  const power = stringAt(body, "PowerState") === undefined ? undefined : parsePower(body);
  return { whose: isOfOther || !isOwn ? "Other" : hasNone ? "None" : "System", power };
}

/** Whether a Chassis that the System at one of `systemPaths` links to contains only this host. */
export function isOfOneHost(origin: string, body: JsonObject, systemPaths: readonly string[]): boolean {
  const { whose } = parseChassis(origin, { ...body, ChassisType: "" }, systemPaths);
  return whose === "System" && !SHARED_CHASSIS.has(stringAt(body, "ChassisType") ?? "");
}

/**
 * Combines the reading of the System with those of its Chassis. After a restart, OpenBMC can show a running host as Off
 * while its Chassis is On (openbmc issue 2224), so an Off that the Chassis contradicts does not count.
 */
export function combineWithChassis(system: PowerReading, chassis: readonly PowerReading[]): PowerReading {
  const other = chassis.find(({ state }) => state !== "Off");
  if (system.state !== "Off" || other === undefined) return system;
  return { state: "Unknown", raw: `${system.raw}, but its chassis ${other.raw}` };
}

/**
 * A path in a form that can be compared: some services ignore the case of paths, and write them with or without a slash
 * at the end.
 */
function comparable(path: string): string {
  return withoutTrailingSlashes(path).toLowerCase();
}
