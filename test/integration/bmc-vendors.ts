import { gzipSync } from "node:zlib";
import { redfishError } from "./bmc-fixture.ts";
import type { Json, Reply, Request } from "./bmc-fixture.ts";

// Small resource trees of real servers, from public documents of their vendors: only what a fence uses, and the special
// behavior of each vendor. The values are invented.

const ROOT = "/redfish/v1";
const UUID = "30343536-3138-4d32-3230-343130395a4c";

/** The service of one server. */
export interface Vendor {
  name: string;
  /** The path in the address, which names the System if the service has several. */
  path: string;
  systemPath: string;
  resources: Record<string, Json>;
  /** The collection of sessions; absent if there is only basic authentication. */
  sessions?: { path: string; location: (path: string) => string };
  /** Chassis that show the power of the host. */
  chassis: readonly string[];
  resetPath: string;
  /** The resource that accepts the boot override; absent if there is none. */
  bootPath?: string;
  /** Special answers of this vendor; undefined for an answer by the standard. */
  quirk?: (request: Request, state: TreeState) => Reply | undefined;
  expected: { systemUUID?: string; serialNumber?: string };
  /** Whether the test also sets the boot override. */
  boots: boolean;
}

export interface TreeState {
  power: "On" | "Off";
  /** Counts what a quirk has done. */
  count: number;
  resources: Record<string, Json>;
}

const link = (path: string): Json => ({ "@odata.id": path });
const links = (...paths: string[]): Json[] => paths.map(link);
const relative = (path: string): string => path;
const SESSIONS = `${ROOT}/SessionService/Sessions`;
const STANDARD = { path: SESSIONS, location: relative };
const BOOT_TARGETS = "BootSourceOverrideTarget@Redfish.AllowableValues";

interface Shape {
  id: string;
  chassis?: Record<string, Json>;
  managers?: Record<string, Json>;
  types?: readonly string[];
  reset?: Json;
  boot?: Json | undefined;
  system?: Json;
  sessionsLink?: string;
}

/** The resources that all trees share, with a System of this shape. */
function tree(shape: Shape): Pick<Vendor, "systemPath" | "resources" | "resetPath" | "chassis" | "path"> {
  const systemPath = `${ROOT}/Systems/${shape.id}`;
  const resetPath = `${systemPath}/Actions/ComputerSystem.Reset`;
  const chassis = shape.chassis ?? { [`${ROOT}/Chassis/1`]: { ChassisType: "RackMount", PowerState: "On" } };
  const managers = shape.managers ?? {};
  const system: Json = {
    ...link(systemPath),
    "@odata.type": "#ComputerSystem.v1_10_0.ComputerSystem",
    Id: shape.id,
    UUID,
    SerialNumber: "CZ20410ABC",
    Manufacturer: "Maker",
    Model: "Server",
    PowerState: "On",
    Links: { Chassis: links(...Object.keys(chassis)), ManagedBy: links(...Object.keys(managers)) },
    Actions: {
      "#ComputerSystem.Reset": shape.reset ?? {
        target: resetPath,
        "ResetType@Redfish.AllowableValues": shape.types ?? ["On", "ForceOff", "GracefulShutdown", "ForceRestart"],
      },
    },
    ...("boot" in shape ? {} : { Boot: standardBoot() }),
    ...(shape.boot !== undefined && { Boot: shape.boot }),
    ...shape.system,
  };
  return {
    path: "",
    systemPath,
    resetPath,
    chassis: Object.keys(chassis).filter((path) => "PowerState" in (chassis[path] ?? {})),
    resources: {
      [`${ROOT}/`]: {
        ...link(`${ROOT}/`),
        Systems: link(`${ROOT}/Systems`),
        Links: { Sessions: link(shape.sessionsLink ?? SESSIONS) },
      },
      [`${ROOT}/Systems`]: { Members: links(systemPath), "Members@odata.count": 1 },
      [systemPath]: system,
      ...chassis,
      ...managers,
    },
  };
}

function standardBoot(): Json {
  return {
    BootSourceOverrideEnabled: "Disabled",
    BootSourceOverrideTarget: "None",
    BootSourceOverrideMode: "UEFI",
    [BOOT_TARGETS]: ["None", "Pxe", "Hdd", "Cd", "BiosSetup"],
  };
}

const isReset = ({ method, path }: Request): boolean => method === "POST" && /Actions\/.*Reset\/?$/.test(path);
const wanted = ({ body }: Request): "On" | "Off" => (body["ResetType"] === "ForceOff" ? "Off" : "On");
const isAlready = (request: Request, state: TreeState): boolean => isReset(request) && wanted(request) === state.power;

/** Refuses a PATCH without the ETag of the last GET. */
function requireTag(tag: string, missingStatus: number): NonNullable<Vendor["quirk"]> {
  return ({ method, headers, path }, { resources }) => {
    if (method === "GET" && resources[path] !== undefined) {
      return { status: 200, headers: { etag: tag }, body: resources[path] };
    }
    if (method !== "PATCH" || headers["if-match"] === tag) return undefined;
    return redfishError(headers["if-match"] === undefined ? missingStatus : 412, "Base.1.8.PreconditionFailed");
  };
}

const serial = { systemUUID: UUID, serialNumber: "CZ20410ABC" };
const idrac = (sessionsLink: string): ReturnType<typeof tree> =>
  tree({
    id: "System.Embedded.1",
    sessionsLink,
    types: ["On", "ForceOff", "ForceRestart", "GracefulShutdown", "PushPowerButton", "Nmi"],
    chassis: {
      [`${ROOT}/Chassis/System.Embedded.1`]: { ChassisType: "RackMount", PowerState: "On" },
      // The backplane is a separate enclosure and stays powered.
      [`${ROOT}/Chassis/Enclosure.Internal.0-1:RAID.Integrated.1-1`]: { ChassisType: "Enclosure" },
    },
    managers: {
      [`${ROOT}/Managers/iDRAC.Embedded.1`]: {
        ManagerType: "BMC",
        DateTime: "2026-03-01T10:00:00-06:00",
        LastResetTime: "2025-12-24T02:00:00-06:00",
      },
    },
  });
const ilo = (type: string): ReturnType<typeof tree> =>
  tree({
    id: "1",
    sessionsLink: `${SESSIONS}/`,
    types: ["On", "ForceOff", "GracefulShutdown", "ForceRestart", "Nmi", "PushPowerButton"],
    system: { "@odata.type": type },
  });

/** iLO 4 and 5 have a slash at the end of every path, and redirect requests without it. */
function iloWays(answer: (request: Request, state: TreeState) => Reply | undefined): NonNullable<Vendor["quirk"]> {
  return (request, state) => {
    const { method, path } = request;
    if (method === "POST" && path === SESSIONS) return { status: 308, headers: { location: `${SESSIONS}/` } };
    if (method === "GET" && !path.endsWith("/")) return { status: 308, headers: { location: `${path}/` } };
    if (isAlready(request, state)) {
      const info = { MessageArgs: [`Power is ${state.power}`], MessageID: "iLO.0.10.InvalidOperationForSystemState" };
      return { status: 400, body: { error: { code: "iLO.0.10.ExtendedInfo", "@Message.ExtendedInfo": [info] } } };
    }
    return answer(request, state);
  };
}

const settings = (systemPath: string, name: string): Json => ({
  "@Redfish.Settings": { SettingsObject: link(`${systemPath}/${name}`) },
});

export const VENDORS: readonly Vendor[] = [
  {
    name: "a host is fenced through a Dell iDRAC 8, with sessions outside of the SessionService and 409 for no change",
    ...idrac(`${ROOT}/Sessions`),
    sessions: { path: `${ROOT}/Sessions`, location: relative },
    quirk: (request, state) => {
      if (request.path === SESSIONS) return redfishError(405, "Base.1.0.GeneralError");
      return isAlready(request, state) ? redfishError(409, "IDRAC.1.6.PSU501") : undefined;
    },
    expected: serial,
    boots: true,
  },
  {
    name: "a host is fenced through a Dell iDRAC 9, with a settings object for the boot order alone and On refused for a while after off",
    ...idrac(SESSIONS),
    sessions: STANDARD,
    quirk: (request, state) => {
      if (isAlready(request, state)) return redfishError(409, `IDRAC.2.8.PSU50${state.power === "On" ? 1 : 2}`);
      if (!isReset(request) || wanted(request) === "Off" || (state.count += 1) > 1) return undefined;
      return redfishError(409, "IDRAC.2.8.PSU505", "the server is being powered off");
    },
    expected: serial,
    boots: true,
  },
  {
    name: "a host is fenced through a Dell iDRAC 10, with no If-Match on actions, weak ETags and On refused with a 500",
    ...idrac(SESSIONS),
    sessions: STANDARD,
    quirk: (request, state) => {
      if (isReset(request) && request.headers["if-match"] !== undefined) return { status: 412 };
      if (isAlready(request, state)) return redfishError(409, "IDRAC.3.0.PSU501");
      if (isReset(request) && wanted(request) === "On" && (state.count += 1) === 1) {
        return redfishError(500, "IDRAC.3.0.PSU502");
      }
      return requireTag('W/"gen-1"', 428)(request, state);
    },
    expected: serial,
    boots: true,
  },
  {
    name: "a host is fenced through an HPE iLO 4, with redirects to the path with a slash, gzip that was not requested and its own form of errors",
    ...ilo("#ComputerSystem.1.0.1.ComputerSystem"),
    sessions: { path: `${SESSIONS}/`, location: (path) => `https://ilo-4.example${path}` },
    quirk: iloWays(({ method, path }, { resources }) => {
      const resource = resources[path.slice(0, -1)] ?? resources[path];
      if (method !== "GET" || resource === undefined) return undefined;
      return { status: 200, headers: { "content-encoding": "gzip" }, body: gzipSync(JSON.stringify(resource)) };
    }),
    expected: serial,
    boots: true,
  },
  {
    name: "a host is fenced through an HPE iLO 5, with a session located by its own host name, a read-only boot mode and success in an error body",
    ...ilo("#ComputerSystem.v1_10_0.ComputerSystem"),
    sessions: { path: `${SESSIONS}/`, location: (path) => `https://ilo-5.example${path}/` },
    quirk: iloWays((request) => {
      const boot = request.body["Boot"];
      const named = typeof boot === "object" && boot !== null && "BootSourceOverrideMode" in boot;
      return named ? redfishError(400, "iLO.2.14.PropertyNotWritableOrUnknown") : undefined;
    }),
    expected: serial,
    boots: true,
  },
  {
    name: "a host is fenced through an HPE iLO 6, with 200 and a message for every order",
    ...ilo("#ComputerSystem.v1_17_0.ComputerSystem"),
    sessions: STANDARD,
    quirk: (request, state) =>
      isAlready(request, state) ? redfishError(400, "iLO.2.21.InvalidOperationForSystemState") : undefined,
    expected: serial,
    boots: true,
  },
  {
    name: "a host is fenced through a Lenovo XCC, with pending settings for the boot order alone and several chassis links",
    ...tree({
      id: "1",
      types: ["On", "Nmi", "GracefulShutdown", "GracefulRestart", "ForceOn", "ForceOff", "ForceRestart"],
      chassis: {
        [`${ROOT}/Chassis/1`]: {
          ChassisType: "RackMount",
          PowerState: "On",
          Links: { ComputerSystems: links(`${ROOT}/Systems/1`) },
        },
        [`${ROOT}/Chassis/3`]: { ChassisType: "StorageEnclosure", PowerState: "On" },
      },
      system: settings(`${ROOT}/Systems/1`, "Pending"),
    }),
    chassis: [`${ROOT}/Chassis/1`],
    sessions: STANDARD,
    quirk: ({ path, method }) => {
      if (path !== `${ROOT}/Systems/1/Pending`) return undefined;
      return method === "GET"
        ? { status: 200, body: { Boot: { BootOrder: ["Boot0001"] } } }
        : redfishError(403, "Base.1.8.InsufficientPrivilege");
    },
    expected: serial,
    boots: true,
  },
  (() => {
    const self = tree({ id: "Self", system: settings(`${ROOT}/Systems/Self`, "SD") });
    const bootPath = `${self.systemPath}/SD`;
    self.resources[bootPath] = { ...link(bootPath), Boot: standardBoot() };
    const tagged = requireTag('W/"1566514653"', 428);
    return {
      name: "a host is fenced through AMI MegaRAC (ASRock, Gigabyte, Lenovo TSM), with future state, If-Match required and tasks named in the body",
      ...self,
      sessions: STANDARD,
      bootPath,
      quirk: (request, state) => {
        if (request.method === "PATCH" && request.path === self.systemPath) return { status: 405 };
        if (request.path === `${ROOT}/TaskService/Tasks/1`) {
          return { status: 200, body: { "@odata.type": "#Task.v1_4_2.Task", TaskState: "Completed" } };
        }
        if (!isReset(request)) return tagged(request, state);
        state.power = wanted(request);
        return { status: 202, body: { ...link(`${ROOT}/TaskService/Tasks/1`), TaskState: "New" } };
      },
      expected: serial,
      boots: true,
    } satisfies Vendor;
  })(),
  {
    name: "a host is fenced through a Supermicro BMC, with ActionInfo, a boot mode that is lost when the target changes and messages in success",
    ...tree({
      id: "1",
      reset: {
        target: `${ROOT}/Systems/1/Actions/ComputerSystem.Reset`,
        "@Redfish.ActionInfo": `${ROOT}/Systems/1/ResetActionInfo`,
      },
    }),
    sessions: STANDARD,
    quirk: ({ method, path, body }, { resources }) => {
      if (path === `${ROOT}/Systems/1/ResetActionInfo`) {
        const values = ["On", "ForceOff", "GracefulShutdown", "GracefulRestart", "ForceRestart", "Nmi", "ForceOn"];
        return { status: 200, body: { Parameters: [{ Name: "ResetType", AllowableValues: values }] } };
      }
      const boot = body["Boot"];
      if (method !== "PATCH" || typeof boot !== "object" || boot === null) return undefined;
      const present = resources[path]?.["Boot"];
      Object.assign(present ?? {}, { BootSourceOverrideMode: "Legacy" }, boot);
      return {
        status: 200,
        body: { Success: { code: "Base.1.8.Success", Message: "Successfully Completed Request." } },
      };
    },
    expected: serial,
    boots: true,
  },
  {
    name: "a host is fenced through OpenBMC, with ActionInfo alone, a second System for the accelerators and a chassis that shows the power",
    ...tree({
      id: "system",
      reset: {
        target: `${ROOT}/Systems/system/Actions/ComputerSystem.Reset`,
        "@Redfish.ActionInfo": `${ROOT}/Systems/system/ResetActionInfo`,
      },
      managers: {
        [`${ROOT}/Managers/bmc`]: {
          DateTime: "2026-03-01T10:00:00+00:00",
          LastResetTime: "2026-02-01T10:00:00+00:00",
          PowerState: "On",
        },
      },
    }),
    path: `${ROOT}/Systems/system`,
    sessions: STANDARD,
    quirk: ({ path }) => {
      if (path === `${ROOT}/Systems`) {
        return { status: 200, body: { Members: links(`${ROOT}/Systems/HGX_Baseboard_0`, `${ROOT}/Systems/system`) } };
      }
      if (path !== `${ROOT}/Systems/system/ResetActionInfo`) return undefined;
      const values = ["On", "ForceOff", "ForceOn", "ForceRestart", "GracefulRestart", "GracefulShutdown", "PowerCycle"];
      return {
        status: 200,
        body: {
          Parameters: [{ "@odata.type": "#ActionInfo.v1_1_2.Parameters", Name: "ResetType", AllowableValues: values }],
        },
      };
    },
    expected: serial,
    boots: true,
  },
  {
    name: "a host is fenced through an iBMC of Huawei or xFusion, with every change needing the ETag",
    ...tree({ id: "1", types: ["On", "ForceOff", "GracefulShutdown", "ForceRestart", "Nmi", "ForcePowerCycle"] }),
    sessions: STANDARD,
    quirk: (request, state) =>
      isAlready(request, state)
        ? redfishError(400, "iBMC.1.0.ServerInThisPowerState")
        : requireTag('W/"a1b2c3d4"', 412)(request, state),
    expected: serial,
    boots: true,
  },
  {
    name: "a host is fenced through a Cisco CIMC 3, with its own names of type, action and target, links as plain texts and no boot mode",
    ...tree({
      id: "FCH0000V0AA",
      boot: {
        BootSourceOverrideEnabled: "Disabled",
        BootSourceOverrideTarget: "None",
        [BOOT_TARGETS]: ["None", "Pxe", "Floppy", "Cd", "Hdd", "BiosSetup", "Diags"],
      },
      system: {
        "@odata.type": "#Cisco_ComputerSystem",
        Links: { Chassis: [`${ROOT}/Chassis/1`], ManagedBy: [`${ROOT}/Managers/CIMC`] },
        Actions: {
          "#System.Reset": {
            Target: `${ROOT}/Systems/FCH0000V0AA/Actions/System.Reset`,
            "ResetType@Redfish.AllowableValues": ["On", "ForceOff", "GracefulShutdown", "ForceRestart", "Nmi"],
          },
        },
      },
    }),
    resetPath: `${ROOT}/Systems/FCH0000V0AA/Actions/System.Reset`,
    sessions: STANDARD,
    expected: serial,
    boots: true,
  },
  {
    name: "a host is fenced through a Fujitsu iRMC, with a list of what it accepts in the present state alone and changes that need the ETag",
    ...tree({ id: "0" }),
    sessions: STANDARD,
    quirk: (request, state) => {
      const { method, path, body } = request;
      const system = state.resources[`${ROOT}/Systems/0`] ?? {};
      const types = state.power === "On" ? ["ForceOff", "GracefulShutdown", "ForceRestart"] : ["On"];
      system["Actions"] = {
        Oem: { "#FTSComputerSystem.Reset": { target: `${ROOT}/Systems/0/Actions/Oem/FTSComputerSystem.Reset` } },
        "#ComputerSystem.Reset": {
          target: `${ROOT}/Systems/0/Actions/ComputerSystem.Reset`,
          "ResetType@Redfish.AllowableValues": types,
        },
      };
      if (method === "POST" && path.endsWith("ComputerSystem.Reset") && !types.includes(String(body["ResetType"]))) {
        return redfishError(400, "Base.1.2.ActionParameterNotSupported");
      }
      return requireTag('"1583765"', 428)(request, state);
    },
    expected: serial,
    boots: true,
  },
  {
    name: "a host is fenced through an Intel BMC, with an id of dots, no power in the chassis, placeholders for identity and no boot override",
    ...tree({
      id: "............",
      chassis: { [`${ROOT}/Chassis/RackMount`]: { ChassisType: "RackMount" } },
      boot: undefined,
      system: { UUID: "00000000-0000-0000-0000-000000000000", SerialNumber: "BQWL00000001" },
    }),
    sessions: STANDARD,
    expected: { serialNumber: "BQWL00000001" },
    boots: false,
  },
  {
    name: "a host is fenced through a minimal service, with basic authentication for everything except the root, no identity, no chassis and no lists",
    ...tree({
      id: "0",
      chassis: {},
      reset: { target: `${ROOT}/Systems/0/Actions/ComputerSystem.Reset` },
      boot: undefined,
      system: { "@odata.type": undefined, UUID: undefined, SerialNumber: undefined, Links: undefined },
    }),
    quirk: ({ path }) => {
      if (path === SESSIONS) return { status: 401, headers: { "www-authenticate": "Basic" } };
      return path === `${ROOT}/` ? { status: 200, body: { Systems: link(`${ROOT}/Systems`) } } : undefined;
    },
    expected: {},
    boots: false,
  },
];
