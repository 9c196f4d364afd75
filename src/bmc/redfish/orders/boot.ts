import type { BootOverride } from "../../interface/driver.ts";
import { has, objectAt, stringAt, stringsAt } from "../http/json.ts";
import type { JsonObject } from "../http/json.ts";

// The boot override of a System (DSP0268, ComputerSystem.Boot). Pure.

/** Overrides that make a host boot from the network, the preferred one first: not every network serves HTTP boot. */
const NETWORK_TARGETS = ["Pxe", "UefiHttp"] as const;

/**
 * Whether this resource has the override. It is the System, or the settings object that some vendors (AMI) require for
 * writes. The settings object of other vendors (Lenovo, Dell) has only the boot order, and is not used.
 */
export function hasBoot(body: JsonObject): boolean {
  const boot = objectAt(body, "Boot");
  return has(boot, "BootSourceOverrideEnabled") || has(boot, "BootSourceOverrideTarget");
}

/**
 * The settings object that accepts writes instead of the System, if the System names one (DSP0266, "Settings
 * resource").
 */
export function settingsReference(system: JsonObject): string | undefined {
  return stringAt(objectAt(objectAt(system, "@Redfish.Settings"), "SettingsObject"), "@odata.id");
}

/** Whether the BMC lists its boot sources and the network is not one of them. */
export function lacksNetworkBoot(body: JsonObject): boolean {
  return networkTarget(body) === undefined;
}

/** From where the host boots next. A continuous network override counts as set: it is not cleared. */
export function parseBootOverride(body: JsonObject): BootOverride {
  const boot = objectAt(body, "Boot");
  if (stringAt(boot, "BootSourceOverrideEnabled") === "Disabled") return "None";
  const target = stringAt(boot, "BootSourceOverrideTarget");
  return NETWORK_TARGETS.some((known) => known === target) ? "NetworkOnce" : "None";
}

/** Whether the host boots with `UEFI` or `Legacy`, if the BMC reports it. */
export function bootMode(body: JsonObject): string | undefined {
  return stringAt(objectAt(body, "Boot"), "BootSourceOverrideMode");
}

/**
 * The changes to the Boot object that set the override, to be tried in this order until one is accepted. Only the last
 * one contains the mode: some BMCs refuse it, others require it, and it is always the present mode.
 */
export function bootPatches(override: BootOverride, body: JsonObject): readonly JsonObject[] {
  if (override === "None") {
    const disabled = { BootSourceOverrideEnabled: "Disabled" };
    return [{ Boot: { ...disabled, BootSourceOverrideTarget: "None" } }, { Boot: disabled }];
  }
  const once = { BootSourceOverrideEnabled: "Once", BootSourceOverrideTarget: networkTarget(body) ?? "Pxe" };
  const mode = bootMode(body);
  return [{ Boot: once }, ...(mode === undefined ? [] : [{ Boot: { ...once, BootSourceOverrideMode: mode } }])];
}

/**
 * The value of `If-Match` for each attempt, from 1 on. The next attempt follows an answer of 412 or 428. A service may
 * require no tag, the tag as it gives it, or the tag as a strong one (RFC 9110, section 13.1.1: weak tags never match).
 * Some services give the tag with additional quotes, or none, and compare the text inside.
 */
export function ifMatch(etag: string | undefined, tries: number): string | undefined {
  if (etag === undefined) return tries === 1 ? undefined : "*";
  const inner = etag.replace(/^W\//, "").replaceAll(/["\\]/g, "");
  const strong = etag.replace(/^W\//, "");
  // The tag is read again before each attempt, so a second attempt also succeeds after a concurrent change.
  const tags = [etag, strong, ...(strong === `"${inner}"` ? [] : [`"${inner}"`])];
  return tags[tries - 1] ?? "*";
}

function networkTarget(body: JsonObject): string | undefined {
  const allowed = stringsAt(objectAt(body, "Boot"), "BootSourceOverrideTarget@Redfish.AllowableValues");
  return NETWORK_TARGETS.find((target) => allowed?.includes(target) ?? true);
}
