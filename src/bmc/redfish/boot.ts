import type { BootOverride } from "../driver.ts";
import { has, objectAt, stringAt, stringsAt } from "./json.ts";
import type { JsonObject } from "./json.ts";

// The boot override of a System (DSP0268, ComputerSystem.Boot). Pure.

/** Overrides that make a host boot from the network, the better one first: not every network serves HTTP boot. */
const NETWORK_TARGETS = ["Pxe", "UefiHttp"] as const;

/**
 * Whether the override is kept in this resource: the System itself, or the settings object that vendors want written (AMI). A
 * settings object may hold the boot order alone (Lenovo, Dell), and then has no say in the override.
 */
export function hasBoot(body: JsonObject): boolean {
  const boot = objectAt(body, "Boot");
  return has(boot, "BootSourceOverrideEnabled") || has(boot, "BootSourceOverrideTarget");
}

/** The settings object that takes writes in place of the System, if it names one (DSP0266, "Settings resource"). */
export function settingsReference(system: JsonObject): string | undefined {
  return stringAt(objectAt(objectAt(system, "@Redfish.Settings"), "SettingsObject"), "@odata.id");
}

/** Whether the BMC lists what it can boot from, and the network is not in it. */
export function lacksNetworkBoot(body: JsonObject): boolean {
  return networkTarget(body) === undefined;
}

/** What the host boots from next. A continuous network override counts as set: it is not cleared. */
export function parseBootOverride(body: JsonObject): BootOverride {
  const boot = objectAt(body, "Boot");
  if (stringAt(boot, "BootSourceOverrideEnabled") === "Disabled") return "None";
  const target = stringAt(boot, "BootSourceOverrideTarget");
  return NETWORK_TARGETS.some((known) => known === target) ? "NetworkOnce" : "None";
}

/** Whether the host boots by UEFI or as of old (`Legacy`), if the BMC says. */
export function bootMode(body: JsonObject): string | undefined {
  return stringAt(objectAt(body, "Boot"), "BootSourceOverrideMode");
}

/**
 * The changes to the Boot object that set the override, to be tried in this order until one is taken. The mode is named in
 * none but the last: some refuse it, others refuse a change without it, and it is always the present one.
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
 * What `If-Match` is to say at each try, from 1 on, until one is not answered by 412 or 428. A service may want none, the tag as
 * it gives it, or, where it compares strictly as RFC 9110 has it (section 13.1.1: weak tags never match), the tag made strong;
 * some give it with quotes too many, or none, and compare what is inside.
 */
export function ifMatch(etag: string | undefined, tries: number): string | undefined {
  if (etag === undefined) return tries === 1 ? undefined : "*";
  const inner = etag.replace(/^W\//, "").replaceAll(/["\\]/g, "");
  const strong = etag.replace(/^W\//, "");
  // The tag is read again before each try: the second one is also that of a race which was lost.
  const tags = [etag, strong, ...(strong === `"${inner}"` ? [] : [`"${inner}"`])];
  return tags[tries - 1] ?? "*";
}

function networkTarget(body: JsonObject): string | undefined {
  const allowed = stringsAt(objectAt(body, "Boot"), "BootSourceOverrideTarget@Redfish.AllowableValues");
  return NETWORK_TARGETS.find((target) => allowed?.includes(target) ?? true);
}
