import type { BootOverride } from "../driver.ts";
import { has, objectAt, stringAt, stringsAt } from "./json.ts";
import type { JsonObject } from "./json.ts";

/** Overrides that make a host boot from the network. */
const NETWORK_TARGETS: ReadonlySet<string> = new Set(["Pxe", "UefiHttp"]);

/** Where the override of a System is kept, on the System itself or on the settings object that vendors want written. */
export function hasBoot(body: JsonObject): boolean {
  return has(body, "Boot");
}

/** The settings object that takes writes in place of the System, if it names one (DSP0266, "Settings resource"). */
export function settingsReference(system: JsonObject): string | undefined {
  return stringAt(objectAt(objectAt(system, "@Redfish.Settings"), "SettingsObject"), "@odata.id");
}

/** Whether the BMC lists what it can boot from, and the network is not in it. */
export function lacksNetworkBoot(body: JsonObject): boolean {
  return (
    stringsAt(objectAt(body, "Boot"), "BootSourceOverrideTarget@Redfish.AllowableValues")?.includes("Pxe") === false
  );
}

/** What the host boots from next. A continuous network override counts as set: it is not cleared. */
export function parseBootOverride(body: JsonObject): BootOverride {
  const boot = objectAt(body, "Boot");
  if (stringAt(boot, "BootSourceOverrideEnabled") === "Disabled") return "None";
  return NETWORK_TARGETS.has(stringAt(boot, "BootSourceOverrideTarget") ?? "") ? "NetworkOnce" : "None";
}

/**
 * The change to the Boot object. BootSourceOverrideMode stays as it is: writing it switches a host between UEFI and legacy on
 * some vendors, and is refused by others.
 */
export function bootPatch(override: BootOverride): JsonObject {
  return {
    Boot:
      override === "NetworkOnce"
        ? { BootSourceOverrideEnabled: "Once", BootSourceOverrideTarget: "Pxe" }
        : { BootSourceOverrideEnabled: "Disabled", BootSourceOverrideTarget: "None" },
  };
}
