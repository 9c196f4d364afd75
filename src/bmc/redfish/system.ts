import type { HostIdentity, PowerReading, PowerState } from "../driver.ts";
import { BmcError } from "../errors.ts";
import { has, linksAt, objectAt, stringAt, stringsAt } from "./json.ts";
import type { JsonObject } from "./json.ts";
import { pathOnOrigin } from "./reference.ts";
import type { Resource } from "./service.ts";
import type { ResetAction } from "./reset-memory.ts";

/** What we use of a ComputerSystem (DSP0268). */
export interface System {
  path: string;
  identity: HostIdentity;
  power: PowerReading;
  /** Whether it is a cache's answer, not the BMC's. */
  isStale: boolean;
  /** `LastResetTime` as it stands there: when the host came out of its last reset. */
  lastReset: string | undefined;
  reset: ResetAction | undefined;
  /** Where it is, by its own account and by ours. */
  paths: readonly string[];
  // References are as the service gives them: one that cannot be followed fails what needs it, and nothing else.
  chassis: readonly string[];
  /** The BMCs that manage it. */
  managers: readonly string[];
}

/** A blade sees its enclosure and maybe its rack: their power is not the host's. */
const CHASSIS_LINKS_MAX = 4;
const MANAGER_LINKS_MAX = 2;
/** `#ComputerSystem.v1_20_0.ComputerSystem`, `#ComputerSystem.1.0.1.ComputerSystem`; Cisco's older ones are `#Cisco_ComputerSystem`. */
const SYSTEM_TYPE = /^#(?:\w+_)?ComputerSystem(?:\.|$)/;

/**
 * Reads a ComputerSystem.
 *
 * @throws BmcError SystemNotFound for a resource of another type: its PowerState would be something else's.
 */
export function parseSystem(origin: string, { path, body, isStale }: Resource): System {
  const type = stringAt(body, "@odata.type");
  if (type !== undefined && !SYSTEM_TYPE.test(type)) {
    throw new BmcError("SystemNotFound", `${origin}${path} is no ComputerSystem`);
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
  };
}

/** Only the literal `Off` is off, and only the answer of the BMC makes it so (DSP0268, PowerState). */
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
    // SMBIOS writes all zeros or all ones for "not set" (DSP0134, System UUID): that is nobody's name.
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
  // Cisco's older ones spell the action and its target in their own way.
  const action = objectAt(actions, has(actions, "#ComputerSystem.Reset") ? "#ComputerSystem.Reset" : "#System.Reset");
  const target = stringAt(action, "target") ?? stringAt(action, "Target");
  if (target === undefined) return undefined;
  return {
    target,
    allowedTypes: parseAllowed(action, "ResetType@Redfish.AllowableValues"),
    actionInfo: stringAt(action, "@Redfish.ActionInfo"),
  };
}

/** How a Manager is ordered to restart itself (DSP0268, Manager.Reset); undefined where it offers nothing that does. */
export function parseManagerReset(manager: JsonObject): { target: string; type: string } | undefined {
  const action = objectAt(objectAt(manager, "Actions"), "#Manager.Reset");
  const target = stringAt(action, "target");
  const allowed = parseAllowed(action, "ResetType@Redfish.AllowableValues") ?? ["ForceRestart"];
  const type = ["ForceRestart", "GracefulRestart"].find((known) => allowed.includes(known));
  return target === undefined || type === undefined ? undefined : { target, type };
}

/** The values listed at `name`, if any are: a list of nothing says nothing. */
export function parseAllowed(parent: JsonObject, name: string): readonly string[] | undefined {
  const listed = stringsAt(parent, name);
  return listed?.length === 0 ? undefined : listed;
}

/** What a Chassis adds to its System's power. */
export interface Chassis {
  /** Whose its power is: this System's alone, permanently that of something else, or of no System that it names now. */
  whose: "System" | "Other" | "Nobody";
  /** Undefined where it shows none now, which may be so for a while after a BMC's restart. */
  power: PowerReading | undefined;
}

/** More than one host's, or only a part of a host: a BMC's own module, or a GPU baseboard's, stays on with the host off. */
const OTHER_CHASSIS = new Set([
  "Enclosure",
  "Rack",
  "RackGroup",
  "Row",
  "Pod",
  "Shelf",
  "Zone",
  "Sidecar",
  "StorageEnclosure",
  "Card",
  "Cartridge",
  "Component",
  "Expansion",
  "Module",
]);

/** Reads a Chassis that the System at one of `systemPaths` links to. */
export function parseChassis(origin: string, body: JsonObject, systemPaths: readonly string[]): Chassis {
  const systems = linksAt(objectAt(body, "Links"), "ComputerSystems").map((link) =>
    comparable(pathOnOrigin(origin, link, "the chassis's link to its System")),
  );
  const own = systemPaths.map(comparable);
  const isPart = OTHER_CHASSIS.has(stringAt(body, "ChassisType") ?? "");
  // What it contains decides: a chassis that names no System may be the enclosure, whatever its type says.
  const isNobodys = systems.length === 0;
  const isOwn = systems.every((path) => own.includes(path));
  const power = stringAt(body, "PowerState") === undefined ? undefined : parsePower(body);
  return { whose: isPart || !isOwn ? "Other" : isNobodys ? "Nobody" : "System", power };
}

/**
 * The reading of the System together with that of its Chassis: after a restart, OpenBMC can show a running host as Off while the chassis is On
 * (openbmc issue 2224), so an Off that the chassis gainsays is no Off.
 */
export function besideChassis(system: PowerReading, chassis: readonly PowerReading[]): PowerReading {
  const other = chassis.find(({ state }) => state !== "Off");
  if (system.state !== "Off" || other === undefined) return system;
  return { state: "Unknown", raw: `${system.raw}, but its chassis ${other.raw}` };
}

/** Some services take paths in any case, and give them with a slash at the end or without. */
function comparable(path: string): string {
  return path.replace(/\/+$/, "").toLowerCase();
}
