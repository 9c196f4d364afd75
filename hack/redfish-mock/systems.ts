import { z } from "zod";
import { toTime } from "../../src/runtime/time.ts";
import type { Bmc } from "../rack/bmc.ts";
import { POWER_ORDERS } from "../rack/events.ts";
import type { PowerOrderType } from "../rack/events.ts";
import { failure, success } from "./answer.ts";
import type { Answer, Body } from "./answer.ts";
import { parseBody } from "./body.ts";
import type { Endpoint, Operation, OrderStyle, ServiceState } from "./endpoint.ts";
import { logServicesPath } from "./log-service.ts";
import { ENABLED, ROOT, link, resource } from "./resource.ts";
import { taskAnswer } from "./task-service.ts";

// The resources of a host: System, Chassis and Manager have the same id.

const BOOT_TARGETS = ["None", "Pxe", "Hdd"] as const;
const BOOT_ENABLED = ["Disabled", "Once"] as const;
const BOOT_MODES = ["UEFI", "Legacy"] as const;

const bootPatchSchema = z.strictObject({
  Boot: z
    .strictObject({
      BootSourceOverrideEnabled: z.enum(BOOT_ENABLED).optional(),
      BootSourceOverrideTarget: z.enum(BOOT_TARGETS).optional(),
      BootSourceOverrideMode: z.enum(BOOT_MODES).optional(),
    })
    .default({}),
});

export function systemEndpoint(state: ServiceState, id: string, bmc: Bmc): Endpoint {
  const get = (): Body => systemBody(state, id, bmc);
  return { get, ...(state.bootIn === "System" && { PATCH: patchBoot(bmc, get) }) };
}

/** The settings object, which accepts changes of the System. */
export function settingsEndpoint(id: string, bmc: Bmc): Endpoint {
  const get = (): Body =>
    resource("ComputerSystem", settingsPath(id), "Settings", `Settings of System ${id}`, { Boot: bootBody(bmc) });
  return { get, PATCH: patchBoot(bmc, get) };
}

export function resetEndpoint(state: ServiceState, bmc: Bmc): Endpoint {
  return {
    POST: {
      privilege: "ConfigureComponents",
      run: (body, style) => reset(state, bmc, body, style),
    },
  };
}

export function resetInfoEndpoint(id: string): Endpoint {
  const path = `${systemPath(id)}/ResetActionInfo`;
  const parameter = { Name: "ResetType", Required: true, DataType: "String", AllowableValues: POWER_ORDERS };
  return {
    get: () => resource("ActionInfo", path, "ResetActionInfo", "Reset action info", { Parameters: [parameter] }),
  };
}

export function chassisEndpoint(id: string, bmc: Bmc): Endpoint {
  return {
    get: () => {
      const { manufacturer, model, serialNumber } = bmc.identity();
      return resource("Chassis", chassisPath(id), id, "Chassis", {
        ChassisType: "RackMount",
        Manufacturer: manufacturer,
        Model: model,
        SerialNumber: serialNumber,
        PowerState: bmc.readPower(),
        Status: ENABLED,
        Links: { ComputerSystems: [link(systemPath(id))], ManagedBy: [link(managerPath(id))] },
      });
    },
  };
}

/** How long the BMC does not answer after an order to restart itself. */
const RESTART_MS = 8_000;

export function managerResetEndpoint(bmc: Bmc): Endpoint {
  return {
    POST: {
      privilege: "ConfigureManager",
      run: (body) => {
        if (body["ResetType"] !== "ForceRestart") {
          return failure(
            400,
            "ActionParameterValueNotInList",
            "The value for the parameter ResetType is not in the list.",
          );
        }
        bmc.restart(RESTART_MS);
        return success(204);
      },
    },
  };
}

export function managerEndpoint(id: string, bmc: Bmc): Endpoint {
  return {
    get: () =>
      resource("Manager", managerPath(id), id, "BMC", {
        ManagerType: "BMC",
        FirmwareVersion: "1.0.0",
        PowerState: "On",
        LastResetTime: toTime(bmc.lastRestartMs),
        DateTime: toTime(bmc.nowMs()),
        DateTimeLocalOffset: "+00:00",
        Status: ENABLED,
        Actions: {
          "#Manager.Reset": {
            target: `${managerPath(id)}/Actions/Manager.Reset`,
            "ResetType@Redfish.AllowableValues": ["ForceRestart"],
          },
        },
        Links: {
          ManagerForServers: [link(systemPath(id))],
          "ManagerForServers@odata.count": 1,
          ManagerForChassis: [link(chassisPath(id))],
          "ManagerForChassis@odata.count": 1,
        },
      }),
  };
}

export function systemPath(id: string): string {
  return `${ROOT}/Systems/${encodeURIComponent(id)}`;
}

function settingsPath(id: string): string {
  return `${systemPath(id)}/Settings`;
}

export function chassisPath(id: string): string {
  return `${ROOT}/Chassis/${encodeURIComponent(id)}`;
}

export function managerPath(id: string): string {
  return `${ROOT}/Managers/${encodeURIComponent(id)}`;
}

function systemBody(state: ServiceState, id: string, bmc: Bmc): Body {
  const { systemUUID, serialNumber, manufacturer, model } = bmc.identity();
  const path = systemPath(id);
  return resource("ComputerSystem", path, id, `System ${id}`, {
    SystemType: "Physical",
    UUID: systemUUID,
    SerialNumber: serialNumber,
    Manufacturer: manufacturer,
    Model: model,
    HostName: bmc.host.name,
    PowerState: bmc.readPower(),
    LastResetTime: toTime(bmc.host.lastResetMs),
    PowerRestorePolicy: bmc.host.spec.restorePolicy,
    Status: ENABLED,
    LogServices: link(logServicesPath(path)),
    ...(state.bootIn === "System"
      ? { Boot: bootBody(bmc) }
      : {
          // With a settings object, the System shows a setting only after the host has booted with it, and then it is
          // no longer enabled.
          Boot: { ...bootBody(bmc), BootSourceOverrideEnabled: "Disabled", BootSourceOverrideTarget: "None" },
          "@Redfish.Settings": { "@odata.type": "#Settings.v1_3_5.Settings", SettingsObject: link(settingsPath(id)) },
        }),
    Actions: {
      "#ComputerSystem.Reset": {
        target: `${path}/Actions/ComputerSystem.Reset`,
        ...(state.resetTypesIn === "AllowableValues" && { "ResetType@Redfish.AllowableValues": POWER_ORDERS }),
        ...(state.resetTypesIn === "ActionInfo" && { "@Redfish.ActionInfo": `${path}/ResetActionInfo` }),
      },
    },
    Links: { Chassis: [link(chassisPath(id))], ManagedBy: [link(managerPath(id))] },
  });
}

function bootBody(bmc: Bmc): Body {
  const { enabled, target, mode } = bmc.bootSetting;
  return {
    BootSourceOverrideEnabled: enabled,
    "BootSourceOverrideEnabled@Redfish.AllowableValues": BOOT_ENABLED,
    BootSourceOverrideTarget: target,
    "BootSourceOverrideTarget@Redfish.AllowableValues": BOOT_TARGETS,
    BootSourceOverrideMode: mode,
    "BootSourceOverrideMode@Redfish.AllowableValues": BOOT_MODES,
  };
}

/** @param get returns the changed resource for the answer. */
function patchBoot(bmc: Bmc, get: () => Body): Operation {
  return {
    privilege: "ConfigureComponents",
    run: (body) => {
      const parsed = parseBody(bootPatchSchema, body);
      if ("answer" in parsed) return parsed.answer;
      const { BootSourceOverrideEnabled, BootSourceOverrideTarget, BootSourceOverrideMode } = parsed.data.Boot;
      const before = bmc.bootSetting;
      const enabled = BootSourceOverrideEnabled ?? before.enabled;
      bmc.setBoot({
        enabled,
        target: enabled === "Disabled" ? "None" : (BootSourceOverrideTarget ?? before.target),
        mode: BootSourceOverrideMode ?? before.mode,
      });
      return success(200, get());
    },
  };
}

function reset(state: ServiceState, bmc: Bmc, body: Body, style: OrderStyle): Answer {
  const { ResetType: wanted } = body;
  if (wanted === undefined) {
    return failure(400, "ActionParameterMissing", "The action Reset requires the parameter ResetType.");
  }
  const type = POWER_ORDERS.find((known) => known === wanted);
  if (type === undefined) {
    return failure(400, "ActionParameterValueNotInList", `The value for the parameter ResetType is not in the list.`);
  }
  const outcome = bmc.order(type);
  if (outcome === "Refused") {
    return failure(409, "ResourceInUse", `The reset type ${type} is not possible in the present power state.`);
  }
  if (outcome === "NoChange" && style.refuseNoChangeStatus !== undefined) {
    return failure(style.refuseNoChangeStatus, "ActionNotSupported", "The host is in the requested state already.");
  }
  if (style.task === undefined) return success(204);
  const { retryAfterSeconds, endless } = style.task;
  const host = bmc.host;
  const goal = powerAfter(type);
  return taskAnswer(state.tasks.start(retryAfterSeconds, () => !endless && host.power === goal));
}

function powerAfter(type: PowerOrderType): "On" | "Off" {
  return type === "ForceOff" || type === "GracefulShutdown" ? "Off" : "On";
}
